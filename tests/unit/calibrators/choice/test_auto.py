"""The automatic choice: what it chooses where the truth is known, and what it says about it."""

import json
from collections import Counter

import numpy as np
import pytest
from sklearn.base import clone
from tests.sentences import assert_mentions, refuses

from calibrant.calibrators import (
    AutoCalibrator,
    Calibrator,
    Identity,
    IsotonicCalibration,
    PlattScaling,
    TemperatureScaling,
    default_candidates,
)
from calibrant.calibrators.choice.trial import random_folds
from calibrant.errors import InputError
from calibrant.metrics import brier, nll
from calibrant.testing import WORLDS


def logits_of(draw):
    p = np.clip(draw.probs.astype(np.float64), 1e-12, 1.0)
    if p.ndim == 2:
        return np.log(p)
    return np.log(p) - np.log(np.maximum(1.0 - p, 1e-12))


def rows(name, n, seed):
    draw = WORLDS[name].draw(n, seed)
    return logits_of(draw), draw.labels


def expected_loss(calibrator, draw):
    """NLL that an unlimited number of labels for these rows would show: the posterior is known."""
    logits, eta = logits_of(draw), draw.posterior
    if logits.ndim == 1:
        logits = np.column_stack([np.zeros(len(logits)), logits])
        eta = np.column_stack([1 - eta, eta])
    return -float((eta * calibrator.predict_log_proba(logits)).sum(axis=1).mean())


def scores(auto):
    return [c.score for c in auto.comparison_.candidates]


def left_out(auto):
    return {c.method: c.why_not for c in auto.comparison_.candidates if c.score is None}


RUNS = {
    ("calibrated", 100): 40,
    ("calibrated", 500): 20,
    ("calibrated_multiclass", 100): 40,
    ("binary", 100): 40,
    ("binary", 500): 10,
    ("multiclass", 100): 30,
    ("multiclass", 500): 5,
}


@pytest.fixture(scope="module")
def runs():
    """For each world and size: how often each method is chosen, and what it changes in truth."""
    found = {}
    for (name, n), times in RUNS.items():
        fresh = WORLDS[name].draw(5000, 10**6)
        none = expected_loss(Identity().fit(*rows(name, 50, 0)), fresh)
        chosen, gains = Counter(), []
        for seed in range(times):
            auto = AutoCalibrator(repeats=2).fit(*rows(name, n, seed))
            chosen[auto.chosen_.method] += 1
            gains.append(none - expected_loss(auto, fresh))
        found[name, n] = chosen, np.array(gains) / none
    return found


@pytest.mark.parametrize(
    ("name", "n"), [("calibrated", 100), ("calibrated", 500), ("calibrated_multiclass", 100)]
)
def test_a_calibrated_model_is_mostly_left_alone(runs, name, n):
    chosen, _ = runs[name, n]
    assert chosen["identity"] >= 0.8 * RUNS[name, n]


@pytest.mark.parametrize("name", ["binary", "multiclass"])
def test_an_over_confident_model_mostly_gets_a_temperature(runs, name):
    chosen, gains = runs[name, 500]
    assert chosen["temperature"] >= 0.7 * RUNS[name, 500]
    assert chosen["identity"] == 0
    assert gains.min() > 0
    small, _ = runs[name, 100]
    assert small["temperature"] == max(v for k, v in small.items() if k != "identity")


@pytest.mark.parametrize("case", RUNS, ids=str)
def test_harm_is_rare_and_small(runs, case):
    # Harm: the expected log loss is more than a thousandth higher than without calibration.
    _, gains = runs[case]
    assert (gains < -0.001).mean() <= 0.15
    assert gains.mean() > -0.02


def test_harm_over_all_worlds_is_small(runs):
    gains = np.concatenate([gains for _, gains in runs.values()])
    assert (gains < -0.001).mean() <= 0.06
    assert gains.mean() > 0.02


