"""The model card: what is decided, what is promised and on how many labels, and what is not."""

import pytest
from tests.sentences import refuses
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
    assert "3 classes: “defect”, “parts”, “other”" in said
    assert "calibrated with `temperature`" in said
    assert "Act on a row when P(defect) is at least 0.75. It uses the calibrated prob" in said
    assert "P(parts) is at least 0.75. It uses the classifier's own scores, on which" in said
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


def test_points_that_share_the_allowed_error_hold_together(card):
    said = card(point(), point("parts"), provenance={"confidence_together": 0.95})
    assert "All promises of all points hold together, with 95 % confidence." in said
    assert "one by one" not in said


def test_doubts_of_points_chosen_one_by_one_add_up(card):
    said = card(point(), point("parts", confidence=0.9))
    assert "all promises hold together with a confidence of only at least 85 %" in said
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
    assert "540 of them predicted correctly" in said
    assert "no point acts" not in said


def test_without_a_point_it_promises_nothing(card):
    said = card(calibrator=temperature())
    assert "There is no operating point" in said
    assert "Nothing, because it has no operating point." in said


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
    assert "a classifier that turns texts into probabilities and decisions" in said
    assert "does not contain the classifier" not in said
    assert "a table with the column `message`" in section(said, "Intended use")
    assert "the first 8 words of a text" in section(said, "Failure modes")
    assert "without redaction" in section(said, "Data handling")
    assert "`tokenizer.json` contains words of the train texts, up" in section(
        said, "Data handling"
    )
    assert "The network is `bilstm`" in section(said, "Where it comes from")
    redacting = card(point(), scorer=text_scorer(redact=True))
    assert "redacted from every text" in section(redacting, "Data handling")


def test_it_tells_a_model_for_tables(card):
    said = card(point(), scorer=table_scorer())
    assert "with the columns `price`, `shelf`" in section(said, "Intended use")
    assert "names of the columns and categories" in section(said, "Data handling")
    assert "tokenizer.json" not in said


def test_without_a_model_it_says_what_comes_in(card):
    said = card(point())
    assert "Pass the logits of the classifier" in section(said, "Intended use")
    assert "scores" in section(said, "Data handling")
    assert "There is no out-of-scope rule" in section(said, "Failure modes")
    assert "out_of_scope" not in said


def test_it_gives_the_figures_of_the_test_rows(card):
    figures = {
        "accuracy": {"value": 0.91234, "low": 0.9, "high": 0.925},
        "nll": {"value": 0.3, "low": None, "high": None},
        "ece_em": {"value": None, "why": "too few rows"},
        "brier": {"value": 0.2},
    }
    said = section(card(point(), metrics={"test": figures, "n": 1200}), "Figures")
    assert "Accuracy: 0.9123 (0.9000 to 0.9250), on 1,200 test rows." in said
    assert "NLL (log loss): 0.3000, on 1,200 test rows." in said
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
    assert "- train: 8,000 rows from logs (abababababababab…)." in data
    assert "- test: 1 row from golden." in data
    assert "odd" not in data
    failing = section(said, "Failure modes")
    assert "fitted on 500 rows in scope, of which it flags at most 5 %" in failing
    assert "`out_of_scope` true" in section(said, "Hand-over to a person")


def test_own_words_come_first_in_their_section(card):
    said = card(point(), card={"Intended use": "It reads <b>return</b> reasons\n# of one shop."})
    first = section(said, "Intended use").splitlines()[0]
    assert first == "- It reads &lt;b&gt;return&lt;/b&gt; reasons # of one shop."
    with refuses(InputError, "card", "'Use':", "Intended use"):
        card(point(), card={"Use": "x"})
    with refuses(InputError, "Figures", "text"):
        card(point(), card={"Figures": " "})


def test_it_tells_a_model_for_images(card, monkeypatch):
    know_tiny_images(monkeypatch)
    said = card(point(), scorer=image_scorer())
    assert "a classifier that turns images into probabilities and decisions" in said
    use = section(said, "Intended use")
    assert "images of 4 x 5 pixels in colour (3 channels)" in use
    assert "Images of other sizes are rejected." in use
    assert "differ from the train images" in section(said, "Failure modes")
    assert "The bundle contains no images." in section(said, "Data handling")
    assert "The network is `tiny_image`, with 96 weights." in section(said, "Where it comes from")
    resizing = section(card(point(), scorer=image_scorer(resize=True)), "Intended use")
    assert "centre-cropped" in resizing
    assert "Arrays of other sizes are rejected." in resizing


def test_it_tells_a_transformer(card):
    said = card(point(), scorer=subword_scorer())
    assert "a table with the column `message`" in section(said, "Intended use")
    failing = section(said, "Failure modes")
    assert "sub-word tokens, so none is unknown" in failing
    assert "At most 8 tokens of a text are read" in failing
    assert "one unknown word" not in failing
    data = section(said, "Data handling")
    assert "without redaction" in data
    assert "contains nothing from the train texts" in data
    origin = section(said, "Where it comes from")
    assert "The network is `transformer`, with " in origin
    assert "of the architecture `bert` with 1 layer." in origin


def test_it_tells_what_is_averaged(card):
    kept = {"hidden": [6], "dropout": [0.25]}
    two = [table_scorer(), table_scorer(start=1)]
    said = section(card(point(), scorer=Scorer.ensemble(two)), "Where it comes from")
    assert "averages the probabilities of 2 networks, `mlp`, with 114 weig" in said
    thinned = Scorer.mc_dropout(table_scorer(**kept), passes=20)
    said = section(card(point(), scorer=thinned), "Where it comes from")
    assert "It averages the probabilities of 20 thinned copies of one network, `mlp`, with" in said
    assert "is always the same" in said


def test_what_follows_from_acting_on_every_row_has_no_interval(card):
    labels, logits = [0, 1] * 100, [-3.0, 3.0] * 100
    said = card(select(labels, logits=logits, hold=precision >= 0.3, maximise=coverage))
    assert "recall 1.000 by definition" in said
    assert "coverage 1.000 by definition" in said
    assert "precision 0.500 (0." in said
