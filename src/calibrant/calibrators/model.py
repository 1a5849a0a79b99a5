"""scikit-learn meta-estimator that combines a model and its calibrator."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.exceptions import NotFittedError
from sklearn.utils import indexable
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d, has_fit_parameter

from calibrant.calibrators.base.calibrator import Calibrator, Unfitted
from calibrant.calibrators.choice.auto import AutoCalibrator
from calibrant.calibrators.choice.trial import random_folds
from calibrant.calibrators.methods.identity import Identity
from calibrant.calibrators.model_scores import (
    ResponseMethod,
    choose_log_zero,
    choose_response_method,
    read_logits,
    take_rows,
)
from calibrant.convert import log_probs_from_logits
from calibrant.errors import InputError
from calibrant.inputs import FloatArray, as_weights

if TYPE_CHECKING:
    from sklearn.utils import Tags


class CalibratedModel(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):
    """Classifier that calibrates the probabilities of a fitted model.

    The model is frozen: `fit` learns the calibrator on rows that the model was not trained on, and
    neither `fit`, `clone` nor `set_params` changes the model. Its logits are read from
    `decision_function` if its softmax is `predict_proba` or if the model has no probabilities
    (support vector machines), otherwise from `predict_log_proba` or `predict_proba`, from the
    output of a torch module, or from the result of a function. Probabilities of exactly 0, such as
    those of a forest, are replaced by slightly less than the smallest positive one among the
    calibration rows.

    With `cross_fit` the estimator need not be fitted, and no rows are held out: clones of it are
    fitted on all folds but one, the calibrator is fitted on their out-of-fold scores, and a final
    clone, used for prediction, is fitted on all rows. The calibration scores are then out of
    sample, but they come from other models than the final one, which has seen more rows. That it
    needs the same calibrator is likely, not certain, and these rows cannot support a guarantee such
    as that of a threshold.

    `fit` does not train a frozen model: pass rows held out from training, or set `cross_fit`. A
    model that never saw a class cannot predict it. Weights are passed to the calibrator, and with
    `cross_fit` to an estimator whose `fit` has a `sample_weight` parameter (that of a Pipeline does
    not); weights that sum to less than the number of rows are scaled up to it.

    Parameters
    ----------
    estimator : a fitted classifier or pipeline; a torch module, which is called in evaluation mode
        with batches of X and returns logits; or a function from X to logits, (n,) or (n, K), such
        as the raw margins of a booster. With `cross_fit`, a classifier, fitted or
        not.
    calibrator : an unfitted calibrator, which is cloned; None for `AutoCalibrator`, or `Identity`
        with fewer rows than that needs
    classes : class names of a torch module or a function, in column order; a classifier has its
        own
    cross_fit : number of folds, at least 2; None for a fitted model
    seed : seed of the folds

    Attributes
    ----------
    estimator_ : the model used for prediction; without `cross_fit` the object passed in
    calibrator_ : the fitted calibrator
    classes_ : class names in column order: those of the model, or those of the labels if it has
        none
    answer_ : the response method that is called on the model
    n_features_in_, feature_names_in_ : those of the model, if it has them

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from calibrant.calibrators import TemperatureScaling
    >>> X, y = make_classification(3000, n_features=30, n_redundant=20, random_state=0)
    >>> bayes = GaussianNB().fit(X[:1000], y[:1000])
    >>> model = CalibratedModel(bayes, TemperatureScaling()).fit(X[1000:2000], y[1000:2000])
    >>> round(model.calibrator_.temperature_, 1)
    9.1
    >>> from calibrant.metrics import nll
    >>> [round(nll(y[2000:], m.predict_proba(X[2000:])), 2) for m in (bayes, model)]
    [1.08, 0.23]
    """

    def __init__(
        self,
        estimator: Any = None,
        calibrator: Calibrator | None = None,
        *,
        classes: Sequence[Any] | None = None,
        cross_fit: int | None = None,
        seed: int = 0,
    ) -> None:
        self.estimator = estimator
        self.calibrator = calibrator
        self.classes = classes
        self.cross_fit = cross_fit
        self.seed = seed

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:  # noqa: N803
        """Fit the calibrator, and with `cross_fit` also the model.

        Parameters
        ----------
        X : input of the model, one row per label
        y : labels, with the class names of the model
        sample_weight : weights of the rows, or None
        """
        self._check_settings()
        labels = _as_labels(y)
        weights = _rescale_weights(as_weights(sample_weight, len(labels), name="sample_weight"))
        if self.cross_fit is None:
            model, response_method, logits = _score_frozen(self.estimator, X)
        else:
            X, labels = indexable(X, labels)  # noqa: N806
            if weights is not None:  # rows of weight 0 are dropped
                used = np.flatnonzero(weights)
                X, labels, weights = take_rows(X, used), labels[used], weights[used]  # noqa: N806
            fold = _assign_folds(labels, self.estimator, int(self.cross_fit), self.seed)
            model, response_method, logits = _score_cross_fit(
                self.estimator, X, labels, weights, fold
            )
        floor = choose_log_zero(logits, response_method)
        calibrator = self._make_calibrator(labels, weights)
        names = _class_names(model, labels, self.classes)
        calibrator.fit(np.maximum(logits, floor), labels, weights, classes=names)
        self.estimator_, self.answer_, self._floor = model, response_method, floor
        self.calibrator_: Calibrator = calibrator
        self.classes_ = np.asarray(getattr(model, "classes_", calibrator.classes_))
        self._copy_feature_names()
        return self

    def predict_proba(self, X: Any) -> FloatArray:  # noqa: N803
        """Return calibrated probabilities (n, K), columns in the order of `classes_`."""
        return np.exp(self.predict_log_proba(X))

    def predict_log_proba(self, X: Any) -> FloatArray:  # noqa: N803
        """Return the logarithm of `predict_proba`."""
        if not hasattr(self, "calibrator_"):
            raise Unfitted("this CalibratedModel is not fitted yet: call fit first.")
        logits = read_logits(self.estimator_, X, self.answer_)
        if isinstance(self.calibrator_, Identity):  # keeps probabilities of exactly 0
            return log_probs_from_logits(logits)
        return self.calibrator_.predict_log_proba(np.maximum(logits, self._floor))

    def predict(self, X: Any) -> NDArray[Any]:  # noqa: N803
        """Return the most probable class of each row after calibration."""
        best = self.predict_log_proba(X).argmax(axis=1)
        return np.asarray(self.classes_[best])

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters, without those of a frozen model."""
        params: dict[str, Any] = super().get_params(deep)
        if self.cross_fit is not None:
            return params
        return {k: v for k, v in params.items() if not k.startswith("estimator__")}

    def set_params(self, **params: Any) -> Self:
        """Set parameters; refuse those of a frozen model."""
        frozen = params.get("cross_fit", self.cross_fit) is None
        inner = [name for name in params if name.startswith("estimator__")]
        if frozen and inner:
            raise InputError(
                f"{inner[0]!r} cannot be set, because the estimator is fitted and frozen: set "
                "cross_fit, or pass another estimator."
            )
        super().set_params(**params)
        return self

    def __sklearn_clone__(self) -> CalibratedModel:
        if self.cross_fit is not None:
            duplicate: CalibratedModel = super().__sklearn_clone__()
            return duplicate
        bare = copy.copy(self)
        bare.estimator = None
        duplicate = super(CalibratedModel, bare).__sklearn_clone__()
        duplicate.estimator = self.estimator
        return duplicate

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "calibrator_")

    def __sklearn_tags__(self) -> Tags:
        from sklearn.utils import get_tags  # with these tags, new in scikit-learn 1.6

        tags = super().__sklearn_tags__()
        if hasattr(self.estimator, "__sklearn_tags__"):
            inner = get_tags(self.estimator)
            tags.input_tags = inner.input_tags
            tags.classifier_tags.multi_class = getattr(inner.classifier_tags, "multi_class", True)
        return tags

    def _check_settings(self) -> None:
        if self.estimator is None:
            raise InputError("estimator is missing: pass a fitted classifier to CalibratedModel.")
        if self.calibrator is not None and not isinstance(self.calibrator, Calibrator):
            raise InputError(
                "calibrator must be a calibrator such as TemperatureScaling(), or None for the "
                f"automatic choice, got {self.calibrator!r}."
            )
        if self.cross_fit is None:
            return
        whole = isinstance(self.cross_fit, int | np.integer) and not isinstance(
            self.cross_fit, bool
        )
        if not whole or self.cross_fit < 2:
            raise InputError(
                f"cross_fit must be a number of folds, at least 2, or None, got {self.cross_fit!r}."
            )
        if not hasattr(self.estimator, "fit"):
            raise InputError(
                f"cross_fit needs an estimator with fit, got {type(self.estimator).__name__}: "
                "train it yourself, and calibrate it on other rows without cross_fit."
            )

    def _make_calibrator(self, labels: NDArray[Any], weights: FloatArray | None) -> Calibrator:
        """Clone `calibrator`, or use `AutoCalibrator`; with too few rows use `Identity`."""
        if self.calibrator is not None:
            copied: Calibrator = clone(self.calibrator)
            return copied
        rows = len(labels) if weights is None else np.count_nonzero(weights)
        return AutoCalibrator() if rows >= AutoCalibrator.fewest_rows else Identity()

    def _copy_feature_names(self) -> None:
        for name in ("n_features_in_", "feature_names_in_"):
            self.__dict__.pop(name, None)
            if hasattr(self.estimator_, name):
                setattr(self, name, getattr(self.estimator_, name))


