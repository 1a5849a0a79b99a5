"""Every rate at every threshold: counted by hand, by brute force, and as `select` tells it."""

import json

import numpy as np
import pytest
from tests.sentences import refuses

from calibrant.convert import probs_from_logits
from calibrant.errors import InputError
from calibrant.metrics.curves import threshold_curve
from calibrant.metrics.tally import tally_rows
from calibrant.stats import clopper_pearson, wilson
from calibrant.thresholds import RATES, Cost, accuracy, precision, select
from calibrant.thresholds.curve import POINTS, compute_curve, operating_curve
from calibrant.thresholds.proof.question import build_problem


@pytest.fixture(scope="module")
def rows():
    """Scores with many ties, labels that follow them."""
    rng = np.random.default_rng(3)
    probs = rng.beta(1, 3, 400).round(2)
    return (rng.random(400) < probs).astype(int), probs


def counted(labels, scores, threshold, rate, weights=None):
    """One rate by plain counting: its share and the weights of its condition."""
    weights = np.ones(len(labels)) if weights is None else weights
    masks = {
        "positive": labels == 1,
        "negative": labels == 0,
        "act": scores >= threshold,
        "pass": scores < threshold,
        "all": np.full(len(labels), True),
    }
    inside = masks[rate.condition]
    heavy = weights[inside]
    if not inside.any():
        return np.nan, heavy
    return (weights * (inside & masks[rate.event])).sum() / heavy.sum(), heavy


def test_a_curve_worked_by_hand():
    curve = operating_curve([0, 0, 1, 1], [0.2, 0.6, 0.6, 0.9])
    assert curve.threshold.tolist() == [0.2, 0.6, 0.9]
    assert curve.acted.tolist() == [4, 3, 1]
    assert curve.hits.tolist() == [2, 2, 1]
    assert curve["precision"].value == pytest.approx([0.5, 2 / 3, 1.0])
    assert curve["recall"].value.tolist() == [1.0, 1.0, 0.5]
    assert curve["specificity"].value.tolist() == [0.0, 0.5, 1.0]
    assert curve["coverage"].value.tolist() == [1.0, 0.75, 0.25]
    assert curve["npv"].value[1:] == pytest.approx([1.0, 2 / 3])
    assert np.isnan(curve["npv"].value[0])  # nothing is passed over
    assert curve["npv"].n.tolist() == [0, 1, 3]
    assert (curve.n, curve.positives, curve.of) == (4, 2, 1)


@pytest.mark.parametrize("weighted", [False, True])
def test_every_rate_is_what_counting_gives(rows, weighted):
    labels, probs = rows
    weights = np.random.default_rng(0).choice([1.0, 2.5, 7.0], 400) if weighted else None
    curve = operating_curve(labels, probs, weights=weights, points=None)
    names = [name for name, rate in RATES.items() if rate.of != "top-label"]
    assert list(curve.rates) == names
    for name in names:
        for k, threshold in enumerate(curve.threshold):
            share, heavy = counted(labels, probs, threshold, RATES[name], weights)
            assert curve[name].value[k] == pytest.approx(share, nan_ok=True)
            n = heavy.sum() ** 2 / (heavy**2).sum() if len(heavy) else 0
            assert curve[name].n[k] == pytest.approx(n)


def test_bands_are_exact_intervals(rows):
    curve = operating_curve(*rows, confidence=0.9)
    for name in ("precision", "recall", "npv", "coverage"):
        rate = curve[name]
        for k in np.flatnonzero(rate.n)[::7]:
            found = clopper_pearson(rate.value[k] * rate.n[k], rate.n[k], confidence=0.9)
            assert (rate.low[k], rate.high[k]) == pytest.approx((found.low, found.high))


def test_with_weights_bands_come_from_the_effective_number_of_rows(rows):
    weights = np.random.default_rng(1).choice([1.0, 4.0], 400)
    curve = operating_curve(*rows, weights=weights)
    assert curve.weighted
    rate = curve["precision"]
    assert (rate.n[:20] < curve.acted[:20]).all()
    for k in range(0, len(rate.n), 9):
        found = wilson(rate.value[k] * rate.n[k], rate.n[k])
        assert (rate.low[k], rate.high[k]) == pytest.approx((found.low, found.high))
    assert "approximate" in curve.at(0.3)["precision"].interval.method


