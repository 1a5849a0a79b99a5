"""The Overview page, as a visitor gets it from a real service."""

import json
import re
from datetime import UTC, datetime, timedelta
from html import unescape

import numpy as np
import pytest
from tests.databases import a_prediction
from tests.sentences import assert_mentions
from tests.unit.bundle.parts import CLASSES, point, rows, temperature
from tests.unit.serving.bundles import logits_bundle
from tests.unit.serving.console.conftest import log_in

from calibrant.bundle import BundlePoint, pack
from calibrant.bundle.calib_rows import FILE, CalibRows
from calibrant.ood import OodRule
from calibrant.serving.console.pages.overview.point_audit import PointAudit
from calibrant.serving.console.pages.overview.traffic import Window
from calibrant.serving.console.pages.overview.view import WindowCounts, build_overview
from calibrant.store import (
    ActedCount,
    AuditedCount,
    HourCount,
    Label,
    LoggedRequest,
    new_id,
)
from calibrant.thresholds.rates import accuracy

KINDS = (
    "points", "no points", "no calibrator", "two classes", "out of scope",
    "out of scope, no points",
)  # fmt: skip
CHARTS = re.compile(r'<script type="application/json" id="charts">(.*?)</script>', re.DOTALL)


def text_of(page):
    """Return what a page says, without its tags."""
    body = re.sub(r"<script.*?</script>", " ", page.text, flags=re.DOTALL)
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", body)).split())


def charts_of(page):
    """Return what the page's script draws; JSON knows no NaN, but Python would read it."""

    def refuse(name):
        raise AssertionError(name)

    return json.loads(CHARTS.search(page.text)[1], parse_constant=refuse)


def open_page(client, address="/console"):
    """Return a page that is there, whole and safe."""
    page = client.get(address)
    assert page.status_code == 200, page.text
    assert page.text.count("<h1>") == 1
    charts_of(page)
    return page


def sent(client, *logits, **body):
    """Have rows decided; return their predictions."""
    inputs = [{"logits": list(row)} for row in logits]
    answer = client.post("/v1/predict", json={"inputs": inputs, **body})
    assert answer.status_code == 200, answer.text
    return answer.json()["predictions"]


def labelled(client, predictions, label):
    """Tell what predictions truly were."""
    payload = [{"prediction": each["id"], "label": label} for each in predictions]
    for start in range(0, len(payload), 1000):
        answer = client.post("/v1/outcomes", json={"outcomes": payload[start : start + 1000]})
        assert answer.status_code == 200, answer.text


def calibrated(folder, *, ood=True, seed=0):
    """Pack a bundle with calibrate rows."""
    calib = CalibRows(rows(2_000, 3, seed), np.zeros(2_000, dtype=int))
    rule = OodRule("max_logit", -1.0, 0.95, 100) if ood else None
    points = [BundlePoint(point("defect", 0.75), "calibrated")]
    return pack(folder, calibrator=temperature(2.0), points=points, ood=rule, calib=calib)


@pytest.mark.parametrize("kind", KINDS)
def test_before_the_first_prediction_the_page_says_how_to_send_one(kind, serving, tmp_path):
    client = serving(logits_bundle(tmp_path / "b", kind).path)
    page = open_page(client)
    text = text_of(page)
    assert "No predictions yet." in text
    assert "curl http://127.0.0.1/v1/predict" in text
    assert "calibrant predict http://127.0.0.1 FILE" in text
    assert "Precision of decisions to act" not in text
    assert charts_of(page)["scores"] is None
    assert "plotly" not in page.text


@pytest.mark.parametrize("kind", KINDS)
def test_one_prediction_fills_the_page(kind, serving, tmp_path):
    bundle = logits_bundle(tmp_path / "b", kind)
    client = serving(bundle.path)
    sent(client, [9.0] + [0.0] * (len(bundle.classes) - 1))
    page = open_page(client)
    text = text_of(page)
    assert "1 prediction in the last minute." in text
    assert "In the last 24 hours, by this version: 1 prediction," in text
    assert "Out-of-scope rows" in text
    charts = charts_of(page)
    assert sum(sum(each["counts"]) for each in charts["traffic"]["decisions"]) == 1
    assert sum(charts["scores"]["now"]) == 1


