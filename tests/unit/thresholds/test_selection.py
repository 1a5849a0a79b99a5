"""Choosing a threshold that keeps a promise."""

from dataclasses import replace

import numpy as np
import pytest
from tests.sentences import assert_mentions, refuses

from calibrant.calibrators import AutoCalibrator, MatrixScaling, PlattScaling, TemperatureScaling
from calibrant.convert import logits_from_probs, probs_from_logits
from calibrant.errors import InputError
from calibrant.testing import WORLDS
from calibrant.thresholds import (
    Cost,
    LabelUse,
    TargetUnreachable,
    abstention,
    accuracy,
    coverage,
    false_discovery,
    fpr,
    npv,
    precision,
    recall,
    select,
    specificity,
)


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    labels = (rng.random(3000) < 0.3).astype(int)
    return labels, probs_from_logits(rng.normal(0, 1, 3000) + 2.5 * labels - 2)


def test_what_the_point_says_is_what_its_threshold_does(rows):
    labels, probs = rows
    point = select(labels, probs, hold=precision >= 0.85, maximise=recall)
    act = point.act(probs)
    assert np.array_equal(act, probs >= point.threshold)
    assert point["precision"].value == labels[act].mean()
    assert point["recall"].value == act[labels == 1].mean()
    assert point["specificity"].value == (~act)[labels == 0].mean()
    assert point["npv"].value == (1 - labels[~act]).mean()
    assert point["coverage"].value == act.mean()
    assert point["precision"].n == act.sum()
    assert point["precision"].interval.low < point["precision"].value
    assert point["precision"].value > 0.85
    assert "at least 85 %" in point.guarantee
    assert "3,000" in point.guarantee


def test_the_empirical_choice_reaches_further_and_promises_nothing(rows):
    sure = select(*rows, hold=precision >= 0.85)
    plain = select(*rows, hold=precision >= 0.85, confidence=None)
    assert plain.threshold < sure.threshold
    assert plain.guarantee is None
    assert plain.confidence is None
    assert "promises nothing" in plain.why
    assert plain["precision"].value >= 0.85


def test_more_confidence_needs_a_higher_threshold(rows):
    found = [select(*rows, hold=precision >= 0.85, confidence=c) for c in (0.8, 0.95, 0.999)]
    assert found[0].threshold < found[1].threshold < found[2].threshold


def test_held_recall_takes_the_threshold_with_the_best_precision(rows):
    labels, probs = rows
    point = select(labels, probs, hold=recall >= 0.9)
    assert point.objective == "maximise precision"
    assert point["recall"].value > 0.9
    lower = select(labels, probs, hold=recall >= 0.9, maximise=coverage)
    assert lower.threshold == 0
    assert lower["recall"].value == 1


def test_several_targets_are_held_together(rows):
    point = select(*rows, hold=[precision >= 0.8, recall >= 0.3], maximise=coverage)
    assert point["precision"].value > 0.8
    assert point["recall"].value > 0.3
    alone = select(*rows, hold=precision >= 0.8, maximise=coverage)
    assert point.threshold >= alone.threshold  # each of two gets half of the allowed error
    assert point.guarantee.startswith("Precision is at least 80 % and recall is at least 30 %")


def test_the_order_of_rows_and_a_rising_map_of_scores_change_nothing(rows):
    labels, probs = rows
    point = select(labels, probs, hold=precision >= 0.85)
    mixed = np.random.default_rng(1).permutation(len(labels))
    assert select(labels[mixed], probs[mixed], hold=precision >= 0.85).to_dict() == point.to_dict()
    cubed = select(labels, probs**3, hold=precision >= 0.85)
    assert np.array_equal(cubed.act(probs**3), point.act(probs))


def test_names_booleans_and_two_columns_are_the_same_rows(rows):
    labels, probs = rows
    point = select(labels, probs, hold=precision >= 0.85)
    names = np.where(labels == 1, "yes", "no")
    both = np.column_stack([1 - probs, probs])
    assert select(labels == 1, probs.tolist(), hold=precision >= 0.85).threshold == point.threshold
    named = select(names, both, hold=precision >= 0.85, classes=["no", "yes"])
    assert named.threshold == point.threshold
    assert named.of == "yes"
    turned = select(
        names, both[:, ::-1], hold=precision >= 0.85, classes=["yes", "no"], positive="yes"
    )
    assert turned.threshold == point.threshold


