"""Boosted trees for tables as a scikit-learn classifier."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np

from calibrant.boosting.features import category_places, tree_features
from calibrant.boosting.growing import grow_trees
from calibrant.boosting.names import check_objective, make_objective
from calibrant.boosting.options import BoostingOptions, ChooseBy
from calibrant.boosting.scorer import BoostingScorer
from calibrant.boosting.trees import Trees, load_lightgbm
from calibrant.cores import usable_cores, usable_threads
from calibrant.data.explanation import Explanation
from calibrant.data.resampling import Resampling
from calibrant.fitting.row_classifier import take_rows, warn_absent, warn_unknown_shift
from calibrant.fitting.table_input import TableInput
from calibrant.inputs import FloatArray


class BoostingClassifier(TableInput):
    """Boosted trees (LightGBM) for tables, with a loss of Calibrant's as objective.

    `fit` takes tables of any kind (see `TableEncoder`) and splits off steer rows first. Categories
    and missing values are used as they are. Ids, free text and infinite numbers are errors, as is a
    column with the name of the labels. A column that separates the classes without error gives a
    warning about target leakage.

    A split sets one category apart from all others if the column has at most 8 categories, or at
    most 64 with on average 64 train rows or more; others are split into two groups of categories.

    A category that the train rows did not have counts as missing, and a number far from theirs (see
    `NumberColumn`) as the farthest of them. The model of a bundle, `to_scorer()`, does not score
    such rows: their logits are equal, so that they can be left to a person.

    After every few rounds the steer rows are evaluated; the rounds up to the best evaluation are
    kept. The same seed gives the same bits, with any number of threads.

    Its probabilities are not calibrated: the steer rows are used up, so pass the fitted
    classifier and other rows to `CalibratedModel`. Needs the extra `boosting`.

    Parameters
    ----------
    clean, categories, drop, max_categories, fold_case, decimal, missing, dates : see `TableEncoder`
    loss : a name like "ce", "adafocal", "focal:gamma=3" or "ce:weight=balanced", with the options
        of the loss in `calibrant.losses`; sums and losses of your own have no objective
    n_estimators : maximum number of rounds; a round adds one tree for two classes, else one for
        each class
    learning_rate : factor of each tree
    num_leaves : maximum number of leaves of a tree
    min_child_samples : minimum number of train rows in a leaf
    reg_lambda : added to the sum of second derivatives in a leaf
    colsample_bytree : share of the columns that each tree may use
    subsample : share of the train rows that each tree is grown on
    cat_smooth : smoothing of the order of categories in a split into two groups, and the fewest
        rows of a leaf with which a category takes part in it
    max_bin : maximum number of bins of a number
    evaluate_every : rounds between evaluations of the steer rows
    patience : rounds without improvement after which to stop; None for all rounds
    min_delta : minimum improvement of the metric of `choose_by` to count
    choose_by : metric of the steer split that chooses the round: "refinement" (log loss after
        temperature scaling), "nll" or "f1"; "last" uses the last round
    steer_share : share of the rows of every class that is split off as steer rows, if
        `fit` is given none
    resample : how to make the classes of the train rows equally frequent: "over" repeats rows of
        the smaller ones, "under" drops rows of the larger ones; None for no resampling
    correct_prior : whether to remove the shift of the logits caused by the loss (class weights,
        balanced softmax) and `resample`, so that probabilities match the class frequencies of the
        train rows
    seed : seed of the split and of `colsample_bytree` and `subsample`
    n_jobs : threads; -1 for all usable cores, None for as many but at most `OMP_NUM_THREADS`

    Attributes
    ----------
    classes_ : the classes in the order of the columns of `predict_proba`
    encoder_ : the fitted `TableEncoder`
    model_ : the `Trees` up to the best evaluation
    options_ : the `BoostingOptions` that were used
    loss_ : the objective, with a `history` of gammas for AdaFocal
    records_ : one `EpochRecord` for each evaluation
    best_epoch_, why_ : position of the best record, and the reason for the end of the run
    n_weights_ : number of leaves of all trees
    steer_places_ : positions of the rows that were split off for steering
    log_shift_ : (K,) shift that `predict_logits` subtracts from the logits of `model_`, or None
    n_features_in_, feature_names_in_ : the columns of the table, where it names them

    Examples
    --------
    >>> from calibrant import BoostingClassifier
    >>> table = {"weight": [1.0, 2.0, None, 8.0, 9.0, 7.0] * 20, "fat": ["low", "Low"] * 60}
    >>> sold = ["few", "few", "few", "many", "many", "many"] * 20
    >>> model = BoostingClassifier().fit(table, sold)
    >>> model.predict([{"fat": "LOW", "weight": 1.5}, {"fat": "low", "weight": 8.5}]).tolist()
    ['few', 'many']

    References
    ----------
    Ke et al. (2017), LightGBM: a highly efficient gradient boosting decision tree.
    """

    def __init__(  # noqa: PLR0913  # scikit-learn finds and sets parameters one by one
        self,
        *,
        clean: Mapping[str, Mapping[str, str | None]] | None = None,
        categories: Sequence[str] = (),
        drop: Sequence[str] = (),
        max_categories: int = 50,
        fold_case: bool = True,
        decimal: str | None = None,
        missing: Sequence[str] = (),
        dates: str | None = None,
        loss: str = "ce",
        n_estimators: int = 2000,
        learning_rate: float = 0.05,
        num_leaves: int = 10,
        min_child_samples: int = 15,
        reg_lambda: float = 1.0,
        colsample_bytree: float = 0.7,
        subsample: float = 0.8,
        cat_smooth: float = 5.0,
        max_bin: int = 255,
        evaluate_every: int = 10,
        patience: int | None = 100,
        min_delta: float = 0.0,
        choose_by: ChooseBy = "refinement",
        steer_share: float = 0.1,
        resample: Resampling | None = None,
        correct_prior: bool = True,
        seed: int = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.clean = clean
        self.categories = categories
        self.drop = drop
        self.max_categories = max_categories
        self.fold_case = fold_case
        self.decimal = decimal
        self.missing = missing
        self.dates = dates
        self.loss = loss
        self.n_estimators = n_estimators
        self.learning_rate = learning_rate
        self.num_leaves = num_leaves
        self.min_child_samples = min_child_samples
        self.reg_lambda = reg_lambda
        self.colsample_bytree = colsample_bytree
        self.subsample = subsample
        self.cat_smooth = cat_smooth
        self.max_bin = max_bin
        self.evaluate_every = evaluate_every
        self.patience = patience
        self.min_delta = min_delta
        self.choose_by = choose_by
        self.steer_share = steer_share
        self.resample = resample
        self.correct_prior = correct_prior
        self.seed = seed
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any, *, steer: tuple[Any, Any] | None = None) -> Self:  # noqa: N803
        """Fit to labelled rows."""
        load_lightgbm()
        options = self._options()
        check_objective(self.loss)
        self._check_resample()
        splits, encoder = self._read_splits(X, y, steer), self._new_encoder()
        self._check_leakage(splits.train, splits.train_codes)
        encoder.fit(splits.train)
        sample = self._resampled(splits.train_codes)
        train, codes = splits.train, splits.train_codes
        if sample is not None:
            train, codes = take_rows(train, sample.places), codes[sample.places]
        n_classes = len(splits.classes)
        objective = make_objective(self.loss, np.bincount(codes, minlength=n_classes).astype(float))
        warn_absent(splits.steer_codes, splits.classes)
        grown = grow_trees(
            (tree_features(encoder, train), codes),
            (tree_features(encoder, splits.steer), splits.steer_codes),
            categories=category_places(encoder),
            n_classes=n_classes,
            objective=objective,
            log_shift=None if sample is None else sample.log_shift,
            options=options,
        )
        self.classes_, self.encoder_ = splits.classes, encoder
        self.model_, self.loss_, self.options_ = grown.trees, objective, options
        self.records_, self.best_epoch_, self.why_ = grown.records, grown.best, grown.why
        self.steer_places_ = splits.places
        self._resampling_shift = None if sample is None else sample.log_shift
        self._record_columns(splits.rows)
        if self.correct_prior and objective.has_unknown_shift:
            warn_unknown_shift()
        return self

    model_: Trees

    def predict_logits(self, X: Any) -> FloatArray:  # noqa: N803
        """Return logits (n, K), columns in the order of `classes_`, minus `log_shift_`."""
        self._check_fitted()
        rows = self.encoder_.match(self._read_input(X, "X", self.encoder_))
        logits = self.model_.predict(tree_features(self.encoder_, rows), threads=self._threads())
        shift = self.log_shift_
        return logits if shift is None else logits - shift

    def explain(self, X: Any) -> Explanation:  # noqa: N803
        """Return what each column contributes to the logits of each row."""
        return self.to_scorer().explain(self._read_input(X, "X", self.encoder_))

    def to_scorer(
        self, *, column: str | None = None, redact: bool = False, resize: bool = False
    ) -> BoostingScorer:
        """Return the model of a bundle; the options are those of models of texts and images."""
        self._check_fitted()
        return BoostingScorer(
            self.encoder_,
            self.model_,
            self.log_shift_,
            objective=self.loss_.to_dict(),
            classes=self.classes_.tolist(),
        )

    @property
    def n_weights_(self) -> int:
        """Number of leaves of all trees."""
        self._check_fitted()
        return self.model_.n_leaves

    def _loss_shift(self) -> FloatArray | None:
        shift: FloatArray | None = self.loss_.log_shift()
        return shift

    def _options(self) -> BoostingOptions:
        options = {name: getattr(self, name) for name in _OPTIONS}
        return BoostingOptions(n_jobs=self._threads(), **options)

    def _threads(self) -> Any:
        if self.n_jobs is None:
            return usable_threads()
        return usable_cores() if self.n_jobs == -1 else self.n_jobs


_OPTIONS = (
    "n_estimators", "learning_rate", "num_leaves", "min_child_samples", "reg_lambda",
    "colsample_bytree", "subsample", "cat_smooth", "max_bin", "evaluate_every", "patience",
    "min_delta", "choose_by", "seed",
)  # fmt: skip
