"""Resampled rows: how many of each class, which, and what they move the logits by."""

import sys

import numpy as np
import pytest
from imblearn.over_sampling import SMOTE, RandomOverSampler
from imblearn.under_sampling import RandomUnderSampler
from tests.sentences import refuses

from calibrant.data import resample_rows, smote
from calibrant.errors import InputError, MissingExtra

UNEVEN = np.repeat([0, 1, 2], [60, 30, 10])
SHUFFLED = np.random.default_rng(3).permutation(UNEVEN)


def blobs(labels, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(len(labels), 2)) + 5.0 * np.asarray(labels)[:, None]


def test_over_sampling_repeats_rows_of_the_smaller_classes_up_to_the_largest():
    found = resample_rows(SHUFFLED, "over")
    assert np.array_equal(found.places[:100], np.arange(100))
    assert np.bincount(SHUFFLED[found.places]).tolist() == [60, 60, 60]
    # Shares 0.6, 0.3, 0.1 become a third each.
    assert found.log_shift == pytest.approx(np.log([1 / 1.8, 1 / 0.9, 1 / 0.3]), abs=1e-12)


def test_under_sampling_drops_rows_of_the_larger_classes_down_to_the_smallest():
    found = resample_rows(SHUFFLED, "under")
    assert np.bincount(SHUFFLED[found.places]).tolist() == [10, 10, 10]
    assert len(np.unique(found.places)) == 30
    assert np.array_equal(found.places, np.sort(found.places))
    assert set(np.flatnonzero(SHUFFLED == 2)) <= set(found.places.tolist())
    assert found.log_shift == pytest.approx(np.log([1 / 1.8, 1 / 0.9, 1 / 0.3]), abs=1e-12)


@pytest.mark.parametrize(("how", "counts"), [("over", [60, 30, 30]), ("under", [20, 20, 10])])
def test_a_ratio_leaves_classes_alone_that_are_even_enough(how, counts):
    found = resample_rows(SHUFFLED, how, ratio=0.5)
    assert np.bincount(SHUFFLED[found.places]).tolist() == counts
    shares = np.array(counts) / sum(counts)
    assert found.log_shift == pytest.approx(np.log(shares / [0.6, 0.3, 0.1]), abs=1e-12)


def test_the_shift_is_bayes_rule_on_a_table_of_counts():
    # 1000 rows, a feature of two values: P(1 | a) = 40 / 640, P(1 | b) = 60 / 360.
    labels = np.repeat([0, 1, 0, 1], [600, 40, 300, 60])
    feature = np.repeat(["a", "a", "b", "b"], [600, 40, 300, 60])
    found = resample_rows(labels, "over", seed=1)
    # All rows exactly 9 times instead of drawn: the posterior without the noise of the draw.
    weights = np.where(labels == 1, 9.0, 1.0)
    for value in "ab":
        there = feature == value
        share = weights[there & (labels == 1)].sum() / weights[there].sum()
        odds = np.log(share / (1 - share)) - (found.log_shift[1] - found.log_shift[0])
        assert 1 / (1 + np.exp(-odds)) == pytest.approx(labels[there].mean(), abs=1e-12)


@pytest.mark.parametrize("how", ["over", "under"])
def test_equal_classes_are_left_as_they_are(how):
    found = resample_rows(["b", "a"] * 7, how)
    assert np.array_equal(found.places, np.arange(14))
    assert np.array_equal(found.log_shift, [0.0, 0.0])


@pytest.mark.parametrize("how", ["over", "under"])
def test_other_names_for_the_classes_permute_the_shift(how):
    before = resample_rows(UNEVEN, how).log_shift
    other = np.array([2, 0, 1])  # class k is called other[k] now
    assert resample_rows(other[UNEVEN], how).log_shift[other] == pytest.approx(before, abs=1e-15)
    names = np.array(["z", "m", "a"])[UNEVEN]
    assert resample_rows(names.tolist(), how).log_shift[::-1] == pytest.approx(before, abs=1e-15)


@pytest.mark.parametrize("how", ["over", "under"])
def test_the_seed_makes_the_draw(how):
    first = resample_rows(SHUFFLED, how, seed=4).places
    assert np.array_equal(first, resample_rows(SHUFFLED, how, seed=4).places)
    assert not np.array_equal(first, resample_rows(SHUFFLED, how, seed=5).places)


def test_rows_are_drawn_evenly():
    labels = np.repeat([0, 1], [10_010, 10])
    drawn = resample_rows(labels, "over").places[len(labels) :]
    times = np.bincount(drawn - 10_010, minlength=10)
    assert times.sum() == 10_000
    assert (np.abs(times - 1000) < 5 * np.sqrt(1000)).all()


@pytest.mark.parametrize(
    ("how", "peer", "ratio"),
    [
        ("over", RandomOverSampler, 1.0),
        ("over", RandomOverSampler, 0.37),
        ("under", RandomUnderSampler, 1.0),
        ("under", RandomUnderSampler, 0.37),
    ],
)
def test_as_many_rows_of_each_class_as_imbalanced_learn(how, peer, ratio):
    several = np.repeat(list("abcd"), [71, 5, 33, 71])
    two = np.repeat(["no", "yes"], [331, 17])
    for labels in (two, several) if ratio == 1 else (two,):
        given = np.arange(len(labels))[:, None]
        strategy = "auto" if ratio == 1 else ratio
        _, theirs = peer(sampling_strategy=strategy, random_state=0).fit_resample(given, labels)
        ours = labels[resample_rows(labels, how, ratio=ratio).places]
        assert sorted(ours.tolist()) == sorted(theirs.tolist())