def test_a_weight_counts_like_repetition_for_values_but_not_for_bands(rows):
    labels, probs = rows
    weights = np.where(probs > 0.3, 3, 1)
    heavy = operating_curve(labels, probs, weights=weights.astype(float))
    often = operating_curve(np.repeat(labels, weights), np.repeat(probs, weights))
    for name, rate in heavy.rates.items():
        assert rate.value == pytest.approx(often[name].value, nan_ok=True)
    k = len(heavy.threshold) // 2
    assert heavy["recall"].n[k] < often["recall"].n[k]


@pytest.mark.parametrize("kind", ["float64", "float32", "logits", "weights", "first class"])
def test_at_the_chosen_threshold_the_curve_tells_what_the_point_tells(kind):
    rng = np.random.default_rng(5)
    logits = rng.normal(-1, 2.5, 20_000)
    labels = (rng.random(20_000) < probs_from_logits(logits)).astype(int)
    scores = {"probs": probs_from_logits(logits)}
    if kind == "float32":
        scores = {"probs": scores["probs"].astype(np.float32)}
    if kind == "logits":
        scores = {"logits": logits}
    weights = rng.choice([1.0, 2.0], len(labels)) if kind == "weights" else None
    of = 0 if kind == "first class" else 1
    point = select(labels, **scores, hold=precision >= 0.8, weights=weights, positive=of)
    asked = build_problem(
        labels, scores.get("probs"), scores.get("logits"), [precision], weights=weights, positive=of
    )
    threshold = point.logit if point.on == "logits" else point.threshold
    curve = compute_curve(asked, keep=[threshold])
    assert len(curve.threshold) <= POINTS + 3 < len(np.unique(logits))
    for name, found in curve.at(threshold).items():
        assert found.value == pytest.approx(point[name].value)
        assert found.n == pytest.approx(point[name].n)
        assert found.interval.low == pytest.approx(point[name].interval.low)
        assert found.interval.high == pytest.approx(point[name].interval.high)
        assert found.interval.method == point[name].interval.method
    assert curve.acted[curve.index_of(threshold)] == point.act(**scores).sum()


def test_it_agrees_with_the_threshold_curve_of_an_evaluation(rows):
    labels, probs = rows
    ours, theirs = operating_curve(labels, probs), threshold_curve(tally_rows(probs, labels == 1))
    assert ours.threshold.tolist() == theirs.threshold.tolist()
    assert ours["precision"].value == pytest.approx(theirs.precision)
    assert ours["recall"].value == pytest.approx(theirs.recall)
    assert ours["coverage"].value == pytest.approx(theirs.flagged)


def test_more_than_two_classes_are_taken_by_name_or_by_prediction():
    rng = np.random.default_rng(2)
    probs = rng.dirichlet([1, 1, 1], 300)
    names = np.array(["cat", "dog", "emu"])
    labels = names[[rng.choice(3, p=row) for row in probs]]
    dogs = operating_curve(labels, probs, classes=names.tolist(), positive="dog")
    twin = operating_curve((labels == "dog").astype(int), probs[:, 1])
    assert dogs.of == "dog"
    assert dogs["precision"].value == pytest.approx(twin["precision"].value)
    any_class = operating_curve(labels, probs, classes=names.tolist())
    assert any_class.of is None
    assert set(any_class.rates) == {"accuracy", "coverage", "abstention"}
    right = names[probs.argmax(axis=1)] == labels
    assert any_class["accuracy"].value[0] == pytest.approx(right.mean())


