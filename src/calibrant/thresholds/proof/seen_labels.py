"""How a ranking used the labels that it is certified on."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import TYPE_CHECKING, Any, Self

from calibrant.errors import InputError

if TYPE_CHECKING:
    from calibrant.calibrators import Calibrator


@dataclass(frozen=True)
class LabelUse:
    """How the ranking used these labels; by default not at all.

    A promise is issued only for a ranking that used none of the labels it is certified on. Chosen
    among m models by these labels, each is certified at 1/m of the allowed error. Fitted on them,
    no promise is made, unless the calibrator cannot change the order of rows (two classes,
    `keeps_ranking`).

    Arrays do not record their origin, so this is taken on trust. `from_calibrator` checks whether
    a calibrator was fitted on these rows.

    Parameters
    ----------
    candidates : number of models among which these labels chose this one
    calibrator : the calibrator of these scores, if it was fitted on these rows
    training : whether the model was trained, or stopped early, on these labels

    Examples
    --------
    >>> LabelUse(training=True).why_no_promise(top_label=False, n_classes=2)
    'the model was trained on these rows: certify on others'
    """

    candidates: int = 1
    calibrator: Calibrator | None = None
    training: bool = False

    def __post_init__(self) -> None:
        if isinstance(self.candidates, bool) or not isinstance(self.candidates, Integral):
            raise InputError(f"candidates must be a whole number, got {self.candidates!r}.")
        if self.candidates < 1:
            raise InputError(f"candidates must be at least 1, got {self.candidates}.")
        object.__setattr__(self, "candidates", int(self.candidates))
        if self.calibrator is not None and not hasattr(self.calibrator, "classes_"):
            raise InputError(
                f"calibrator must be the fitted calibrator, got {self.calibrator!r}: fit it first, "
                "or leave it out if it was fitted on other rows."
            )

    @classmethod
    def from_calibrator(
        cls, calibrator: Calibrator, logits: Any, labels: Any, *, candidates: int = 1
    ) -> Self:
        """Build from a calibrator, checking whether it was fitted on any of these rows.

        Parameters
        ----------
        calibrator : the fitted calibrator of these scores
        logits : its input for these rows
        labels : their labels
        candidates : number of models among which these labels chose this one

        Examples
        --------
        >>> import numpy as np
        >>> from calibrant.calibrators import TemperatureScaling
        >>> logits, labels = np.random.default_rng(0).normal(size=200), np.arange(200) % 2
        >>> fitted = TemperatureScaling().fit(logits[:100], labels[:100])
        >>> LabelUse.from_calibrator(fitted, logits[:100], labels[:100]).calibrator is fitted
        True
        >>> LabelUse.from_calibrator(fitted, logits[100:], labels[100:]) == LabelUse()
        True
        """
        return cls(candidates, calibrator if calibrator.has_seen(logits, labels) else None)

    @property
    def changed_scores(self) -> bool:
        """Whether a calibrator fitted on these rows changed the scores."""
        return self.calibrator is not None and self._fitted_calibrator.method != "identity"

    @property
    def _fitted_calibrator(self) -> Any:
        return getattr(self.calibrator, "chosen_", self.calibrator)

    def why_no_promise(self, *, top_label: bool, n_classes: int) -> str | None:
        """Return why no promise can be made for such a ranking, or None."""
        if self.training:
            return "the model was trained on these rows: certify on others"
        if not self.changed_scores:
            return None
        fitted = self._fitted_calibrator
        if n_classes == 2 and not top_label and fitted.keeps_ranking:
            return None
        return (
            f"the calibrator {fitted.method} was fitted on these rows and can change their order: "
            "fit it on other rows, or choose the threshold on the model's own scores"
        )


NO_LABEL_USE = LabelUse()  # A ranking that used none of the labels
