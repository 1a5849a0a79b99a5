"""Prior shift: estimate class frequencies from unlabelled rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Self

import numpy as np
from sklearn.base import BaseEstimator, clone

from calibrant.calibrators.base.calibrator import Calibrator, Unfitted
from calibrant.calibrators.base.rows import CalibrationRows, as_calibration_rows, two_columns
from calibrant.calibrators.chain import Chain
from calibrant.calibrators.fits.mixture import least_squares_shares, max_likelihood_shares
from calibrant.calibrators.methods.prior import PriorCorrection, as_prior
from calibrant.calibrators.methods.temperature import TemperatureScaling
from calibrant.errors import InputError
from calibrant.inputs import FloatArray, as_logits, as_probs, as_weights

Estimator = Literal["em", "bbse"]

_SINGULAR = 1e-6
"""A confusion matrix whose smallest singular value is below this share of its largest."""


@dataclass(frozen=True)
class PriorEstimate:
    """Class frequencies of unlabelled rows.

    Parameters
    ----------
    prior : (K,) summing to 1
    method : 'em' or 'bbse'
    converged : whether the optimum was reached
    steps : number of steps; 0 for a closed form
    gap : 'em': upper bound on the increase of the mean log-likelihood by any other prior; 'bbse':
        distance between the mean prediction and the one implied by the prior
    """

    prior: FloatArray
    method: str
    converged: bool
    steps: int
    gap: float


def estimate_prior(
    probs: Any,
    source: Sequence[float] | FloatArray,
    *,
    method: Estimator = "em",
    confusion: Any = None,
    hard: bool = False,
    weights: Any = None,
) -> PriorEstimate:
    r"""Estimate the class frequencies of unlabelled rows.

    .. math:: \text{em: } \arg\max_{\pi'} \sum_i w_i \log \sum_k \pi'_k \frac{p_{ik}}{\pi_k},
              \qquad
              \text{bbse: } \arg\min_{\pi'} \Big\| \sum_k \pi'_k \frac{C_{\cdot k}}{\pi_k}
              - \bar p \Big\|

    p are probabilities that are calibrated for the `source` prior :math:`\pi`, w the weights,
    :math:`\pi'` is the prior to estimate (non-negative, summing to 1). C is the confusion
    matrix of labelled source rows, :math:`C_{jk}` the share of rows with label k and prediction j,
    and :math:`\bar p` the mean prediction of the new rows. Both assume label shift: only the
    class frequencies changed, not the distribution within a class.

    'em' is the limit of the EM algorithm of Saerens et al. The likelihood is concave, so the
    limit does not depend on the algorithm: a few Newton steps reach it, where EM takes hundreds;
    `gap` bounds the remaining error. It is as reliable as the calibration of the probabilities.
    'bbse' (black box shift estimation) needs no calibration, but labelled rows and a model that
    separates the classes.

    It is not a test for shift: the estimate has a sampling error even where nothing changed.

    Parameters
    ----------
    probs : (n,) P(positive), or (n, K); calibrated for `source` where the method is 'em'
    source : prior of the labelled rows, one number for each class, all positive
    method : 'em' or 'bbse'
    confusion : 'bbse' only: the `confusion_matrix` of labelled source rows
    hard : 'bbse' only: count the most probable class instead of averaging probabilities; must be
        the same as for `confusion`
    weights : n inverse inclusion probabilities, or None

    Examples
    --------
    The source classes were balanced. Four new rows in ten have p = 0.9, six have 0.1:
    sum of 4 log(0.1 + 0.8 x) + 6 log(0.9 - 0.8 x) is largest at x = 0.375.

    >>> probs = 4 * [0.9] + 6 * [0.1]
    >>> estimate_prior(probs, [0.5, 0.5]).prior.round(6)
    array([0.625, 0.375])

    The same from a confusion matrix: nine of ten rows of either class were predicted right.

    >>> confusion = [[0.45, 0.05], [0.05, 0.45]]
    >>> estimate_prior(
    ...     probs, [0.5, 0.5], method="bbse", confusion=confusion, hard=True
    ... ).prior.round(6)
    array([0.625, 0.375])

    References
    ----------
    Saerens, Latinne and Decaestecker, Adjusting the outputs of a classifier to new a priori
    probabilities, Neural Computation 2002, section 2 (EM). Lipton, Wang and Smola, Detecting and
    correcting for label shift with black box predictors, ICML 2018 (BBSE; solved there by inverting
    the matrix, here within the simplex).
    """
    matrix = _columns(as_probs(probs))
    k = matrix.shape[1]
    old = as_prior(np.asarray(source).tolist(), k, "source")
    if not (old > 0).all():
        raise InputError(
            f"source must be positive for every class, got {old.tolist()}: drop a class that never "
            "occurred, or label rows of it."
        )
    row_weights = as_weights(weights, len(matrix))
    mass = (
        np.full(len(matrix), 1.0 / len(matrix))
        if row_weights is None
        else row_weights / row_weights.sum()
    )
    if method == "em":
        mixture = max_likelihood_shares(matrix / old, mass, old)
        return PriorEstimate(mixture.shares, "em", mixture.converged, mixture.steps, mixture.gap)
    if method == "bbse":
        conditional = _class_conditional(confusion, old, k)
        return _estimate_bbse(conditional, mass @ _predictions(matrix, hard))
    raise InputError(f"method must be 'em' or 'bbse', got {method!r}.")


def confusion_matrix(
    labels: Any, probs: Any, *, weights: Any = None, hard: bool = False
) -> FloatArray:
    r"""Share of rows with label k (column) and prediction j (row).

    .. math:: C_{jk} = \frac{1}{\sum w} \sum_i w_i \, p_{ij} \, 1[y_i = k]

    y are labels 0..K-1, w weights, p the probabilities; `hard` puts 1 at the largest of a row and 0
    elsewhere. Columns sum to the class frequencies, and the matrix to 1.

    Examples
    --------
    >>> confusion_matrix([0, 0, 1, 1], [0.2, 0.6, 0.6, 1.0])
    array([[0.3, 0.1], [0.2, 0.4]])
    >>> confusion_matrix([0, 0, 1, 1], [0.2, 0.6, 0.6, 1.0], hard=True)
    array([[0.25, 0.  ], [0.25, 0.5 ]])
    """
    from calibrant.inputs import as_scored_rows

    scored = as_scored_rows(labels, probs, weights=weights)
    matrix = _columns(scored.matrix)
    mass = np.ones(scored.n) if scored.weights is None else scored.weights
    label = np.eye(matrix.shape[1])[scored.labels]
    return np.asarray(_predictions(matrix, hard).T @ (label * (mass / mass.sum())[:, None]))


class PriorShift(BaseEstimator):
    r"""Calibrate on labelled source rows and adapt to the class frequencies of unlabelled rows.

    .. math:: p'_k \propto p_k \, \frac{\pi'_k}{\pi_k}

    p are calibrated probabilities, learned from labelled source rows with class frequencies
    :math:`\pi`; :math:`\pi'` is estimated from unlabelled rows by `estimate_prior`. `fit` takes the
    source rows; `adapt` takes new logits and returns a calibrator for them, which can be saved
    like any other.

    With 'em' the ratio :math:`\pi' / \pi` is taken against the mean calibrated probability of the
    source rows and then put on their class frequencies (Alexandari et al.): a mean error
    of `first` for a class is then in both and does not count as a shift. Half a row of every class
    is added to the n new rows, so that no class gets a prior of 0.

    It handles label shift only: unlabelled rows cannot distinguish a change within the classes from
    a change of their priors.

    Parameters
    ----------
    first : the calibrator of the source rows; None for `TemperatureScaling()`. For 'em' one with
        a bias for each class, such as `VectorScaling`, is better with enough rows.
    estimator : 'em', or 'bbse', which is safer after temperature scaling alone
    hard : 'bbse' only: count predictions instead of averaging probabilities

    Attributes
    ----------
    first_ : the fitted calibrator of the source
    source_ : class frequencies of the source rows
    confusion_ : their confusion matrix after `first_`
    estimate_ : the `PriorEstimate` of the latest `adapt`
    prior_ : its class frequencies

    Examples
    --------
    The source classes are balanced, and the model is right in nine rows of ten. Of the new rows
    four in ten look positive, which a prior of 0.375 explains; a row at 0.9 then has the odds 9 *
    0.6 = 5.4:

    >>> z = float(np.log(9))
    >>> shift = PriorShift().fit(10 * [z] + 10 * [-z], 9 * [1] + [0] + 9 * [0] + [1])
    >>> adapted = shift.adapt(4000 * [z] + 6000 * [-z])
    >>> print(shift.prior_.round(3), adapted.predict_proba([z]).round(3), round(5.4 / 6.4, 3))
    [0.625 0.375] [0.844] 0.844

    References
    ----------
    Saerens et al., Neural Computation 2002, section 2. Lipton et al., ICML 2018. Alexandari,
    Kundaje and Shrikumar, Maximum likelihood with bias-corrected calibration is hard-to-beat at
    label shift adaptation, ICML 2020 (the source prior).
    """

    first_: Calibrator
    source_: FloatArray
    confusion_: FloatArray
    estimate_: PriorEstimate

    def __init__(
        self, first: Calibrator | None = None, estimator: Estimator = "em", *, hard: bool = False
    ) -> None:
        self.first = first
        self.estimator = estimator
        self.hard = hard

    @property
    def prior_(self) -> FloatArray:
        """Class frequencies of the rows that `adapt` saw last."""
        if not hasattr(self, "estimate_"):
            raise Unfitted("this PriorShift has no estimate yet: call fit, then adapt.")
        return self.estimate_.prior

    def fit(
        self,
        logits: Any,
        labels: Any,
        weights: Any = None,
        *,
        classes: Sequence[Any] | None = None,
    ) -> Self:
        """Calibrate on labelled source rows, which must include every class.

        Parameters
        ----------
        logits : (n,) log-odds of the second class, or (n, K)
        labels : n labels: 0..K-1, booleans, or names
        weights : n inverse inclusion probabilities, or None
        classes : class names in column order
        """
        if self.estimator not in ("em", "bbse"):
            raise InputError(f"estimator must be 'em' or 'bbse', got {self.estimator!r}.")
        rows = as_calibration_rows(logits, labels, weights, classes)
        absent = np.flatnonzero(rows.counts == 0)
        if len(absent):
            raise InputError(
                f"PriorShift needs source rows of every class, but none has the label "
                f"{rows.classes[absent[0]]!r}: label some, or drop that class."
            )
        self.first_ = clone(self.first or TemperatureScaling()).fit_rows(rows)
        self._classes = rows.classes
        self.__dict__.pop("estimate_", None)  # stale: it belongs to an earlier fit
        self.source_ = rows.counts / rows.total
        probs = self.first_.predict_proba(two_columns(rows.canonical))
        self._mean = rows.mass @ probs
        self.confusion_ = confusion_matrix(rows.labels, probs, weights=rows.weights, hard=self.hard)
        return self

    def adapt(self, logits: Any, weights: Any = None) -> Chain:
        """Estimate the prior of unlabelled rows and return a fitted calibrator for them.

        Parameters
        ----------
        logits : (n,) or (n, K), in the shape of those in `fit`
        weights : n inverse inclusion probabilities, or None
        """
        if not hasattr(self, "first_"):
            raise Unfitted("this PriorShift is not fitted yet: call fit first.")
        probs = self.first_.predict_proba(two_columns(as_logits(logits).astype(np.float64)))
        row_weights = as_weights(weights, len(probs))
        n = float(len(probs) if row_weights is None else row_weights.sum())
        estimate = self._estimate(probs, row_weights)
        # Half a row of every class: a class that n rows did not show is rare, not impossible.
        prior = (n * estimate.prior + 0.5) / (n + 0.5 * len(estimate.prior))
        self.estimate_ = replace(estimate, prior=prior)
        correction = PriorCorrection(self.source_.tolist(), prior.tolist())
        placeholder = CalibrationRows(
            np.zeros((1, len(prior))), np.zeros(1, np.int64), None, self._classes
        )
        return Chain([self.first_, correction.fit_rows(placeholder)])

    def _estimate(self, probs: FloatArray, weights: FloatArray | None) -> PriorEstimate:
        if self.estimator == "bbse":
            return estimate_prior(
                probs,
                self.source_,
                method="bbse",
                confusion=self.confusion_,
                hard=self.hard,
                weights=weights,
            )
        estimate = estimate_prior(probs, self._mean, weights=weights)
        ratio = self.source_ * estimate.prior / self._mean
        return replace(estimate, prior=ratio / ratio.sum())


def _columns(probs: Any) -> FloatArray:
    wide = np.asarray(probs, dtype=np.float64)
    if wide.ndim == 1:
        return np.column_stack([1.0 - wide, wide])
    return np.asarray(wide / wide.sum(axis=1, keepdims=True))


def _predictions(probs: FloatArray, hard: bool) -> FloatArray:
    return np.eye(probs.shape[1])[probs.argmax(axis=1)] if hard else probs


def _class_conditional(confusion: Any, source: FloatArray, k: int) -> FloatArray:
    """Return the mean prediction of each class, as columns, from a confusion matrix."""
    if confusion is None:
        raise InputError("method 'bbse' needs confusion=...: pass confusion_matrix of source rows.")
    joint = np.asarray(confusion, dtype=np.float64)
    if joint.shape != (k, k) or not (np.isfinite(joint).all() and (joint >= 0).all()):
        raise InputError(
            f"confusion must be a {k} x {k} matrix of shares, none negative, got "
            f"shape {joint.shape}: pass confusion_matrix of source rows."
        )
    conditional = joint / joint.sum() / source
    singular_values = np.linalg.svd(conditional, compute_uv=False)
    if singular_values[-1] < _SINGULAR * singular_values[0]:
        raise InputError(
            "confusion is singular: the model's predictions do not separate all classes, so the "
            "prior is not identified: use a better model or merge classes."
        )
    return np.asarray(conditional)


def _estimate_bbse(conditional: FloatArray, mean: FloatArray) -> PriorEstimate:
    # Shares sum to 1, so each @ shares - mean is a mixture of the differences.
    differences = conditional - mean[:, None]
    shares = least_squares_shares(differences)
    distance = float(np.linalg.norm(differences @ shares))
    return PriorEstimate(shares, "bbse", converged=True, steps=0, gap=distance)
