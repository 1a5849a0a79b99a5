"""What a ranking has seen of the labels that it is certified on."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import TYPE_CHECKING, Any, Self

from calibrant.errors import InputError

if TYPE_CHECKING:
    from calibrant.calibrators import Calibrator

__all__ = ["NOTHING_SEEN", "Seen"]


@dataclass(frozen=True)
class Seen:
    """What the scores' ranking has seen of these labels; by default nothing.

    A promise is issued only for a ranking that used none of the labels it is certified on. Chosen
    among m models by these labels, each of them would have been certified, so each gets 1/m of the
    allowed error. Fitted on them, there is no such price, and the promise is withheld; a calibrator
    that cannot change the order of rows (two classes, `keeps_ranking`) does no harm.

    Bare arrays cannot tell what they were made from: this is taken on trust. A calibrator can be
    asked whether it was fitted on these rows, with `told_by`.

    Parameters
    ----------
    candidates : among how many models these scores were chosen by these labels
    calibrator : the calibrator that made the scores and was fitted on these rows
    training : whether the model itself was trained, or stopped, by these labels

    Examples
    --------
    >>> Seen(training=True).why_no_promise(top_label=False, n_classes=2)
    'the model was trained on these very rows: certify on others'
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
                "or leave it out where it was fitted on other rows."
            )

    @classmethod
    def told_by(
        cls, calibrator: Calibrator, logits: Any, labels: Any, *, candidates: int = 1
    ) -> Self:
        """Ask a calibrator whether it was fitted on these rows, or on some of them.

        Parameters
        ----------
        calibrator : the fitted calibrator that made the scores
        logits : of these rows, as they went into it
        labels : their labels
        candidates : among how many models these scores were chosen by these labels

        Examples
        --------
        >>> import numpy as np
        >>> from calibrant.calibrators import TemperatureScaling
        >>> logits, labels = np.random.default_rng(0).normal(size=200), np.arange(200) % 2
        >>> fitted = TemperatureScaling().fit(logits[:100], labels[:100])
        >>> Seen.told_by(fitted, logits[:100], labels[:100]).calibrator is fitted
        True
        >>> Seen.told_by(fitted, logits[100:], labels[100:]) == Seen()
        True
        """
        return cls(candidates, calibrator if calibrator.has_seen(logits, labels) else None)

    @property
    def changed_scores(self) -> bool:
        """Whether a calibrator that was fitted on these rows made the scores what they are."""
        return self.calibrator is not None and self._fitted.method != "identity"

    @property
    def _fitted(self) -> Any:
        return getattr(self.calibrator, "chosen_", self.calibrator)

    def why_no_promise(self, *, top_label: bool, n_classes: int) -> str | None:
        """Say why no promise can be made for such a ranking, or None where one can."""
        if self.training:
            return "the model was trained on these very rows: certify on others"
        if not self.changed_scores:
            return None
        fitted = self._fitted
        if n_classes == 2 and not top_label and fitted.keeps_ranking:
            return None
        return (
            f"the calibrator {fitted.method} was fitted on these very rows and can change "
            "their order: fit it on other rows, or take the threshold on the model's own scores"
        )


NOTHING_SEEN = Seen()
"""A ranking that was made without any of the labels."""
