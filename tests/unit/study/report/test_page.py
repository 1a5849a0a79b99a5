"""The page of a study as text: the decision first, only true sentences, names that stay text."""

import json
import re
from dataclasses import replace
from html import unescape

import pytest
from tests.sentences import assert_mentions
from tests.unit.study.report.study_cases import (
    HOSTILE,
    a_hostile_study,
    a_lonely_study,
    a_plain_study,
    a_study,
    a_wide_study,
    an_unbinned_study,
    an_uncurved_study,
    an_unpromised_study,
)

from calibrant.errors import InputError
from calibrant.reports.evaluation import page as html_report
from calibrant.study.report.headline import headline_data, promise_data
from calibrant.study.report.page import chart_numbers, study_html, write_study_html
from calibrant.study.report.story import story
from calibrant.study.report.tables import (
    best_values,
    bundle_rows,
    candidate_rows,
    config_rows,
    split_data,
)

CASES = [
    a_study, a_plain_study, a_lonely_study, a_hostile_study, a_wide_study, an_unpromised_study,
    an_uncurved_study, an_unbinned_study,
]  # fmt: skip
ORDER = (
    "verdict", "story", "candidates", "reliability", "probabilities", "curves", "frontier",
    "training", "points", "scope", "truth", "data", "notes",
)  # fmt: skip


def body(page):
    """The page without its scripts and styles."""
    return re.sub(r"<(script|style).*?</\1>", "", page, flags=re.S)


def words(page):
    """What a reader sees, without tags."""
    text = unescape(re.sub(r"<[^>]*>", "", body(page)))
    return re.sub(r"\s+", " ", text.replace("\N{NO-BREAK SPACE}", " "))


@pytest.fixture(scope="module")
def page():
    return study_html(a_study(), source="logs.csv")


def test_the_decision_comes_first_and_the_sections_follow_in_order(page):
    places = [page.index(f'id="{name}"') for name in ORDER]
    assert places == sorted(places)
    lead = words(page)[:900]
    assert_mentions(lead, "AdaFocal with temperature", "was chosen")
    assert_mentions(lead, "come true", "700 golden test rows")
    assert_mentions(lead, "1 of 2 promises", "1 is seen")


def cards_of(result):
    """The key figures of the first screen, by their title."""
    shown = re.search(r'<dl class="tiles lead-figures">(.*?)</dl>', study_html(result), re.S)[1]
    return dict(re.findall(r"<dt>(.*?)</dt><dd>(.*?)</dd>", shown, re.S))


def test_the_key_figures_are_those_of_the_result():
    whole = a_study()
    cards, point = cards_of(whole), whole.points[0].result
    titles = ["Log loss", "Calibration error (ECE)", "Precision, measured", "Recall, measured"]
    assert list(cards) == titles
    for title, name in zip(titles[:2], ("nll", "ece_ew"), strict=True):
        before, after = whole.best.test[name].value, whole.calibrated[name].value
        assert words(cards[title]).startswith(f"{before:.3f} → before, {after:.3f} after")
    shown = words(cards[titles[2]])
    assert shown == f"{100 * point['precision'].value:.1f} % Promised: at least 85 %"
    assert f"{100 * point['recall'].value:.1f} %" in words(cards[titles[3]])


def test_the_key_figures_without_a_promise():
    assert list(cards_of(a_plain_study()))[2:] == ["Accuracy", "Macro F1"]
    cards = cards_of(an_unpromised_study())
    assert list(cards)[2:] == ["Best value proved", "Labelled rows needed"]
    assert f"{100 * an_unpromised_study().points[0].result.best:.1f}" in cards["Best value proved"]


def test_without_a_calibrator_the_key_figures_show_no_change():
    cards = cards_of(a_wide_study())
    assert not any("→" in words(shown) for shown in cards.values())


def test_the_first_screen_prefers_a_promise_that_can_be_made_and_decides():
    whole = a_study()
    for order, shown in (((1, 0, 2), 1), ((2, 0, 1), 1), ((2, 1), 1), ((2,), 0)):
        page = study_html(replace(whole, points=tuple(whole.points[i] for i in order)))
        assert f'data-point="{shown}"' in page


