"""What is special about an experiment, in words."""

import pytest
from reproductions.extra_words import extra_words
from tests.reproductions.made_records import made_experiment, made_runs, made_summary


def told(extras, notes=None):
    runs = [{**one, "extras": extras} for one in made_runs()]
    return extra_words(made_experiment(), made_summary(runs), runs, notes or {})


def test_an_experiment_with_nothing_of_its_own_tells_nothing():
    assert told({}) == ()


def test_the_words_of_a_note_are_told():
    assert told({}, {"tutorial": {"told": "It prints T = 1.4."}}) == ("It prints T = 1.4.",)


def test_other_data_sets_by_method():
    found = told({"ood": {"svhn": {"entropy": {"raw": 0.942, "temperature": 0.948}}}})
    assert found == (
        "AUROC of the entropy against svhn, in %, as trained → with temperature: CE 94.2 → 94.8, "
        "FL-3 94.2 → 94.8.",
    )


@pytest.mark.parametrize(
    ("certified", "words"),
    [
        ({"reached": False}, "CE 0.7 (none), FL-3"),
        ({"reached": True, "threshold": 0.9891}, "0.989"),
    ],
)
def test_thresholds_by_method(certified, words):
    promise = {"naive": {"reached": True, "threshold": 0.7}, "certified": certified}
    (sentence,) = told({"promise": {"promises": [promise]}})
    assert sentence.startswith("Thresholds put by hand (certified ones): CE 0.7 (")
    assert words in sentence