def test_promises_are_shown_in_words(serving, logits_folder):
    text = text_of(open_page(serving(logits_folder)))
    assert "2 promises." in text
    assert "Precision is at least 85 % for class 'parts', with 95 % confidence." in text
    assert "Not audited yet" in text
    assert "decides only if a request names it Point 2: " in text


def test_a_bundle_without_points_promises_and_decides_nothing(serving, tmp_path):
    client = serving(logits_bundle(tmp_path / "b", "no points").path)
    sent(client, [3.0, 0.0, 0.0], [0.0, 1.0, 0.0])
    text = text_of(open_page(client))
    assert_mentions(text, "makes no decisions", "no operating point")
    assert "2 predictions, all without a decision." in text
    assert_mentions(text, "No decisions to act", "no operating point")


def test_out_of_scope_rows_that_nothing_decides_on_are_not_counted(serving, tmp_path):
    client = serving(logits_bundle(tmp_path / "b", "out of scope, no points").path)
    sent(client, [0.0, 0.0, 0.0])
    assert_mentions(text_of(open_page(client)), "Not counted", "bundle has an out-of-scope rule")


def test_expected_precision_is_that_of_the_predictions(serving, logits_folder):
    client = serving(logits_folder)
    predictions = sent(client, [9.0, 0.0, 0.0], [6.0, 0.0, 0.0], [0.0, 0.0, 0.0])
    acted = [each for each in predictions if each["decision"] == "act"]
    mean = sum(each["probabilities"]["defect"] for each in acted) / len(acted)
    assert 0 < len(acted) < 3
    text = text_of(open_page(client))
    assert f"Expected precision {100 * mean:.1f} % Expected, if calibration still holds" in text
    assert "Audited precision – No labels yet." in text


def test_without_a_calibrator_expected_precision_rests_on_the_model(serving, tmp_path):
    client = serving(logits_bundle(tmp_path / "b", "no calibrator").path)
    sent(client, [9.0, 0.0, 0.0])
    text = text_of(open_page(client))
    assert "if the model's own probabilities hold" in text
    assert "calibration still holds" not in text


@pytest.mark.parametrize(
    ("right", "badge", "state"),
    [(200, "Kept", "good"), (172, "Undecided", "unknown"), (100, "Not kept", "bad")],
)
def test_labels_show_whether_the_promise_is_kept(right, badge, state, serving, tmp_path):
    client = serving(calibrated(tmp_path / "b").path)
    predictions = sent(client, *([[9.0, 0.0, 0.0]] * 200))
    assert "however often the page is loaded" not in text_of(
        open_page(client)
    )  # there is no verdict yet
    labelled(client, predictions[:right], "defect")
    labelled(client, predictions[right:], "other")
    page = open_page(client)
    text = text_of(page)
    assert f"{badge} Right on {right} of 200 labelled rows that it would act on, since 20" in text
    assert f"{right} of 200 labelled decisions right; 95 % interval" in text
    assert f'<section class="verdict {state}"' in page.text
    assert "drawn at random" in text
    assert "The verdict holds with 95 % confidence however often the page is loaded" in text


def test_the_latest_label_counts(serving, tmp_path):
    client = serving(calibrated(tmp_path / "b").path)
    predictions = sent(client, *([[9.0, 0.0, 0.0]] * 3))
    labelled(client, predictions, "other")
    labelled(client, predictions, "defect")
    assert "3 of 3 labelled decisions right" in text_of(open_page(client))


def test_scores_and_scope_are_compared_with_the_calibrate_rows(serving, tmp_path):
    client = serving(calibrated(tmp_path / "b").path)
    sent(client, *rows(300, 3, seed=5).tolist())
    page = open_page(client)
    text = text_of(page)
    assert "To match the distribution of the 2,000 calibrate rows," in text
    assert_mentions(text, "no more than chance")
    assert "of the calibrate rows it was" in text
    charts = charts_of(page)
    assert sum(charts["scores"]["then"]) == pytest.approx(1)


def test_other_rows_than_the_calibrate_rows_are_noticed(serving, tmp_path):
    client = serving(calibrated(tmp_path / "b").path)
    sent(client, *([[0.1, 0.0, 0.0]] * 300))
    text = text_of(open_page(client))
    assert "more than chance explains" in text
    assert_mentions(text, "inputs differ", "calibrate rows")
    assert "1 of 20 checks" in text
    assert "100.0 % of the predictions are out of scope" in text


