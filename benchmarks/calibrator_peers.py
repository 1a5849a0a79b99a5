"""Calibrators behind one face, ours and other libraries': fit on logits, answer log-probabilities.

Most peers take probabilities; they get the softmax of the logits in float64. What they print, warn
about or switch off for everyone stays inside `quietly`.
"""

from __future__ import annotations

import contextlib
import io
import logging
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module, metadata
from typing import Any

import numpy as np

from calibrant.convert import log_probs_from_logits, probs_from_logits

__all__ = ["PEERS", "Fitted", "Peer", "missing", "quietly", "versions"]

Predict = Callable[[np.ndarray], Any]
"""From logits to probabilities: (n,) P(positive), or (n, K)."""


@dataclass(frozen=True)
class Fitted:
    """A calibrator that has learned.

    Parameters
    ----------
    model : the library's own object, for what only its parameters tell
    predict : from logits to probabilities: (n,) P(positive), or (n, K)
    """

    model: Any
    predict: Predict

    def log_probs(self, logits: np.ndarray) -> np.ndarray:
        """Return logarithms (n, K), two columns where there are two classes."""
        probs = np.asarray(self.predict(logits), dtype=np.float64)
        if probs.ndim == 1:
            probs = np.column_stack([1.0 - probs, probs])
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.log(probs)


Fit = Callable[[np.ndarray, np.ndarray], Fitted]


@dataclass(frozen=True)
class Peer:
    """One method of another library.

    Parameters
    ----------
    package : what is installed
    method : what the table calls it
    module : what is imported
    fit : learns from logits and labels
    two, more : whether it is for two classes, and for more
    most_classes : with more classes it would take over a minute, and is left out
    """

    package: str
    method: str
    module: str
    fit: Fit
    two: bool = True
    more: bool = True
    most_classes: int | None = None

    @property
    def name(self) -> str:
        """Package and method."""
        return f"{self.package}: {self.method}"

    def suits(self, k: int) -> bool:
        """Whether the method is defined for k classes."""
        return self.two if k == 2 else self.more


@contextlib.contextmanager
def quietly() -> Iterator[None]:
    """Keep what a peer prints and warns to itself, and undo its changes to numpy's settings."""
    settings = np.geterr()
    logging.disable(logging.CRITICAL)
    try:
        with (
            contextlib.redirect_stdout(io.StringIO()),
            contextlib.redirect_stderr(io.StringIO()),
            warnings.catch_warnings(),
            np.errstate(all="ignore"),
        ):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(logging.NOTSET)
        np.seterr(**settings)


def missing(peer: Peer) -> str | None:
    """Return why a peer cannot be imported, or None where it can."""
    try:
        with quietly():
            import_module(peer.module)
    except ImportError as error:
        return f"not installable here ({error})"
    return None


def versions() -> dict[str, str]:
    """Return the installed version of every package."""
    installed = {}
    for package in dict.fromkeys(peer.package for peer in PEERS):
        with contextlib.suppress(metadata.PackageNotFoundError):
            installed[package] = metadata.version(package)
    return installed


def _probs(logits: np.ndarray) -> np.ndarray:
    return probs_from_logits(logits.astype(np.float64))


def _matrix(logits: np.ndarray) -> np.ndarray:
    """Return probabilities (n, K), two columns where there are two classes."""
    probs = _probs(logits)
    return probs if probs.ndim == 2 else np.column_stack([1.0 - probs, probs])


def _netcal(kind: str, **settings: Any) -> Fit:
    def fit(logits: np.ndarray, labels: np.ndarray) -> Fitted:
        binning = kind in ("HistogramBinning", "IsotonicRegression", "BBQ", "ENIR")
        module = import_module("netcal.binning" if binning else "netcal.scaling")
        calibrator = getattr(module, kind)(**settings)
        calibrator.fit(_probs(logits), labels)
        return Fitted(calibrator, lambda new: calibrator.transform(_probs(new)))

    return fit


def _probmetrics(kind: str, **settings: Any) -> Fit:
    def fit(logits: np.ndarray, labels: np.ndarray) -> Fitted:
        calibrator = getattr(import_module("probmetrics.calibrators"), kind)(**settings)
        calibrator.fit(_matrix(logits), labels)
        return Fitted(calibrator, lambda new: calibrator.predict_proba(_matrix(new)))

    return fit


def _probmetrics_vector(logits: np.ndarray, labels: np.ndarray) -> Fitted:
    """Fit on logits less the mean of their row, as ours: log-probabilities give another model."""
    import torch
    from probmetrics.calibrators import VectorScalingCalibrator
    from probmetrics.distributions import CategoricalLogits

    def as_distribution(new: np.ndarray) -> Any:
        wide = log_probs_from_logits(new.astype(np.float64))
        return CategoricalLogits(torch.as_tensor(wide - wide.mean(axis=1, keepdims=True)))

    calibrator = VectorScalingCalibrator()
    calibrator.fit_torch(as_distribution(logits), torch.as_tensor(labels))
    return Fitted(
        calibrator,
        lambda new: calibrator.predict_proba_torch(as_distribution(new)).get_probs().detach(),
    )