def test_the_first_of_two_classes_can_be_acted_on(rows):
    labels, probs = rows
    point = select(labels, probs, hold=precision >= 0.9, positive=0)
    act = point.act(probs)
    assert np.array_equal(act, 1 - probs >= point.threshold)
    assert point["precision"].value == (labels[act] == 0).mean()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_tie_is_acted_on_whole_or_not_at_all(rows, dtype):
    labels, probs = rows
    coarse = np.round(probs, 1).astype(dtype)
    point = select(labels, coarse, hold=precision >= 0.85)
    act = coarse >= point.threshold
    assert np.array_equal(point.act(coarse), act)
    assert point["precision"].n == act.sum() == (coarse > coarse[~act].max()).sum()


def test_logits_keep_rows_apart_that_probabilities_have_merged():
    rng = np.random.default_rng(4)
    labels = (rng.random(4000) < 0.3).astype(int)
    logits = 30 * (rng.normal(0, 1, 4000) + 1.8 * labels) - 10
    probs = probs_from_logits(logits).astype(np.float32)
    assert (probs == 1).mean() > 0.2
    finer = select(labels, logits=logits, hold=precision >= 0.9)
    assert finer["recall"].value > 0.05
    assert np.array_equal(finer.act(logits=logits), logits >= finer.logit)
    with pytest.raises(TargetUnreachable):
        select(labels, probs, hold=precision >= 0.9)
    with pytest.raises(InputError, match="give logits"):
        finer.act(probs)


def test_accuracy_of_accepted_predictions():
    draw = WORLDS["multiclass"].draw(4000, 0)
    point = select(draw.labels, draw.probs, hold=accuracy >= 0.8)
    top, right = draw.probs.max(axis=1), draw.probs.argmax(axis=1) == draw.labels
    act = point.act(draw.probs)
    assert np.array_equal(act, top >= point.threshold)
    assert point["accuracy"].value == right[act].mean()
    assert point["coverage"].value == act.mean()
    assert point.of is None
    assert set(point.rates) == {"accuracy", "coverage", "abstention"}


@pytest.mark.parametrize("columns", [1, 2])
def test_accuracy_with_two_classes_judges_both_predictions(rows, columns):
    labels, probs = rows
    given = probs if columns == 1 else np.column_stack([1 - probs, probs])
    point = select(labels, given, hold=accuracy >= 0.93)
    accepted = np.maximum(probs, 1 - probs) >= point.threshold
    assert np.array_equal(point.act(given), accepted)
    assert point["accuracy"].value == ((probs > 0.5) == labels)[accepted].mean()
    odds = select(labels, logits=logits_from_probs(given), hold=accuracy >= 0.93)
    assert np.array_equal(odds.act(logits=logits_from_probs(given)), accepted)


def test_one_class_of_several_against_the_rest():
    draw = WORLDS["multiclass"].draw(6000, 0)
    point = select(draw.labels, draw.probs, hold=precision >= 0.7, positive=0)
    act = draw.probs[:, 0] >= point.threshold
    assert point["precision"].value == (draw.labels[act] == 0).mean()
    with pytest.raises(InputError, match="positive="):
        select(draw.labels, draw.probs, hold=precision >= 0.7)


def test_the_least_cost_is_bounded_and_compared_with_the_calibrated_rule(rows):
    labels, probs = rows
    cost = Cost(false_positive=1, false_negative=4)
    point = select(labels, probs, minimise=cost)
    act = point.act(probs)
    mean = (1 * (act & (labels == 0)) + 4 * (~act & (labels == 1))).mean()
    assert point["cost"].value == pytest.approx(mean)
    assert point["cost"].interval.low < mean < point["cost"].interval.high
    assert point.baseline["threshold"] == pytest.approx(0.2)
    base = probs >= 0.2
    expected = (1 * (base & (labels == 0)) + 4 * (~base & (labels == 1))).mean()
    assert point.baseline["cost"] == pytest.approx(expected)
    assert mean <= point.baseline["cost"]
    assert str(point.hold[0]).startswith("cost<=")
    assert point.hold[0].value > mean