def test_thinning_keeps_the_ends_and_what_it_is_told_to_and_changes_no_value():
    rng = np.random.default_rng(7)
    probs = rng.random(5000)
    labels = (rng.random(5000) < probs**4).astype(int)
    problem = build_problem(labels, probs, None, [precision])
    whole = compute_curve(problem, points=None)
    told = np.sort(rng.random(5))
    thin = compute_curve(problem, points=100, keep=told)
    assert len(whole.threshold) == 5000
    assert 50 < len(thin.threshold) <= 110
    assert thin.threshold[0] == whole.threshold[0]
    assert thin.threshold[-1] == whole.threshold[-1]
    at = np.searchsorted(whole.threshold, thin.threshold)
    for name, rate in thin.rates.items():
        assert np.array_equal(rate.value, whole[name].value[at], equal_nan=True)
    for threshold in told:
        assert thin.at(threshold) == whole.at(threshold)


def test_saturated_scores_stay_apart_where_logits_are_given():
    rng = np.random.default_rng(0)
    logits = rng.normal(0, 60, 500)
    labels = (rng.random(500) < probs_from_logits(logits / 30)).astype(int)
    apart = operating_curve(labels, logits=logits)
    rounded = operating_curve(labels, probs_from_logits(logits).astype(np.float32))
    assert len(apart.threshold) == 500
    assert len(rounded.threshold) < 400
    assert (np.diff(apart.logit) > 0).all()
    high = apart.index_of(50.0)
    assert apart.acted[high] == (logits >= 50).sum()


def test_costs_are_what_counting_gives(rows):
    labels, probs = rows
    cost = Cost(false_positive=1, false_negative=6, true_positive=0.5, true_negative=0.25)
    curve = operating_curve(labels, probs)
    for k, threshold in enumerate(curve.threshold):
        acted = probs >= threshold
        each = np.where(acted, np.where(labels, 0.5, 1.0), np.where(labels, 6.0, 0.25))
        assert curve.cost(cost)[k] == pytest.approx(each.mean())
    with pytest.raises(InputError, match="a cost needs a class"):
        operating_curve([0, 1, 2], np.eye(3)).cost(cost)


def test_above_every_score_nothing_is_acted_on(rows):
    found = operating_curve(*rows).at(1.0)
    assert found["precision"].value is None
    assert found["precision"].interval is None
    assert found["precision"].n == 0


def test_the_order_of_rows_plays_no_part(rows):
    labels, probs = rows
    order = np.random.default_rng(9).permutation(len(labels))
    one, other = operating_curve(labels, probs), operating_curve(labels[order], probs[order])
    assert one.to_dict() == other.to_dict()


def test_it_becomes_json(rows):
    labels, probs = rows
    saved = operating_curve(labels, np.where(probs > 0.5, 1.0, probs)).to_dict()
    assert json.loads(json.dumps(saved, allow_nan=False)) == saved
    assert saved["logit"][-1] is None  # of 1.0 there are none
    assert saved["rates"]["npv"]["value"][0] is None


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"confidence": 1.0}, ("confidence", "between", "0 and 1")),
        ({"positive": "emu"}, ("not among", "classes")),
        ({"logits": [0.1, 0.2]}, ("give either probs or logits",)),
        ({"weights": [1.0, -1.0]}, ("weights must lie",)),
    ],
)
def test_bad_input_is_refused(options, said):
    with refuses(InputError, *said):
        operating_curve([0, 1], [0.2, 0.9], **options)


def test_top_label_of_two_classes_is_about_predictions(rows):
    labels, probs = rows
    curve = compute_curve(build_problem(labels, probs, None, [accuracy]))
    assert curve["accuracy"].value[0] == pytest.approx(((probs > 0.5) == labels).mean())
    point = select(labels, probs, hold=accuracy >= 0.7)
    assert curve.at(point.threshold)["accuracy"].value == point["accuracy"].value


def test_recall_falls_and_specificity_rises_with_the_threshold(rows):
    curve = operating_curve(*rows)
    assert (np.diff(curve["recall"].value) <= 0).all()
    assert (np.diff(curve["specificity"].value) >= 0).all()
    for rate in curve.rates.values():
        there = rate.n > 0
        assert (rate.low[there] <= rate.value[there]).all()
        assert (rate.value[there] <= rate.high[there]).all()