def test_the_headline_of_one_promise_tells_threshold_price_and_outcome():
    whole = a_study()
    one = replace(whole, points=whole.points[:1])
    found = headline_data(one)
    point = whole.points[0].result
    shown = found["headline"].replace("\N{NO-BREAK SPACE}", " ")
    assert_mentions(
        shown, "class “item_defective”", "precision is at least 85 %", "at a decision score of 0."
    )
    assert_mentions(shown, f"acts on {100 * point['coverage'].value:.1f} %")
    assert_mentions(shown, f"finds {100 * point['recall'].value:.1f} %", "kept on fresh rows")
    assert found["state"] == "good"


def test_a_broken_promise_is_said_first():
    whole = a_study()
    point = whole.points[0]
    broken = replace(point, fresh=replace(point.fresh, verdict="broken"))
    one = replace(whole, points=(broken, *whole.points[1:]))
    found = headline_data(one)
    assert (found["state"], found["badge"]) == ("bad", "A promise is broken")
    assert '<span class="stamp">BROKEN</span>' in study_html(one)


def test_a_promise_that_cannot_be_made_says_what_is_missing(page):
    shown = words(page)
    lost = a_study().points[1].result
    assert_mentions(shown, "no threshold", "95 % confidence", "precision is at least 99.9")
    assert f"About {lost.labels_needed:,} labelled rows" in shown
    assert "Labelled rows needed" in shown


def test_an_alternative_is_marked_and_is_no_headline(page):
    assert_mentions(words(page), "bundle does not decide")
    titles = [one["title"] for one in headline_data(a_study())["promises"]]
    assert len(titles) == 2
    assert not any("recall" in title for title in titles)


@pytest.mark.parametrize("case", CASES)
def test_every_kind_of_study_has_a_page(case):
    shown = study_html(case())
    assert shown.startswith("<!doctype html>")
    assert "undefined" not in body(shown)
    assert "None" not in words(shown).replace("None was asked for", "")
    assert "nan" not in words(shown).lower().split()
    json.loads(re.search(r'id="charts">(.*?)</script>', shown, re.S)[1])


def test_what_a_study_has_not_leaves_no_section():
    shown = body(study_html(a_plain_study()))
    for name in ("points", "scope", "truth"):
        assert f'id="{name}"' not in shown
    assert_mentions(shown, "none was asked")
    assert_mentions(shown, "held-out test rows")
    assert "golden" not in words(shown).lower()


def test_hostile_names_stay_text():
    shown = study_html(a_hostile_study(), source=HOSTILE)
    assert shown.count("</script>") == 3
    assert "<img" not in body(shown)
    assert HOSTILE in words(shown)


def test_many_classes_are_capped_and_missing_curves_are_said():
    shown = words(study_html(a_wide_study()))
    assert_mentions(shown, "class “intent_149”", "not kept")
    assert "(the 30 largest of 150)" in shown
    assert len(split_data(a_wide_study())["classes"]) == 30


def test_a_promise_for_predictions_of_any_class_is_told():
    data = promise_data(a_wide_study().points[0], a_wide_study())
    assert_mentions(data["title"], "any class", "accuracy is at least 90 %")


def test_failed_candidates_show_their_reason_and_the_reference_cannot_be_chosen(page):
    shown = words(page)
    assert_mentions(shown, "Could not be trained", "no number", "epoch 3")
    assert_mentions(shown, "for reference", "cannot be chosen")
    rows = {row["name"]: row for row in candidate_rows(a_study())}
    assert not any(cell["best"] for cell in rows["HistGradientBoosting"]["cells"])


def test_the_page_says_which_rows_chose_the_candidate(page):
    shown = words(page)
    assert_mentions(shown, "other rows (choice)", "calibrator and thresholds")
    assert "CandidateChoice log lossdecides" in shown  # in front, so that no screen cuts it off
    assert_mentions(shown, "choice log loss", "temperature scaling", "choice rows")
    assert_mentions(shown, "choose the candidate", "trained or steered")
    assert "steer log loss" not in shown.lower()


def test_one_candidate_is_not_said_to_be_chosen_on_any_rows():
    whole = a_study()
    splits = {name: part for name, part in whole.splits.items() if name != "choice"}
    reference = replace(whole.candidates[-1], refinement=None)
    one = replace(whole, splits=splits, candidates=(whole.best, reference), chosen=0)
    shown = words(study_html(one))
    assert_mentions(shown, "calibrator and thresholds", "other rows (calibrate)")
    assert_mentions(shown, "one candidate", "nothing to choose")
    assert "Steer log loss" in shown
    assert "decides" not in candidate_head(one)
    assert candidate_rows(one)[1]["refinement"] == "–"


