"""Chains: one calibrator after the other equals doing it by hand."""

import json

import numpy as np
import pytest
from sklearn.base import clone
from tests.sentences import refuses

from calibrant.calibrators import (
    Calibrator,
    Chain,
    Identity,
    IsotonicCalibration,
    PlattScaling,
    PriorCorrection,
    TemperatureScaling,
    from_dict,
)
from calibrant.errors import InputError, NotFitted
from calibrant.testing import WORLDS

BINARY = WORLDS["binary"].draw(500, 0)
FIVE = WORLDS["multiclass"].draw(500, 0)


def rows(draw):
    if draw.probs.ndim == 1:
        return np.log(draw.probs) - np.log1p(-draw.probs), draw.labels
    return np.log(draw.probs), draw.labels


def by_hand(steps, logits, labels, weights=None):
    for step in steps:
        fitted = clone(step).fit(logits, labels, weights)
        log_probs = fitted.predict_log_proba(logits)
        odds = log_probs - np.log1p(-np.exp(log_probs))
        logits = odds if logits.ndim == 1 else log_probs
    return np.exp(log_probs)


@pytest.mark.parametrize("draw", [BINARY, FIVE], ids=["binary", "five"])
@pytest.mark.parametrize("weighted", [False, True])
def test_chain_equals_its_steps_by_hand(draw, weighted):
    logits, labels = rows(draw)
    weights = np.random.default_rng(0).uniform(0.2, 2, 500) if weighted else None
    steps = [PriorCorrection(), TemperatureScaling(), PriorCorrection()]
    chain = Chain(steps).fit(logits, labels, weights)
    assert chain.predict_proba(logits) == pytest.approx(
        by_hand(steps, logits, labels, weights), abs=1e-9
    )


def test_second_step_sees_what_the_first_has_made():
    logits, labels = rows(BINARY)
    alone = TemperatureScaling().fit(logits, labels)
    twice = TemperatureScaling().then(TemperatureScaling()).fit(logits, labels)
    assert twice.steps_[0].temperature_ == alone.temperature_
    assert twice.steps_[1].temperature_ == pytest.approx(1.0, abs=1e-6)


def test_prior_and_temperature_in_closed_form():
    # Equal evidence in all rows: the chain's answer is the base rate, whatever the temperature.
    chain = PriorCorrection().then(TemperatureScaling()).fit(np.zeros(8), [0, 0, 0, 0, 0, 0, 1, 1])
    assert chain.predict_proba([0.0]) == pytest.approx([0.25], abs=1e-6)


def test_then_makes_one_flat_chain():
    chain = Identity().then(TemperatureScaling()).then(PriorCorrection())
    assert [step.method for step in chain.steps] == ["identity", "temperature", "prior_correction"]


def test_given_calibrators_are_left_alone():
    logits, labels = rows(BINARY)
    first, second = TemperatureScaling(), PriorCorrection()
    chain = first.then(second).fit(logits, labels)
    assert chain.steps[0] is first
    assert not hasattr(first, "temperature_")
    assert not hasattr(second, "target_")


def test_fitted_calibrators_make_a_fitted_chain():
    logits, labels = rows(FIVE)
    first = PriorCorrection(target=[1, 2, 3, 4, 5]).fit(logits, labels)
    second = TemperatureScaling().fit(logits, labels)
    chain = first.then(second)
    expected = second.predict_proba(first.predict_log_proba(logits))
    assert chain.predict_proba(logits) == pytest.approx(expected, abs=1e-12)
    assert chain.classes_.tolist() == [0, 1, 2, 3, 4]


def test_half_fitted_chain_is_not_fitted():
    logits, labels = rows(BINARY)
    fitted = TemperatureScaling().fit(logits, labels)
    for chain in (fitted.then(PriorCorrection()), PriorCorrection().then(fitted)):
        with refuses(NotFitted, "Chain", "not fitted yet"):
            chain.predict_proba(logits)


def test_clone_is_unfitted():
    logits, labels = rows(BINARY)
    fitted = TemperatureScaling().fit(logits, labels)
    for chain in (fitted.then(fitted), Chain([TemperatureScaling()]).fit(logits, labels)):
        with pytest.raises(NotFitted):
            clone(chain).predict_proba(logits)


