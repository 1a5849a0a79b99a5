"""The page about thresholds as text and data: it says what was found, and nothing breaks out."""

import json
import re
from html import unescape

import numpy as np
import pytest
from tests.sentences import assert_mentions

from calibrant.errors import InputError
from calibrant.reports import threshold_html, write_threshold_html
from calibrant.reports.threshold.page import point_view
from calibrant.reports.threshold.view import chart_data
from calibrant.thresholds import (
    Cost,
    OperatingPoint,
    TargetUnreachable,
    accuracy,
    coverage,
    false_discovery,
    fpr,
    npv,
    precision,
    recall,
    select,
    select_band,
    select_each,
)

HOSTILE = "</script><img src=x onerror=alert(1)>&\u2028'\"{{ 7*7 }}"
NAMES = ("other", "defective")


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    logits = rng.normal(-2, 2.6, 4000)
    probs = 1 / (1 + np.exp(-logits))
    return {"labels": (rng.random(4000) < probs).astype(int), "scores": probs, "on": "probs"}


def chosen(rows, *, names=NAMES, **options):
    labels = np.array(names)[rows["labels"]]
    try:
        found = select(labels, **{rows["on"]: rows["scores"]}, classes=list(names), **options)
    except TargetUnreachable as error:
        found = error
    return found


def page_of(rows, *, names=NAMES, page=None, **options):
    """The text of a page with the markup taken out, and the data of its charts."""
    found = chosen(rows, names=names, **options)
    text = threshold_html(found, **rows, classes=names, **(page or {}))
    return found, text, words(text), data(text)


def words(page):
    body = re.sub(r"<(script|style)[^>]*>.*?</\1>|<wbr>", "", page, flags=re.S)
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", body)).split())


def data(page):
    return json.loads(re.findall(r'id="charts">(.*?)</script>', page, re.S)[0])


def test_the_promise_comes_first(rows):
    found, text, said, _ = page_of(rows, hold=precision >= 0.85, page={"source": "scores.csv"})
    assert isinstance(found, OperatingPoint)
    assert unescape(re.findall(r'class="headline">(.*?)</p>', text)[0]).replace(
        "\N{NO-BREAK SPACE}", " "
    ) == (found.guarantee)
    assert_mentions(said, "Act on a row", "decision score", "class “defective”, is at least")
    assert f"is at least {found.threshold!r}" in said
    assert said.index("Promise") < said.index("What would another threshold do?")
    assert_mentions(said, "only the chosen", "the promise.")
    assert_mentions(said, "bands are pointwise")
    assert "scores.csv · 4,000 rows" in said


def test_the_table_holds_every_rate_with_its_interval_and_rows(rows):
    found, text, _, _ = page_of(rows, hold=precision >= 0.85)
    table = re.findall(r"<tbody>(.*?)</tbody>", text, re.S)[0]
    assert len(re.findall(r"<tr", table)) == len(found.rates)
    shown = words(table)
    assert_mentions(shown, "Precision share", "target: at least 85 %")
    for rate in found.rates.values():
        assert f"of {rate.n:,} rows" in shown
        assert f"{100 * rate.interval.low:.1f} % to" in shown or rate.interval.low < 0.0095


def test_the_chart_tells_at_the_chosen_point_what_the_point_tells(rows):
    found, _, _, (charts,) = page_of(rows, hold=precision >= 0.85)
    at = charts["chosen"]["at"]
    assert charts["chosen"]["kind"] == "promise"
    assert charts["lines"] == ["precision", "recall"]
    for name in ("precision", "recall", "coverage"):
        rate, point = charts["rates"][name], found[name]
        assert rate["value"][at] == pytest.approx(point.value, abs=1e-6)
        assert rate["low"][at] == pytest.approx(point.interval.low, abs=1e-6)
        assert rate["high"][at] == pytest.approx(point.interval.high, abs=1e-6)
    assert charts["acted"][at] == found.act(rows["scores"]).sum()
    assert charts["aims"] == [{"rate": "precision", "value": 0.85}]
    assert len(charts["acted"]) == len(charts["threshold"]) + 1  # the last acts on no row
    assert charts["acted"][-1] == 0


def test_no_promise_is_said_loudly(rows):
    found, _, said, (charts,) = page_of(rows, hold=precision >= 0.85, confidence=None)
    assert found.guarantee is None
    assert_mentions(said, "carries no promise")
    assert_mentions(said, "No threshold here", "a promise")
    assert "carries the promise" not in said
    assert charts["chosen"]["kind"] == "plain"
    assert "Promised" not in said


def test_an_unreachable_target_tells_what_is_missing(rows):
    few = {**rows, "labels": rows["labels"][:600], "scores": rows["scores"][:600]}
    found, text, said, (charts,) = page_of(few, hold=precision >= 0.93)
    assert isinstance(found, TargetUnreachable)
    assert 'class="verdict bad"' in text
    head = "No threshold can promise that precision is at least 93 % for class “defective”"
    assert head in said.replace("\N{NO-BREAK SPACE}", " ")
    assert f"Best value proved {100 * found.best:.1f} %" in said
    assert_mentions(said, f"about {found.labels_needed:,}", "there are 600.")
    assert_mentions(said, f"about {found.positives_needed:,}", f"there are {found.positives:,}.")
    assert charts["chosen"]["kind"] == "best"
    assert charts["chosen"]["threshold"] == found.threshold