def candidate_head(result):
    """The head of the table of candidates."""
    return re.search(r'aria-label="Table of candidates">.*?</thead>', study_html(result), re.S)[0]


def test_the_best_of_each_column_is_marked_by_its_own_direction():
    best = best_values(a_study())
    own = [one.test for one in a_study().candidates if one.test and not one.reference]
    assert best["test", "accuracy"] == max(found["accuracy"].value for found in own)
    assert best["test", "nll"] == min(found["nll"].value for found in own)
    assert best_values(a_lonely_study()) == {}


def test_log_loss_is_the_plain_one_whatever_the_loss():
    row = next(row for row in candidate_rows(a_study()) if row["name"] == "Focal, gamma 5")
    focal = next(one for one in a_study().candidates if one.loss == "focal:gamma=5")
    assert row["cells"][4]["value"] == f"{focal.test['nll'].value:.3f}"


def test_cross_entropy_with_temperature_stands_beside_the_bundle():
    names = [row["name"] for row in bundle_rows(a_study())]
    assert names == ["AdaFocal with temperature scaling", "Cross-entropy with temperature scaling"]


def test_the_story_says_that_focal_loss_does_not_help_where_it_does_not():
    whole = a_study()
    assert "helps here" in dict(story(whole))["Focal loss"]
    ce, focal = whole.candidates[0], whole.candidates[2]
    swapped = (replace(focal, loss="ce"), replace(ce, loss="focal:gamma=3"))
    told = dict(story(replace(whole, candidates=swapped, chosen=0)))
    assert_mentions(told["Focal loss"], "not help")


def test_the_story_tells_claim_and_truth_of_cross_entropy():
    verdict = a_study().candidates[0].test.verdict
    told = dict(story(a_study()))["The usual way"]
    assert f"{100 * verdict.mean_score:.1f} % sure" in told
    assert_mentions(told, f"{100 * verdict.event_rate:.1f} %", "right")


def test_without_cross_entropy_the_story_says_so():
    told = dict(story(a_lonely_study()))
    assert_mentions(told["The usual way"], "could not", "trained")
    assert "Cross-entropy with temperature" not in told
    assert "What it costs" not in told


def test_every_number_of_the_charts_is_from_the_result():
    whole, drawn = a_study(), chart_numbers(a_study())
    assert [one["name"] for one in drawn["candidates"] if one["chosen"]] == ["AdaFocal"]
    first = drawn["candidates"][0]
    assert first["ece"] == whole.candidates[0].test["ece_ew"].value
    assert first["scaledEce"] == whole.candidates[0].scaled["ece_ew"].value
    assert sum(first["focus"]["with_event"]) == whole.splits["test"]["classes"]["item_defective"]
    assert 0.5 < first["focus"]["ends"] <= 1
    assert len(drawn["points"]) == 3
    assert [part["title"].split(" (")[0] for part in drawn["gammas"][0]["bins"]] == [
        "least sure rows", "middle rows", "surest rows",
    ]  # fmt: skip


def test_actions_say_when_and_what(page):
    shown = words(page)
    assert "offer a replacement" in shown
    assert_mentions(shown, "no promised threshold")


def test_settings_are_listed_with_their_path():
    listed = dict(config_rows(a_study().config))
    assert listed["training.epochs"] == "8"
    assert listed["weight"] == "not set"


def test_the_page_loads_nothing(page):
    assert "default-src 'none'" in page
    assert not re.findall(r"(?:src|href)=[\"'](?!#|data:)", body(page))


def test_the_page_is_written_whole_and_bad_paths_are_refused(tmp_path, monkeypatch):
    path = write_study_html(a_plain_study(), tmp_path / "report.html")
    assert path.stat().st_size < 8 * 2**20
    monkeypatch.setattr(html_report, "render_page", lambda *_: pytest.fail("made before the check"))
    with pytest.raises(InputError, match="--html"):
        write_study_html(a_plain_study(), tmp_path / "no" / "report.html", name="--html")
