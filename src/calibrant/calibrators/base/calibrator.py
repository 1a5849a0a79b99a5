"""Base class of all calibrators."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from threading import Lock
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

from calibrant.calibrators.base.registry import find_method
from calibrant.calibrators.base.rows import Array, CalibrationRows, as_calibration_rows, two_columns
from calibrant.convert import log_probs_from_logits
from calibrant.errors import InputError, NotFitted
from calibrant.inputs import FloatArray, as_logits
from calibrant.inputs.arrays import order_columns
from calibrant.inputs.row_sketch import RowSketch

if TYPE_CHECKING:
    from calibrant.calibrators.chain import Chain

_lock = Lock()
_limits: list[Any] = []
"""One entry per running fit; the first holds the limiter, which the last fit restores."""


@contextmanager
def single_blas_thread() -> Iterator[None]:
    """Limit BLAS to one thread within a `with` block.

    Fits multiply matrices with a few columns thousands of times. BLAS uses all cores for each
    product, and on a busy machine they wait for one another: a five-second fit took fifty.
    """
    with _lock:
        _limits.append(_controller().limit(limits=1, user_api="blas") if not _limits else None)
    try:
        yield
    finally:
        with _lock:
            # Fits end in any order: pass the limiter to one that is still running.
            limiter = _limits.pop(0)
            if _limits and limiter is not None:
                _limits[0] = limiter
            elif limiter is not None:
                limiter.restore_original_limits()


@cache
def _controller() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


FORMAT = 1  # Version of the JSON that `to_dict` writes; older versions load, newer ones are refused
_BLOCK_ENTRIES = 1 << 22  # Array entries per block when predicting, which bounds temporary memory

_DAMAGED_FILE_ERRORS = (
    ArithmeticError, AttributeError, IndexError, KeyError, RecursionError, TypeError, ValueError,
)  # fmt: skip
"""Errors that loading a damaged file may raise."""


class Unfitted(NotFitted, NotFittedError):
    """A calibrator was used before `fit`; also a scikit-learn `NotFittedError`."""


class Calibrator(BaseEstimator, ABC):
    """Base class of all calibrators.

    A method is a subclass with a `method` name, the class attributes below, `_learn` and
    `_log_probs`. `learned` names the fitted attributes, each with a trailing underscore; `to_dict`
    saves them together with `fitted_on_`, a sketch of the rows that `fit` used.

    Only the probabilities that the logits imply matter: adding a constant to a row changes nothing,
    so log-probabilities work as well as logits. Probabilities do not: convert them with
    `calibrant.convert.logits_from_probs`.

    Attributes
    ----------
    keeps_argmax : calibration never changes the most probable class of a row
    keeps_ranking : with two classes, rows keep their strict order by P(positive)
    takes_weights : `fit` takes weights, and a weight equals a repetition for the fitted map
    needs_every_class : each class must occur among the labels
    fewest_rows : smallest number of rows that `fit` accepts
    """

    method: ClassVar[str]
    learned: ClassVar[tuple[str, ...]] = ()
    keeps_argmax: ClassVar[bool] = False
    keeps_ranking: ClassVar[bool] = False
    takes_weights: ClassVar[bool] = True
    needs_every_class: ClassVar[bool] = True
    fewest_rows: ClassVar[int] = 2

    classes_: NDArray[Any]
    fitted_on_: RowSketch

    def fit(
        self,
        logits: Any,
        labels: Any,
        weights: Any = None,
        *,
        classes: Sequence[Any] | None = None,
    ) -> Self:
        """Fit on labelled rows that the model was not trained on.

        Parameters
        ----------
        logits : (n,) log-odds of the second class, or (n, K)
        labels : n labels: 0..K-1, booleans, or names
        weights : n inverse inclusion probabilities, or None
        classes : class names in column order. The default is sorted order, as in scikit-learn's
            classifiers, which requires that every class occurs among the labels.
        """
        rows = as_calibration_rows(logits, labels, weights, classes)
        return self.fit_rows(rows)

    def fit_rows(self, rows: CalibrationRows) -> Self:
        """Fit on rows that have already been checked."""
        self._check_rows(rows)
        before = dict(self.__dict__)
        try:
            self.classes_ = _class_array(rows.classes)
            with single_blas_thread():
                self._learn(rows)
            self.__dict__.pop("fitted_on_", None)  # stale: it belongs to an earlier fit
            self._remember(rows)
        except BaseException:
            self.__dict__ = before  # a failed fit keeps the previous state
            raise
        return self

    def predict_proba(self, logits: Any) -> FloatArray:
        """Return calibrated probabilities in the shape of `logits`: (n,) P(positive), or (n, K)."""
        return np.exp(self.predict_log_proba(logits))

    def predict_log_proba(self, logits: Any) -> FloatArray:
        """Return the logarithm of `predict_proba`, exact where probabilities round to 0 or 1."""
        array = self._validate_logits(logits)
        out = np.empty(array.shape)
        step = max(1, _BLOCK_ENTRIES // self.n_classes)
        for start in range(0, len(array), step):
            block = slice(start, start + step)
            out[block] = self._block_log_probs(array[block].astype(np.float64))
        return out

    def predict(self, logits: Any) -> NDArray[Any]:
        """Return the most probable class of each row."""
        log_probs = self.predict_log_proba(logits)
        two = log_probs.ndim == 1
        best = (log_probs > np.log(0.5)) * 1 if two else log_probs.argmax(axis=1)
        return np.asarray(self.classes_[best])

    def then(self, second: Calibrator) -> Chain:
        """Return a `Chain` of this calibrator followed by another one.

        `fit` fits the first, then the second on the output of the first. A chain of two fitted
        calibrators is itself fitted.
        """
        from calibrant.calibrators.chain import Chain

        return Chain([self, second])

    def has_seen(self, logits: Any, labels: Any, *, classes: Sequence[Any] | None = None) -> bool:
        """Return whether it was fitted on these labelled rows, or on more of them than by chance.

        False for a calibrator saved by a version without `fitted_on_`, and for rows that have been
        scored again since; see `RowSketch` for the limits of the test.

        Parameters
        ----------
        logits : uncalibrated logits, as passed to `fit`
        labels : n labels
        classes : class names in column order; by default those of the fit
        """
        self._check_fitted()
        names = self.classes_.tolist() if classes is None else classes
        return self.has_seen_rows(as_calibration_rows(logits, labels, classes=names))

    def has_seen_rows(self, rows: CalibrationRows) -> bool:
        """Same as `has_seen`, for checked rows whose classes are in the order of the fit."""
        return hasattr(self, "fitted_on_") and self.fitted_on_.shares(rows)

    def keeps_order_of(self, position: int) -> bool:
        r"""Return whether rows keep their strict order by the probability of one class.

        .. math:: p'_k = g(p_k), \qquad g \text{ strictly increasing}

        p is the model's probability of class k, p' the calibrated one. With two classes this is
        true of every method that `keeps_ranking`. With more, nearly all methods also look at the
        other classes: a temperature other than 1 moves :math:`p_k = 0.5` to different values for
        the rest (0.5, 0) and (0.25, 0.25). It is not `keeps_argmax`, which compares the classes
        of one row and not the rows of one class.

        Parameters
        ----------
        position : k, from 0

        Examples
        --------
        >>> from calibrant.calibrators import TemperatureScaling
        >>> TemperatureScaling().fit([-1.0, 0.0, 1.0], [0, 1, 1]).keeps_order_of(1)
        True
        >>> several = TemperatureScaling().fit([[0, 1, 0], [0, 1, 2], [1, 0, 2]], [1, 2, 0])
        >>> several.keeps_order_of(1)
        False
        """
        if position not in range(self.n_classes):
            raise InputError(
                f"position must be from 0 to {self.n_classes - 1}, got {position!r}: there are "
                f"{self.n_classes} classes."
            )
        return self._keeps_order_of(position)

    @property
    def n_classes(self) -> int:
        """Number of classes this calibrator was fitted on."""
        self._check_fitted()
        return len(self.classes_)

    def to_dict(self) -> dict[str, Any]:
        """Return everything needed to predict, as JSON values."""
        self._check_fitted()
        return {
            "format": FORMAT,
            "method": self.method,
            "classes": self.classes_.tolist(),
            "params": self._params(),
            "settings": self._settings(),
            **({"fitted_on": self.fitted_on_.to_dict()} if hasattr(self, "fitted_on_") else {}),
        }

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any]) -> Self:
        """Load a fitted calibrator from `to_dict`; `Calibrator.from_dict` accepts any method."""
        method, classes, params = _check_saved(saved)
        calibrator_class = find_method(method)
        if not issubclass(calibrator_class, cls):
            raise InputError(
                f"the saved calibrator has the method {method!r}, but {cls.__name__} loads "
                f"{getattr(cls, 'method', 'another')!r}: use calibrators.from_dict for any method."
            )
        try:
            calibrator = calibrator_class(**saved.get("settings", {}))
            calibrator.classes_ = _class_array(classes)
            calibrator._restore(params)
            if "fitted_on" in saved:  # absent from older files
                calibrator.fitted_on_ = RowSketch.from_dict(saved["fitted_on"])
            calibrator._check_fitted()
            calibrator._check_learned()
            calibrator._check_answers()
        except _DAMAGED_FILE_ERRORS as error:
            raise InputError(
                f"the saved calibrator of method {method!r} is incomplete or damaged "
                f"({_reason(error)}): fit and save it again."
            ) from None
        return calibrator

    @abstractmethod
    def _learn(self, rows: CalibrationRows) -> None:
        """Set the learned attributes."""

    @abstractmethod
    def _log_probs(self, logits: FloatArray) -> FloatArray:
        """Map finite logits (n, K), or (n,) log-odds where K is 2, to log-probabilities.

        With two classes the result is (n, 2): both logarithms, so that neither rounds away.
        """

    def _keeps_order_of(self, position: int) -> bool:
        """Return `keeps_order_of` of a fitted calibrator; False if unknown."""
        return self.n_classes == 2 and self.keeps_ranking

    def _remember(self, rows: CalibrationRows) -> None:
        """Store a sketch of the rows for `has_seen`."""
        self.fitted_on_ = RowSketch.from_rows(rows)

    def _params(self) -> dict[str, Any]:
        return {name: to_json_values(getattr(self, f"{name}_")) for name in self.learned}

    def _restore(self, params: Mapping[str, Any]) -> None:
        for name in self.learned:
            setattr(self, f"{name}_", load_numbers(params[name], name))

    def _check_learned(self) -> None:
        """Raise ValueError if a loaded parameter is out of range."""

    def _check_answers(self) -> None:
        """Raise ValueError if a loaded calibrator does not return probabilities."""
        k = len(self.classes_)
        logits = np.vstack([np.zeros(k), np.linspace(-1.0, 1.0, k), np.linspace(20.0, -20.0, k)])
        with np.errstate(all="ignore"):
            probs = np.exp(self._block_log_probs(logits))
        if probs.shape != logits.shape or not np.allclose(probs.sum(axis=1), 1.0, atol=1e-6):
            raise ValueError("its predictions are not probabilities")

    def _settings(self) -> dict[str, Any]:
        """Return the constructor arguments that differ from their defaults."""
        params, defaults = self.get_params(deep=False), type(self)().get_params(deep=False)
        return {
            k: to_json_values(v)
            for k, v in params.items()
            if to_json_values(v) != to_json_values(defaults[k])
        }

    def _check_rows(self, rows: CalibrationRows) -> None:
        if rows.weights is not None and not self.takes_weights:
            raise InputError(
                f"{type(self).__name__} does not support weights: omit them, or choose a method "
                "whose takes_weights is true, such as TemperatureScaling."
            )
        if rows.n < self.fewest_rows:
            raise InputError(
                f"{type(self).__name__} needs at least {self.fewest_rows} rows, got {rows.n}: "
                "label more rows, or choose a simpler method such as TemperatureScaling."
            )
        if self.needs_every_class:
            self._check_every_class(rows)

    def _check_every_class(self, rows: CalibrationRows) -> None:
        absent = np.flatnonzero(rows.counts == 0)
        if len(absent):
            more = f" and {len(absent) - 1} more" if len(absent) > 1 else ""
            raise InputError(
                f"{type(self).__name__} needs rows of every class, but none has the label "
                f"{rows.classes[absent[0]]!r}{more}: label some, or choose a method that does "
                "not need them, such as TemperatureScaling."
            )

    def _check_fitted(self) -> None:
        names = ("classes", *self.learned)
        if not all(hasattr(self, f"{name}_") for name in names):
            raise Unfitted(
                f"this {type(self).__name__} is not fitted yet: call fit first, or load it with "
                "from_dict."
            )

    def _validate_logits(self, logits: Any) -> Array:
        self._check_fitted()
        array = as_logits(logits)
        k = 2 if array.ndim == 1 else array.shape[1]
        if k != len(self.classes_):
            raise InputError(
                f"this {type(self).__name__} was fitted on {len(self.classes_)} classes, but the "
                f"logits of shape {array.shape} have {k}: pass logits of the same classes."
            )
        names = self.classes_.tolist()
        return order_columns(array, logits, classes=names, kind="logit", name="logits")[0]

    def _block_log_probs(self, logits: FloatArray) -> FloatArray:
        """Return log-probabilities in the shape of `logits`."""
        ndim = logits.ndim
        if ndim == 2 and logits.shape[1] == 2:
            logits = logits[:, 1] - logits[:, 0]
        out = self._log_probs(logits)
        return out[:, 1] if ndim == 1 else out


def load_numbers(value: Any, name: str) -> Any:
    """Convert a saved number to a float and a saved list to an array; refuse anything else."""
    array = np.asarray(value)
    if array.dtype.kind not in "if" or isinstance(value, bool):
        raise ValueError(f"{name} is not a number")
    wide = array.astype(np.float64)
    if not np.isfinite(wide).all():
        raise ValueError(f"{name} is not finite")
    return wide if isinstance(value, list) else float(wide)


def to_json_values(value: Any) -> Any:
    """Convert arrays and numpy scalars to JSON values."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, list | tuple):
        return [to_json_values(v) for v in value]
    if isinstance(value, dict):
        return {str(k): to_json_values(v) for k, v in value.items()}
    return value


