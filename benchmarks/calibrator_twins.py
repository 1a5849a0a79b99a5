"""Methods that we share with a peer: ours set up as the peer's, and what both of them minimise."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from benchmarks.calibrator_peers import Fitted
from calibrant.calibrators import (
    BetaCalibration,
    Calibrator,
    EnsembleTemperatureScaling,
    HistogramBinning,
    IsotonicCalibration,
    PlattScaling,
    QuadraticScaling,
    TemperatureScaling,
    VectorScaling,
)
from calibrant.calibrators.base.rows import as_calibration_rows
from calibrant.calibrators.fits.affine import Affine, Penalty, fit_affine
from calibrant.convert import log_probs_from_logits, probs_from_logits

__all__ = ["TWINS", "Twin", "fitted"]

Objectives = Callable[[Fitted, np.ndarray, np.ndarray], tuple[float, float]]
"""From the fitted peer, logits and labels to what our twin and the peer reach."""

Score = Callable[[np.ndarray, np.ndarray], float]
"""From log-probabilities (n, K) and labels to what is minimised."""

HARDLY = 1e-9
"""A penalty that stands for none."""


@dataclass(frozen=True)
class Twin:
    """One of our methods and the same method elsewhere.

    Parameters
    ----------
    method : our name of it
    peer : the peer's, as in `PEERS`
    objectives : what both reach on the rows they were fitted on; None where nothing is minimised
    two, more : whether they are the same for two classes, and for more
    """

    method: str
    peer: str
    objectives: Objectives | None
    two: bool = True
    more: bool = True

    def suits(self, k: int) -> bool:
        """Whether the two are the same for k classes."""
        return self.two if k == 2 else self.more


def fitted(calibrator: Calibrator) -> Fitted:
    """Show one of our fitted calibrators as a peer's."""
    return _Ours(calibrator, lambda logits: calibrator.predict_proba(_columns(logits)))


class _Ours(Fitted):
    def log_probs(self, logits: np.ndarray) -> np.ndarray:
        """Return the logarithms without a detour over probabilities."""
        return np.asarray(self.model.predict_log_proba(_columns(logits)))


def _columns(logits: np.ndarray) -> np.ndarray:
    """Write log-odds as two columns of logits."""
    return np.column_stack([np.zeros(len(logits)), logits]) if logits.ndim == 1 else logits


# What is minimised --------------------------------------------------------------------------------


def nll(log_probs: np.ndarray, labels: np.ndarray) -> float:
    """Mean of -log of the probability of the label."""
    return float(-log_probs[np.arange(len(labels)), labels].mean())


def squared_error(log_probs: np.ndarray, labels: np.ndarray) -> float:
    """Mean over rows of the squared distance to the label."""
    apart = np.exp(log_probs)
    apart[np.arange(len(labels)), labels] -= 1.0
    return float((apart * apart).sum(axis=1).mean())


def platt_nll(log_probs: np.ndarray, labels: np.ndarray) -> float:
    """The NLL with Platt's targets instead of 1 and 0."""
    up = float(labels.sum())
    target = np.where(labels == 1, (up + 1) / (up + 2), 1 / (len(labels) - up + 2))
    return float(-(target * log_probs[:, 1] + (1 - target) * log_probs[:, 0]).mean())


def _both(create: Callable[[], Calibrator], score: Score) -> Objectives:
    """Fit our method with the peer's settings to the peer's rows."""

    def objectives(peer: Fitted, logits: np.ndarray, labels: np.ndarray) -> tuple[float, float]:
        ours = fitted(create().fit(logits, labels))
        return score(ours.log_probs(logits), labels), score(peer.log_probs(logits), labels)

    return objectives


def _structured(peer: Fitted, logits: np.ndarray, labels: np.ndarray) -> tuple[float, float]:
    """Fit what the peer fits after its temperature: the same features, the same penalty.

    Our own first step and our features (logits less the mean of their row) differ, so the methods
    as a whole do not minimise the same; held-out rows compare them.
    """
    n, k = logits.shape
    first = peer.model.ts_.predict_proba(probs_from_logits(logits.astype(np.float64)))
    with np.errstate(divide="ignore"):
        x = np.log(first.astype(np.float32))
    x = np.maximum(x, np.log(np.finfo(np.float32).tiny)).astype(np.float64)
    full = hasattr(peer.model, "W_")
    penalty = Penalty(k / n, k * (k - 1) / n if full else np.inf, k / n)
    if full:
        both = np.asarray(peer.model.W_, dtype=np.float64)
        theirs = Affine(both[:, :-1], both[:, -1])
    else:
        theirs = Affine(np.asarray(peer.model.v_, float), np.asarray(peer.model.b_, float))
    ours = fit_affine(x, as_calibration_rows(x, labels), penalty)
    reached = [_penalised(one, x, labels, penalty) for one in (ours, theirs)]
    return reached[0], reached[1]


def _penalised(affine: Affine, x: np.ndarray, labels: np.ndarray, penalty: Penalty) -> float:
    full = affine.weight.ndim == 2
    change = affine.weight - (np.eye(len(affine.weight)) if full else 1.0)
    inner = np.diagonal(change) if full else change
    price = penalty.diagonal * (inner @ inner)
    price += penalty.intercept * (affine.intercept @ affine.intercept)
    if full:
        price += penalty.off_diagonal * ((change * change).sum() - inner @ inner)
    return nll(log_probs_from_logits(affine(x)), labels) + float(price)


_TEMPERATURE = _both(TemperatureScaling, nll)
_BETA = _both(lambda: BetaCalibration(shrink=None), nll)
_ISOTONIC = _both(lambda: IsotonicCalibration(pseudo_count=0.0), squared_error)
_HISTOGRAM = _both(lambda: HistogramBinning(10, scheme="width", pseudo_count=0.0), squared_error)

TWINS = (
    Twin("temperature", "netcal: temperature", _TEMPERATURE),
    Twin("temperature", "probmetrics: temperature", _TEMPERATURE),
    Twin("temperature", "scikit-learn: temperature", _TEMPERATURE),
    Twin(
        "platt",
        "scikit-learn: sigmoid",
        _both(lambda: PlattScaling(shrink="platt"), platt_nll),
        more=False,
    ),
    Twin("platt", "netcal: logistic", _both(lambda: PlattScaling(shrink=None), nll), more=False),
    Twin("beta", "betacal: beta", _BETA, more=False),
    Twin("beta", "netcal: beta", _BETA, more=False),
    Twin(
        "quadratic",
        "probmetrics: quadratic",
        _both(lambda: QuadraticScaling(shrink=None), nll),
        more=False,
    ),
    Twin(
        "vector",
        "probmetrics: vector",
        _both(lambda: VectorScaling(strength=HARDLY), nll),
        two=False,
    ),
    Twin("svs", "probmetrics: SVS", _structured, two=False),
    Twin("sms", "probmetrics: SMS", _structured, two=False),
    Twin(
        "ets", "probmetrics: ETS", _both(lambda: EnsembleTemperatureScaling("mse"), squared_error)
    ),
    Twin("isotonic", "netcal: isotonic", _ISOTONIC),
    Twin("isotonic", "scikit-learn: isotonic", _ISOTONIC),
    Twin("histogram", "netcal: histogram", _HISTOGRAM),
    Twin("venn_abers", "venn-abers: Venn-Abers", None),
)
