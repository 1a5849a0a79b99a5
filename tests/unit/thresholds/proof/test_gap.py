"""Where in the gap between two scores a threshold is put."""

import numpy as np
import pytest

from calibrant.convert import probs_from_logits
from calibrant.errors import InputError
from calibrant.thresholds import OperatingPoint, precision, recall, select
from calibrant.thresholds.proof.question import build_problem, clear_of_rounding, number_between


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_the_number_lies_inside_and_well_inside_where_there_is_room(kind):
    rng = np.random.default_rng(0)
    for _ in range(500):
        low, high = np.sort(kind(10.0 ** rng.uniform(-12, 0, 2)))
        if low == high:
            continue
        found = number_between(float(low), float(high), kind)
        assert low < found <= high
        assert low < kind(found) <= high
        if high - low > 100 * np.spacing(high):
            assert (high - low) / 4.01 < found - low < (high - low) / 1.33


def test_few_digits_are_taken_where_they_do():
    assert number_between(0.3712, 0.4498) == 0.4
    assert number_between(0.3712, 0.3721) == 0.3716
    assert number_between(-0.31, 0.43) == 0.06
    assert number_between(0.9999997, 0.9999998) == pytest.approx(0.99999975)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_neighbours_leave_only_the_upper_one(kind):
    low = kind(0.7)
    high = np.nextafter(low, kind(1))
    assert number_between(float(low), float(high), kind) == high
    assert not clear_of_rounding(float(low), float(high), float(high), kind)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("digits", [2, 7, 20])
def test_a_threshold_acts_on_exactly_the_rows_before_its_position(dtype, digits):
    scores = np.round(np.random.default_rng(0).random(500), digits).astype(dtype)
    problem = build_problem(scores > 0.5, scores, None, [precision])
    for k in problem.rows.ends:
        threshold = problem.threshold_at(int(k)).prob
        assert (scores >= threshold).sum() == k  # in the scores' own precision
        assert (scores.astype(np.float64) >= threshold).sum() == k


def atoms(seed, n=3000):
    rng = np.random.default_rng(seed)
    logits = rng.choice(np.round(np.linspace(-5, 5, 11) + rng.normal(size=11) * 0.3, 6), size=n)
    return (rng.random(n) < probs_from_logits(logits)).astype(int), logits


@pytest.mark.parametrize("seed", range(20))
def test_probabilities_and_logits_in_any_precision_decide_alike(seed):
    labels, logits = atoms(seed)
    probs = probs_from_logits(logits)
    for point in (
        select(labels, logits=logits, hold=precision >= 0.85),
        select(labels, probs, hold=precision >= 0.85),
        select(labels, probs.astype(np.float32), hold=precision >= 0.85),
    ):
        acted = logits >= point.logit
        assert point.both_kinds
        assert acted.mean() == point["coverage"].value
        for given in (
            {"probs": probs},
            {"probs": probs.astype(np.float32)},
            {"probs": [float(f"{p:.6f}") for p in probs]},
            {"probs": np.column_stack([1 - probs, probs])},
            {"logits": logits},
            {"logits": np.asfortranarray(np.column_stack([-logits / 2, logits / 2]))},
        ):
            assert np.array_equal(point.act(**given), acted)
        assert np.array_equal(probs >= point.threshold, acted)
        assert np.array_equal(probs > point.threshold, acted)
        assert np.array_equal(probs >= float(f"{point.threshold:.6g}"), acted)
        loaded = OperatingPoint.from_dict(point.to_dict())
        assert np.array_equal(loaded.act(probs), acted)


def test_the_order_of_memory_plays_no_part():
    rng = np.random.default_rng(3)
    for _ in range(20):
        logits = rng.choice([-2.1, 0.3, 1.7, 3.3], size=(400, 10))
        labels = rng.integers(0, 10, 400)
        labels = np.where(rng.random(400) < 0.7, logits.argmax(axis=1), labels)
        point = select(labels, logits=logits, hold=recall >= 0.5, positive=2)
        assert np.array_equal(point.act(logits=np.asfortranarray(logits)), point.act(logits=logits))


def test_scores_that_only_one_kind_tells_apart_need_that_kind():
    rng = np.random.default_rng(1)
    labels = (rng.random(2000) < 0.4).astype(int)
    logits = np.where(labels == 1, rng.choice([60.0, 80.0], 2000), rng.choice([40.0, 60.0], 2000))
    point = select(labels, logits=logits, hold=precision >= 0.9)
    assert not point.both_kinds
    assert point["precision"].value == 1
    with pytest.raises(InputError, match="give logits"):
        point.act(probs_from_logits(logits))
