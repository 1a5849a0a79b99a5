"""The model card: what is decided, what is promised and on how many labels, and what is not."""

import pytest
from tests.sentences import assert_mentions, refuses
from tests.unit.bundle.model_parts import (
    image_scorer,
    know_tiny_images,
    subword_scorer,
    table_scorer,
    text_scorer,
)
from tests.unit.bundle.parts import band, point, points_of, temperature, without_promise

from calibrant.bundle import BundlePoint, pack
from calibrant.bundle.card.card import SECTIONS
from calibrant.errors import InputError
from calibrant.models.scorer import Scorer
from calibrant.ood import OodRule
from calibrant.thresholds import coverage, precision, select


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
    assert_mentions(said, "3 classes", "“defect”, “parts”, “other”")
    assert "calibrated with `temperature`" in said
    assert_mentions(said, "decision score, the calibrated P(defect), is at least 0.75")
    assert_mentions(said, "decision score, P(parts), is at least 0.75")
    assert_mentions(said, "not called calibrated", "classifier's own probability")
    assert "calibrated probability of" not in said  # a temperature loses the order of three classes
    assert_mentions(said, "“defect” means: refund")
    assert "the bundle abstains" in said
    assert_mentions(said, "most probable class")


def test_it_gives_the_promise_the_labels_and_the_figures(card):
    said = card(point())
    assert_mentions(
        said, "- Point 0: Precision", "at least 85 %", "class 'defect'", "95 % confidence"
    )
    assert_mentions(said, "2,000 labelled rows", "540 of them", "of “defect”")
    assert_mentions(said, "precision 0.900 (0.860 to 0.930)", "recall 0.500 (0.450 to 0.550)")
    assert_mentions(said, "Nothing about “parts”, “other”")
    assert_mentions(said, "no calibrator")
    assert "weighted" not in said
    assert_mentions(card(point(weighted=True)), "of “defect”, weighted")


def test_no_promise_is_told_with_its_reason(card):
    said = card(without_promise())
    assert_mentions(said, "No promise:", "trained on", "certify on others")
    assert "hold together" not in said


def test_points_that_share_the_allowed_error_hold_together(card):
    said = card(point(), point("parts"), provenance={"confidence_together": 0.95})
    assert_mentions(said, "All promises", "hold together", "95 % confidence")
    assert "one by one" not in said


def test_doubts_of_points_chosen_one_by_one_add_up(card):
    said = card(point(), point("parts", confidence=0.9))
    assert_mentions(said, "all promises", "hold together", "at least 85 %")
    assert_mentions(said, "Nothing about", "decides alone")
    together = card(points_of(point(), point("parts")))
    assert_mentions(together, "promises hold together", "95 % confidence")
    assert "one by one" not in together


def test_an_alternative_is_named(card):
    said = card(point(), point(threshold=0.5))
    assert_mentions(said, "Point 1", "an alternative")
    assert "most probable class decides" not in said


def test_a_band_has_two_rules(card):
    said = card(band())
    assert_mentions(said, "Act on", "decision score, P(yes), is at least 0.8.")
    assert_mentions(said, "Clear", "decision score, P(yes), is below 0.2.")
    assert_mentions(said, "Point 0: Above", "precision", "at least 85 %")
    assert "no point acts" not in said


def test_predictions_of_any_class(card):
    said = card(point(None))
    assert_mentions(said, "Accept a prediction", "highest probability", "at least 0.75")
    assert_mentions(said, "540 of them", "predicted correctly")
    assert "no point acts" not in said


def test_without_a_point_it_promises_nothing(card):
    said = card(calibrator=temperature())
    assert_mentions(said, "no operating point")
    assert_mentions(said, "Nothing, because", "operating point")


def test_names_cannot_become_html_or_lines(card):
    said = card(point("<img src=x>\n# Title", classes=("<img src=x>\n# Title", "b")))
    assert "<img" not in said
    assert "\n# Title" not in said


def test_it_names_its_sources_without_their_folders(card, tmp_path):
    source = tmp_path / "c.json"
    source.write_text("{}")
    said = card(point(), sources=[("operating_point", source)])
    assert_mentions(said, "operating point is", "`c.json`, 44136fa355b3678a…")
    assert str(tmp_path) not in said


