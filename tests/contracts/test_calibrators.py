"""Every registered calibrator follows the contract, and each rule catches a violation."""

import inspect

import numpy as np
import pytest

from calibrant.calibrators import (
    Calibrator,
    Chain,
    Identity,
    PriorCorrection,
    TemperatureScaling,
    list_methods,
)
from calibrant.calibrators.base import registry
from calibrant.calibrators.base.calibrator import SoftmaxCalibrator
from calibrant.errors import InputError
from calibrant.testing import check_calibrator
from calibrant.testing.calibrator_rules import RULES

MADE = {
    "chain": lambda: Chain([PriorCorrection(), TemperatureScaling()]),
}
# Not meant to lower the log loss of a model with the right priors and an ordinary loss.
NOT_MEANT_TO_IMPROVE = {"chain", "focal_recovery", "prior_correction"}
# Held-out rows decide, and copies of a row fall into different folds.
CROSS_VALIDATES = {"auto"}


@pytest.mark.parametrize("name", list_methods())
def test_calibrator_keeps_the_contract(name):
    calibrator = MADE.get(name, list_methods()[name])()
    check_calibrator(
        calibrator,
        improves=name not in NOT_MEANT_TO_IMPROVE,
        cross_validates=name in CROSS_VALIDATES,
    )


@pytest.mark.parametrize("objective", ["ece_mass", "ece_width"])
def test_paper_modes_keep_the_contract(objective):
    check_calibrator(TemperatureScaling(objective, n_bins=10), seed=1)


def test_chain_of_three_keeps_the_contract():
    chain = TemperatureScaling().then(PriorCorrection()).then(TemperatureScaling())
    check_calibrator(chain, improves=False)


class ChangesItsParameter(Identity):
    def __init__(self, digits=(1, 2)):
        self.digits = list(digits)


class StaysFittedInClones(Identity):
    def __sklearn_clone__(self):
        return self


class WritesToItsInput(TemperatureScaling):
    def fit(self, logits, labels, weights=None, *, classes=None):
        if isinstance(logits, np.ndarray):
            logits += 1.0
        return super().fit(logits, labels, weights, classes=classes)


class ReturnsNothing(Identity):
    def fit(self, logits, labels, weights=None, *, classes=None):
        super().fit(logits, labels, weights, classes=classes)


class AnswersBeforeFit(Identity):
    def predict(self, logits):
        return np.zeros(len(logits), dtype=int)


class SumsToLess(Identity):
    def _log_probs(self, logits):
        return super()._log_probs(logits) - 0.1


class PredictsTheLeastProbable(Identity):
    def predict(self, logits):
        outcome = self.predict_log_proba(logits)
        lowest = outcome <= np.log(0.5) if outcome.ndim == 1 else outcome.argmin(axis=1)
        return np.asarray(self.classes_[lowest * 1])


class IsRandom(TemperatureScaling):
    def _learn(self, rows):
        super()._learn(rows)
        self.temperature_ *= 1 + 1e-9 * np.random.default_rng().random()


class RemembersEarlierFits(TemperatureScaling):
    def _learn(self, rows):
        before = getattr(self, "temperature_", 1.0)
        super()._learn(rows)
        self.temperature_ += 1e-6 * before


class WantsArrays(Identity):
    def predict_proba(self, logits):
        return super().predict_proba(logits.reshape(logits.shape))


class WorksInSinglePrecision(TemperatureScaling):
    def _validate_logits(self, logits):
        array = super()._validate_logits(logits)
        if array.dtype == np.float32:
            return array.astype(np.float16).astype(np.float32)
        return array


class PredictsNumbers(Identity):
    def predict(self, logits):
        outcome = super().predict(logits)
        return np.searchsorted(np.sort(self.classes_), outcome)


class SortsTheClasses(Identity):
    def fit_rows(self, rows):
        super().fit_rows(rows)
        self.classes_ = np.sort(self.classes_)
        return self


class StandardisesTheBatch(Identity):
    def _log_probs(self, logits):
        return super()._log_probs(logits / max(float(np.abs(logits).max()), 1.0))


