"""Loaded bundles: texts, table rows, images or logits in, decisions out."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant.bundle.calib_rows import CalibRows
from calibrant.bundle.calibration import BundleCalibration
from calibrant.bundle.decision_rules import DecisionRule, decision_rules, describe_rule
from calibrant.bundle.decisions import Decisions, RuleDecision, decide_rows, to_rule_decision
from calibrant.bundle.points import BundlePoint
from calibrant.bundle.reasons import explain_rows
from calibrant.bundle.scope import flag_rows
from calibrant.bundle.scores import ModelScores
from calibrant.data.encoders.input_columns import InputColumns
from calibrant.errors import InputError
from calibrant.inputs import FloatArray

if TYPE_CHECKING:
    import pyarrow as pa

    from calibrant.data.explanation import Explanation
    from calibrant.data.row_scorer import RowScorer
    from calibrant.ood import OodRule


@dataclass(frozen=True, eq=False)
class Bundle:
    """A model with calibrator, operating points and out-of-scope rule; see `load_bundle`.

    An operating point acts on a row if its score reaches the threshold; a row below a band is
    cleared; otherwise the bundle abstains. The first point of each class is active; if several act
    on a row, the point of the most probable class decides. Further points of a class are
    alternatives, selected with `decide(..., point=1)`. A row flagged by the out-of-scope rule is
    left to a person, whatever the points say. A bundle is immutable, so threads can share it.

    Parameters
    ----------
    path : the folder
    classes : class names, in the order of the columns
    calibration : the calibrator, or None
    points : the operating points, in the order in which they were packed
    actions : action names by class name (as text)
    manifest : content of `manifest.json`
    scorer : the model, or None if the bundle takes logits
    ood : the out-of-scope rule, or None
    """

    path: Path
    classes: tuple[Any, ...]
    calibration: BundleCalibration | None
    points: tuple[BundlePoint, ...]
    actions: Mapping[str, str] = field(repr=False)
    manifest: Mapping[str, Any] = field(repr=False)
    scorer: RowScorer | None = field(default=None, repr=False)
    ood: OodRule | None = None

    @property
    def metrics(self) -> Mapping[str, Any]:
        """The packed metrics."""
        metrics: Mapping[str, Any] = self.manifest["metrics"]
        return metrics

    @property
    def provenance(self) -> Mapping[str, Any]:
        """Time, package versions and source files of the bundle."""
        provenance: Mapping[str, Any] = self.manifest["provenance"]
        return provenance

    @cached_property
    def calib(self) -> CalibRows | None:
        """The calibrate rows, read from the folder on first access; None if none were packed.

        Raises `BundleError` if the folder was replaced by another bundle or the file is damaged.
        """
        return CalibRows.read(self.path, self.manifest)

    def predict_proba(
        self, inputs: Any = None, *, logits: Any = None, probs: Any = None
    ) -> FloatArray:
        """Return calibrated probabilities (n, K), or those of the model without a calibrator.

        Parameters
        ----------
        inputs : model inputs: a list or a column of texts, a table, or images as uint8
            (n, height, width, channels); logits in a bundle without a model
        logits : raw scores of the model instead: (n, K), or (n,) log-odds of the second of two
            classes
        probs : uncalibrated probabilities of the model instead, in the same shapes
        """
        return self._probabilities(self._model_scores(inputs, logits, probs))

    def predict_logits(self, inputs: Any) -> FloatArray:
        """Return the uncalibrated logits (n, K) of the model.

        Parameters
        ----------
        inputs : as in `predict_proba`
        """
        return self._model_scores(inputs, None, None).matrix

    def explain(self, inputs: Any) -> Explanation:
        """Return what each part of a row contributes to the logits of the model.

        Base and contributions add up to `predict_logits`, before calibration, except for rows that
        the model cannot judge and gives equal logits. Boosted trees, n-grams and linear models of
        tables explain; networks, models of images and ensembles raise `InputError`.

        Parameters
        ----------
        inputs : as in `predict_proba`
        """
        return explain_rows(self.scorer, inputs)

    def decide(
        self,
        inputs: Any = None,
        *,
        logits: Any = None,
        probs: Any = None,
        point: int | None = None,
    ) -> Decisions:
        """Decide for each row whether to act, and on which class, or to leave it to a person.

        Parameters
        ----------
        inputs, logits, probs : as in `predict_proba`
        point : position of a single operating point to use; by default the first of each class
        """
        point_positions = self._point_positions(point)
        scores = self._model_scores(inputs, logits, probs)
        out_of_scope = flag_rows(self.ood, scores, with_model=self.scorer is not None)
        log_probs = None
        if any(self.points[i].decides_on == "calibrated" for i in point_positions):
            log_probs = self._log_probs(scores)
        return decide_rows(
            self.classes,
            self._probabilities(scores, log_probs),
            self._rule_decisions(point_positions, scores, log_probs),
            actions=[self.actions.get(str(name)) for name in self.classes],
            out_of_scope=out_of_scope,
        )

    @property
    def columns(self) -> InputColumns:
        """The columns to read from a table; empty for images.

        Without a model these are the columns `logit_<class>`.
        """
        if self.scorer is not None:
            return self.scorer.columns
        return InputColumns(numbers=tuple(f"logit_{name}" for name in self.classes))

    def inputs_of(self, table: pa.Table) -> Any:
        """Extract the model inputs from an Arrow table.

        Parameters
        ----------
        table : may have additional columns, in any order; a missing one raises `InputError`
        """
        if self.scorer is not None:
            return self.scorer.pick(table)
        return self.columns.select_from(table)

    @property
    def changes_probabilities(self) -> bool:
        """Whether its probabilities are other numbers than those of its model."""
        return self.calibration is not None and self.calibration.method != "identity"

    @cached_property
    def decision_rules(self) -> tuple[DecisionRule, ...]:
        """Every rule, with its threshold on the decision score and on the calibrated scale."""
        alternatives = [self.is_alternative(i) for i in range(len(self.points))]
        return decision_rules(self.points, self.calibration, self.classes, alternatives)

    def active_rules(self, point: int | None = None) -> tuple[DecisionRule, ...]:
        """Return the rules that decide, in the order of `Decisions.rules`.

        Parameters
        ----------
        point : as in `decide`
        """
        if not self.points:
            return ()
        positions = self._point_positions(point)
        return tuple(rule for rule in self.decision_rules if rule.position in positions)

    def is_alternative(self, point: int) -> bool:
        """Return whether an earlier operating point already acts on one of its classes."""
        earlier = {name for each in self.points[:point] for name in each.acts_on}
        return bool(earlier & self.points[point].acts_on)

    def to_dict(self) -> dict[str, Any]:
        """Return the manifest."""
        return dict(self.manifest)

    def __str__(self) -> str:
        method = "no calibrator" if self.calibration is None else self.calibration.method
        model = "" if self.scorer is None else f", {self.scorer.config['model']}"
        lines = [f"Bundle of {len(self.classes)} classes{model}, {method}."]
        for i, each in enumerate(self.points):
            lines += [f"{i}. On {each.decides_on} scores: {promise}" for promise in each.promises]
            lines += [f"   {describe_rule(rule.to_dict())}." for rule in self.active_rules(i)]
        if self.ood is not None:
            lines.append(f"Rows {self.ood}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"

    def _model_scores(self, inputs: Any, logits: Any, probs: Any) -> ModelScores:
        if inputs is not None:
            if logits is not None or probs is not None:
                raise InputError("give only one of inputs, logits and probs.")
            # Without a model, the inputs are logits.
            logits = inputs if self.scorer is None else self.scorer.predict_logits(inputs)
        return ModelScores.from_input(self.classes, logits=logits, probs=probs)

    def _log_probs(self, scores: ModelScores) -> FloatArray | None:
        if self.calibration is None:
            return None
        if scores.kind == "probs":
            scores = ModelScores("logits", self.calibration.logits(scores.array))
        return self.calibration.log_probs(scores.matrix)

    def _probabilities(
        self, scores: ModelScores, log_probs: FloatArray | None = None
    ) -> FloatArray:
        """Return calibrated probabilities; the identity returns those of the model unchanged."""
        if self.calibration is None or (
            self.calibration.method == "identity" and scores.kind == "probs"
        ):
            return scores.probs
        calibrated = self._log_probs(scores) if log_probs is None else log_probs
        assert calibrated is not None  # a calibrator exists
        return np.exp(calibrated)

    def _rule_decisions(
        self, point_positions: Sequence[int], scores: ModelScores, log_probs: FloatArray | None
    ) -> list[RuleDecision]:
        decisions = []
        for i in point_positions:
            each = self.points[i]
            results = each.apply_rules(scores, log_probs, self.classes)
            decisions += [
                to_rule_decision(i, rule, outcome)
                for rule, outcome in zip(each.rules, results, strict=True)
            ]
        return decisions

    def _point_positions(self, point: int | None) -> list[int]:
        """Return the positions of the active points."""
        if not self.points:
            raise InputError(
                "this bundle has no operating point and gives probabilities only: pack one with "
                "calibrant pack --point."
            )
        if point is None:
            return [i for i in range(len(self.points)) if not self.is_alternative(i)]
        if point not in range(len(self.points)):
            raise InputError(
                f"point must be a position from 0 to {len(self.points) - 1}, got {point!r}."
            )
        return [int(point)]