def section(said, title):
    return said.partition(f"\n## {title}\n\n")[2].partition("\n## ")[0]


@pytest.mark.parametrize(
    "scorer", [None, text_scorer(), table_scorer(), image_scorer(), subword_scorer()]
)
def test_it_has_all_sections_in_their_order_and_none_is_empty(card, scorer, monkeypatch):
    know_tiny_images(monkeypatch)
    changed = {"changes": [{"at": "2026-01-02", "what": "a point moved"}]}
    said = card(point(), scorer=scorer, provenance=changed)
    titles = [line[3:] for line in said.splitlines() if line.startswith("## ")]
    assert titles == list(SECTIONS)
    assert titles[0] == "Intended use"
    for title in titles:
        assert section(said, title).startswith("- "), title


@pytest.mark.parametrize("told", [{}, {"changes": []}, {"changes": "odd"}, {"changes": [1]}])
def test_a_bundle_that_was_never_changed_says_nothing_of_changes(card, told):
    said = card(point(), provenance=told)
    titles = [line[3:] for line in said.splitlines() if line.startswith("## ")]
    assert titles == [title for title in SECTIONS if title != "Changes"]


def test_changes_are_told_the_newest_first_and_break_nothing(card):
    changes = [
        {"at": "2026-01-02", "by": "<b>Ann</b>", "what": "a\n# point", "reason": "x\x1b[31m"},
        {"at": "2026-01-03", "base": "0123456789abcdef"},
    ]
    lines = section(card(point(), provenance={"changes": changes}), "Changes").splitlines()
    assert lines == [
        "- 2026-01-03: The operating points were changed. No reason was given. Before that it was "
        "version 0123456789ab.",
        "- 2026-01-02, by &lt;b&gt;Ann&lt;/b&gt;: A # point. "
        "Reason: X\N{REPLACEMENT CHARACTER}[31m.",
    ]


def test_it_tells_a_model_for_texts(card):
    said = card(point(), scorer=text_scorer())
    assert_mentions(said, "a classifier", "turns texts into")
    assert "does not contain the classifier" not in said
    assert_mentions(section(said, "Intended use"), "table", "column `message`")
    assert_mentions(section(said, "Failure modes"), "first 8 words")
    assert "without redaction" in section(said, "Data handling")
    assert_mentions(section(said, "Data handling"), "`tokenizer.json` contains", "train texts")
    assert_mentions(section(said, "Where it comes from"), "model is `bilstm`")
    redacting = card(point(), scorer=text_scorer(redact=True))
    assert_mentions(section(redacting, "Data handling"), "redacted")


def test_it_tells_a_model_for_tables(card):
    said = card(point(), scorer=table_scorer())
    assert_mentions(section(said, "Intended use"), "columns `price`, `shelf`")
    assert_mentions(section(said, "Data handling"), "names", "columns and categories")
    assert "tokenizer.json" not in said


def test_without_a_model_it_says_what_comes_in(card):
    said = card(point())
    assert_mentions(section(said, "Intended use"), "the logits")
    assert "scores" in section(said, "Data handling")
    assert_mentions(section(said, "Failure modes"), "no out-of-scope rule")
    assert "out_of_scope" not in said


def test_it_gives_the_figures_of_the_test_rows(card):
    figures = {
        "accuracy": {"value": 0.91234, "low": 0.9, "high": 0.925},
        "nll": {"value": 0.3, "low": None, "high": None},
        "ece_em": {"value": None, "why": "too few rows"},
        "brier": {"value": 0.2},
    }
    said = section(card(point(), metrics={"test": figures, "n": 1200}), "Figures")
    assert_mentions(said, "Accuracy: 0.9123 (0.9000 to 0.9250)", "1,200 test rows")
    assert_mentions(said, "NLL (log loss): 0.3000", "1,200 test rows")
    assert len(said.strip().splitlines()) == 2
    for metrics in ({}, {"test": 1}, {"test": {"accuracy": 0.9}}, {"nll": {"value": 0.4}}):
        assert section(card(point(), metrics=metrics), "Figures").strip() == (
            "- No test metrics were packed."
        )


