"""Prior correction: adjust probabilities to other class frequencies."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from calibrant.calibrators.base.calibrator import SoftmaxCalibrator
from calibrant.calibrators.base.registry import register
from calibrant.calibrators.base.rows import CalibrationRows
from calibrant.errors import InputError
from calibrant.inputs import FloatArray

SMALLEST_PRIOR = 1e-12  # Lower bound of a class prior, which keeps its logit finite


_SAME_FACTOR = 1e-12
"""Logarithms of equal ratios differ by less, whatever their rounding."""


@register
class PriorCorrection(SoftmaxCalibrator):
    r"""Adjust probabilities from the class frequencies of training to those of deployment.

    .. math:: p'_k \propto p_k \, \frac{\pi'_k}{\pi_k}

    :math:`\pi` is the prior implied by training: class frequencies of the training data after
    resampling, or uniform after balanced class weights, balanced softmax or logit adjustment.
    :math:`\pi'` is the prior in deployment. It corrects the priors and nothing else: an
    over-confident model stays so, which is why calibration comes after it
    (`PriorCorrection(...).then(TemperatureScaling())`).

    Parameters
    ----------
    source : the prior implied by training, one number per class; None for uniform
    target : the prior in deployment; None for the (weighted) class frequencies of the fitted rows

    Attributes
    ----------
    source_, target_ : both priors, each summing to 1

    Examples
    --------
    Trained on balanced classes, used where one row in ten is positive:

    >>> correction = PriorCorrection(source=[0.5, 0.5], target=[0.9, 0.1])
    >>> correction.fit([0.0, 1.0], [0, 1]).predict_proba([0.0])
    array([0.1])

    References
    ----------
    Saerens, Latinne and Decaestecker, Adjusting the outputs of a classifier to new a priori
    probabilities, Neural Computation 2002, equation 2.4.
    """

    method = "prior_correction"
    learned = ("source", "target")
    keeps_ranking = True
    needs_every_class = False
    fewest_rows = 1
    source_: FloatArray
    target_: FloatArray

    def __init__(
        self, source: Sequence[float] | None = None, target: Sequence[float] | None = None
    ) -> None:
        self.source = source
        self.target = target

    def _learn(self, rows: CalibrationRows) -> None:
        uniform = np.full(rows.k, 1.0 / rows.k)
        self.source_ = uniform if self.source is None else as_prior(self.source, rows.k, "source")
        if not self.source_.all():
            raise InputError(
                f"source must be positive for every class, got {self.source_.tolist()}: a class "
                "without training rows cannot be corrected."
            )
        counts = rows.counts / rows.total
        self.target_ = counts if self.target is None else as_prior(self.target, rows.k, "target")

    def _remember(self, rows: CalibrationRows) -> None:
        """Store a sketch of the rows only if the target was learned from their labels."""
        if self.target is None:
            super()._remember(rows)

    def _check_learned(self) -> None:
        for name, prior in (("source", self.source_), ("target", self.target_)):
            as_prior(prior, len(self.classes_), name)

    def _keeps_order_of(self, position: int) -> bool:
        # The other classes move together only if their priors change by the same factor.
        others = np.delete(self._shift(), position)
        return bool(np.ptp(others) < _SAME_FACTOR)

    def _new_logits(self, log_probs: FloatArray) -> FloatArray:
        return log_probs + self._shift()

    def _shift(self) -> FloatArray:
        old, new = (np.maximum(p, SMALLEST_PRIOR) for p in (self.source_, self.target_))
        return np.asarray(np.log(new / old))


def as_prior(prior: Sequence[float] | FloatArray, k: int, name: str) -> FloatArray:
    """Validate a prior of K non-negative numbers and scale it to sum to 1."""
    try:
        array = np.asarray(prior, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{name} must hold one number for each class, got {prior!r}.") from None
    if array.shape != (k,):
        raise InputError(
            f"{name} must have one number for each of the {k} classes, got {array.shape}."
        )
    if not (np.isfinite(array).all() and (array >= 0).all() and array.sum() > 0):
        raise InputError(
            f"{name} must hold class frequencies, none of them negative, got {array.tolist()}."
        )
    return np.asarray(array / array.sum())
