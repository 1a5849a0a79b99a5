"""The Thresholds page: what it shows of bundles of every kind, and what is typed wrongly."""

import json
import re

import numpy as np
import pytest
from tests.unit.serving.bundles import table_bundle
from tests.unit.serving.console.thresholds_bundles import KINDS, bundle, calib_rows, certified
from tests.unit.serving.console.thresholds_visits import HOME, Visit, text_of

from calibrant.bundle import pack
from calibrant.thresholds import coverage, precision, select


@pytest.fixture
def visit(serving, tmp_path):
    """Visit the page of a bundle of a kind."""

    def begin(kind="points", **options):
        return Visit(serving(bundle(tmp_path / "returns", kind, **options).path))

    return begin


def charts_of(page):
    match = re.search(r'id="charts">(.*?)</script>', page.text, re.DOTALL)
    return json.loads(match[1], parse_constant=lambda word: pytest.fail(word))


def h1s(page):
    return len(re.findall("<h1", page.text))


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_bundle_has_its_page_for_every_threshold(visit, kind):
    there = visit(kind)
    codes = re.findall(r'<option value="([0-9]+c?|any)"', there.look().text)
    assert len(codes) >= 2
    for code in codes:
        page = there.look(rule=code)
        assert page.status_code == 200
        assert h1s(page) == 1
        assert len(charts_of(page)[0]["threshold"]) > 10
        assert f'value="{code}" selected' in page.text


def test_the_marked_threshold_is_the_one_that_decides(visit):
    there = visit("alternatives")
    page = there.look(rule="0")
    decides, other = (each.result for each in there.service.slot.current.bundle.points)
    assert charts_of(page)[0]["chosen"]["threshold"] == decides.threshold != other.threshold
    assert charts_of(page)[0]["chosen"]["kind"] == "promise"
    assert "an alternative: it decides only if a request names it (point 1)" in text_of(page)


def test_a_class_without_a_threshold_says_so_and_marks_nothing(visit):
    page = visit("one point").look(rule="1")
    assert "Current threshold for class “parts”: None" in text_of(page)
    assert charts_of(page)[0]["chosen"] is None


def test_both_ends_of_a_band_can_be_selected(visit):
    there = visit("band")
    band = there.service.slot.current.bundle.points[0].result
    for code, end in (("1", band.upper), ("1c", band.lower)):
        (data,) = charts_of(there.look(rule=code))
        assert data["chosen"]["threshold"] == end.threshold
        assert data["clears"] == (code == "1c")


def test_points_on_calibrated_scores_are_drawn_on_those(visit):
    there = visit("calibrated")
    page = there.look()
    assert "its decision score, the calibrated probability of class" in text_of(page)
    assert 'name="on" value="calibrated"' in page.text
    bundle = there.service.slot.current.bundle
    acts = bundle.decide(logits=bundle.calib.logits).acts[:, 0].sum()
    (data,) = charts_of(page)
    assert data["acted"][data["chosen"]["at"]] == acts


def test_rows_out_of_scope_are_never_counted_as_acted_on(visit):
    there = visit("out of scope", rows=calib_rows(outside=0.1))
    (data,) = charts_of(there.look())
    bundle = there.service.slot.current.bundle
    decisions = bundle.decide(logits=bundle.calib.logits)
    assert data["acted"][data["chosen"]["at"]] == (decisions.decision == "act").sum()
    assert data["acted"][0] == (~decisions.out_of_scope).sum() < data["n"]


def test_weighted_rows_are_noted(visit):
    page = visit("one point", rows=calib_rows(3000, weights=True)).look()
    assert page.status_code == 200
    assert "Rows are weighted" in text_of(page)


def test_many_classes_have_a_page(serving, tmp_path):
    names = tuple(f"class {i}" for i in range(150))
    rows = calib_rows(600, names)
    there = Visit(serving(pack(tmp_path / "b", classes=names, calib=rows, points=[]).path))
    page = there.look(rule="149")
    assert page.status_code == 200
    assert page.text.count("<option value=") >= 151  # and any class, for there is no point


HOSTILE = ('<img src=x onerror="alert(1)">', "</script><script>alert(2)</script>", "'{{7*7}}\u202e")