def test_it_tells_splits_and_the_rule(card):
    splits = {
        "train": {"source": "logs", "rows": 8000, "sha256": "ab" * 32},
        "test": {"source": "golden", "rows": 1},
        "odd": 3,
    }
    rule = OodRule("energy", -3.25, 0.95, 500)
    said = card(point(), provenance={"splits": splits, "config": {"seed": 0}}, ood=rule)
    data = section(said, "Data handling")
    assert_mentions(data, "- train: 8,000 rows", "logs (abababababababab…)")
    assert_mentions(data, "- test: 1 row", "golden")
    assert "odd" not in data
    failing = section(said, "Failure modes")
    assert_mentions(failing, "500 rows in scope", "at most 5 %")
    assert "`out_of_scope` true" in section(said, "Hand-over to a person")


def test_own_words_come_first_in_their_section(card):
    said = card(point(), card={"Intended use": "It reads <b>return</b> reasons\n# of one shop."})
    first = section(said, "Intended use").splitlines()[0]
    assert_mentions(first, "&lt;b&gt;return&lt;/b&gt; reasons #")
    with refuses(InputError, "card", "'Use':", "Intended use"):
        card(point(), card={"Use": "x"})
    with refuses(InputError, "Figures", "text"):
        card(point(), card={"Figures": " "})


def test_it_tells_a_model_for_images(card, monkeypatch):
    know_tiny_images(monkeypatch)
    said = card(point(), scorer=image_scorer())
    assert_mentions(said, "a classifier", "turns images into")
    use = section(said, "Intended use")
    assert_mentions(use, "4 x 5 pixels", "colour (3 channels)")
    assert_mentions(use, "Images of other sizes", "rejected")
    assert_mentions(section(said, "Failure modes"), "train images")
    assert_mentions(section(said, "Data handling"), "contains no images")
    assert_mentions(section(said, "Where it comes from"), "`tiny_image`, with 96 weights")
    resizing = section(card(point(), scorer=image_scorer(resize=True)), "Intended use")
    assert "centre-cropped" in resizing
    assert_mentions(resizing, "Arrays of other sizes", "rejected")


def test_it_tells_a_transformer(card):
    said = card(point(), scorer=subword_scorer())
    assert_mentions(section(said, "Intended use"), "table", "column `message`")
    failing = section(said, "Failure modes")
    assert_mentions(failing, "sub-word tokens", "none is unknown")
    assert_mentions(failing, "At most 8 tokens")
    assert "one unknown word" not in failing
    data = section(said, "Data handling")
    assert "without redaction" in data
    assert_mentions(data, "nothing", "train texts")
    origin = section(said, "Where it comes from")
    assert_mentions(origin, "`transformer`, with ")
    assert_mentions(origin, "architecture `bert`", "1 layer")


def test_it_tells_what_is_averaged(card):
    kept = {"hidden": [6], "dropout": [0.25]}
    two = [table_scorer(), table_scorer(start=1)]
    said = section(card(point(), scorer=Scorer.ensemble(two)), "Where it comes from")
    assert_mentions(said, "averages", "2 models, `mlp`; 114")
    thinned = Scorer.mc_dropout(table_scorer(**kept), passes=20)
    said = section(card(point(), scorer=thinned), "Where it comes from")
    assert_mentions(said, "averages", "20 thinned copies", "`mlp`, with")
    assert_mentions(said, "always the same")


def test_what_follows_from_acting_on_every_row_has_no_interval(card):
    labels, logits = [0, 1] * 100, [-3.0, 3.0] * 100
    said = card(select(labels, logits=logits, hold=precision >= 0.3, maximise=coverage))
    assert "recall 1.000 by definition" in said
    assert "coverage 1.000 by definition" in said
    assert "precision 0.500 (0." in said


def test_it_says_where_a_threshold_lies_on_the_calibrated_scale(card):
    classes = ("no", "yes")
    parts = {"calibrator": temperature(classes=classes)}
    said = card(BundlePoint(point("yes", classes=classes), "raw"), **parts)
    assert_mentions(said, "decision score of 0.75 is a calibrated probability of 0.634")
    assert_mentions(said, "different scales")
    same = card(BundlePoint(point("yes", classes=classes), "calibrated"), **parts)
    assert "different scales" not in same
    assert "calibrated probability of" not in same