class LearnsFromTheFirstRow(TemperatureScaling):
    def _learn(self, rows):
        super()._learn(rows)
        self.temperature_ *= 1.1 if rows.labels[0] else 0.9


class FavoursTheFirstClass(SoftmaxCalibrator):
    method = "favours_the_first_class"
    needs_every_class = False

    def _learn(self, rows):
        pass

    def _new_logits(self, log_probs):
        return log_probs + 0.01 * np.arange(log_probs.shape[1])


class SeesTheConstant(Identity):
    def _block_log_probs(self, logits):
        if logits.ndim == 2 and logits.shape[1] > 2:
            logits = logits * (1 + 0.1 * np.tanh(logits.mean(axis=1))[:, None])
        return super()._block_log_probs(logits)


class OneColumnIsAnotherMatter(Identity):
    def _block_log_probs(self, logits):
        return super()._block_log_probs(logits / (2 if logits.ndim == 1 else 1))


class Overflows(Identity):
    def _log_probs(self, logits):
        e = np.exp(np.column_stack([np.zeros_like(logits), logits]) if logits.ndim == 1 else logits)
        return np.log(e / e.sum(axis=1, keepdims=True))


class DividesByTheSpread(TemperatureScaling):
    def _learn(self, rows):
        self.temperature_ = float(np.float64(1.0) / rows.log_odds.std())


class DividesByOneRowLess(TemperatureScaling):
    fewest_rows = 1

    def _learn(self, rows):
        self.temperature_ = 1.0 + 0 * float(np.ones(rows.n).var(ddof=1))


class TakesNaN(Identity):
    def predict_proba(self, logits):
        return super().predict_proba(np.nan_to_num(logits))


class TakesTooFewRows(TemperatureScaling):
    fewest_rows = 5

    def _check_rows(self, rows):
        pass


class TakesAnyWidth(Identity):
    def _validate_logits(self, logits):
        self._check_fitted()
        array = np.asarray(logits, dtype=float)
        if array.size == 0 or not np.isfinite(array).all():
            raise InputError("logits must be finite.")
        return array[:, : len(self.classes_)] if array.ndim == 2 else array


class MovesTheArgmax(PriorCorrection):
    keeps_argmax = True


class LosesTheArgmaxOnBadLabels(TemperatureScaling):
    def _learn(self, rows):
        super()._learn(rows)
        if self.temperature_ > 1e3:
            self.temperature_ = -1.0


class TiesRows(Identity):
    keeps_argmax = False

    def _new_logits(self, log_probs):
        return np.round(log_probs)


class TiesRowsOfAClass(TiesRows):
    keeps_ranking = False


class ForgetsTheOtherClasses(TemperatureScaling):
    def _keeps_order_of(self, position):
        return True


class TakesWeightsByTheirRoot(TemperatureScaling):
    def fit(self, logits, labels, weights=None, *, classes=None):
        weights = None if weights is None else np.sqrt(weights)
        return super().fit(logits, labels, weights, classes=classes)


class TakesWeightsAllTheSame(TemperatureScaling):
    fewest_rows = 1
    takes_weights = False

    def _check_rows(self, rows):
        pass


class NeedsNoClassAfterAll(Identity):
    needs_every_class = True

    def _check_every_class(self, rows):
        pass


class NeedsEveryClassAfterAll(TemperatureScaling):
    def _learn(self, rows):
        self._check_every_class(rows)
        super()._learn(rows)


class SavesHalf(TemperatureScaling):
    def _params(self):
        return {"temperature": round(self.temperature_, 3)}


class SavesInfinity(TemperatureScaling):
    def _params(self):
        return {**super()._params(), "loss": float("inf")}


class LoadsAnything(TemperatureScaling):
    def _restore(self, params):
        self.temperature_ = float(params.get("temperature") or 1.0)


class KnowsNothing(Identity):
    keeps_argmax = False
    keeps_ranking = False

    def _keeps_order_of(self, position):
        return False

    def _new_logits(self, log_probs):
        return np.zeros_like(log_probs)


