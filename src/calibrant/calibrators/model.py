"""A model and its calibrator as one scikit-learn classifier."""

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
from calibrant.calibrators.choice.folds import random_folds
from calibrant.calibrators.methods.identity import Identity
from calibrant.calibrators.model_scores import Answer, answer_of, read, take_rows, zero_as
from calibrant.convert import log_probs_from_logits
from calibrant.errors import InputError
from calibrant.inputs import FloatArray, as_weights

if TYPE_CHECKING:
    from sklearn.utils import Tags

__all__ = ["CalibratedModel"]


class CalibratedModel(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):
    """A fitted model whose probabilities are calibrated, as one scikit-learn classifier.

    The model is frozen: `fit` learns the calibrator on rows that the model was not trained on, and
    neither `fit`, `clone` nor `set_params` changes the model. Its logits are read from
    `decision_function` where the softmax of it is `predict_proba` or where there is nothing else
    (support vector machines), otherwise from `predict_log_proba` or `predict_proba`, from a torch
    module's output, or from a function's result. Probabilities of exactly 0, such as a forest's,
    count as a little less than the least positive one among the calibration rows.

    With `cross_fit` the estimator need not be fitted, and no rows are set aside: copies of it learn
    from all folds but one each, the calibrator learns from their answers for the fold that they did
    not see, and a last copy, the one that answers later, learns from all rows. The rows that the
    calibrator learned from are then unseen by the models that scored them; but the last copy, with
    its few more rows, is not the model that they were scored by. That it needs the same calibrator
    is likely, not certain, and a guarantee on these rows, such as a threshold's, cannot be had.

    It is not a way to train: give rows held out from training, or set `cross_fit`. A model that
    never saw a label cannot predict it. Weights are handed to the calibrator, and with `cross_fit`
    to an estimator whose `fit` names `sample_weight` (a Pipeline's does not); weights that sum to
    less than the number of rows are scaled up to it.

    Parameters
    ----------
    estimator : a fitted classifier or pipeline; a torch module, which is called in evaluation mode
        with batches of X and returns logits; or a function from X to logits, (n,) or (n, K), such
        as one that asks a booster for its raw margins. With `cross_fit`, a classifier, fitted or
        not.
    calibrator : an unfitted calibrator, which is copied; None for `AutoCalibrator`, or, with fewer
        rows than that needs, for the model's own probabilities
    classes : the names behind the columns of a torch module or a function, in their order; a
        classifier names its own
    cross_fit : number of folds, at least 2; None for a fitted model
    seed : of the folds

    Attributes
    ----------
    estimator_ : the model that answers; without `cross_fit` the very object that was given
    calibrator_ : the fitted calibrator
    classes_ : the classes in the order of the columns: the model's, or those that were labels if
        the model names none
    answer_ : what is asked of the model
    n_features_in_, feature_names_in_ : the model's, where it has them

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
        """Learn the calibrator; with `cross_fit` the model too.

        Parameters
        ----------
        X : what the model takes, one row for each label
        y : labels, named as the model names them
        sample_weight : weights of the rows, or None
        """
        self._check_settings()
        labels = _as_labels(y)
        weights = _counting(as_weights(sample_weight, len(labels), name="sample_weight"))
        if self.cross_fit is None:
            model, answer, logits = _frozen(self.estimator, X)
        else:
            X, labels = indexable(X, labels)  # noqa: N806
            if weights is not None:  # a row of weight 0 is a row that is not there
                there = np.flatnonzero(weights)
                X, labels, weights = take_rows(X, there), labels[there], weights[there]  # noqa: N806
            fold = _folds(labels, self.estimator, int(self.cross_fit), self.seed)
            model, answer, logits = _cross_fitted(self.estimator, X, labels, weights, fold)
        floor = zero_as(logits, answer)
        calibrator = self._calibrator(labels, weights)
        names = _class_names(model, labels, self.classes)
        calibrator.fit(np.maximum(logits, floor), labels, weights, classes=names)
        self.estimator_, self.answer_, self._floor = model, answer, floor
        self.calibrator_: Calibrator = calibrator
        self.classes_ = np.asarray(getattr(model, "classes_", calibrator.classes_))
        self._take_over_features()
        return self

    def predict_proba(self, X: Any) -> FloatArray:  # noqa: N803
        """Return calibrated probabilities (n, K), columns in the order of `classes_`."""
        return np.exp(self.predict_log_proba(X))

    def predict_log_proba(self, X: Any) -> FloatArray:  # noqa: N803
        """Return the logarithm of `predict_proba`."""
        if not hasattr(self, "calibrator_"):
            raise Unfitted("this CalibratedModel has not learned anything yet: call fit first.")
        logits = read(self.estimator_, X, self.answer_)
        if isinstance(self.calibrator_, Identity):  # what changes nothing leaves a 0 a 0
            return log_probs_from_logits(logits)
        return self.calibrator_.predict_log_proba(np.maximum(logits, self._floor))

    def predict(self, X: Any) -> NDArray[Any]:  # noqa: N803
        """Return the class that is most probable after calibration."""
        best = self.predict_log_proba(X).argmax(axis=1)
        return np.asarray(self.classes_[best])

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters; those of a frozen model are not among them."""
        params: dict[str, Any] = super().get_params(deep)
        if self.cross_fit is not None:
            return params
        return {k: v for k, v in params.items() if not k.startswith("estimator__")}

    def set_params(self, **params: Any) -> Self:
        """Set parameters; those of a frozen model are refused."""
        frozen = params.get("cross_fit", self.cross_fit) is None
        inner = [name for name in params if name.startswith("estimator__")]
        if frozen and inner:
            raise InputError(
                f"{inner[0]!r} cannot be set, because the estimator is fitted and frozen: set "
                "cross_fit, or give another estimator."
            )
        super().set_params(**params)
        return self

    def __sklearn_clone__(self) -> CalibratedModel:
        if self.cross_fit is not None:
            made: CalibratedModel = super().__sklearn_clone__()
            return made
        bare = copy.copy(self)
        bare.estimator = None
        made = super(CalibratedModel, bare).__sklearn_clone__()
        made.estimator = self.estimator
        return made

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
            raise InputError("estimator is missing: give CalibratedModel a fitted classifier.")
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

    def _calibrator(self, labels: NDArray[Any], weights: FloatArray | None) -> Calibrator:
        """Copy the given calibrator, or choose automatically; with too few rows do no harm."""
        if self.calibrator is not None:
            copied: Calibrator = clone(self.calibrator)
            return copied
        rows = len(labels) if weights is None else np.count_nonzero(weights)
        return AutoCalibrator() if rows >= AutoCalibrator.fewest_rows else Identity()

    def _take_over_features(self) -> None:
        for name in ("n_features_in_", "feature_names_in_"):
            self.__dict__.pop(name, None)
            if hasattr(self.estimator_, name):
                setattr(self, name, getattr(self.estimator_, name))