def test_where_no_number_of_rows_helps_the_page_says_so(rows):
    blind = {**rows, "scores": np.random.default_rng(0).random(4000)}
    found, _, said, _ = page_of(blind, hold=precision >= 0.9)
    assert found.labels_needed is None
    assert_mentions(said, "more labelled rows", "not help")


def test_nothing_is_marked_where_nothing_is_proved(rows):
    error = TargetUnreachable(hold="precision>=0.9", n=4000, positives=9, of="defective")
    text = threshold_html(error, **rows, classes=NAMES)
    assert data(text)[0]["chosen"] is None
    assert "back-0" not in text.split("<script>")[0]
    assert "Every rate" not in words(text)


def test_costs_are_drawn_with_their_limit_and_the_calibrated_rule(rows):
    cost = Cost(false_positive=1, false_negative=9)
    found, _, said, (charts,) = page_of(rows, minimise=cost)
    at = charts["chosen"]["at"]
    assert charts["cost"][at] == pytest.approx(found["cost"].value, abs=1e-5)
    assert charts["baseline"] == cost.baseline
    assert charts["aims"][0]["rate"] == "cost"
    assert_mentions(said, "from 0.1 on", "cost least")
    share = rows["labels"].mean()
    assert charts["cost"][-1] == pytest.approx(9 * share)  # acting on nothing misses them all
    plain = page_of(rows, hold=precision >= 0.85)
    assert plain[3][0]["cost"] is None
    assert "What it costs" not in plain[2]


def test_a_cost_can_be_shown_beside_another_promise(rows):
    found = chosen(rows, hold=precision >= 0.85)
    text = threshold_html(found, **rows, classes=NAMES, cost=Cost(1, 3))
    assert "What it costs" in words(text)
    assert data(text)[0]["lines"] == ["precision", "recall"]


@pytest.mark.parametrize(
    ("hold", "lines"),
    [
        (fpr <= 0.1, ["fpr", "precision", "recall"]),
        (false_discovery <= 0.15, ["false_discovery", "recall"]),
        (recall >= 0.8, ["recall", "precision"]),
        ([precision >= 0.7, recall >= 0.4], ["precision", "recall"]),
    ],
)
def test_what_is_held_is_drawn_first(rows, hold, lines):
    assert page_of(rows, hold=hold)[3][0]["lines"] == lines


def test_predictions_of_any_class(rows):
    rng = np.random.default_rng(1)
    probs = rng.dirichlet([0.5, 0.5, 0.5], 3000)
    names = ("a", "b", "c")
    rows = {
        "labels": np.array([rng.choice(3, p=row) for row in probs]),
        "scores": probs,
        "on": "probs",
    }
    _, _, said, (charts,) = page_of(rows, names=names, hold=accuracy >= 0.9, maximise=coverage)
    assert charts["topLabel"]
    assert charts["lines"] == ["accuracy", "coverage"]
    assert_mentions(said, "accept a prediction", "at least")
    assert "Share accepted" in said
    assert "of class" not in said


def test_several_classes_get_a_section_each(rows):
    rng = np.random.default_rng(1)
    probs = rng.dirichlet([0.4, 0.4, 0.4], 3000)
    labels = np.array([rng.choice(3, p=row) for row in probs])
    names = ("a", "b", "never")
    labels[labels == 2] = 0
    found = select_each(np.array(names)[labels], probs, classes=list(names), hold=precision >= 0.8)
    text = threshold_html(found, labels=labels, scores=probs, on="probs", classes=names)
    said = words(text)
    parts = len(found.points) + len(found.unreachable)
    assert len(data(text)) == text.split("<script>")[0].count('<input type="range"') == parts == 3
    assert "Without a threshold:" in said
    assert "“never”" in said
    assert 'href="#part-2"' in text
    ids = re.findall(r' id="([^"]+)"', text.split("<script>")[0])
    assert len(ids) == len(set(ids))


def test_a_band_tells_both_sides(rows):
    found = select_band(rows["labels"], rows["scores"], act=precision >= 0.85, clear=npv >= 0.97)
    text = threshold_html(found, **rows, classes=(0, 1))
    said = words(text)
    assert found.guarantee.replace(" %", "") in said.replace(" %", "").replace("\xa0%", "")
    assert_mentions(said, "rows between", "a person")
    assert_mentions(said, "Clear a row", "decision score", "class “1”, is below")
    upper, lower = data(text)
    assert not upper["clears"]
    assert lower["clears"]
    assert lower["lines"] == ["npv", "abstention"]
    assert upper["chosen"]["threshold"] == found.upper.threshold
    assert lower["chosen"]["threshold"] == found.lower.threshold


