"""The boosting loop: rounds, evaluations on the steer rows, early stopping."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np

from calibrant.boosting.objective import Objective, class_factor, find_start
from calibrant.boosting.options import BoostingOptions
from calibrant.boosting.tree_text import strip_text
from calibrant.boosting.trees import Trees, as_logits, load_lightgbm
from calibrant.convert import probs_from_logits
from calibrant.errors import TrainingError
from calibrant.fitting.epoch_record import EpochRecord
from calibrant.fitting.steer_figures import steer_figures
from calibrant.inputs import FloatArray, IntArray

Why = Literal["patience", "rounds", "no split"]


@dataclass(frozen=True)
class GrownTrees:
    """A finished run.

    Parameters
    ----------
    trees : trees of the rounds up to the best evaluation
    records : one for each evaluation
    best : position of the best record
    why : "patience" (no better evaluation for so long), "rounds" (all done), or "no split" (no
        split of a leaf is left)
    """

    trees: Trees
    records: tuple[EpochRecord, ...]
    best: int
    why: Why


def grow_trees(
    train: tuple[FloatArray, IntArray],
    steer: tuple[FloatArray, IntArray],
    *,
    categories: list[int],
    n_classes: int,
    objective: Objective,
    log_shift: FloatArray | None,
    options: BoostingOptions,
) -> GrownTrees:
    """Grow trees on train rows, and keep the rounds up to the best evaluation on the steer rows.

    Parameters
    ----------
    train, steer : features and labels
    categories : positions of the features that are categories
    n_classes : number of classes K
    objective : the loss, which is updated from the steer rows if it is steered
    log_shift : (K,) shift of the logits caused by resampling the train rows, or None
    options : options of the run
    """
    run = _Run(train, steer, categories, n_classes, objective, log_shift, options)
    run.evaluate()  # the prior alone: on noise it is the best
    why: Why = "rounds" if run.has_splits else "no split"
    while run.round < options.n_estimators and why == "rounds":
        if run.add_round():
            why = "no split"
        if why == "no split" or run.is_due():
            run.evaluate()
            if run.waits_too_long():
                why = "patience"
        run.update_loss()
    return run.result(why)


class _Run:
    """State of a run."""

    def __init__(
        self,
        train: tuple[FloatArray, IntArray],
        steer: tuple[FloatArray, IntArray],
        categories: list[int],
        n_classes: int,
        objective: Objective,
        log_shift: FloatArray | None,
        options: BoostingOptions,
    ) -> None:
        self.objective, self.options, self.log_shift = objective, options, log_shift
        self.labels = train[1]
        self.steer_features, self.steer_labels = steer
        self.is_plain = objective.is_cross_entropy and objective.weight is None
        counts = np.bincount(self.labels, minlength=n_classes).astype(np.float64)
        self.start = find_start(objective, counts)
        self.booster = self._new_booster(train[0], categories, n_classes)
        trees_a_round = () if n_classes == 2 else (n_classes,)
        self.steer_scores = np.zeros((len(self.steer_labels), *trees_a_round))
        self.round = self.scored_rounds = 0
        self.records: list[EpochRecord] = []
        self.best, self.best_cost = 0, np.inf
        self.started = time.perf_counter()
        self.loss = objective.mean(np.tile(self.start, (len(self.labels), 1)), self.labels)

    def add_round(self) -> bool:
        """Add one tree, or one for each class; return whether no split was found."""
        self.round += 1
        return bool(self.booster.update(fobj=self._derivatives))

    def is_due(self) -> bool:
        """Whether the round is evaluated."""
        return self.round % self.options.evaluate_every == 0 or self._is_last()

    def evaluate(self) -> None:
        """Evaluate the steer rows, and update a loss that has no other times for it."""
        logits = self._score_steer()
        self.records.append(self._record(logits))
        cost = self._cost(self.records[-1])
        if len(self.records) == 1 or cost < self.best_cost - self._least_gain():
            self.best, self.best_cost = len(self.records) - 1, cost
        if self.round and self.objective.update_every is None:
            self.objective.update(logits, self.steer_labels)

    def update_loss(self) -> None:
        """Update a loss that has times of its own for it, if it is time."""
        every = self.objective.update_every
        if every is not None and self.round % every == 0:
            self.objective.update(self._score_steer(), self.steer_labels)

    def waits_too_long(self) -> bool:
        """Whether patience is used up."""
        patience = self.options.patience
        waited = self.round - self.best * self.options.evaluate_every
        return patience is not None and waited >= patience

    def result(self, why: Why) -> GrownTrees:
        """Return the trees of the rounds up to the best evaluation."""
        rounds = min(self.best * self.options.evaluate_every, self.round)
        text = strip_text(self.booster.model_to_string(num_iteration=rounds)) if rounds else ""
        return GrownTrees(Trees(text, self.start), tuple(self.records), self.best, why)

    def _new_booster(self, features: FloatArray, categories: list[int], n_classes: int) -> Any:
        lightgbm = load_lightgbm()
        parameters = self.options.parameters(len(features), n_classes)
        if not self.is_plain:  # a leaf without rare rows has hardly any curvature
            parameters["min_sum_hessian_in_leaf"] = 0.0
        start = self.start[1] - self.start[0] if n_classes == 2 else self.start
        scores = np.broadcast_to(start, (len(features), *np.shape(start)))
        rows = lightgbm.Dataset(
            features,
            label=self.labels,
            init_score=np.array(scores, order="F"),
            categorical_feature=categories,
            params=parameters,
        )
        self.has_splits = any(
            rows.construct().feature_num_bin(place) > 1 for place in range(features.shape[1])
        )
        return lightgbm.Booster(parameters, rows) if self.has_splits else None

    def _derivatives(self, scores: FloatArray, _: Any) -> tuple[FloatArray, FloatArray]:
        """Return the derivatives by the scores, which include the start."""
        two = scores.ndim == 1
        logits = np.column_stack([-0.5 * scores, 0.5 * scores]) if two else scores
        if self.is_due():
            self.loss = self.objective.mean(logits, self.labels)
        gradient, hessian = self.objective.derivatives(logits, self.labels)
        if not np.isfinite(gradient).all():
            raise TrainingError("boosting diverged: try a smaller learning_rate.")
        scale = self._curvature_scale(logits, hessian)
        if two:
            gradient, hessian = gradient[:, 1], hessian[:, 1]
        return scale * gradient, scale * hessian

    def _curvature_scale(self, logits: FloatArray, hessian: FloatArray) -> float:
        """Return the factor that gives a loss the total curvature of cross-entropy.

        `reg_lambda` and LightGBM's smallest curvature of a leaf are absolute numbers. Focal losses
        are so flat on rare classes that without the factor no leaf would be split.
        """
        if self.is_plain:
            return 1.0
        two = logits.shape[1] == 2
        probs = probs_from_logits(logits[:, 1] - logits[:, 0] if two else logits)
        plain = (1 + two) * class_factor(logits.shape[1]) * (probs * (1.0 - probs)).sum()
        return float(plain / hessian.sum())

    def _score_steer(self) -> FloatArray:
        """Return the logits of the steer rows, corrected for resampling."""
        new = self.round - self.scored_rounds
        if new:
            self.steer_scores += self.booster.predict(
                self.steer_features,
                raw_score=True,
                start_iteration=self.scored_rounds,
                num_iteration=new,
                num_threads=self.options.n_jobs,
            )
        self.scored_rounds = self.round
        logits = as_logits(self.steer_scores, self.start)
        return logits if self.log_shift is None else logits - self.log_shift

    def _record(self, logits: FloatArray) -> EpochRecord:
        shift = self.objective.log_shift()
        figures = steer_figures(logits if shift is None else logits - shift, self.steer_labels)
        now = time.perf_counter()
        seconds, self.started = now - self.started, now
        return EpochRecord(
            epoch=len(self.records),
            loss=self.loss,
            learning_rate=self.options.learning_rate,
            seconds=seconds,
            gammas=self.objective.gammas_range,
            **asdict(figures),
        )

    def _cost(self, record: EpochRecord) -> float:
        by = self.options.choose_by
        if by == "last":
            return -float(record.epoch)
        return -record.f1 if by == "f1" else float(getattr(record, by))

    def _least_gain(self) -> float:
        """Return by how much a metric must fall; "last" has none, but takes every round."""
        return 0.0 if self.options.choose_by == "last" else self.options.min_delta

    def _is_last(self) -> bool:
        return self.round == self.options.n_estimators
