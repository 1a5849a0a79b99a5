"""Logits from score files: as they are, or as logarithms of probabilities that may be 0."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.sentences import refuses

from calibrant.errors import InputError
from calibrant.scores import Scores, read_scores, scan_scores
from calibrant.scores.read import class_order, reorder_classes


def text(folder, content, name="scores.csv"):
    (folder / name).write_text(content)
    return folder / name


def test_logit_columns_come_as_they_are(tmp_path):
    file = text(tmp_path, "label,logit_a,logit_b\na,800,-800\nb,0.25,0.5\n")
    scores = read_scores(file, logits=True)
    assert scores.logits.tolist() == [[800.0, -800.0], [0.25, 0.5]]
    assert scores.probs[0].tolist() == [1.0, 0.0]
    assert (scores.floored, len(scores.notes)) == (0, 1)  # the note about the positive class


def test_they_are_there_only_if_asked_for(tmp_path):
    file = text(tmp_path, "label,logit\n1,3\n0,-2\n")
    assert read_scores(file).logits is None
    assert read_scores(file, logits=True).logits.tolist() == [3.0, -2.0]


def test_a_lone_probability_becomes_log_odds(tmp_path):
    file = text(tmp_path, "label,prob\n1,0.75\n0,0.5\n")
    np.testing.assert_allclose(read_scores(file, logits=True).logits, [np.log(3), 0.0])


def test_probabilities_become_their_logarithms(tmp_path):
    file = text(tmp_path, "label,prob_a,prob_b,prob_c\na,0.5,0.25,0.25\n")
    np.testing.assert_allclose(read_scores(file, logits=True).logits, np.log([[0.5, 0.25, 0.25]]))


@pytest.mark.parametrize(
    ("rows", "floored", "note"),
    [
        ("1,0\n1,1\n0,0.5\n", 2, "2 probabilities are exactly 0 or 1"),
        ("1,0.5\n1,1\n0,0.5\n", 1, "1 probability is exactly 0 or 1"),
        ("1,1e-13\n0,0.5\n", 1, "within 1e-12 of it: it counts as 1e-12 away"),
        ("1,1e-11\n0,0.99999999\n", 0, ""),
    ],
)
def test_lost_logits_are_counted_and_said(tmp_path, rows, floored, note):
    scores = read_scores(text(tmp_path, f"label,prob\n{rows}"), logits=True)
    assert scores.floored == floored
    assert note in " ".join(scores.notes)
    assert bool(note) == bool(scores.notes)
    assert np.abs(scores.logits).max() <= -np.log(1e-12) + 1e-6


def test_zeros_are_counted_over_all_batches_and_files(tmp_path):
    zero = {"label": [0] * 5, "prob_a": [1.0] * 5, "prob_b": [0.0] * 5, "prob_c": [0.0] * 5}
    for name in ("1", "2"):
        pq.write_table(pa.table({**zero, "label": ["a"] * 5}), tmp_path / f"{name}.parquet")
    assert [b.floored for b in scan_scores(tmp_path, logits=True, batch_rows=3)] == [6, 4, 6, 4]
    whole = read_scores(tmp_path, logits=True)
    assert (whole.floored, whole.logits.shape) == (20, (10, 3))
    assert whole.notes[0].startswith("20 probabilities")


def test_float32_logits_are_not_copied_to_float64(tmp_path):
    file = tmp_path / "scores.parquet"
    pq.write_table(pa.table({"label": [0, 1], "logit": pa.array([0.5, 2], pa.float32())}), file)
    assert read_scores(file, logits=True).logits.dtype == np.float32


@pytest.mark.parametrize("value", ["nan", "inf", "-inf", ""])
def test_a_logit_that_is_no_number_is_named(tmp_path, value):
    file = text(tmp_path, f"label,logit\n1,0.5\n0,{value}\n")
    with refuses(InputError, "data row 2, column 'logit'"):
        read_scores(file, logits=True)


def test_every_format_gives_the_same_logits(tmp_path):
    logits = np.random.default_rng(0).normal(0, 3, (40, 3))
    names = np.array(["a", "b", "c"])[np.arange(40) % 3]
    columns = {f"logit_{c}": logits[:, k] for k, c in enumerate("abc")}
    table = pa.table({"label": names, **columns})
    pq.write_table(table, tmp_path / "s.parquet")
    text(tmp_path, "".join(json.dumps(row) + "\n" for row in table.to_pylist()), "s.jsonl")
    np.savez(tmp_path / "s.npz", labels=names, logits=logits, classes=list("abc"))
    for ending in ("parquet", "jsonl", "npz"):
        found = read_scores(tmp_path / f"s.{ending}", logits=True)
        np.testing.assert_array_equal(found.logits, logits)


@pytest.mark.parametrize(
    ("have", "want", "order"),
    [
        (("a", "b", "c"), ("c", "a", "b"), [2, 0, 1]),
        (("0", "1"), ("False", "True"), [0, 1]),
        (("true", "false"), ("0", "1"), [1, 0]),
    ],
)
def test_classes_are_matched_by_name(have, want, order):
    assert class_order(have, want, files=("one", "two")) == order


@pytest.mark.parametrize(
    ("have", "want", "said"),
    [
        (("a", "b"), ("a", "b", "c"), ("scores", "2 classes", "two has 3")),
        (("a", "b"), ("a", "x"), ("class 'b'", "two", "'x'")),
        (("0", "1"), ("no", "yes"), ("two has 'no'",)),
    ],
)
def test_other_classes_are_refused(have, want, said):
    with refuses(InputError, *said):
        class_order(have, want, files=("one", "two"))


def test_rows_turned_to_another_order_mean_the_same():
    probs = np.array([[0.7, 0.2, 0.1], [0.1, 0.3, 0.6]])
    scores = Scores(np.array([0, 2]), probs, ("a", "b", "c"), logits=np.log(probs))
    turned = reorder_classes(scores, ("c", "a", "b"), files=("one", "two"))
    for before, after in zip(scores.labels, turned.labels, strict=True):
        assert scores.classes[before] == turned.classes[after]
    np.testing.assert_array_equal(turned.probs[:, 1], probs[:, 0])
    np.testing.assert_array_equal(turned.logits[:, 0], np.log(probs[:, 2]))


def test_a_zero_stands_for_half_of_the_least_vote(tmp_path):
    file = text(tmp_path, "label,prob_a,prob_b\na,1.0,0.0\nb,0.98,0.02\nb,0.3,0.7\n")
    scores = read_scores(file, logits=True)
    np.testing.assert_allclose(scores.logits[0], np.log([1.0, 0.01]))
    assert (scores.zero_as, scores.floored) == (0.01, 1)
    assert "it counts as 0.01 away" in scores.notes[-1]
    three = text(tmp_path, "label,prob_a,prob_b,prob_c\na,1.0,0,0\nb,0.9,0.02,0.08\n")
    assert read_scores(three, logits=True).zero_as == 0.005
    lone = text(tmp_path, "label,prob\n1,1.0\n0,0.02\n1,0.7\n")
    np.testing.assert_allclose(read_scores(lone, logits=True).logits[0], np.log(0.99 / 0.01))


def test_nothing_but_zeros_and_ones_says_nothing_about_a_vote(tmp_path):
    file = text(tmp_path, "label,prob\n1,1\n0,0\n")
    assert read_scores(file, logits=True).zero_as == 1e-12
