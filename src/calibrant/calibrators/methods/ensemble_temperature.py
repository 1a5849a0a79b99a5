"""Ensemble temperature scaling: a mixture of softened, original and uniform probabilities."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np

from calibrant.calibrators.base.calibrator import SoftmaxCalibrator
from calibrant.calibrators.base.registry import register
from calibrant.calibrators.base.rows import CalibrationRows
from calibrant.calibrators.fits.inverse_temperature import check_bounds
from calibrant.calibrators.fits.mixture import least_squares_shares, max_likelihood_shares
from calibrant.calibrators.fits.scalar_search import find_minimum, subsample_rows
from calibrant.calibrators.methods.temperature import TemperatureScaling
from calibrant.convert import log_probs_from_logits
from calibrant.errors import InputError
from calibrant.inputs import FloatArray, IntArray

Objective = Literal["nll", "mse"]

MIN_LOGIT_SHARE = 1e-3  # Minimum share of the two components that depend on the logits
SEARCH_FACTOR = 10.0  # T is searched within this factor of the best single temperature


@register
class EnsembleTemperatureScaling(SoftmaxCalibrator):
    r"""Mix temperature-scaled, original and uniform probabilities.

    .. math:: p = w_1 \,\mathrm{softmax}(z / T) + w_2 \,\mathrm{softmax}(z) + w_3 / K,
              \qquad w_a \ge 0, \quad w_1 + w_2 + w_3 = 1

    z are the logits of a row, K is the number of classes, T the temperature, w the shares. Both
    objectives are convex in w, so the shares are exact: no starting point, no learning rate. With
    'nll' T and w are fitted jointly, T within a factor of 10 of the `TemperatureScaling` optimum;
    with 'mse' T is fitted first, on its own, as in the paper. The uniform component keeps every
    probability above w_3 / K, which a temperature alone does not.

    The objective is by default the NLL, as for all methods here: it is a proper score that makes
    a confident error expensive. The paper's default is the squared error ('mse'), which hardly
    distinguishes a probability of 1e-3 from one of 1e-9.

    It does not change any prediction: w_1 + w_2 stays at or above 0.001. That share goes to the
    softened component at no cost, because that component is never worse than uniform probabilities.
    It is not a mixture over models, and like the temperature it cannot repair errors that differ
    between classes.

    Parameters
    ----------
    objective : 'nll', or 'mse' for the mean over rows of the squared distance to the label
    smooth : search T around `TemperatureScaling(smooth=True)`, which is robust with few rows.
        Only for 'nll'.
    lowest, highest : bounds on T

    Attributes
    ----------
    temperature_ : T
    shares_ : w_1, w_2, w_3

    Examples
    --------
    The model says 0.9 and is right in three rows of four:

    >>> z = float(np.log(9))
    >>> logits, labels = [z, z, z, z, -z, -z, -z, -z], [1, 1, 1, 0, 0, 0, 0, 1]
    >>> EnsembleTemperatureScaling().fit(logits, labels).predict_proba([z]).round(6)
    array([0.75])

    With the squared error and T = 1 the uniform component softens: 0.625 * 0.9 + 0.375 * 0.5.

    >>> calibrator = EnsembleTemperatureScaling("mse", highest=1.0).fit(logits, labels)
    >>> print(round(calibrator.shares_[2], 6), calibrator.predict_proba([z]).round(6))
    0.375 [0.75]

    References
    ----------
    Zhang, Kailkhura and Han, Mix-n-Match: ensemble and compositional methods for uncertainty
    calibration in deep learning, ICML 2020: ensemble temperature scaling (ETS).
    """

    method = "ets"
    learned = ("temperature", "shares")
    keeps_argmax = True
    keeps_ranking = True
    needs_every_class = False
    temperature_: float
    shares_: FloatArray

    def __init__(
        self,
        objective: Objective = "nll",
        *,
        smooth: bool = False,
        lowest: float = 0.01,
        highest: float = 1e4,
    ) -> None:
        self.objective = objective
        self.smooth = smooth
        self.lowest = lowest
        self.highest = highest

    @property
    def hit_bound_(self) -> bool:
        """Whether T ended at one of its bounds."""
        self._check_fitted()
        return not self.lowest < self.temperature_ < self.highest

    def _learn(self, rows: CalibrationRows) -> None:
        if self.objective not in ("nll", "mse"):
            raise InputError(f"objective must be 'nll' or 'mse', got {self.objective!r}.")
        check_bounds(self.lowest, self.highest)
        log_probs, mass = rows.log_probs, rows.mass
        if self.objective == "nll":
            temperature_only = TemperatureScaling(
                smooth=self.smooth, lowest=self.lowest, highest=self.highest
            ).fit_rows(rows)
            bounds = (self.lowest, self.highest)
            self.temperature_ = _max_likelihood_temperature(
                rows, temperature_only.temperature_, bounds
            )
            shares = max_likelihood_shares(
                _label_probs(log_probs, rows, self.temperature_), mass
            ).shares
        else:
            self.temperature_ = _least_squared_error(rows, (self.lowest, self.highest))
            parts = np.exp(_parts(log_probs, self.temperature_))
            shares = _squared_error_shares(parts, rows.labels, mass)
        self.shares_ = _enforce_logit_share(shares)

    def _keeps_order_of(self, position: int) -> bool:
        # Without the softened component p' is w_2 p + w_3 / K.
        changed = self.temperature_ != 1 and self.shares_[0] > 0
        return self.n_classes == 2 or not changed

    def _new_logits(self, log_probs: FloatArray) -> FloatArray:
        used = np.flatnonzero(self.shares_)
        parts = _parts(log_probs, self.temperature_)[used]
        return np.asarray(
            np.logaddexp.reduce(parts + np.log(self.shares_[used])[:, None, None], axis=0)
        )


def _parts(log_probs: FloatArray, temperature: float) -> FloatArray:
    """Return the log-probabilities (3, n, K) of the three components."""
    even = np.full_like(log_probs, -np.log(log_probs.shape[1]))
    return np.stack([log_probs_from_logits(log_probs / temperature), log_probs, even])


def _label_probs(log_probs: FloatArray, rows: CalibrationRows, temperature: float) -> FloatArray:
    """Return the probability (n, 3) of each row's label under each component."""
    cooled = log_probs_from_logits(log_probs / temperature)
    index = np.arange(rows.n)
    original = log_probs[index, rows.labels]
    parts = [cooled[index, rows.labels], original, np.full(rows.n, -np.log(rows.k))]
    return np.asarray(np.exp(np.column_stack(parts)))


