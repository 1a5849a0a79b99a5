"""Penalised softmax fit shared by vector, matrix, Dirichlet and structured scaling."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize

from calibrant.calibrators.base.rows import CalibrationRows
from calibrant.convert import log_probs_from_logits
from calibrant.inputs import FloatArray, IntArray

_MAX_STEPS = 2_000


@dataclass(frozen=True)
class Penalty:
    """Penalties on the squared distance from the identity map, relative to the mean NLL."""

    diagonal: float  # of the scales from 1
    off_diagonal: float  # of the mixing weights from 0; infinite where there are none
    intercept: float  # of the shifts from 0


@dataclass(frozen=True)
class Affine:
    """New logits W x + b; `weight` is (K, K), or (K,) where W is diagonal."""

    weight: FloatArray
    intercept: FloatArray

    def __call__(self, x: FloatArray) -> FloatArray:
        """Apply the map to rows of features (n, K)."""
        scaled = x * self.weight if self.weight.ndim == 1 else x @ self.weight.T
        return np.asarray(scaled + self.intercept)


def fit_affine(x: FloatArray, rows: CalibrationRows, penalty: Penalty) -> Affine:
    r"""Minimise the penalised NLL of softmax(W x + b), starting from the identity.

    .. math:: \sum_i m_i \big[-\log \mathrm{softmax}(W x_i + b)_{y_i}\big]
              + \lambda_d \sum_k (W_{kk} - 1)^2 + \lambda_o \sum_{j \neq k} W_{jk}^2
              + \lambda_b \sum_k b_k^2

    m are the weights scaled to sum to 1. The objective is convex, so L-BFGS finds its one minimum.
    """
    k = rows.k
    full = np.isfinite(penalty.off_diagonal)
    identity = np.eye(k) if full else np.ones(k)
    strength = np.where(identity == 1, penalty.diagonal, penalty.off_diagonal if full else 0.0)
    centre = np.concatenate([identity.ravel(), np.zeros(k)])
    strengths = np.concatenate([strength.ravel(), np.full(k, penalty.intercept)])
    # Approximate curvature of the objective along each parameter. Rescaling by it makes all
    # parameters equally stiff, so that L-BFGS converges quickly.
    curvature = np.broadcast_to((x * x).mean(axis=0) / k, identity.shape)
    unit = 1.0 / np.sqrt(np.append(curvature, np.full(k, 1.0 / k)) + 2.0 * strengths)
    loss = _Loss(x, rows.labels, rows.mass, full)

    def objective(scaled: FloatArray) -> tuple[float, FloatArray]:
        value, slope = loss(unit * scaled)
        offset = unit * scaled - centre
        return value + float((strengths * offset * offset).sum()), unit * (
            slope + 2.0 * strengths * offset
        )

    start = centre / unit
    # A model that is certain of everything has no gradient: soften it while that helps.
    while objective(0.5 * start)[0] < 0.9 * objective(start)[0]:
        start = 0.5 * start
    limits = {"maxiter": _MAX_STEPS, "maxfun": 2 * _MAX_STEPS}
    options = {**limits, "ftol": 1e-14, "gtol": 1e-8, "maxcor": 30}
    theta = unit * minimize(objective, start, jac=True, method="L-BFGS-B", options=options).x
    return Affine(theta[:-k].reshape(identity.shape), theta[-k:].copy())


class _Loss:
    """NLL of softmax(W x + b) and its derivatives."""

    def __init__(self, x: FloatArray, labels: IntArray, mass: FloatArray, full: bool) -> None:
        self.x, self.labels, self.mass, self.full = x, labels, mass, full
        self.row_index = np.arange(len(labels))

    def __call__(self, theta: FloatArray) -> tuple[float, FloatArray]:
        k = self.x.shape[1]
        weight = theta[:-k].reshape(k, k) if self.full else theta[:-k]
        log_probs = log_probs_from_logits(Affine(weight, theta[-k:])(self.x))
        value = -float((self.mass * log_probs[self.row_index, self.labels]).sum())
        residual = np.exp(log_probs)
        residual[self.row_index, self.labels] -= 1.0
        residual *= self.mass[:, None]
        inner = residual.T @ self.x if self.full else np.einsum("ij,ij->j", residual, self.x)
        return value, np.concatenate([inner.ravel(), residual.sum(axis=0)])