@pytest.mark.parametrize(
    ("labels", "options", "sentence"),
    [
        ([0, 1], {"how": "both"}, ("how", '"over"', '"under"', "got 'both'")),
        ([0, 1], {"how": None}, ("how", '"over"', '"under"', "got None")),
        ([0, 1], {"ratio": 0}, ("ratio", "above 0", "at most 1", "got 0")),
        ([0, 1], {"ratio": 1.5}, ("ratio", "above 0", "at most 1", "got 1.5")),
        ([0, 1], {"ratio": float("nan")}, ("ratio", "above 0", "at most 1", "got nan")),
        ([0, 1], {"seed": -1}, ("seed", "whole number", "at least 0", "got -1")),
        ([], {}, ("labels", "(n,)", "got shape (0,)")),
        ([[0, 1]], {}, ("got shape (1, 2)",)),
        (["a", None], {}, ("labels row 1", "missing")),
        ([0.0, np.nan], {}, ("labels row 1", "missing")),
        (np.array(["a", 1], dtype=object), {}, ("labels", "mixed types")),
    ],
)
def test_what_cannot_be_resampled_is_refused_in_a_sentence(labels, options, sentence):
    with refuses(InputError, *sentence):
        resample_rows(labels, **{"how": "over", **options})


def test_smote_fills_up_with_rows_between_rows_of_the_class():
    features = blobs(SHUFFLED)
    more, labels, log_shift = smote(features, SHUFFLED)
    assert np.array_equal(more[:100], features)
    assert np.array_equal(labels[:100], SHUFFLED)
    assert np.bincount(labels).tolist() == [60, 60, 60]
    for label in (1, 2):
        own = features[label == SHUFFLED]
        new = more[100:][labels[100:] == label]
        assert (new >= own.min(axis=0)).all()
        assert (new <= own.max(axis=0)).all()
    assert log_shift == pytest.approx(np.log([1 / 1.8, 1 / 0.9, 1 / 0.3]), abs=1e-12)


def test_smote_is_that_of_imbalanced_learn():
    features = blobs(SHUFFLED).astype(np.float32)
    more, labels, _ = smote(features, SHUFFLED, seed=7, neighbours=3)
    theirs, of = SMOTE(random_state=7, k_neighbors=3).fit_resample(features, SHUFFLED)
    assert more.dtype == np.float32
    assert np.array_equal(more, theirs)
    assert np.array_equal(labels, of)


def test_smote_takes_fewer_neighbours_for_a_small_class_and_all_for_the_others():
    labels = np.repeat(["big", "mid", "tiny"], [40, 20, 2])
    features = blobs(np.repeat([0, 1, 2], [40, 20, 2]))
    more, of, _ = smote(features, labels)
    assert np.unique(of, return_counts=True)[1].tolist() == [40, 40, 40]
    new = more[62:][of[62:] == "tiny"]
    first, second = features[60:]
    along = (new - first) / (second - first)
    assert along[:, 0] == pytest.approx(along[:, 1])  # on the line between the two
    assert ((along >= 0) & (along <= 1)).all()
    alone = labels != "tiny"
    expected, _ = SMOTE(random_state=0).fit_resample(features[alone], labels[alone])
    assert np.array_equal(more[62:][of[62:] == "mid"], expected[60:])


def test_smote_leaves_equal_classes_as_they_are():
    features = blobs([0, 1] * 4)
    more, labels, log_shift = smote(features, [0, 1] * 4)
    assert np.array_equal(more, features)
    assert np.array_equal(labels, [0, 1] * 4)
    assert np.array_equal(log_shift, [0.0, 0.0])


def test_smote_permutes_its_shift_with_the_names_of_the_classes():
    features = blobs(UNEVEN)
    before, after = smote(features, UNEVEN)[2], smote(features, 2 - UNEVEN)[2]
    assert after[::-1] == pytest.approx(before, abs=1e-15)


@pytest.mark.parametrize(
    ("features", "labels", "options", "sentence"),
    [
        (np.zeros((4, 1)), ["a", "a", "a", "b"], {}, ("class 'b'", "1 train row", "SMOTE")),
        (np.zeros((3, 1)), [0, 0, 1, 1], {}, ("same number", "rows", "got 3 and 4")),
        (np.zeros(4), [0, 0, 1, 1], {}, ("features must", "(n, d)")),
        ([["x"], ["y"]], [0, 1], {}, ("encode", "table", "TableEncoder first")),
        ([[0.0], [np.nan]], [0, 1], {}, ("features", "finite", "row 1", "not")),
        (np.zeros((2, 1)), [0, 1], {"neighbours": 0}, ("neighbours", "whole number")),
        (np.zeros((2, 1)), [0, 1], {"seed": 0.5}, ("seed", "whole number")),
    ],
)
def test_what_smote_cannot_mix_is_refused_in_a_sentence(features, labels, options, sentence):
    with refuses(InputError, *sentence):
        smote(features, labels, **options)


def test_without_imbalanced_learn_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "imblearn.over_sampling", None)
    with refuses(MissingExtra, "SMOTE needs the optional extra 'resampling'"):
        smote(np.zeros((5, 1)), [0, 0, 0, 1, 1])