def _max_likelihood_temperature(
    rows: CalibrationRows, centre: float, bounds: tuple[float, float]
) -> float:
    """Maximise the likelihood over T near `centre`, each T with its own best shares."""
    from scipy.optimize import minimize_scalar

    log_probs, mass = rows.log_probs, rows.mass

    def objective(x: float) -> float:
        label_probs = _label_probs(log_probs, rows, float(np.exp(x)))
        return -float(mass @ np.log(label_probs @ max_likelihood_shares(label_probs, mass).shares))

    offsets = np.log(centre) + np.log(SEARCH_FACTOR) * np.linspace(-1.0, 1.0, 7)
    grid = np.unique(np.clip(offsets, *np.log(bounds)))
    heights = [objective(x) for x in grid]
    best = int(np.argmin(heights))
    sides = grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)]
    if sides[0] == sides[1]:
        return float(np.exp(grid[best]))
    options = {"xatol": 1e-6}
    optimum = minimize_scalar(objective, bounds=sides, method="bounded", options=options)
    return float(np.exp(optimum.x if optimum.fun <= heights[best] else grid[best]))


def _enforce_logit_share(shares: FloatArray) -> FloatArray:
    lacking = max(MIN_LOGIT_SHARE - shares[0] - shares[1], 0.0)
    return np.asarray(shares + lacking * np.array([1.0, 0.0, -1.0]))


def _least_squared_error(rows: CalibrationRows, bounds: tuple[float, float]) -> float:
    sample = subsample_rows(rows)
    return find_minimum(_squared_error(rows), bounds, coarse=_squared_error(sample))


def _squared_error(rows: CalibrationRows) -> Callable[[float], float]:
    """Return the squared error as a function of T, with everything else precomputed."""
    shifted, mass, at = rows.log_probs, rows.mass, (np.arange(rows.n), rows.labels)
    shifted -= shifted.max(axis=1, keepdims=True)

    def objective(temperature: float) -> float:
        probs = np.exp(shifted / temperature)
        probs /= np.einsum("ij->i", probs)[:, None]
        probs[at] -= 1.0
        return float(mass @ np.einsum("ij,ij->i", probs, probs))

    return objective


def _squared_error_shares(parts: FloatArray, labels: IntArray, mass: FloatArray) -> FloatArray:
    """Minimise the squared error, which depends on the components through nine products."""
    parts[:, np.arange(len(labels)), labels] -= 1.0
    products = np.einsum("aij,bij,i->ab", parts, parts, mass, optimize=True)
    lengths, directions = np.linalg.eigh(products)
    return least_squares_shares(np.sqrt(np.maximum(lengths, 0.0))[:, None] * directions.T)
