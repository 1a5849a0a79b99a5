"""The model card: what is decided, what is promised and on how many labels, and what is not."""

import pytest
from tests.unit.bundle.parts import band, point, points_of, temperature, without_promise

from calibrant.bundle import BundlePoint, pack


@pytest.fixture
def card(tmp_path):
    def make(*points, **parts):
        pack(tmp_path / "b", points=points, force=True, **parts)
        return (tmp_path / "b/card.md").read_text(encoding="utf-8")

    return make


def test_it_says_what_it_decides_and_on_what(card):
    said = card(
        BundlePoint(point(), "calibrated"),
        BundlePoint(point("parts"), "raw"),
        calibrator=temperature(),
        actions={"defect": "refund"},
    )
    assert "3 classes: “defect”, “parts”, “other”" in said
    assert "calibrated with `temperature`" in said
    assert "Act on a row when P(defect) is at least 0.75. It looks at the calibrated prob" in said
    assert "P(parts) is at least 0.75. It looks at the classifier's own scores, on which" in said
    assert "Acting on “defect” means: refund." in said
    assert "the bundle abstains" in said
    assert "the one of the most probable class decides" in said


def test_it_gives_the_promise_the_labels_and_the_figures(card):
    said = card(point())
    assert "- Point 0: Precision is at least 85 % for class 'defect', with 95 % confidence." in said
    assert "on 2,000 labelled rows, 540 of them of “defect”" in said
    assert "precision 0.900 (0.860 to 0.930), recall 0.500 (0.450 to 0.550)" in said
    assert "Nothing about “parts”, “other”, on which no point acts." in said
    assert "there is no calibrator" in said
    assert "weighted" not in said
    assert "540 of them of “defect”, weighted" in card(point(weighted=True))


def test_no_promise_is_told_with_its_reason(card):
    said = card(without_promise())
    assert "No promise: the model was trained on these very rows: certify on others." in said
    assert "hold together" not in said


def test_doubts_of_points_chosen_one_by_one_add_up(card):
    said = card(point(), point("parts", confidence=0.9))
    assert "all promises hold together with a confidence of at least 85 % only" in said
    assert "Nothing about the rows that a point decides alone" in said
    together = card(points_of(point(), point("parts")))
    assert "These promises hold together, with 95 % confidence." in together
    assert "one by one" not in together


def test_an_alternative_is_named(card):
    said = card(point(), point(threshold=0.5))
    assert "Point 1 is an alternative" in said
    assert "most probable class decides" not in said


def test_a_band_has_two_rules(card):
    said = card(band())
    assert "Act on a row when P(yes) is at least 0.8." in said
    assert "Clear a row when P(yes) is below 0.2." in said
    assert "Point 0: Above the band precision is at least 85 %" in said
    assert "no point acts" not in said


def test_predictions_of_any_class(card):
    said = card(point(None))
    assert "Accept a prediction when its highest probability is at least 0.75" in said
    assert "540 of them predicted rightly" in said
    assert "no point acts" not in said


def test_without_a_point_it_promises_nothing(card):
    said = card(calibrator=temperature())
    assert "There is no operating point" in said
    assert "Nothing: a promise belongs to an operating point." in said


def test_names_cannot_become_html_or_lines(card):
    said = card(point("<img src=x>\n# Title", classes=("<img src=x>\n# Title", "b")))
    assert "<img" not in said
    assert "\n# Title" not in said


def test_it_names_its_sources_without_their_folders(card, tmp_path):
    source = tmp_path / "c.json"
    source.write_text("{}")
    said = card(point(), sources=[("operating_point", source)])
    assert "The operating point is from `c.json`, 44136fa355b3678a…" in said
    assert str(tmp_path) not in said