def test_facts_are_those_of_all_members():
    safe, moving = TemperatureScaling(), PriorCorrection()
    assert safe.then(safe).keeps_argmax
    assert not safe.then(moving).keeps_argmax
    assert safe.then(moving).keeps_ranking
    assert not safe.then(IsotonicCalibration()).keeps_ranking
    assert safe.then(moving).takes_weights


class NoWeights(Identity):
    takes_weights = False


def test_member_that_takes_no_weights_is_heard():
    logits, labels = rows(BINARY)
    chain = TemperatureScaling().then(NoWeights())
    assert not chain.takes_weights
    with refuses(InputError, "NoWeights", "not support weights"):
        chain.fit(logits, labels, np.ones(500))


def test_names_and_refit():
    logits, labels = rows(BINARY)
    chain = PriorCorrection().then(TemperatureScaling())
    named = chain.fit(logits, np.array(["no", "yes"])[labels])
    assert named.classes_.tolist() == ["no", "yes"]
    assert set(named.predict(logits)) <= {"no", "yes"}
    more, codes = rows(FIVE)
    assert chain.fit(more, codes).predict_proba(more).shape == more.shape


def test_saved_and_loaded_with_settings_of_its_steps():
    logits, labels = rows(FIVE)
    chain = PriorCorrection([1, 2, 3, 4, 5]).then(TemperatureScaling(highest=3.0))
    saved = json.loads(json.dumps(chain.fit(logits, labels).to_dict()))
    assert saved["method"] == "chain"
    assert saved["params"]["steps"][1]["settings"] == {"highest": 3.0}
    loaded = from_dict(saved)
    assert np.array_equal(loaded.predict_log_proba(logits), chain.predict_log_proba(logits))
    assert loaded.to_dict() == saved
    again = loaded.fit(logits, labels)  # a loaded chain can learn anew
    assert again.predict_proba(logits) == pytest.approx(chain.predict_proba(logits), abs=1e-12)


@pytest.mark.parametrize("steps", [[], [{"format": 1}], "lost", None, [None]])
def test_damaged_steps_are_refused(steps):
    saved = {"format": 1, "method": "chain", "classes": [0, 1], "params": {"steps": steps}}
    with refuses(InputError, "'chain'", "incomplete", "damaged"):
        from_dict(saved)


def test_steps_of_other_classes_are_refused():
    two = TemperatureScaling().fit([0.0, 1.0], [0, 1]).to_dict()
    three = TemperatureScaling().fit(np.eye(3), [0, 1, 2]).to_dict()
    saved = {"format": 1, "method": "chain", "classes": [0, 1], "params": {"steps": [two, three]}}
    with refuses(InputError, "not have", "same classes"):
        from_dict(saved)


def test_a_chain_of_nothing_is_refused():
    with refuses(InputError, "chain needs calibrators", "got none"):
        Chain().fit([0.0, 1.0], [0, 1])


class Hard(Calibrator):
    """Gives probabilities of exactly 0 and 1."""

    method = "hard"
    needs_every_class = False

    def _learn(self, rows):
        pass

    def _log_probs(self, logits):
        certain = np.where(logits > 0, 0.0, -np.inf)
        return np.column_stack([np.where(logits > 0, -np.inf, 0.0), certain])


def test_certainty_of_one_step_is_finite_for_the_next():
    chain = Hard().then(TemperatureScaling()).fit([-1.0, -2.0, 3.0, 1.0], [0, 1, 1, 1])
    assert np.isfinite(chain.predict_log_proba([-1.0, 1.0])).all()


def test_fitted_steps_of_other_classes_are_refused():
    two = TemperatureScaling().fit([-1.0, 1.0, 2.0, -2.0], [0, 1, 0, 1])
    three = TemperatureScaling().fit(np.eye(3), [0, 1, 2])
    with refuses(InputError, "same classes", "got [0, 1] and [0, 1, 2]"):
        two.then(three).predict_proba([0.5])


def test_a_chain_asks_what_its_members_ask():
    chain = TemperatureScaling().then(PlattScaling())
    assert chain.needs_every_class
    with refuses(InputError, "PlattScaling needs rows", "class"):
        chain.fit([-1.0, 1.0], [1, 1])


def test_what_is_no_calibrator_is_refused():
    with refuses(InputError, "chain needs calibrators", "got 1"):
        Chain([1]).fit([-1.0, 1.0], [0, 1])
    with refuses(InputError, "chain needs calibrators", "got none"):
        Chain().predict_proba([0.5])