def _class_array(classes: Sequence[Any]) -> NDArray[Any]:
    array = np.asarray(list(classes))
    # numpy would turn mixed names into text; keep their types.
    if array.dtype.kind == "U" and not all(isinstance(c, str) for c in classes):
        array = np.empty(len(classes), dtype=object)
        array[:] = list(classes)
    return array


def _check_saved(saved: Mapping[str, Any]) -> tuple[str, list[Any], Mapping[str, Any]]:
    """Return method, classes and params of a saved calibrator after checking them."""
    if not isinstance(saved, Mapping) or "format" not in saved or "method" not in saved:
        raise InputError(
            "this is not a saved calibrator: it needs the keys 'format', 'method', 'classes' and "
            "'params', as to_dict writes them."
        )
    version = saved["format"]
    if not isinstance(version, int) or isinstance(version, bool) or not 1 <= version <= FORMAT:
        raise InputError(
            f"the saved calibrator has format {json.dumps(version, default=str)}, but this version "
            f"of Calibrant reads formats up to {FORMAT}: upgrade calibrant, or save it again."
        )
    classes, params = saved.get("classes"), saved.get("params")
    names = classes if isinstance(classes, list) else []
    if not all(isinstance(c, str | int | float) and c == c for c in names):
        names = []
    if len(names) < 2 or len(set(map(str, names))) < len(names):
        raise InputError(
            "the saved calibrator has no list 'classes' of at least two names, all different: "
            "fit and save it again."
        )
    if not isinstance(params, Mapping):
        raise InputError("the saved calibrator has no 'params': fit and save it again.")
    return str(saved["method"]), names, params


def _reason(error: Exception) -> str:
    if isinstance(error, InputError):
        return str(error).rstrip(".")
    text = str(error).strip().splitlines()
    shown = text[0][:120] if text else type(error).__name__
    return f"missing {shown}" if isinstance(error, KeyError) else shown


class SoftmaxCalibrator(Calibrator):
    """Base class of methods that map log-probabilities (n, K) to new logits (n, K)."""

    def _log_probs(self, logits: FloatArray) -> FloatArray:
        log_probs = log_probs_from_logits(two_columns(logits))
        return log_probs_from_logits(self._new_logits(log_probs))

    @abstractmethod
    def _new_logits(self, log_probs: FloatArray) -> FloatArray:
        """Return logits of the calibrated probabilities."""