def _counting(weights: FloatArray | None) -> FloatArray | None:
    """Scale weights that sum to less than the number of rows, as normalised ones do, up to it.

    A calibrator takes them for numbers of rows and would think that it has next to none.
    """
    if weights is None:
        return None
    rows = np.count_nonzero(weights)
    return weights * max(1.0, rows / float(weights.sum()))


def _as_labels(y: Any) -> NDArray[Any]:
    if y is None:
        raise InputError(
            "fit requires y to be passed, but the target y is None: give one label for each row."
        )
    labels = column_or_1d(y, warn=True)
    if len(labels) == 0:
        raise InputError("y is empty: at least one row is needed.")
    check_classification_targets(labels)
    return np.asarray(labels)


def _class_names(
    model: Any, labels: NDArray[Any], classes: Sequence[Any] | None
) -> list[Any] | None:
    """Return the names of the model's columns; refuse labels that are not among them."""
    given = getattr(model, "classes_", classes)
    if given is None:
        return [False, True] if labels.dtype == bool else None
    names: list[Any] = np.asarray(given).tolist()
    if len(names) < 2:
        raise InputError(f"the estimator knows one class only, {names}: train it on two or more.")
    unknown = sorted(set(labels.tolist()) - set(names), key=str)
    if unknown:
        raise InputError(
            f"y holds {unknown[0]!r}, which the estimator has never seen among its classes "
            f"{names[:8]}: leave those rows out, or train the model with them."
        )
    return names


def _frozen(model: Any, X: Any) -> tuple[Any, Answer, FloatArray]:  # noqa: N803
    """Return the model, what is asked of it, and its logits."""
    try:
        answer = answer_of(model, X)
        return model, answer, read(model, X, answer)
    except NotFittedError:
        raise Unfitted(
            f"this {type(model).__name__} is not fitted: fit it on other rows first, or set "
            "cross_fit."
        ) from None


def _cross_fitted(
    estimator: Any,
    X: Any,  # noqa: N803
    labels: NDArray[Any],
    weights: FloatArray | None,
    fold: NDArray[np.int64],
) -> tuple[Any, Answer, FloatArray]:
    """Return the final model, and logits of each row by a model that has not seen it."""
    final = _fitted_copy(estimator, X, labels, weights)
    answer = answer_of(final, X)
    logits = np.empty((len(labels), len(final.classes_)))
    for f in np.unique(fold):
        seen, held = np.flatnonzero(fold != f), np.flatnonzero(fold == f)
        part = None if weights is None else weights[seen]
        model = _fitted_copy(estimator, take_rows(X, seen), labels[seen], part)
        logits[held] = read(model, take_rows(X, held), answer)
    return final, answer, logits


def _folds(labels: NDArray[Any], estimator: Any, folds: int, seed: int) -> NDArray[np.int64]:
    """Spread the rows over folds so that every class is seen by every model."""
    if hasattr(estimator, "__sklearn_tags__") and estimator.__sklearn_tags__().input_tags.pairwise:
        raise InputError("cross_fit cannot split a matrix of pairs: give the features themselves.")
    classes, codes, counts = np.unique(labels, return_inverse=True, return_counts=True)
    if len(classes) < 2:
        raise InputError(
            f"y holds one class only, {classes.tolist()[0]!r}: rows of at least two are needed."
        )
    if counts.min() < 2:
        lonely = classes.tolist()[int(counts.argmin())]
        raise InputError(
            f"cross_fit needs at least 2 rows of each class, but {lonely!r} has 1: label more "
            "rows, or leave this one out."
        )
    return random_folds(codes.astype(np.int64), folds, np.random.default_rng(seed))


def _fitted_copy(
    estimator: Any,
    X: Any,  # noqa: N803
    labels: NDArray[Any],
    weights: FloatArray | None,
) -> Any:
    made = clone(estimator)
    if weights is not None and has_fit_parameter(made, "sample_weight"):
        return made.fit(X, labels, sample_weight=weights)
    return made.fit(X, labels)