def test_the_score_is_that_of_plain_cross_validation():
    logits, y = rows("binary", 120, 3)
    auto = AutoCalibrator(candidates=[PlattScaling()], folds=4, repeats=1).fit(logits, y)
    # Rows are settled by label, then score, before they are dealt.
    order = np.lexsort((logits, y))
    fold = np.empty(120, dtype=int)
    fold[order] = random_folds(y[order], 4, np.random.default_rng([0, 0]))
    out = np.empty(120)
    for f in range(4):
        fitted = PlattScaling().fit(logits[fold != f], y[fold != f])
        out[fold == f] = fitted.predict_proba(logits[fold == f])
    identity, platt = auto.comparison_.candidates
    own = 1 / (1 + np.exp(-logits))
    assert identity.score == pytest.approx(nll(y, own), abs=1e-12)
    assert platt.score == pytest.approx(nll(y, out), abs=1e-9)
    assert platt.brier == pytest.approx(brier(y, out), abs=1e-9)
    each = np.log(np.where(y == 1, out, 1 - out)) - np.log(np.where(y == 1, own, 1 - own))
    assert platt.gain == pytest.approx(each.mean(), abs=1e-9)
    assert platt.gain_error == pytest.approx(each.std() / np.sqrt(120), abs=1e-9)


def test_the_simplest_within_one_standard_error_is_chosen():
    logits, y = rows("binary", 200, 4)
    best = AutoCalibrator(tolerance=0.0).fit(logits, y)
    assert (
        min(scores(best))
        == scores(best)[
            [c.method for c in best.comparison_.candidates].index(best.comparison_.chosen)
        ]
    )
    patient = AutoCalibrator(tolerance=100.0).fit(logits, y)
    assert patient.chosen_.method == "identity"
    assert "not clearly better" in patient.comparison_.why


def test_by_hand_a_model_without_a_better_one_is_kept():
    # Right three times in four at log-odds of log 3: nothing can do better.
    logits = np.repeat([np.log(3), -np.log(3)], 40)
    y = np.r_[np.arange(40) % 4 > 0, np.arange(40) % 4 == 0].astype(int)
    auto = AutoCalibrator().fit(logits, y)
    assert auto.chosen_.method == "identity"
    assert auto.predict_proba([np.log(3)]) == pytest.approx([0.75])


def test_the_chosen_one_is_fitted_on_all_rows():
    logits, y = rows("binary", 400, 5)
    auto = AutoCalibrator(candidates=["temperature"]).fit(logits, y)
    assert auto.chosen_.method == "temperature"
    whole = TemperatureScaling().fit(logits, y)
    assert auto.predict_proba(logits) == pytest.approx(whole.predict_proba(logits), abs=1e-15)


def test_candidates_by_name_and_by_object_and_the_identity_comes_first():
    logits, y = rows("binary", 200, 6)
    names = AutoCalibrator(candidates=["platt", "identity", "beta"]).fit(logits, y)
    assert [c.method for c in names.comparison_.candidates] == ["identity", "platt", "beta"]
    made = AutoCalibrator(candidates=[PlattScaling(shrink=None), "beta"]).fit(logits, y)
    assert [c.method for c in made.comparison_.candidates] == ["identity", "platt", "beta"]
    assert scores(made)[1] != scores(names)[1]
    assert scores(made)[2] == scores(names)[2]


@pytest.mark.parametrize(
    ("n", "k", "last"),
    [(499, 2, "platt"), (500, 2, "isotonic_strict"), (499, 3, "temperature"), (500, 3, "sms")],
)
def test_more_rows_allow_more_methods(n, k, last):
    found = default_candidates(n, k)
    assert found[0].method == "identity"
    assert found[-1].method == last


def test_who_is_left_out_and_why():
    logits, y = rows("multiclass", 60, 7)
    y = np.where(y == 4, 3, y)  # no row of the last class
    auto = AutoCalibrator(candidates=["temperature", "vector", "platt"]).fit(logits, y)
    assert set(left_out(auto)) == {"vector", "platt"}
    assert "none has the label 4" in left_out(auto)["vector"]
    assert "left out: " in str(auto.comparison_)
    # A class with one row is missing wherever that row is held out.
    single = np.where(np.arange(60) == 0, 4, y)
    assert "vector" in left_out(AutoCalibrator(candidates=["vector"]).fit(logits, single))


def test_a_candidate_that_becomes_certain_is_left_out():
    logits = np.r_[np.linspace(-4, -1, 50), np.linspace(1, 4, 50)]
    auto = AutoCalibrator(candidates=[TemperatureScaling()]).fit(logits, logits > 0)
    assert left_out(auto)["temperature"] == "it became certain of everything"
    assert auto.chosen_.method == "identity"
    assert_mentions(auto.comparison_.why, "uncalibrated", "every method was excluded")