def _rescale_weights(weights: FloatArray | None) -> FloatArray | None:
    """Scale weights that sum to less than the number of rows, such as normalised ones, up to it.

    A calibrator interprets the sum of the weights as a number of rows.
    """
    if weights is None:
        return None
    rows = np.count_nonzero(weights)
    return weights * max(1.0, rows / float(weights.sum()))


def _as_labels(y: Any) -> NDArray[Any]:
    if y is None:
        raise InputError(
            "fit requires y to be passed, but the target y is None: pass one label per row."
        )
    labels = column_or_1d(y, warn=True)
    if len(labels) == 0:
        raise InputError("y is empty: at least one row is needed.")
    check_classification_targets(labels)
    return np.asarray(labels)


def _class_names(
    model: Any, labels: NDArray[Any], classes: Sequence[Any] | None
) -> list[Any] | None:
    """Return the class names of the model; refuse labels that are not among them."""
    known_classes = getattr(model, "classes_", classes)
    if known_classes is None:
        return [False, True] if labels.dtype == bool else None
    names: list[Any] = np.asarray(known_classes).tolist()
    if len(names) < 2:
        raise InputError(f"the estimator knows one class only, {names}: train it on two or more.")
    unknown = sorted(set(labels.tolist()) - set(names), key=str)
    if unknown:
        raise InputError(
            f"y holds {unknown[0]!r}, which is not among the classes of the estimator "
            f"{names[:8]}: drop those rows, or train the model with them."
        )
    return names