def test_a_limit_of_cost_is_held_or_unreachable(rows):
    cost = Cost(1, 4)
    point = select(*rows, hold=cost <= 0.4, maximise=precision)
    assert point["cost"].value < 0.4
    with pytest.raises(TargetUnreachable) as failed:
        select(*rows, hold=cost <= 0.05)
    assert failed.value.best > 0.05


def test_a_cost_is_made_small_among_thresholds_that_hold(rows):
    point = select(*rows, hold=precision >= 0.85, minimise=Cost(1, 4))
    assert point["precision"].value > 0.85
    assert point.objective == "minimise cost"
    assert point["cost"].value > 0


def test_candidates_share_the_allowed_error(rows):
    one = select(*rows, hold=precision >= 0.85)
    many = select(*rows, hold=precision >= 0.85, label_use=LabelUse(candidates=20))
    assert many.threshold > one.threshold
    assert many.candidates == 20
    assert "among 20" in many.guarantee
    strict = select(*rows, hold=precision >= 0.85, confidence=1 - 0.05 / 20)
    assert many.threshold == strict.threshold


def test_a_calibrator_fitted_here_keeps_the_promise_only_if_it_keeps_the_ranking(rows):
    labels, probs = rows
    logits = logits_from_probs(probs)
    for calibrator, kept in (
        (TemperatureScaling().fit(logits, labels), True),
        (PlattScaling().fit(logits, labels), True),
        (AutoCalibrator().fit(logits, labels), None),
    ):
        mended = calibrator.predict_proba(logits)
        point = select(
            labels, mended, hold=precision >= 0.85, label_use=LabelUse(calibrator=calibrator)
        )
        if kept is None:
            kept = calibrator.chosen_.keeps_ranking or calibrator.chosen_.method == "identity"
        assert (point.guarantee is not None) == kept
    draw = WORLDS["multiclass"].draw(3000, 0)
    logits = logits_from_probs(draw.probs)
    matrix = MatrixScaling().fit(logits, draw.labels)
    point = select(
        draw.labels,
        matrix.predict_proba(logits),
        hold=accuracy >= 0.7,
        label_use=LabelUse(calibrator=matrix),
    )
    assert point.guarantee is None
    assert point.confidence is None
    assert "matrix" in point.why


def test_a_cost_needs_probabilities_that_were_not_fitted_here(rows):
    labels, probs = rows
    logits = logits_from_probs(probs)
    calibrator = TemperatureScaling().fit(logits, labels)
    point = select(
        labels,
        calibrator.predict_proba(logits),
        minimise=Cost(1, 4),
        label_use=LabelUse(calibrator=calibrator),
    )
    assert point.guarantee is None
    assert "fixed beforehand" in point.why


def test_training_on_these_rows_withholds_the_promise(rows):
    point = select(*rows, hold=precision >= 0.85, label_use=LabelUse(training=True))
    assert point.guarantee is None
    assert "trained on these rows" in point.why


def test_weights_change_the_estimate_and_the_promise(rows):
    labels, probs = rows
    weights = np.where(labels == 1, 1.0, 3.0)  # negatives were picked a third as often
    point = select(labels, probs, hold=precision >= 0.8, weights=weights)
    act = point.act(probs)
    assert point["precision"].value == pytest.approx(np.average(labels[act], weights=weights[act]))
    assert point.weighted
    assert point.threshold > select(labels, probs, hold=precision >= 0.8).threshold
    doubled = select(labels, probs, hold=precision >= 0.8, weights=2 * weights)
    assert doubled.threshold == point.threshold
    assert_mentions(point.notes[0], "largest weight among these rows", "rows, 3")
    assert_mentions(point.guarantee, "no row could", "weigh more", "more than 3", "largest seen")


