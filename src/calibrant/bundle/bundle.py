"""A loaded bundle: texts, rows of a table, images or logits in, decisions out."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant.bundle.calib_rows import CalibRows
from calibrant.bundle.calibration import Calibration
from calibrant.bundle.decisions import Decisions, Verdict, decided
from calibrant.bundle.points import BundlePoint
from calibrant.bundle.scope import flagged
from calibrant.bundle.scores import GivenScores
from calibrant.data.encoders.input_columns import InputColumns
from calibrant.errors import InputError
from calibrant.inputs import FloatArray

if TYPE_CHECKING:
    import pyarrow as pa

    from calibrant.models.scorer import Scorer
    from calibrant.ood import OodRule

__all__ = ["Bundle"]


@dataclass(frozen=True, eq=False)
class Bundle:
    """All that turns texts, tables, images or scores into decisions; see `load_bundle`.

    A row is acted on by an operating point where its score reaches the threshold; below a band it
    is cleared; otherwise the bundle abstains. The first point of each class has a say; where
    several act on a row, the one of the most probable class decides. Further points of a class are
    alternatives, taken by `decide(..., point=1)`. A row that the out-of-scope rule flags is left
    to a person, whatever the points say. Nothing changes after loading, so threads may share it.

    Parameters
    ----------
    path : the folder
    classes : names of the classes, in the order of the columns
    calibration : the calibrator, or None
    points : the operating points, in the order in which they were packed
    actions : for class names (as text) the names of what is done
    manifest : everything that `manifest.json` says
    scorer : the running model, or None where logits come in
    ood : the rule that flags rows unlike the train rows, or None
    """

    path: Path
    classes: tuple[Any, ...]
    calibration: Calibration | None
    points: tuple[BundlePoint, ...]
    actions: Mapping[str, str] = field(repr=False)
    manifest: Mapping[str, Any] = field(repr=False)
    scorer: Scorer | None = field(default=None, repr=False)
    ood: OodRule | None = None

    @property
    def metrics(self) -> Mapping[str, Any]:
        """The figures that were packed."""
        found: Mapping[str, Any] = self.manifest["metrics"]
        return found

    @property
    def provenance(self) -> Mapping[str, Any]:
        """When, by which packages and from which files it was packed."""
        found: Mapping[str, Any] = self.manifest["provenance"]
        return found

    @cached_property
    def calib(self) -> CalibRows | None:
        """The calibrate rows, read when first asked for; None where none were packed.

        They are read from the folder: where another bundle stands there by now, or the file is
        damaged, that is a `BundleError`.
        """
        return CalibRows.read(self.path, self.manifest)

    def predict_proba(
        self, inputs: Any = None, *, logits: Any = None, probs: Any = None
    ) -> FloatArray:
        """Return calibrated probabilities (n, K); without a calibrator those of the model.

        Parameters
        ----------
        inputs : what the model reads: a list or a column of texts, a table, or images, bytes
            (n, height, width, channels); in a bundle without a model, logits
        logits : the model's own scores instead: (n, K), or (n,) log-odds of the second of two
            classes
        probs : the model's own probabilities instead, in the same shapes
        """
        return self._probabilities(self._given(inputs, logits, probs))

    def predict_logits(self, inputs: Any) -> FloatArray:
        """Return the model's own logits (n, K), not calibrated.

        Parameters
        ----------
        inputs : as in `predict_proba`
        """
        return self._given(inputs, None, None).matrix

    def decide(
        self,
        inputs: Any = None,
        *,
        logits: Any = None,
        probs: Any = None,
        point: int | None = None,
    ) -> Decisions:
        """Decide for each row whether to act, on which class, or to leave it to a person.

        Parameters
        ----------
        inputs, logits, probs : as in `predict_proba`
        point : position of the one operating point that decides; by default the first of each class
        """
        deciding = self._deciding(point)
        given = self._given(inputs, logits, probs)
        outside = flagged(self.ood, given, with_model=self.scorer is not None)
        log_probs = None
        if any(self.points[i].decides_on == "calibrated" for i in deciding):
            log_probs = self._log_probs(given)
        return decided(
            self.classes,
            self._probabilities(given, log_probs),
            self._verdicts(deciding, given, log_probs),
            actions=[self.actions.get(str(name)) for name in self.classes],
            out_of_scope=outside,
        )

    @property
    def columns(self) -> InputColumns:
        """The columns that are read of a table: none where images are read.

        Without a model they are `logit_<class>` of each class.
        """
        if self.scorer is not None:
            return self.scorer.columns
        return InputColumns(numbers=tuple(f"logit_{name}" for name in self.classes))

    def inputs_of(self, table: pa.Table) -> Any:
        """Pick what `predict_logits`, `predict_proba` and `decide` read out of an Arrow table.

        Parameters
        ----------
        table : may have further columns, in any order; one that is lacking is refused by its name
        """
        if self.scorer is not None:
            return self.scorer.pick(table)
        return self.columns.picked_from(table)

    def is_alternative(self, point: int) -> bool:
        """Whether an earlier operating point acts on one of its classes already."""
        taken = {of for each in self.points[:point] for of in each.acts_on}
        return bool(taken & self.points[point].acts_on)

    def to_dict(self) -> dict[str, Any]:
        """Return the manifest."""
        return dict(self.manifest)

    def __str__(self) -> str:
        method = "no calibrator" if self.calibration is None else self.calibration.method
        model = "" if self.scorer is None else f", {self.scorer.config['model']}"
        lines = [f"Bundle of {len(self.classes)} classes{model}, {method}."]
        for i, each in enumerate(self.points):
            lines += [f"{i}. On {each.decides_on} scores: {said}" for said in each.promises]
        if self.ood is not None:
            lines.append(f"Rows {self.ood}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"

    def _given(self, inputs: Any, logits: Any, probs: Any) -> GivenScores:
        if inputs is not None:
            if logits is not None or probs is not None:
                raise InputError("give one of inputs, logits and probs, not several of them.")
            # Without a model, what comes in is what a model would have given.
            logits = inputs if self.scorer is None else self.scorer.predict_logits(inputs)
        return GivenScores.of(self.classes, logits=logits, probs=probs)

    def _log_probs(self, given: GivenScores) -> FloatArray | None:
        if self.calibration is None:
            return None
        if given.kind == "probs":
            given = GivenScores("logits", self.calibration.logits(given.array))
        return self.calibration.log_probs(given.matrix)

    def _probabilities(self, given: GivenScores, log_probs: FloatArray | None = None) -> FloatArray:
        """Return calibrated probabilities; the identity leaves those of the model as they are."""
        if self.calibration is None or (
            self.calibration.method == "identity" and given.kind == "probs"
        ):
            return given.probs
        found = self._log_probs(given) if log_probs is None else log_probs
        assert found is not None  # there is a calibrator
        return np.exp(found)

    def _verdicts(
        self, deciding: Sequence[int], given: GivenScores, log_probs: FloatArray | None
    ) -> list[Verdict]:
        found = []
        for i in deciding:
            each = self.points[i]
            said = each.verdicts(given, log_probs, self.classes)
            found += [
                Verdict(i, str(rule), acts, of, rule.clears)
                for rule, (acts, of) in zip(each.rules, said, strict=True)
            ]
        return found

    def _deciding(self, point: int | None) -> list[int]:
        """Return the positions of the points that have a say."""
        if not self.points:
            raise InputError(
                "this bundle has no operating point, so it gives probabilities only: pack one with "
                "calibrant pack --point."
            )
        if point is None:
            return [i for i in range(len(self.points)) if not self.is_alternative(i)]
        if point not in range(len(self.points)):
            raise InputError(
                f"point must be a position from 0 to {len(self.points) - 1}, got {point!r}."
            )
        return [int(point)]