CAUGHT = {
    "clone, get_params and set_params must work": [ChangesItsParameter, StaysFittedInClones],
    "arguments must not be modified": [WritesToItsInput],
    "fit must return the calibrator": [ReturnsNothing],
    "every method must raise NotFitted before fit": [AnswersBeforeFit],
    "probabilities must be finite, within [0, 1] and sum to 1": [
        SumsToLess,
        PredictsTheLeastProbable,
    ],
    "the same input must give the same result": [IsRandom],
    "a second fit must forget the first": [RemembersEarlierFits],
    "lists must be accepted": [WantsArrays],
    "float32 must be accepted and computed in float64": [WorksInSinglePrecision],
    "class names must be accepted": [PredictsNumbers, SortsTheClasses],
    "the prediction of a row must not depend on other rows": [StandardisesTheBatch],
    "the order of rows must not matter": [LearnsFromTheFirstRow],
    "the order of classes must not matter": [FavoursTheFirstClass],
    "(n,) and (n, 2) must agree": [OneColumnIsAnotherMatter],
    "a constant added to a row's logits must have no effect": [SeesTheConstant],
    "logits of 10,000 must be accepted without a warning": [Overflows],
    "data without an optimum must give valid probabilities or be refused": [DividesByTheSpread],
    "one row must give valid probabilities or be refused": [DividesByOneRowLess],
    "bad input must be refused": [TakesNaN, TakesTooFewRows, TakesAnyWidth],
    "keeps_argmax must be true if declared": [MovesTheArgmax, LosesTheArgmaxOnBadLabels],
    "keeps_ranking must be true if declared": [TiesRows],
    "keeps_order_of must be true of each class that it names": [
        TiesRowsOfAClass,
        ForgetsTheOtherClasses,
    ],
    "a weight must equal a repetition, or be refused": [
        TakesWeightsByTheirRoot,
        TakesWeightsAllTheSame,
    ],
    "an absent class must be accepted or refused": [NeedsNoClassAfterAll, NeedsEveryClassAfterAll],
    "a saved calibrator must load": [SavesHalf, SavesInfinity],
    "a damaged file must be refused": [LoadsAnything],
    "a large sample must not raise the log loss": [KnowsNothing],
}


def test_each_rule_has_a_calibrator_that_breaks_it():
    assert set(CAUGHT) == {*RULES, "a large sample must not raise the log loss"}


@pytest.mark.parametrize(
    ("rule", "broken"),
    [(rule, broken) for rule, classes in CAUGHT.items() for broken in classes],
    ids=[broken.__name__ for classes in CAUGHT.values() for broken in classes],
)
def test_broken_calibrator_is_caught(rule, broken, monkeypatch):
    monkeypatch.setitem(registry._METHODS, broken.method, broken)
    with pytest.raises(AssertionError) as caught:
        check_calibrator(broken())
    assert str(caught.value).startswith(f"{rule} (")


def test_a_method_without_more_than_two_classes_can_be_checked(monkeypatch):
    class TwoClasses(TemperatureScaling):
        def _check_rows(self, rows):
            super()._check_rows(rows)
            if rows.k > 2:
                raise InputError("two classes only.")

    monkeypatch.setitem(registry._METHODS, TwoClasses.method, TwoClasses)
    with pytest.raises(AssertionError, match="two classes only"):
        check_calibrator(TwoClasses())
    check_calibrator(TwoClasses(), multiclass=False)


def test_weights_of_a_method_that_cross_validates_need_not_be_repetitions(monkeypatch):
    monkeypatch.setitem(registry._METHODS, TakesWeightsByTheirRoot.method, TakesWeightsByTheirRoot)
    check_calibrator(TakesWeightsByTheirRoot(), cross_validates=True)


def test_every_registered_method_is_a_documented_calibrator():
    for name, found in list_methods().items():
        assert issubclass(found, Calibrator)
        assert found.method == name
        assert inspect.getdoc(found)
        assert all(attribute and attribute[-1] != "_" for attribute in found.learned)