def test_names_that_are_markup_are_shown_as_text(serving, tmp_path):
    rows = calib_rows(names=HOSTILE)
    points = [certified(rows, HOSTILE[0], names=HOSTILE)]
    there = Visit(serving(pack(tmp_path / "b", points=points, classes=HOSTILE, calib=rows).path))
    there.look(rule="0")
    there.try_target("precision>=0.75")
    page = there.save(reason=HOSTILE[1])
    for code in ("0", "1", "2"):
        page = there.look(rule=code)
        assert page.status_code == 200
        assert "<img" not in page.text
        assert "<script>alert" not in page.text
        assert "onerror=&#34;alert(1)&#34;" in page.text
        assert "{{7*7}}" in page.text
        charts_of(page)


def test_without_calibrate_rows_points_and_versions_are_shown_with_a_remedy(visit):
    there = visit("points", calib=False)
    page = there.look()
    words = text_of(page)
    assert page.status_code == 200
    assert "calibrant pack --calib" in words
    assert "All 2 promises hold jointly with 95 % confidence." in words
    assert "current" in words
    assert 'id="charts"' not in page.text
    there.page = there.client.get("/console/try")  # which has a form
    sent = there.send("target", hold="precision>=0.8", rule="0", rows="x")
    assert sent.status_code == 409
    sent = there.send("save", rule="0", threshold="0.5", base=there.hash)
    assert sent.status_code == 409
    assert "calibrant pack --calib" in text_of(sent)
    assert there.events() == []


def test_if_all_rows_are_out_of_scope_there_is_no_curve(serving, tmp_path):
    from calibrant.ood import OodRule

    packed = pack(
        tmp_path / "b", classes=("a", "b"), calib=calib_rows(50, ("a", "b")), points=[],
        ood=OodRule("max_logit", -1000.0, 0.95, 100),
    )  # fmt: skip
    page = Visit(serving(packed.path)).look()
    assert page.status_code == 200
    assert "flags every calibrate row" in text_of(page)


def test_a_bundle_with_a_model_has_a_page(serving, tmp_path):
    page = Visit(serving(table_bundle(tmp_path / "tables").path)).look()
    assert page.status_code == 200
    assert "no calibrate rows" in text_of(page)


def test_costs_are_shown_beside_every_threshold(visit):
    there = visit("one point")
    page = there.look(rule="0", fp="1", fn="4")
    (data,) = charts_of(page)
    place = data["chosen"]["at"]
    wrong = data["acted"][place] - data["hits"][place]
    missed = data["positives"] - data["hits"][place]
    assert data["cost"][place] == pytest.approx((wrong + 4 * missed) / data["n"], rel=1e-4)
    assert f"costs {data['cost'][place]:.4f} per row" in text_of(page)
    assert "has the lowest cost" in text_of(page)
    assert there.field("fp") == "1"


@pytest.mark.parametrize(
    ("costs", "words"),
    [
        ({"fp": "1"}, "Enter both costs"),
        ({"fp": "-1", "fn": "2"}, "numbers above 0"),
        ({"fp": "0", "fn": "2"}, "must be greater than 0"),
        ({"fp": "much", "fn": "2"}, "numbers above 0"),
        ({"fp": "nan", "fn": "1e400"}, "numbers above 0"),
    ],
)
def test_invalid_costs_are_reported_at_the_field(visit, costs, words):
    page = visit("one point").look(rule="0", **costs)
    assert page.status_code == 422
    assert words in text_of(page)


@pytest.mark.parametrize("code", ["7", "-1", "0c", "any", "x" * 500, "<script>"])
def test_a_threshold_that_is_not_there_is_not_found(visit, code):
    page = visit("one point").look(rule=code)
    assert page.status_code == (422 if len(code) > 200 else 404)
    assert "<script>" not in page.text


WRONG = {
    "precision>=2": "strictly between 0 and 1",
    "foo>=0.5": "There is no rate 'foo'",
    "": "Enter a target",
    "   ": "Enter a target",
    "x" * 10_000: "too many",
    "parts: precision>=0.8": "for 'parts', but the page shows class 'defect'",
    "accuracy>=0.9": "predictions of any class",
    "precision>=0.9 and precision>=0.8": "are the same condition",
    "precision>=0.8 and": "is not a target",
    '"><script>alert(1)</script>': "is not a target",
    "\x00precision>=0.8": "control characters",
}