def _score_frozen(model: Any, X: Any) -> tuple[Any, ResponseMethod, FloatArray]:  # noqa: N803
    """Return the model, its response method, and its logits."""
    try:
        response_method = choose_response_method(model, X)
        return model, response_method, read_logits(model, X, response_method)
    except NotFittedError:
        raise Unfitted(
            f"this {type(model).__name__} is not fitted: fit it on other rows first, or set "
            "cross_fit."
        ) from None


def _score_cross_fit(
    estimator: Any,
    X: Any,  # noqa: N803
    labels: NDArray[Any],
    weights: FloatArray | None,
    fold: NDArray[np.int64],
) -> tuple[Any, ResponseMethod, FloatArray]:
    """Return the final model, its response method, and out-of-fold logits."""
    final = _fit_copy(estimator, X, labels, weights)
    response_method = choose_response_method(final, X)
    logits = np.empty((len(labels), len(final.classes_)))
    for f in np.unique(fold):
        seen, held = np.flatnonzero(fold != f), np.flatnonzero(fold == f)
        part = None if weights is None else weights[seen]
        model = _fit_copy(estimator, take_rows(X, seen), labels[seen], part)
        logits[held] = read_logits(model, take_rows(X, held), response_method)
    return final, response_method, logits


def _assign_folds(labels: NDArray[Any], estimator: Any, folds: int, seed: int) -> NDArray[np.int64]:
    """Assign rows to folds so that every model sees every class."""
    if hasattr(estimator, "__sklearn_tags__") and estimator.__sklearn_tags__().input_tags.pairwise:
        raise InputError("cross_fit cannot split a pairwise matrix: pass the features.")
    classes, codes, counts = np.unique(labels, return_inverse=True, return_counts=True)
    if len(classes) < 2:
        raise InputError(
            f"y holds one class only, {classes.tolist()[0]!r}: rows of at least two are needed."
        )
    if counts.min() < 2:
        rarest = classes.tolist()[int(counts.argmin())]
        raise InputError(
            f"cross_fit needs at least 2 rows of each class, but {rarest!r} has 1: label more "
            "rows, or drop this one."
        )
    return random_folds(codes.astype(np.int64), folds, np.random.default_rng(seed))


def _fit_copy(
    estimator: Any,
    X: Any,  # noqa: N803
    labels: NDArray[Any],
    weights: FloatArray | None,
) -> Any:
    model = clone(estimator)
    if weights is not None and has_fit_parameter(model, "sample_weight"):
        return model.fit(X, labels, sample_weight=weights)
    return model.fit(X, labels)
