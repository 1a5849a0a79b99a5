"""Contract of rates: correct values, targets, optimisation and saving."""

import json

import numpy as np
import pytest

from calibrant.thresholds import (
    RATES,
    OperatingPoint,
    Target,
    check_transfer,
    parse_target,
    select,
)

CASES = [(name, sense) for name in RATES for sense in (">=", "<=")]


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    labels = (rng.random(2000) < 0.4).astype(int)
    return labels, 1 / (1 + np.exp(-rng.normal(2.5 * labels - 1.2, 1)))


def measure_rate(rate, labels, probs, act):
    """P(event | given), by masks."""
    right = (probs > 0.5) == labels if rate.of == "top-label" else labels == 1
    rows = {
        "positive": right,
        "negative": ~right,
        "act": act,
        "pass": ~act,
        "all": np.ones(len(act), bool),
    }
    return rows[rate.event][rows[rate.condition]].mean()


def provable_target(rate, sense):
    """Return a target that these rows can prove."""
    highest = 0.95 if rate.of == "top-label" else 0.7
    return Target(rate, sense, 0.3 if sense == ">=" else highest)


@pytest.mark.parametrize(("name", "sense"), CASES)
def test_a_held_rate_is_measured_correctly_and_meets_its_target(rows, name, sense):
    target = provable_target(RATES[name], sense)
    point = select(*rows, hold=target, positive=None if name == "accuracy" else 1)
    value = measure_rate(RATES[name], *rows, point.act(rows[1]))
    assert point[name].value == pytest.approx(value)
    assert target.met_by(value)
    assert str(target) in map(str, point.hold)
    assert target.words[1:] in point.guarantee
    low, high = point[name].interval.low, point[name].interval.high
    assert low <= value <= high


@pytest.mark.parametrize(("name", "sense"), CASES)
def test_a_held_rate_survives_its_file_and_is_checked_later(rows, name, sense):
    point = select(
        *rows, hold=provable_target(RATES[name], sense), positive=None if name == "accuracy" else 1
    )
    loaded = OperatingPoint.from_dict(json.loads(json.dumps(point.to_dict(), allow_nan=False)))
    assert loaded == point
    later = check_transfer(loaded, *rows)
    assert later.checks[0].value == pytest.approx(point[name].value)
    assert later.verdict == "kept"


@pytest.mark.parametrize("name", RATES)
def test_a_rate_can_be_optimised(rows, name):
    rate = RATES[name]
    hold = "accuracy>=0.5" if name == "accuracy" else "recall>=0.3"
    hold = {"recall": "precision>=0.5", "accuracy": "coverage>=0.3"}.get(name, hold)
    goal = "maximise" if rate.good_when_high else "minimise"
    point = select(*rows, hold=hold, **{goal: rate})
    assert point.objective == f"{goal} {name}"
    other = select(*rows, hold=hold)
    sign = 1 if rate.good_when_high else -1
    assert sign * point[name].value >= sign * other[name].value


@pytest.mark.parametrize("name", RATES)
def test_a_rate_has_words_and_a_name_that_reads_back(name):
    assert parse_target(f"{name}>=0.5") == (None, Target(RATES[name], ">=", 0.5))
    assert RATES[name].words
    assert RATES[name].title
