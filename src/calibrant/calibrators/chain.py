"""Composition of several calibrators."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.base import clone

from calibrant.calibrators.base.calibrator import Calibrator
from calibrant.calibrators.base.registry import register
from calibrant.calibrators.base.rows import CalibrationRows
from calibrant.errors import InputError
from calibrant.inputs import FloatArray

_MIN_LOG_PROB = float(np.log(1e-300))
"""Replaces the logarithm of a probability of exactly 0 between two steps."""


@register
class Chain(Calibrator):
    """Calibrators applied in turn, each to the output of the previous one.

    Usually written as `first.then(second)`. `fit` clones the steps and fits each clone on the
    output of the previous steps; the calibrators passed in stay unchanged. A chain of fitted
    calibrators is fitted already.

    It keeps the argmax, or the ranking, if all of its steps do.

    Parameters
    ----------
    steps : the calibrators, in order

    Attributes
    ----------
    steps_ : the fitted calibrators

    Examples
    --------
    >>> from calibrant.calibrators import PriorCorrection, TemperatureScaling
    >>> chain = PriorCorrection(source=[0.5, 0.5]).then(TemperatureScaling())
    >>> chain.fit([-1.0, 1.0, -2.0, 2.0, -1.0], [0, 1, 0, 0, 0]).predict_proba([0.0]).round(3)
    array([0.218])
    """

    method = "chain"
    learned = ("steps",)

    def __init__(self, steps: Sequence[Calibrator] = ()) -> None:
        self.steps = steps

    @property
    def keeps_argmax(self) -> bool:  # type: ignore[override]
        """Whether all steps keep the most probable class."""
        return all(step.keeps_argmax for step in self.steps)

    @property
    def keeps_ranking(self) -> bool:  # type: ignore[override]
        """Whether all steps keep the order of rows by P(positive)."""
        return all(step.keeps_ranking for step in self.steps)

    @property
    def takes_weights(self) -> bool:  # type: ignore[override]
        """Whether all steps take weights."""
        return all(step.takes_weights for step in self.steps)

    @property
    def needs_every_class(self) -> bool:  # type: ignore[override]
        """Whether a step needs every class."""
        return any(step.needs_every_class for step in self.steps)

    @property
    def fewest_rows(self) -> int:  # type: ignore[override]
        """The largest minimum among the steps."""
        return max((step.fewest_rows for step in self.steps), default=1)

    @property
    def steps_(self) -> list[Calibrator]:
        """The fitted steps."""
        fitted: list[Calibrator] | None = self.__dict__.get("_fitted")
        if fitted is not None:
            return fitted
        self._check_steps()
        for step in self.steps:
            step._check_fitted()
        names = [step.classes_.tolist() for step in self.steps]
        if any(other != names[0] for other in names):
            raise InputError(
                f"the steps of a chain must have the same classes, got {names[0]} and "
                f"{next(other for other in names if other != names[0])}: fit them on the same rows."
            )
        return list(self.steps)

    @property
    def classes_(self) -> np.typing.NDArray[Any]:
        """The class names, which all steps share."""
        return self.steps_[0].classes_

    @classes_.setter
    def classes_(self, classes: np.typing.NDArray[Any]) -> None:
        """Set the names, which those of the steps must equal."""
        self._names = classes.tolist()

    def then(self, second: Calibrator) -> Chain:
        """Return a chain with one more step; it is fitted if all steps are."""
        return Chain([*self.__dict__.get("_fitted", self.steps), second])

    def _check_rows(self, rows: CalibrationRows) -> None:
        self._check_steps()
        for step in self.steps:
            step._check_rows(rows)

    def _check_steps(self) -> None:
        invalid = [step for step in self.steps if not isinstance(step, Calibrator)]
        if invalid or not self.steps:
            problem = f"got {invalid[0]!r}" if invalid else "got none"
            raise InputError(f"a chain needs calibrators, {problem}: write first.then(second).")

    def _learn(self, rows: CalibrationRows) -> None:
        fitted: list[Calibrator] = []
        for step in self.steps:
            fitted.append(clone(step).fit_rows(rows))
            rows = _transform_rows(fitted[-1], rows)
        self._fitted = fitted

    def _remember(self, rows: CalibrationRows) -> None:
        """Do nothing: each step stores a sketch of its own input."""

    def has_seen_rows(self, rows: CalibrationRows) -> bool:
        """Return whether any step was fitted on these rows after the steps before it."""
        for step in self.steps_:
            if step.has_seen_rows(rows):
                return True
            rows = _transform_rows(step, rows)
        return False

    def _keeps_order_of(self, position: int) -> bool:
        return all(step.keeps_order_of(position) for step in self.steps_)

    def _log_probs(self, logits: FloatArray) -> FloatArray:
        for step in self.steps_:
            log_probs = step._log_probs(logits)
            logits = _finite_logits(log_probs)
        return log_probs

    def _params(self) -> dict[str, Any]:
        return {"steps": [step.to_dict() for step in self.steps_]}

    def _restore(self, params: Mapping[str, Any]) -> None:
        fitted = [Calibrator.from_dict(saved) for saved in params["steps"]]
        if not fitted or any(s.classes_.tolist() != self._names for s in fitted):
            raise ValueError("its steps do not have the same classes")
        self.steps = fitted
        self._fitted = fitted

    def _settings(self) -> dict[str, Any]:
        return {}


def _transform_rows(step: Calibrator, rows: CalibrationRows) -> CalibrationRows:
    """Return rows with the logits that a step outputs."""
    logits = _finite_logits(step._log_probs(rows.canonical))
    return CalibrationRows(logits, rows.labels, rows.weights, rows.classes)


def _finite_logits(log_probs: FloatArray) -> FloatArray:
    """Return finite logits for the next step, log-odds where there are two classes."""
    finite = np.maximum(log_probs, _MIN_LOG_PROB)
    return finite[:, 1] - finite[:, 0] if finite.shape[1] == 2 else finite