@pytest.mark.parametrize("hold", WRONG)
def test_an_invalid_target_is_reported_at_the_field_and_not_recorded(visit, hold):
    there = visit("one point")
    page = there.send("target", hold=hold, rule="0", fp="1", fn="4")
    assert page.status_code == 422
    assert WRONG[hold] in text_of(page)
    assert 'aria-invalid="true"' in page.text
    assert "<script>alert" not in page.text
    assert there.events() == []
    if len(hold) < 100 and hold.strip():
        there.page = page
        assert there.field("hold").replace("\x00", "") == hold.replace("\x00", "")


def test_a_target_for_replaced_rows_is_refused(visit):
    there = visit("one point")
    sent = there.send("target", hold="precision>=0.8", rule="0", rows="0" * 64)
    assert sent.status_code == 409
    assert "reload it" in text_of(sent)
    assert there.events() == []


@pytest.mark.parametrize(("id", "status"), [("nope", 404), ("x" * 3000, 404), ("\x00", 404)])
def test_an_unknown_target_is_not_found(visit, id, status):
    assert visit("one point").look(tried=id).status_code == status


def test_an_event_of_another_kind_is_not_a_target(visit):
    there = visit("one point")
    other = there.service.store.events.add("point_saved", key=None, subject="x", details={})
    assert there.look(tried=other.id).status_code == 404


def test_a_target_of_other_rows_is_refused(visit, tmp_path):
    there = visit("one point")
    there.try_target("precision>=0.8")
    (event,) = there.events("target_tried")
    rows = calib_rows(seed=5)
    bundle(tmp_path / "newer", "one point", rows=rows).path.rename(tmp_path / "draft")
    there.folder.rename(tmp_path / "old")
    (tmp_path / "draft").rename(there.folder)
    there.service.reload()
    page = there.look(tried=event.id)
    assert page.status_code == 409
    assert "other calibrate rows" in text_of(page)
    assert there.send("save", tried=event.id, base=there.hash).status_code == 403  # a problem page
    there.look()
    assert there.send("save", tried=event.id).status_code == 409
    assert [each.kind for each in there.events()] == ["target_tried"]


def test_a_removed_bundle_is_reported_and_the_page_still_works(visit, tmp_path):
    there = visit("points")
    assert there.look().status_code == 200
    there.folder.rename(tmp_path / "away")
    page = there.look()
    assert page.status_code == 200
    assert "no longer contains a bundle" in text_of(page)
    sent = there.send("save", rule="0", threshold="0.5")
    assert sent.status_code == 503
    assert "does not exist" in text_of(sent)
    assert there.events() == []
    (tmp_path / "away").rename(there.folder)


def test_unreadable_rows_are_reported(visit):
    there = visit("points")
    (there.folder / "calib.npz").unlink()
    page = there.look()
    assert page.status_code == 200
    assert "The calibrate rows cannot be read" in text_of(page)


def test_a_version_saved_by_another_process_is_loaded(visit):
    there = visit("one point")
    there.look()
    (entry,) = there.service.slot.current.bundle.points
    from calibrant.bundle.versions.versions import Versions

    hash = Versions(there.folder).save_points(
        [entry, entry], base=there.hash, change={}, begin=lambda _: None
    )
    assert there.service.slot.current.hash != hash
    there.look(done="saved", version=hash[:12])
    assert there.service.slot.current.hash == hash


def test_pages_need_a_key_where_the_service_does(guarded):
    sent = guarded.get(HOME, follow_redirects=False)
    assert sent.status_code == 303
    assert sent.headers["location"].startswith("/console/login?next=")


def test_a_point_that_acts_on_every_row_has_no_interval_for_settled_rates(serving, tmp_path):
    rows = calib_rows()
    names = ("defect", "parts", "other")
    point = select(
        np.array(names)[rows.codes], logits=rows.logits, classes=names, positive="defect",
        hold=precision >= 0.2, maximise=coverage,
    )  # fmt: skip
    assert point.threshold == 0
    packed = pack(tmp_path / "all", points=[point], calib=rows, classes=names)
    there = Visit(serving(packed.path))
    words = text_of(there.look())
    assert "Act on every row" in words
    assert "Recall, measured 100.0 % By definition" in words
    assert charts_of(there.page)[0]["chosen"]["settled"] == ["recall", "coverage"]
    tried = text_of(there.try_target("precision>=0.7"))
    compared = tried.partition("Compared with the current threshold")[2].partition(
        "Confidence This is target"
    )[0]
    assert "Recall 100.0 % by definition" in compared
    model = text_of(there.client.get("/console/model"))
    assert "by definition" in model
    assert " to 100.0 %" not in words + compared + model
