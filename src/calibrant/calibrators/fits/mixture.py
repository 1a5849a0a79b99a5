"""Fit of mixture shares on the simplex, by likelihood or by least squares."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calibrant.inputs import FloatArray

_GAP = 1e-12
_CONVERGED_GAP = 1e-9
_MAX_STEPS = 200
_RIDGE = 1e-12
_HALVES = 0.5 ** np.arange(30)
_FLAT = 1e-14


@dataclass(frozen=True)
class MixtureShares:
    """Maximum-likelihood shares with a bound on the optimality gap."""

    shares: FloatArray  # (m,) not negative, summing to 1
    gap: float  # upper bound on the increase of the mean log-likelihood by any other shares
    steps: int

    @property
    def converged(self) -> bool:
        """Whether the gap is below the tolerance."""
        return self.gap <= _CONVERGED_GAP


def max_likelihood_shares(
    parts: FloatArray, mass: FloatArray, start: FloatArray | None = None
) -> MixtureShares:
    r"""Maximise :math:`\ell(w) = \sum_i m_i \log \sum_a w_a q_{ia}` over the simplex.

    q are the likelihoods `parts` (n, m), none negative and none of its rows all zero; m is the
    `mass` of each row, summing to 1; w are the shares. The gradient
    :math:`g_a = \sum_i m_i q_{ia} / \sum_b w_b q_{ib}` averages to 1 under w, and by concavity no
    other shares have a likelihood higher by more than :math:`\max_a g_a - 1`: the search ends when
    that gap is closed.

    The steps are Newton steps. Because scaling w to sum to 1 never lowers
    :math:`\ell(w) - \sum w`, each is a non-negative least-squares problem, whose solution may have
    shares of exactly 0. If such a step fails, an EM step (:math:`w_a g_a`) is taken instead. No
    step lowers the likelihood beyond rounding.
    """
    columns = parts.shape[1]
    scaled = parts / parts.max(axis=1, keepdims=True)
    shares = np.full(columns, 1.0 / columns) if start is None else start / start.sum()
    gap, steps = np.inf, 0
    while steps < _MAX_STEPS:
        mix = scaled @ shares
        gradient = scaled.T @ (mass / mix)
        gap = float(gradient.max()) - 1.0
        if gap <= _GAP:
            break
        improved = _improve_shares(scaled, mass, shares, gradient, mix)
        if improved is None:
            break
        shares, steps = improved, steps + 1
    return MixtureShares(shares, max(gap, 0.0), steps)


def least_squares_shares(residuals: FloatArray) -> FloatArray:
    r"""Minimise :math:`\| \sum_a w_a r_a \|^2` over the simplex, r the columns of `residuals`.

    Without the constraint the solution is 0, so a row for :math:`\sum w = 1` is added. Whatever its
    weight, the best direction is the same: for :math:`w = t x` with x in the simplex the total
    :math:`t^2 \|R x\|^2 + (t - 1)^2` has the minimum :math:`\|Rx\|^2 / (1 + \|Rx\|^2)` over t,
    which rises with :math:`\|Rx\|`. One non-negative least-squares problem is therefore exact.
    """
    from scipy.optimize import nnls

    size = float(np.abs(residuals).max()) or 1.0
    system = np.vstack([residuals / size, np.ones(residuals.shape[1])])
    target = np.zeros(len(system))
    target[-1] = 1.0
    shares = nnls(system, target)[0]
    return np.asarray(shares / shares.sum())


def _improve_shares(
    parts: FloatArray, mass: FloatArray, shares: FloatArray, gradient: FloatArray, mix: FloatArray
) -> FloatArray | None:
    """Return shares with a higher likelihood, or None if rounding hides any improvement."""
    now, gap = _likelihood(mix, mass), float(gradient.max()) - 1.0
    newton = _newton(parts, mass, shares, gradient, mix)
    halved = [] if newton is None else [shares + t * (newton - shares) for t in _HALVES]
    for candidate in (*halved, shares * gradient):
        scaled: FloatArray = candidate / candidate.sum()
        mix = parts @ scaled
        gain = _likelihood(mix, mass) - now
        # Near the optimum the likelihood is flat to rounding; the gap still decreases.
        if gain > _FLAT or (gain >= -_FLAT and (parts.T @ (mass / mix)).max() - 1.0 < 0.5 * gap):
            return scaled
    return None


def _newton(
    parts: FloatArray, mass: FloatArray, shares: FloatArray, gradient: FloatArray, mix: FloatArray
) -> FloatArray | None:
    """Minimise the second-order model of -l(w) + sum(w) subject to w >= 0."""
    from scipy.linalg import solve_triangular
    from scipy.optimize import nnls

    slopes = parts * (np.sqrt(mass) / mix)[:, None]
    curvature = slopes.T @ slopes
    # A ridge around the current shares separates equal components without moving the optimum.
    ridge = _RIDGE * float(np.trace(curvature))
    try:
        root = np.linalg.cholesky(curvature + ridge * np.eye(len(shares)))
        # curvature @ shares is the gradient itself.
        target = solve_triangular(root, 2.0 * gradient - 1.0 + ridge * shares, lower=True)
        solution = nnls(root.T, target)[0]
    except (RuntimeError, np.linalg.LinAlgError):
        return None
    return np.asarray(solution) if solution.any() else None


def _likelihood(mix: FloatArray, mass: FloatArray) -> float:
    if not (mix > 0).all():
        return -np.inf
    return float(mass @ np.log(mix))