def _sklearn(method: str) -> Fit:
    def fit(logits: np.ndarray, labels: np.ndarray) -> Fitted:
        from sklearn.base import BaseEstimator, ClassifierMixin
        from sklearn.calibration import CalibratedClassifierCV
        from sklearn.frozen import FrozenEstimator

        two = logits.ndim == 1

        class PassThrough(ClassifierMixin, BaseEstimator):
            """A fitted classifier whose decision function returns its input."""

            def __init__(self) -> None:
                self.classes_ = np.arange(2 if two else logits.shape[1])

            def fit(self, x: np.ndarray, y: np.ndarray) -> PassThrough:
                return self

            def decision_function(self, x: np.ndarray) -> np.ndarray:
                return x[:, 0] if two else x

            def predict(self, x: np.ndarray) -> np.ndarray:
                return x[:, 0] > 0 if two else x.argmax(axis=1)

        def as_features(new: np.ndarray) -> np.ndarray:
            wide = new.astype(np.float64)
            return wide[:, None] if two else log_probs_from_logits(wide)

        calibrator = CalibratedClassifierCV(FrozenEstimator(PassThrough()), method=method)
        calibrator.fit(as_features(logits), labels)
        return Fitted(calibrator, lambda new: calibrator.predict_proba(as_features(new)))

    return fit


def _betacal(logits: np.ndarray, labels: np.ndarray) -> Fitted:
    from betacal import BetaCalibration

    calibrator = BetaCalibration(parameters="abm").fit(_probs(logits), labels)
    return Fitted(calibrator, lambda new: calibrator.predict(_probs(new)))


def _venn_abers(kind: str) -> Fit:
    def fit(logits: np.ndarray, labels: np.ndarray) -> Fitted:
        """With more than two classes the package fits while it predicts."""
        import venn_abers

        known = _matrix(logits)
        if logits.ndim == 1:
            calibrator = venn_abers.VennAbers().fit(known, labels)
            return Fitted(calibrator, lambda new: calibrator.predict_proba(_matrix(new))[0])
        answer = venn_abers.venn_abers.predict_proba_prefitted_va
        return Fitted(None, lambda new: answer(known, labels, _matrix(new), va_tpe=kind)[0])

    return fit


_SCALING, _BINNING = "netcal.scaling", "netcal.binning"
_METRICS, _SKLEARN = "probmetrics.calibrators", "sklearn.calibration"
_QUADRATIC = _probmetrics("BinaryLogisticCalibrator", type="quadratic")

PEERS = (
    Peer("netcal", "temperature", _SCALING, _netcal("TemperatureScaling")),
    Peer("netcal", "logistic", _SCALING, _netcal("LogisticCalibration")),
    Peer("netcal", "beta", _SCALING, _netcal("BetaCalibration"), most_classes=20),
    Peer("netcal", "histogram", _BINNING, _netcal("HistogramBinning", bins=10)),
    Peer("netcal", "isotonic", _BINNING, _netcal("IsotonicRegression")),
    Peer("netcal", "BBQ", _BINNING, _netcal("BBQ")),
    Peer("netcal", "ENIR", _BINNING, _netcal("ENIR")),
    Peer("probmetrics", "temperature", _METRICS, _probmetrics("TemperatureScalingCalibrator")),
    Peer("probmetrics", "ETS", _METRICS, _probmetrics("ETSCalibrator")),
    Peer("probmetrics", "vector", _METRICS, _probmetrics_vector, two=False),
    Peer("probmetrics", "SVS", _METRICS, _probmetrics("SVSCalibrator"), two=False),
    Peer("probmetrics", "SMS", _METRICS, _probmetrics("SMSCalibrator"), two=False),
    Peer("probmetrics", "quadratic", _METRICS, _QUADRATIC, more=False),
    Peer("scikit-learn", "temperature", _SKLEARN, _sklearn("temperature")),
    Peer("scikit-learn", "sigmoid", _SKLEARN, _sklearn("sigmoid")),
    Peer("scikit-learn", "isotonic", _SKLEARN, _sklearn("isotonic")),
    Peer("betacal", "beta", "betacal", _betacal, more=False),
    Peer("venn-abers", "Venn-Abers", "venn_abers", _venn_abers("one_vs_rest")),
    Peer("venn-abers", "by pairs", "venn_abers", _venn_abers("one_vs_one"), two=False),
)
"""In the order of the tables."""