def test_scores_that_say_nothing_are_softened_to_the_bound():
    rng = np.random.default_rng(0)
    logits, y = rng.normal(0, 4, (300, 3)), rng.integers(0, 3, 300)
    auto = AutoCalibrator().fit(logits, y)
    assert auto.chosen_.method == "temperature"
    assert nll(rng.integers(0, 3, 2000), auto.predict_proba(rng.normal(0, 4, (2000, 3)))) < 1.12


@pytest.mark.verify
@pytest.mark.parametrize(("k", "n"), [(20, 1000), (50, 2000)])
def test_many_classes_of_a_calibrated_model_are_left_alone(k, n):
    # Folds with the class frequencies of the sample would confirm noise in a shift of each class.
    chosen = Counter()
    for seed in range(6):
        rng = np.random.default_rng(seed)
        logits = 2.0 * rng.normal(size=(n, k))
        y = (logits + rng.gumbel(size=(n, k))).argmax(axis=1)
        chosen[AutoCalibrator().fit(logits, y).chosen_.method] += 1
    assert chosen["identity"] >= 5, chosen


def test_few_events_allow_few_parameters():
    rng = np.random.default_rng(1)
    logits = rng.normal(-6, 1, 3000)
    y = np.zeros(3000, int)
    y[np.argsort(logits)[-19:]] = 1
    tried = [c.method for c in AutoCalibrator().fit(logits, y).comparison_.candidates]
    assert tried == ["identity", "temperature", "platt"]
    y[:1] = 1
    assert len(AutoCalibrator().fit(logits, y).comparison_.candidates) == 6
    # Weights of very different size leave few rows that tell something.
    weights = np.where(np.arange(3000) < 100, 1000.0, 1.0)
    logits, y = rows("binary", 3000, 1)
    assert len(AutoCalibrator().fit(logits, y, weights).comparison_.candidates) == 3


def test_candidates_of_one_method_are_told_apart():
    logits, y = rows("binary", 300, 2)
    auto = AutoCalibrator(
        candidates=[
            TemperatureScaling(),
            TemperatureScaling(smooth=True),
            TemperatureScaling().then(PlattScaling()),
        ]
    ).fit(logits, y)
    names = [c.method for c in auto.comparison_.candidates]
    assert names == ["identity", "temperature", "temperature smooth=True", "temperature > platt"]
    assert str(auto.comparison_).count("<- chosen") == 1


@pytest.mark.parametrize(
    "settings",
    [{"seed": -1}, {"seed": None}, {"most_rows": None}, {"tolerance": "1"}, {"candidates": [3]},
     {"candidates": [TemperatureScaling]}, {"candidates": TemperatureScaling()}],
)  # fmt: skip
def test_settings_of_other_types_are_refused(settings):
    logits, y = rows("binary", 100, 2)
    with pytest.raises(InputError):
        AutoCalibrator(**settings).fit(logits, y)


def test_a_rare_class_is_in_the_sample():
    rng = np.random.default_rng(3)
    logits = rng.normal(-8, 1, 20_000)
    y = np.zeros(20_000, int)
    y[rng.choice(20_000, 11, replace=False)] = 1
    auto = AutoCalibrator(most_rows=2000).fit(logits, y)
    assert not left_out(auto)


def test_a_candidate_with_an_infinite_loss_is_left_out_by_nll_only():
    logits, y = rows("binary", 300, 9)
    sure = [IsotonicCalibration(pseudo_count=0)]
    auto = AutoCalibrator(candidates=sure).fit(logits, y)
    assert "probability of 0" in left_out(auto)["isotonic"]
    by_brier = AutoCalibrator("brier", candidates=sure).fit(logits, y)
    assert not left_out(by_brier)
    assert by_brier.comparison_.candidates[1].nll is None
    json.dumps(by_brier.comparison_.to_dict(), allow_nan=False)


def test_a_candidate_without_weights_is_left_out_where_there_are_some():
    class Unweighted(TemperatureScaling):
        takes_weights = False

    logits, y = rows("binary", 100, 10)
    assert not left_out(AutoCalibrator(candidates=[Unweighted()]).fit(logits, y))
    auto = AutoCalibrator(candidates=[Unweighted()]).fit(logits, y, np.full(100, 2.0))
    assert "does not support weights" in left_out(auto)["temperature"]