def test_damaged_calibrate_rows_are_reported_on_the_page(serving, tmp_path):
    client = serving(calibrated(tmp_path / "b").path)
    sent(client, [9.0, 0.0, 0.0])
    (tmp_path / "b" / FILE).write_bytes(b"not what it was")
    assert "The calibrate rows cannot be read" in text_of(open_page(client))


def test_a_bundle_without_calibrate_rows_says_how_to_get_them(serving, logits_folder):
    client = serving(logits_folder)
    sent(client, [9.0, 0.0, 0.0])
    assert_mentions(text_of(open_page(client)), "pack it", "calibrant pack --calib")


def put(client, *, at, bundle=None, **changes):
    """Write a prediction of another time, or of another bundle."""
    store, now = client.service.store, client.service.slot.current.hash
    if bundle is not None:
        store.bundles.record(hash=bundle, name="old", classes=CLASSES, manifest={}, at=at)
    usual = {"label": "defect", "acted_as": "defect", "probs": [0.9, 0.05, 0.05], "score": 0.9}
    prediction = a_prediction(new_id(), at=at, bundle=bundle or now, **{**usual, **changes})
    store.predictions.add([LoggedRequest(prediction.request, "asked", (prediction,))])
    return prediction


def test_windows_reach_further_back(serving, logits_folder):
    client = serving(logits_folder)
    now = datetime.now(UTC)
    for days in (0, 3, 20, 40):
        put(client, at=now - timedelta(days=days))
    for window, n in (("24h", 1), ("7d", 2), ("30d", 3)):
        text = text_of(open_page(client, f"/console?window={window}"))
        assert f"{n} prediction" in text.partition("by this version: ")[2][:20], window
    assert "Decisions per day" in text_of(open_page(client, "/console?window=30d"))


def test_hours_without_predictions_say_when_the_last_one_was(serving, logits_folder):
    client = serving(logits_folder)
    put(client, at=datetime.now(UTC) - timedelta(days=3))
    page = open_page(client)
    assert "No predictions by this version in the last 24 hours." in text_of(page)
    assert "Last one: 3 days ago." in text_of(page)
    assert "curl" not in page.text


def test_other_versions_are_counted_on_request_only(serving, tmp_path):
    client = serving(calibrated(tmp_path / "b").path)
    old = put(client, at=datetime.now(UTC), bundle="0" * 64)
    client.service.store.outcomes.add(
        [], [Label(new_id(), datetime.now(UTC), old.id, "other", "agent", None)]
    )
    assert "No predictions by this version" in text_of(open_page(client))
    text = text_of(open_page(client, "/console?bundle=all"))
    assert "In the last 24 hours: 1 prediction, acted on." in text
    assert "0 of 1 labelled decisions right" in text
    assert_mentions(text, "not checked against", "decisions of other versions")
    assert "Not kept" not in text
    assert "select it to compare" in text


@pytest.mark.parametrize("query", ["window=1y", "bundle=old", "window=24h&window=7d"])
def test_an_invalid_query_is_refused(query, serving, logits_folder):
    page = serving(logits_folder).get(f"/console?{query}")
    assert page.status_code in (400, 422)
    assert page.headers["content-type"].startswith("text/html")


def test_many_classes_and_a_point_for_any_of_them(serving, tmp_path):
    classes = tuple(f"class {k}" for k in range(150))
    any_point = point(None, 0.5, classes=classes, hold=(accuracy >= 0.8,))
    calib = CalibRows(rows(500, 150), np.zeros(500, dtype=int))
    pack(
        tmp_path / "b", calibrator=temperature(2.0, classes), calib=calib,
        points=[BundlePoint(any_point, "calibrated")],
    )  # fmt: skip
    client = serving(tmp_path / "b")
    predictions = sent(client, *(20 * np.eye(150)).tolist())
    labelled(client, predictions[:1], "class 0")
    labelled(client, predictions[1:2], "class 0")
    text = text_of(open_page(client))
    assert "It has 150 classes." in text
    assert "150 predictions, all acted on." in text
    assert "1 of 2 labelled decisions right" in text
    assert "class 149" in text