def test_a_row_that_could_weigh_more_than_any_drawn_makes_the_promise_harder(rows):
    labels, probs = rows
    weights = np.where(np.arange(3000) % 2, 1.0, 1.5)
    usual = select(labels, probs, hold=precision >= 0.8, weights=weights)
    wary = select(labels, probs, hold=precision >= 0.8, weights=weights, largest_weight=4)
    assert wary.threshold > usual.threshold
    assert not wary.notes
    with refuses(InputError, "largest_weight", "finite", "no smaller"):
        select(labels, probs, hold=precision >= 0.8, weights=weights, largest_weight=1.2)


def test_a_row_of_weight_zero_is_not_there(rows):
    labels, probs = rows
    weights = np.ones(3000)
    weights[2000:] = 0
    some = select(labels, probs, hold=precision >= 0.85, weights=weights)
    alone = select(labels[:2000], probs[:2000], hold=precision >= 0.85)
    assert "All weights are equal" in some.notes[0]
    told = {"notes": (), "condition": None, "guarantee": alone.guarantee}
    assert replace(some, **told) == alone


BAD_OPTIONS = [
    ({}, ("hold is empty",)),
    ({"hold": 0.85}, ("targets such as",)),
    ({"hold": [0.85]}, ("targets such as",)),
    ({"hold": recall >= 0.5, "maximise": recall}, ("recall cannot be maximised", "well")),
    ({"hold": [precision >= 0.9, precision <= 0.5]}, ("contradict",)),
    ({"hold": [precision >= 0.9, precision >= 0.8]}, ("same condition",)),
    ({"hold": [specificity >= 0.9, fpr <= 0.1]}, ("same condition",)),
    ({"hold": [coverage >= 0.6, abstention >= 0.6]}, ("contradict",)),
    ({"hold": [precision >= 0.9, accuracy >= 0.9]}, ("two separate calls",)),
    ({"hold": accuracy >= 0.9, "positive": 1}, ("leave positive out",)),
    ({"hold": precision >= 0.9, "positive": "x"}, ("not among", "classes")),
    ({"hold": precision >= 0.9, "confidence": 95}, ("between 0 and 1",)),
    ({"hold": precision >= 0.9, "maximise": recall, "minimise": fpr}, ("not both",)),
    ({"hold": precision >= 0.9, "maximise": "recall"}, ("must be a rate",)),
    (
        {"hold": precision >= 0.9, "weights": np.linspace(0.1, 1, 3000)},
        ("at least 1, got 0.1",),
    ),
    ({"hold": precision >= 0.9, "weights": np.r_[1e6, np.ones(2999)]}, ("of all weight",)),
    ({"hold": precision >= 0.9, "weights": np.full(3000, np.nan)}, ("weights must lie",)),
    ({"hold": precision >= 0.9, "largest_weight": 3}, ("without weights",)),
    (
        {"hold": precision >= 0.9, "weights": np.ones(3000), "largest_weight": "3"},
        ("finite and",),
    ),
    (
        {"hold": precision >= 0.9, "weights": np.ones(3000), "largest_weight": 0},
        ("finite and",),
    ),
    ({"hold": precision >= 0.9, "confidence": "0.95"}, ("between 0 and 1",)),
    ({"hold": precision >= 0.9, "confidence": "none"}, ("between 0 and 1",)),
    ({"hold": precision >= 0.9, "confidence": True}, ("between 0 and 1",)),
    ({"hold": precision >= 0.9, "label_use": 3}, ("label_use", "LabelUse")),
    ({"hold": "x: precision>=0.9"}, ("names a class",)),
    (
        {"hold": precision >= 0.85, "minimise": false_discovery},
        ("false_discovery cannot be minimised",),
    ),
    ({"hold": fpr <= 0.1, "maximise": specificity}, ("specificity cannot be maximised",)),
    ({"hold": precision >= 0.85, "minimise": recall}, ("maximise it",)),
    ({"hold": precision >= 0.85, "maximise": fpr}, ("minimise it",)),
]


def test_bad_options_are_refused_in_one_sentence(rows, subtests):
    for options, message in BAD_OPTIONS:
        with subtests.test(f"{options!r:.80}"), refuses(InputError, *message):
            select(*rows, **options)