@pytest.mark.parametrize("name", ["binary", "tied", "multiclass"])
def test_the_order_of_rows_changes_nothing(name):
    logits, y = rows(name, 150, 11)
    rng = np.random.default_rng(11)
    weights, order = rng.uniform(0.1, 5.0, 150), rng.permutation(150)
    one = AutoCalibrator().fit(logits, y, weights)
    other = AutoCalibrator().fit(logits[order], y[order], weights[order])
    assert other.chosen_.method == one.chosen_.method
    assert scores(other) == pytest.approx(scores(one), abs=1e-9)


def test_a_constant_added_to_rows_changes_nothing():
    logits, y = rows("multiclass", 150, 12)
    moved = logits + 9 * np.random.default_rng(12).normal(size=(150, 1))
    one, other = AutoCalibrator().fit(logits, y), AutoCalibrator().fit(moved, y)
    assert scores(other) == pytest.approx(scores(one), abs=1e-9)


def test_two_columns_change_nothing():
    logits, y = rows("binary", 200, 13)
    columns = np.column_stack([np.zeros(200), logits])
    one, two = AutoCalibrator().fit(logits, y), AutoCalibrator().fit(columns, y)
    assert scores(two) == pytest.approx(scores(one), abs=1e-12)
    assert two.predict_proba(columns)[:, 1] == pytest.approx(one.predict_proba(logits), abs=1e-12)


def test_the_seed_decides_the_splits():
    logits, y = rows("binary", 150, 14)
    same = [AutoCalibrator(seed=3).fit(logits, y).comparison_ for _ in range(2)]
    assert same[0] == same[1]
    assert scores(AutoCalibrator(seed=4).fit(logits, y)) != [c.score for c in same[0].candidates]


def test_weights_enter_the_fits_and_the_means():
    logits, y = rows("binary", 300, 15)
    weights = np.where(y == 1, 4.0, 1.0)
    auto = AutoCalibrator(candidates=["platt"], repeats=1).fit(logits, y, weights)
    own = 1 / (1 + np.exp(-logits))
    assert scores(auto)[0] == pytest.approx(nll(y, own, weights=weights), abs=1e-12)
    # Over-weighted positives move the base rate: an intercept is worth it, and Platt gets it.
    assert auto.chosen_.method == "platt"
    whole = PlattScaling().fit(logits, y, weights)
    assert auto.predict_proba(logits) == pytest.approx(whole.predict_proba(logits), abs=1e-12)
    scaled = AutoCalibrator(candidates=["temperature"]).fit(logits, y, np.full(300, 3.0))
    plain = AutoCalibrator(candidates=["temperature"]).fit(logits, y)
    assert scores(scaled) == pytest.approx(scores(plain), abs=1e-9)


@pytest.mark.parametrize("name", ["binary", "multiclass"])
def test_the_brier_score_can_decide(name):
    logits, y = rows(name, 200, 16)
    auto = AutoCalibrator("brier").fit(logits, y)
    identity = auto.comparison_.candidates[0]
    p = Identity().fit(logits, y).predict_proba(logits)
    assert identity.score == identity.brier == pytest.approx(brier(y, p), abs=1e-12)
    assert auto.comparison_.score == "brier"


def test_the_report_is_strict_json_and_readable():
    auto = AutoCalibrator().fit(*rows("binary", 600, 17))
    saved = json.loads(json.dumps(auto.comparison_.to_dict(), allow_nan=False))
    assert [c["method"] for c in saved["candidates"]] == [
        c.method for c in default_candidates(600, 2)
    ]
    text = str(auto.comparison_)
    assert text.count("<- chosen") == 1
    assert all(c["method"] in text for c in saved["candidates"])
    assert "600 rows, 5 folds, repeated 5 times" in text
    assert max(map(len, text.splitlines()[:-1])) <= 100


def test_saved_and_loaded_it_says_the_same_to_the_last_bit():
    logits, y = rows("multiclass", 150, 18)
    auto = AutoCalibrator(seed=5).fit(logits, y)
    loaded = Calibrator.from_dict(json.loads(json.dumps(auto.to_dict(), allow_nan=False)))
    assert isinstance(loaded, AutoCalibrator)
    assert loaded.chosen_.method == auto.chosen_.method
    assert (loaded.predict_log_proba(logits) == auto.predict_log_proba(logits)).all()


