"""Classification report and reliability bins: by hand, against scikit-learn, and invariant."""

from types import SimpleNamespace

import numpy as np
import pytest
from reproductions.class_report import class_report, reliability, report_of
from reproductions.parts import Part, Parts
from sklearn.metrics import classification_report

from calibrant.convert import probs_from_logits
from calibrant.metrics import ece

CLASSES = ("few", "some", "many")


def run(n=600, scale=3.0, seed=0):
    """A run of an over-confident model of three classes."""
    draw = np.random.default_rng(seed)
    labels = draw.integers(0, 3, n)
    logits = scale * (1.2 * np.eye(3)[labels] + draw.normal(size=(n, 3)))
    half = n // 2
    empty = Part([], np.empty(0, dtype=np.int64))
    parts = Parts(
        empty,
        empty,
        Part([None] * half, labels[:half]),
        Part([None] * half, labels[half:]),
        CLASSES,
    )
    return SimpleNamespace(parts=parts, logits={"calib": logits[:half], "test": logits[half:]})


def test_report_by_hand():
    logits = np.array([[2.0, 0.0], [0.0, 1.0], [3.0, 0.0], [1.0, 0.0]])
    found = report_of(np.array([0, 1, 1, 0]), logits, ("a", "b"))
    assert found["classes"] == [
        {"class": "a", "precision": 2 / 3, "recall": 1.0, "f1": pytest.approx(0.8), "support": 2},
        {"class": "b", "precision": 1.0, "recall": 0.5, "f1": pytest.approx(2 / 3), "support": 2},
    ]
    assert found["accuracy"] == 0.75
    assert found["macro"]["f1"] == pytest.approx((0.8 + 2 / 3) / 2)


def test_report_is_that_of_scikit_learn():
    fitted = run()
    labels, logits = fitted.parts.test.labels, fitted.logits["test"]
    theirs = classification_report(labels, logits.argmax(1), target_names=CLASSES, output_dict=True)
    ours = report_of(labels, logits, CLASSES)
    for row in ours["classes"]:
        other = theirs[row["class"]]
        for figure, name in (
            ("precision", "precision"),
            ("recall", "recall"),
            ("f1", "f1-score"),
            ("support", "support"),
        ):
            assert row[figure] == pytest.approx(other[name])
    assert ours["accuracy"] == pytest.approx(theirs["accuracy"])
    assert ours["macro"]["f1"] == pytest.approx(theirs["macro avg"]["f1-score"])


def test_a_class_that_is_never_predicted_has_no_precision():
    found = report_of(np.array([0, 1]), np.array([[1.0, 0.0], [1.0, 0.0]]), ("a", "b"))
    assert found["classes"][1] == {
        "class": "b", "precision": None, "recall": 0.0, "f1": 0.0, "support": 1
    }  # fmt: skip
    assert found["macro"]["precision"] == 0.25


@pytest.mark.parametrize("scale", [0.3, 1.0, 5.0])
def test_the_bins_make_up_the_calibration_error(scale):
    fitted = run(scale=scale)
    labels, logits = fitted.parts.test.labels, fitted.logits["test"]
    found = reliability(labels, logits)
    assert sum(found["rows"]) == len(labels)
    gaps = np.abs(np.subtract(found["accuracy"], found["confidence"]))
    by_hand = np.dot(found["rows"], gaps) / len(labels)
    expected = ece(labels, probs_from_logits(logits), n_bins=10, scheme="width", target="top-label")
    assert found["ece"] == pytest.approx(by_hand)
    assert found["ece"] == pytest.approx(expected)
    assert all(
        low <= mean <= high
        for low, mean, high in zip(found["low"], found["confidence"], found["high"], strict=True)
    )


def test_temperature_leaves_the_report_and_mends_the_bins():
    found = class_report(run())
    assert found["temperature"] > 2
    assert found["same_classes"]
    assert found["before"] == found["after"]
    assert "same before and after" in found["told"]
    assert found["bins"]["after"]["ece"] < found["bins"]["before"]["ece"] / 2