@pytest.mark.parametrize("only", [0, 1])
def test_one_class_alone_is_refused(only):
    with refuses(InputError, "give rows", "without"):
        select([only] * 50, np.linspace(0, 1, 50), hold=precision >= 0.8)


def test_probs_and_logits_together_or_neither_are_refused(rows):
    labels, probs = rows
    for given in ({}, {"probs": probs, "logits": probs}):
        with refuses(InputError, "probs or logits"):
            select(labels, hold=precision >= 0.8, **given)


@pytest.mark.parametrize("rng", [None, "a", -1, 0.5, True])
def test_a_seed_that_is_none_is_refused_where_ties_need_one(rows, rng):
    labels, probs = rows
    with pytest.raises(InputError, match="rng must be"):
        select(labels, np.round(probs, 1), hold=precision >= 0.8, rng=rng)


def test_a_generator_orders_ties_too(rows):
    labels, probs = rows
    one, other = (
        select(labels, np.round(probs, 1), hold=precision >= 0.8, rng=rng)
        for rng in (np.random.default_rng(3), np.random.default_rng(3))
    )
    assert one == other


def test_the_text_of_a_target_will_do(rows):
    assert select(*rows, hold="precision>=0.85") == select(*rows, hold=precision >= 0.85)
    both = select(*rows, hold=["precision>=0.8", recall >= 0.3])
    assert both.hold == (precision >= 0.8, recall >= 0.3)


def test_numpy_numbers_are_numbers(rows):
    point = select(
        *rows, hold=precision >= np.float64(0.85), label_use=LabelUse(candidates=np.int64(2))
    )
    assert point.candidates == 2
    assert select(*rows, hold=precision >= 0.85, positive=True).of == 1


def test_few_rows_prove_no_limit_of_a_cost_and_say_so():
    point = select([0, 1], [0.2, 0.7], minimise=Cost(1, 5), label_use=LabelUse(candidates=50))
    assert point.guarantee is None
    assert point.confidence is None
    assert_mentions(point.why, "few rows", "prove a limit")


def test_a_held_coverage_is_about_accepted_predictions_unless_a_class_is_named(rows):
    draw = WORLDS["multiclass"].draw(1000, 0)
    point = select(draw.labels, draw.probs, hold=coverage >= 0.5)
    assert point.objective == "maximise accuracy"
    assert point["coverage"].value > 0.5
    assert select(*rows, hold=coverage >= 0.1, positive=1).objective == "maximise precision"


@pytest.mark.parametrize("calibrator", ["temperature", TemperatureScaling, TemperatureScaling()])
def test_a_calibrator_that_was_never_fitted_is_refused(calibrator):
    with pytest.raises(InputError, match="fitted calibrator"):
        LabelUse(calibrator=calibrator)


def test_too_few_rows_say_how_many_are_needed():
    with pytest.raises(TargetUnreachable, match="19") as failed:
        select([0, 1] * 5, np.linspace(0.1, 0.9, 10), hold=precision >= 0.85)
    assert failed.value.n == 10


def test_npv_held_leaves_most_rows_passed_over(rows):
    point = select(*rows, hold=npv >= 0.9)
    assert point.objective == "maximise specificity"
    assert point["npv"].value > 0.9


def test_of_equal_recall_the_one_that_acts_on_fewest_rows_is_taken():
    rng = np.random.default_rng(0)
    labels = np.repeat([1, 0], [1000, 9000])
    probs = np.r_[rng.uniform(0.8, 1, 1000), rng.uniform(0, 0.3, 9000)]
    point = select(labels, probs, hold=precision >= 0.85)
    assert point.act(probs).sum() == 1000
    assert point["recall"].value == point["precision"].value == 1
    most = select(labels, probs, hold=precision >= 0.85, maximise=coverage)
    assert most.act(probs).sum() > 1100


def test_of_equal_precision_the_one_that_acts_on_most_rows_is_taken():
    labels = np.repeat([1, 0], [500, 500])
    probs = np.linspace(1, 0, 1000)
    point = select(labels, probs, hold=recall >= 0.5)
    assert point.act(probs).sum() == 500