def test_promises_of_many_classes_are_counted(tmp_path):
    classes = tuple(f"class {k}" for k in range(150))
    points = [BundlePoint(point(of, 0.75, classes=classes), "calibrated") for of in classes]
    bundle = pack(tmp_path / "b", calibrator=temperature(2.0, classes), points=points)
    now = datetime(2026, 3, 2, 10, 45, tzinfo=UTC)
    hour = now.replace(minute=0)
    audited = [AuditedCount("class 3", 500, 300), AuditedCount("class 4", 500, 499)]
    points = {(3, 0): PointAudit(500, 300, 450.0), (4, 0): PointAudit(500, 499, 450.0)}
    counts = WindowCounts(
        [HourCount(hour, "act", 1_000_000)],
        [ActedCount(of, 6_666, 6_000.0) for of in classes],
        [0] * 19 + [1_000_000],
        audited,
        points,
    )
    result = build_overview(counts, bundle, Window.from_name("24h", now), None)
    assert result.headline == "150 promises: 1 kept, 1 not kept, 148 undecided."
    assert result.state == "bad"
    assert result.badge == "A promise is not kept"
    assert "'class 3'" in result.deciding[0].sentence
    assert not result.overlaps


def test_one_promise_is_the_headline(tmp_path):
    bundle = calibrated(tmp_path / "b")
    window = Window.from_name("24h", datetime(2026, 3, 2, 10, 45, tzinfo=UTC))
    result = build_overview(WindowCounts([], [], [0] * 20, []), bundle, window, None)
    assert_mentions(
        result.headline, "Precision is at least 85 %", "class 'defect'", "95 % confidence"
    )
    assert (result.state, result.badge) == ("unknown", "Not audited yet")
    assert result.charts()["scores"] is None
    assert result.scope is None


def test_names_of_classes_are_shown_as_text(serving, tmp_path):
    classes = ("<script>alert(1)</script>", "{{ 7 * 7 }}", "'\"&")
    points = [BundlePoint(point(of, 0.6, classes=classes), "calibrated") for of in classes]
    pack(tmp_path / "b", calibrator=temperature(2.0, classes), points=points)
    client = serving(tmp_path / "b")
    sent(client, *(20 * np.eye(3)).tolist())
    page = open_page(client)
    assert "<script>alert" not in page.text
    assert classes[0] in text_of(page).replace("​", "")
    assert "49" not in text_of(page).partition("By class")[2][:200]


def test_live_traffic_is_sent_to_the_script(serving, logits_folder):
    client = serving(logits_folder)
    empty = client.get("/console/live").json()
    assert (empty["minute"], empty["latest"], empty["total"]) == (0, None, 0)
    sent(client, [9.0, 0.0, 0.0], [0.0, 0.0, 0.0])
    result = client.get("/console/live")
    assert result.headers["content-type"] == "application/json"
    payload = result.json()
    assert (payload["minute"], payload["total"]) == (2, 2)
    assert payload["sentence"].startswith("2 predictions in the last minute.")
    assert payload["bundle"] == client.service.slot.current.hash
    assert f'data-bundle="{payload["bundle"]}"' in open_page(client).text


@pytest.mark.parametrize("address", ["/console", "/console/live"])
def test_a_visitor_must_log_in_first(address, guarded):
    answer = guarded.get(address, follow_redirects=False)
    assert answer.status_code == 303
    assert answer.headers["location"].startswith("/console/login?next=")


@pytest.mark.parametrize("role", ["predict", "label", "admin"])
def test_any_key_may_see_the_page(role, guarded):
    log_in(guarded, guarded.tokens[role])
    text = text_of(open_page(guarded))
    assert "Authorization: Bearer KEY" in text
    assert guarded.get("/console/live").json()["total"] == 0


def test_an_unreachable_store_is_reported(serving, logits_folder, monkeypatch):
    from calibrant.errors import StoreUnavailable

    client = serving(logits_folder)

    def away(*_, **__):
        raise StoreUnavailable("the database is away.")

    monkeypatch.setattr(client.service.store.tallies, "hours", away)
    page = client.get("/console")
    assert page.status_code == 503
    assert page.headers["content-type"].startswith("text/html")


def test_a_half_audited_promise_is_not_called_kept(serving, tmp_path):
    client = serving(logits_bundle(tmp_path / "b", "two classes").path)
    labelled(client, sent(client, *([[0.0, 9.0]] * 100)), "yes")
    page = open_page(client)
    assert "Kept: precision is at least 85 % Right on 100 of 100 labelled rows" in text_of(page)
    assert "Whether negative predictive value is at least 95 % cannot be estimated" in text_of(page)
    assert '<section class="verdict unknown"' in page.text