def test_hostile_names_stay_text(rows):
    names = ("other", HOSTILE)
    _, text, said, _ = page_of(
        rows, names=names, hold=precision >= 0.85,
        page={"source": HOSTILE, "title": HOSTILE, "out": HOSTILE, "command": HOSTILE,
              "notes": [HOSTILE]},
    )  # fmt: skip
    before = text.split("<script>")[0]
    assert "<img" not in before
    assert len(re.findall(r"<script[ >]", text)) == 3
    assert "</script><img src=x onerror=alert(1)>&" in said
    assert "49" not in re.findall(r"<h1>(.*?)</h1>", text, re.S)[0]


def test_the_page_forbids_itself_to_load_anything(rows):
    _, text, _, _ = page_of(rows, hold=precision >= 0.85)
    assert "default-src 'none'" in text
    assert not re.findall(r'(?:src|href)="(?!data:|#)', text.split("<script>")[0])


def test_labels_may_be_names_or_positions(rows):
    found = chosen(rows, hold=precision >= 0.85)
    named = {**rows, "labels": np.array(NAMES)[rows["labels"]]}
    pages = [threshold_html(found, **given, classes=NAMES) for given in (rows, named)]
    assert pages[0] == pages[1]


def test_saturated_scores_are_drawn_as_log_odds():
    rng = np.random.default_rng(0)
    logits = rng.normal(0, 60, 3000)
    labels = (rng.random(3000) < 1 / (1 + np.exp(-logits / 25))).astype(int)
    rows = {"labels": labels, "scores": logits, "on": "logits"}
    found, _, said, (charts,) = page_of(rows, hold=precision >= 0.9)
    assert found.threshold > 1 - 1e-12
    assert charts["crowded"]
    assert charts["wide"]
    assert f"log-odds {found.logit!r}" in said
    at = charts["chosen"]["at"]
    assert charts["acted"][at] == (logits >= found.logit).sum()


def test_probabilities_of_exactly_0_or_1_have_no_log_odds(rows):
    hard = {**rows, "scores": np.where(rows["scores"] > 0.9, 1.0, rows["scores"])}
    _, text, _, (charts,) = page_of(hard, hold=precision >= 0.8)
    assert charts["logit"] is None
    assert 'value="logit"' not in text


def test_the_threshold_can_be_copied_where_scores_are_tied(rows):
    tied = rows["scores"].round(2)
    found, _, said, _ = page_of({**rows, "scores": tied}, hold=precision >= 0.8)
    assert f"is at least {found.threshold!r}" in said
    assert found.threshold not in tied


def test_weights_are_told(rows):
    weights = np.random.default_rng(0).choice([1.0, 3.0], 4000)
    found = chosen(rows, hold=precision >= 0.8, weights=weights)
    text = threshold_html(found, **rows, classes=NAMES, weights=weights)
    assert_mentions(words(text), "effective number", "approximate")
    (charts,) = data(text)
    at = charts["chosen"]["at"]
    assert charts["rates"]["precision"]["low"][at] == pytest.approx(
        found["precision"].interval.low, abs=1e-6
    )
    assert charts["acted"][at] == found.act(rows["scores"]).sum()  # counts are rows


def test_a_point_may_act_on_no_row(rows):
    rows = {**rows, "scores": rows["scores"] / 10}
    point = chosen(rows, minimise=Cost(false_positive=500, false_negative=1))
    assert point["coverage"].value == 0
    view = point_view(point, **rows, classes=NAMES)
    charts = chart_data(view)
    assert charts["chosen"]["at"] == len(charts["threshold"])
    assert_mentions(words(threshold_html(point, **rows, classes=NAMES)), "no row", "judge")


def test_the_page_is_written_whole_or_not_at_all(rows, tmp_path):
    found = chosen(rows, hold=precision >= 0.85)
    given = {**rows, "classes": NAMES}
    path = write_threshold_html(found, tmp_path / "p.html", out="p.json", command="decide", **given)
    assert "Saved in p.json" in words(path.read_text(encoding="utf-8"))
    assert path.stat().st_size < 8 * 2**20
    with pytest.raises(InputError, match="--html"):
        write_threshold_html(found, tmp_path / "no" / "p.html", name="--html", **given)
    assert [p.name for p in tmp_path.iterdir()] == ["p.html"]


def test_notes_about_the_rows_are_shown(rows):
    said = page_of(rows, hold=precision >= 0.85, page={"notes": ["two rows were empty"]})[2]
    assert_mentions(said, "about the rows", "Two rows were empty.")


def test_what_follows_from_acting_on_every_row_has_no_interval(rows):
    found, _, said, (chart,) = page_of(rows, hold=precision >= 0.1, maximise=coverage)
    assert found["recall"].value == 1
    assert_mentions(said, "every row")
    assert_mentions(said, "Recall, measured 100.0 %", "by definition")
    assert " to 100.0 %" not in said
    assert said.count(" % by definition") == 5  # the table has all that are settled
    assert set(chart["chosen"]["settled"]) == {"recall", "coverage"}
    *_, (other,) = page_of(rows, hold=precision >= 0.85)
    assert other["chosen"]["settled"] == []
