"""Several calibrators, one after the other, as one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.base import clone

from calibrant.calibrators.base.calibrator import Calibrator
from calibrant.calibrators.base.registry import register
from calibrant.calibrators.base.rows import Rows
from calibrant.errors import InputError
from calibrant.inputs import FloatArray

__all__ = ["Chain"]

_LEAST = float(np.log(1e-300))
"""Stands for the logarithm of a probability of exactly 0 between two steps."""


@register
class Chain(Calibrator):
    """Calibrators applied in turn, each to what the one before it made.

    Write it as `first.then(second)`. `fit` leaves the given calibrators alone and fits copies of
    them, each on the same rows as the ones before left them. A chain of fitted calibrators needs
    no fit.

    It keeps the argmax, or the ranking, if all of its members do.

    Parameters
    ----------
    steps : the calibrators, in their order

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
        """Whether all members keep the most probable class."""
        return all(step.keeps_argmax for step in self.steps)

    @property
    def keeps_ranking(self) -> bool:  # type: ignore[override]
        """Whether all members keep the order of rows by P(positive)."""
        return all(step.keeps_ranking for step in self.steps)

    @property
    def takes_weights(self) -> bool:  # type: ignore[override]
        """Whether all members take weights."""
        return all(step.takes_weights for step in self.steps)

    @property
    def needs_every_class(self) -> bool:  # type: ignore[override]
        """Whether a member needs every class."""
        return any(step.needs_every_class for step in self.steps)

    @property
    def fewest_rows(self) -> int:  # type: ignore[override]
        """What the most demanding member needs."""
        return max((step.fewest_rows for step in self.steps), default=1)

    @property
    def steps_(self) -> list[Calibrator]:
        """The fitted members."""
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
        """The class names, which all members share."""
        return self.steps_[0].classes_

    @classes_.setter
    def classes_(self, classes: np.typing.NDArray[Any]) -> None:
        """Remember the names, which those of the members must equal."""
        self._names = classes.tolist()

    def then(self, second: Calibrator) -> Chain:
        """Return a chain that is one step longer; of fitted members it is a fitted one."""
        return Chain([*self.__dict__.get("_fitted", self.steps), second])

    def _check_rows(self, rows: Rows) -> None:
        self._check_steps()
        for step in self.steps:
            step._check_rows(rows)

    def _check_steps(self) -> None:
        odd = [step for step in self.steps if not isinstance(step, Calibrator)]
        if odd or not self.steps:
            found = f"got {odd[0]!r}" if odd else "got none"
            raise InputError(f"a chain needs calibrators, {found}: write first.then(second).")

    def _learn(self, rows: Rows) -> None:
        fitted: list[Calibrator] = []
        for step in self.steps:
            fitted.append(clone(step).fit_rows(rows))
            rows = _after(fitted[-1], rows)
        self._fitted = fitted

    def _remember(self, rows: Rows) -> None:
        """The members do, each what reached it."""

    def has_seen_rows(self, rows: Rows) -> bool:
        """Say whether any member was fitted on what the ones before it make of these rows."""
        for step in self.steps_:
            if step.has_seen_rows(rows):
                return True
            rows = _after(step, rows)
        return False

    def _log_probs(self, logits: FloatArray) -> FloatArray:
        for step in self.steps_:
            log_probs = step._log_probs(logits)
            logits = _passed_on(log_probs)
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


def _after(step: Calibrator, rows: Rows) -> Rows:
    """Return rows with the logits that a step passes on."""
    logits = _passed_on(step._log_probs(rows.canonical))
    return Rows(logits, rows.labels, rows.weights, rows.classes)


def _passed_on(log_probs: FloatArray) -> FloatArray:
    """Return finite logits for the next step, log-odds where there are two classes."""
    finite = np.maximum(log_probs, _LEAST)
    return finite[:, 1] - finite[:, 0] if finite.shape[1] == 2 else finite
