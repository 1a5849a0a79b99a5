import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import entropy as scipy_entropy
from tests.sentences import refuses

from calibrant.errors import InputError
from calibrant.ood import SCORES, OodRule, energy, entropy, max_logit, unreadable

RNG = np.random.default_rng(0)
GRADED = [name for name in SCORES if name != "unreadable"]
LOGITS = RNG.normal(scale=4.0, size=(200, 5))


def test_entropy_of_known_rows():
    # p = (3/4, 1/4): -(3/4 log 3/4 + 1/4 log 1/4)
    by_hand = -(0.75 * np.log(0.75) + 0.25 * np.log(0.25))
    found = entropy([[np.log(3.0), 0.0], [5.0, 5.0]])
    assert found == pytest.approx([by_hand, np.log(2.0)])


def test_energy_of_known_rows():
    # log(e^0 + e^(log 3)) = log 4; at T = 2: 2 log(1 + e^(log 9 / 2)) = 2 log 4
    assert energy([[0.0, np.log(3.0)]]) == pytest.approx([-np.log(4.0)])
    assert energy([[0.0, np.log(9.0)]], temperature=2.0) == pytest.approx([-2 * np.log(4.0)])


def test_max_logit_of_known_rows():
    assert max_logit([[1.0, 7.0, -3.0], [-2.0, -5.0, -9.0]]).tolist() == [-7.0, 2.0]


def test_entropy_agrees_with_scipy():
    probs = np.exp(LOGITS - logsumexp(LOGITS, axis=1, keepdims=True))
    assert entropy(LOGITS) == pytest.approx(scipy_entropy(probs, axis=1), abs=1e-12)


@pytest.mark.parametrize("temperature", [0.1, 1.0, 30.0])
def test_energy_agrees_with_scipy(temperature):
    by_scipy = -temperature * logsumexp(LOGITS / temperature, axis=1)
    assert energy(LOGITS, temperature=temperature) == pytest.approx(by_scipy, rel=1e-12)


def test_max_logit_agrees_with_energy_at_a_temperature_of_nearly_0():
    assert max_logit(LOGITS) == pytest.approx(energy(LOGITS, temperature=1e-12), abs=1e-9)
    assert np.isfinite(energy([[1e4, -1e4]], temperature=1e-308)).all()


@pytest.mark.parametrize("name", SCORES)
def test_the_order_of_classes_and_rows_does_not_matter(name):
    score, rows = SCORES[name], RNG.permutation(len(LOGITS))
    assert score(LOGITS[:, ::-1]) == pytest.approx(score(LOGITS), abs=1e-12)
    assert score(LOGITS[rows]).tolist() == score(LOGITS)[rows].tolist()


def test_a_constant_changes_energy_and_max_logit_but_not_entropy():
    moved = LOGITS + 3.0
    assert entropy(moved) == pytest.approx(entropy(LOGITS), abs=1e-12)
    assert energy(moved) == pytest.approx(energy(LOGITS) - 3.0)
    assert max_logit(moved) == pytest.approx(max_logit(LOGITS) - 3.0)


@pytest.mark.parametrize("name", GRADED)
def test_rows_the_model_is_sure_of_score_lower(name):
    sure, unsure = [[9.0, 0.0, 0.0]], [[1.0, 0.0, 0.0]]
    assert SCORES[name](sure)[0] < SCORES[name](unsure)[0]


def test_bounds_hold():
    assert (entropy(LOGITS) >= 0).all()
    assert (entropy(LOGITS) <= np.log(5)).all()
    gap = max_logit(LOGITS) - energy(LOGITS)  # the rest adds at most log K
    assert (gap >= 0).all()
    assert (gap <= np.log(5)).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_logits_up_to_ten_thousand_are_exact(dtype):
    rows = np.array([[1e4, 0.0, -1e4], [-1e4, -1e4, -1e4], [1e4, 1e4, 0.0]], dtype)
    assert entropy(rows) == pytest.approx([0.0, np.log(3.0), np.log(2.0)], abs=1e-12)
    assert not np.signbit(entropy(rows)).any()
    by_hand = [-1e4, 1e4 - np.log(3.0), -1e4 - np.log(2.0)]
    assert energy(rows) == pytest.approx(by_hand, abs=1e-9)
    assert max_logit(rows).tolist() == [-1e4, 1e4, -1e4]
    assert energy(rows).dtype == np.float64


@pytest.mark.parametrize("name", SCORES)
def test_log_odds_are_two_columns_with_half_each(name):
    odds = np.array([-3.0, 0.0, 5.0])
    columns = np.column_stack([-odds / 2, odds / 2])
    assert SCORES[name](odds) == pytest.approx(SCORES[name](columns))


@pytest.mark.parametrize("name", SCORES)
@pytest.mark.parametrize(
    ("logits", "words"),
    [
        ([], ("logits is empty",)),
        ([[1.0, np.nan]], ("logits", "finite", "got nan", "row 0", "column 1")),
        ([[1.0], [2.0]], ("shape",)),
    ],
)
def test_bad_logits_are_refused(name, logits, words):
    with refuses(InputError, *words):
        SCORES[name](logits)


@pytest.mark.parametrize("temperature", [0.0, -1.0, np.nan, np.inf])
def test_a_temperature_must_be_positive(temperature):
    with refuses(InputError, "temperature", "greater than 0"):
        energy(LOGITS, temperature=temperature)


def test_only_rows_with_equal_logits_are_unreadable():
    logits = [[0.0, 0.0, 0.0], [2.5, 2.5, 2.5], [0.0, 0.0, 1e-300], [5.0, -5.0, 0.0]]
    assert unreadable(logits).tolist() == [1.0, 1.0, 0.0, 0.0]
    assert unreadable([0.0, 0.1]).tolist() == [1.0, 0.0]
    rule = OodRule.unreadable(200)
    assert rule.flags(logits).tolist() == [True, True, False, False]
    assert OodRule.from_dict(rule.to_dict()) == rule