def test_too_few_rows_and_one_class_are_refused():
    logits, y = rows("binary", 40, 19)
    with refuses(InputError, "at least 20 rows", "got 19"):
        AutoCalibrator().fit(logits[:19], y[:19])
    with refuses(InputError, "at least two classes"):
        AutoCalibrator().fit(logits, np.zeros(40, dtype=int))


@pytest.mark.parametrize(
    ("settings", "word"),
    [
        ({"score": "ece"}, "score"),
        ({"folds": 1}, "folds"),
        ({"folds": 41}, "folds"),
        ({"folds": 2.5}, "folds"),
        ({"repeats": 0}, "repeats"),
        ({"repeats": -1}, "repeats"),
        ({"tolerance": -1.0}, "tolerance"),
        ({"tolerance": np.nan}, "tolerance"),
        ({"candidates": ["nothing"]}, "nothing"),
        ({"candidates": "platt"}, "list"),
        ({"candidates": ["auto"]}, "AutoCalibrator"),
    ],
)
def test_odd_settings_are_refused(settings, word):
    logits, y = rows("tied", 40, 20)
    with pytest.raises(InputError, match=word):
        AutoCalibrator(**settings).fit(np.clip(logits, -9, 9), y)


@pytest.mark.parametrize("scale", [1e-6, 1e4])
def test_extreme_logits_and_separated_labels_stay_sound(scale):
    y = np.arange(40) % 2
    auto = AutoCalibrator().fit(scale * (2.0 * y - 1), y)
    found = auto.predict_proba(np.array([[0.0, 1e4], [1e4, 0.0], [0.0, 0.0]]))
    assert np.isfinite(found).all()
    assert found.sum(axis=1) == pytest.approx(np.ones(3), abs=1e-12)


def test_many_rows_are_chosen_by_a_sample_and_fitted_whole():
    draw = WORLDS["binary"].draw(3000, 3)
    logits = logits_of(draw)
    auto = AutoCalibrator(most_rows=500).fit(logits, draw.labels)
    assert 490 <= auto.comparison_.n <= 560
    alone = clone(auto.chosen_).fit(logits, draw.labels)
    assert auto.chosen_.to_dict() == alone.to_dict()
    order = np.random.default_rng(0).permutation(3000)
    again = AutoCalibrator(most_rows=500).fit(logits[order], draw.labels[order])
    assert again.chosen_.method == auto.chosen_.method
    with refuses(InputError, "most_rows", "at least 20", "got 3"):
        AutoCalibrator(most_rows=3).fit(logits, draw.labels)


def underconfident(n, seed):
    """Log-odds of rare events, shrunk as focal loss shrinks them, and labels."""
    rng = np.random.default_rng(seed)
    odds = 1.6 * rng.normal(size=n) - 3.0
    return 0.7 * odds, (rng.random(n) < 1 / (1 + np.exp(-odds))).astype(int)


def test_a_model_that_is_known_to_be_miscalibrated_does_not_stay_so():
    gains, plain = [], 0
    fresh, outcome = underconfident(20_000, 999)
    for seed in range(12):
        logits, labels = underconfident(150, seed)
        free = AutoCalibrator().fit(logits, labels)
        bound = AutoCalibrator(uncalibrated=False).fit(logits, labels)
        assert bound.chosen_.method != "identity"
        assert bound.comparison_.chosen != "identity"
        plain += free.chosen_.method == "identity"
        losses = [nll(outcome, c.predict_proba(fresh)) for c in (free, bound)]
        gains.append(losses[0] - losses[1])
    assert plain > 3  # 150 rows seldom show it
    assert np.mean(gains) > 2 * np.std(gains) / np.sqrt(len(gains))


def test_several_classes_start_from_temperature_without_the_uncalibrated_model():
    draw = WORLDS["multiclass"].draw(1500, 0)
    logits = np.log(draw.probs)  # calibrated: the uncalibrated model has the best score
    bound = AutoCalibrator(uncalibrated=False).fit(logits, draw.labels)
    assert bound.chosen_.method == "temperature"
    assert bound.comparison_.candidates[0].method == "identity"  # its figures stay


def test_the_uncalibrated_model_remains_where_no_other_method_can_be_scored():
    logits, labels = underconfident(200, 0)
    auto = AutoCalibrator(candidates=["identity"], uncalibrated=False).fit(logits, labels)
    assert auto.chosen_.method == "identity"
