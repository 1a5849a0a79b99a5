"""The Model page: what a bundle carries, in the words of the report."""

import html
import re
import shutil

import pytest
from tests.sentences import assert_mentions
from tests.unit.bundle.parts import point, temperature
from tests.unit.serving.bundles import logits_bundle
from tests.unit.serving.console.conftest import log_in
from tests.unit.serving.console.study_bundle import (
    CANDIDATES,
    FIGURES,
    REPORT,
    check,
    study_bundle,
)

from calibrant.bundle import BundlePoint, load_bundle, pack
from calibrant.bundle.versions.versions import Versions
from calibrant.formatting import floor_words, interval_words, number
from calibrant.metrics.catalogue import CATALOGUE, title_of
from calibrant.results import Floor, Interval

SANDBOX = (
    "sandbox allow-scripts; default-src 'none'; script-src 'unsafe-inline'; "
    "style-src 'unsafe-inline'; img-src data:"
)
MODEL = "/console/model"
HOSTILE = "</title><script>alert(1)</script><img src=x onerror=alert(1)>"


@pytest.fixture
def studied(tmp_path, serving):
    client = serving(study_bundle(tmp_path / "returns").path)
    client.folder = tmp_path / "returns"
    return client


def text_of(page):
    """Return what a reader sees."""
    main = page.text[page.text.index("<main") :].replace("<wbr>", "")
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", main)).split())


def test_figures_have_the_words_of_the_report(studied):
    page = studied.get("/console/model")
    assert page.status_code == 200
    seen = text_of(page)
    for name, figure in FIGURES.items():
        assert f"{title_of(name)} {number(figure['value'])}" in seen
        assert interval_words(Interval(figure["low"], figure["high"])) in seen
    floor = Floor(**FIGURES["ece_ew"]["floor"])
    assert floor_words(floor) in seen
    assert_mentions(seen, "no more than chance")
    assert "on 2,905 golden test rows, which were not used for any choice" in seen
    assert "Calibration error (ECE) 0.0292" in seen


def test_the_promise_and_what_the_test_rows_said(studied):
    seen = text_of(studied.get("/console/model"))
    assert "Class “defect”: precision is at least 85 %" in seen
    assert "when its decision score, the calibrated P(defect), is at least 0.75." in seen
    assert (
        "Kept On the 3,000 golden test rows, which were not used for any choice: Precision "
        "is at least 85 % (88.0 % on 90 rows)." in seen
    )
    assert "Cannot be promised parts: recall>=0.99: Too few rows." in seen


def test_a_check_of_another_threshold_is_not_shown_for_this_one(tmp_path, serving):
    judged = {"class": "defect", "threshold": 0.9, "reached": True, "check": check("broken")}
    folder = study_bundle(tmp_path / "returns", metrics={"points": [judged]}).path
    seen = text_of(serving(folder).get("/console/model"))
    assert "Broken" not in seen
    assert_mentions(seen, "no check", "point on test rows")


@pytest.mark.parametrize(
    ("miscalibrated", "badge"),
    [
        (True, "Miscalibration found"),
        (False, "No miscalibration found"),
        (None, "Too little data to judge"),
    ],
)
def test_the_verdict_on_calibration_is_that_of_the_report(tmp_path, serving, miscalibrated, badge):
    verdict = {"text": "over-confident (n=20)", "miscalibrated": miscalibrated}
    metrics = {"test": FIGURES, "n": 20, "verdict": verdict}
    seen = text_of(
        serving(study_bundle(tmp_path / "b", metrics=metrics).path).get("/console/model")
    )
    assert f"{badge} Over-confident (n=20)." in seen
    assert "on 20 held-out test rows" in seen


def test_candidates_are_compared_and_the_chosen_one_is_marked(studied):
    page = studied.get("/console/model")
    seen = text_of(page)
    assert "It has the smallest log loss." in seen
    assert "Focal, gamma 3 (seed 1) chosen 0.7012 0.798 7" in seen
    assert "Cross-entropy 0.7123 0.781 240,901" in seen
    assert "AdaFocal Could not be trained: The loss became NaN in epoch 2." in seen
    assert page.text.count('<tr class="chosen">') == 1


def test_the_rows_that_chose_are_named_also_of_bundles_before_choice_rows(tmp_path, serving):
    def seen(name, splits, entries=CANDIDATES):
        metrics = {"candidates": entries, "splits": splits}
        return text_of(serving(study_bundle(tmp_path / name, metrics=metrics).path).get(MODEL))

    now = seen("now", {"train": 80, "steer": 5, "choice": 5})
    assert "Candidate Choice log loss decides Accuracy" in now
    assert_mentions(now, "was chosen by", "Nobody was trained or steered by these rows.")
    before = seen("before", {"train": 80, "steer": 10})
    assert "Candidate Steer log loss decides Accuracy" in before
    assert "These rows also steered the training" in before
    one = seen("one", {"train": 80, "steer": 10}, CANDIDATES[1:2])
    assert "Candidate Steer log loss Accuracy" in one
    assert "one candidate leaves nothing to choose" in one


def test_provenance_and_files_with_their_hashes(studied):
    seen = text_of(studied.get("/console/model"))
    bundle = studied.service.slot.current.bundle
    source = bundle.provenance["sources"][0]
    assert f"{source['name']} data {source['sha256']}" in seen
    assert "train 12,799 the logs the models learn from them" in seen
    assert "training.epochs 5" in seen
    assert f"numpy {bundle.provenance['packages']['numpy']}" in seen
    for name, digest in bundle.manifest["files"].items():
        assert name in seen
        assert digest in seen
    assert bundle.manifest["sha256"] in seen
    assert re.search(r"packed \d+ \w{3} \d{4}, \d\d:\d\d:\d\d UTC", seen)


def test_the_card_is_shown_below_one_heading_of_the_page(studied):
    page = studied.get("/console/model")
    assert len(re.findall("<h1", page.text)) == 1
    assert "<h3>What it does not promise</h3>" in page.text


def test_a_changed_card_is_reported_and_not_shown(studied):
    (studied.folder / "card.md").write_text("# Another card\n\nTrust me.")
    page = studied.get("/console/model")
    assert page.status_code == 200
    assert "Trust me" not in page.text
    assert_mentions(page.text, "Card.md", "folder is not the file")


def test_the_report_is_sandboxed(studied):
    page = studied.get("/console/model/report")
    assert page.status_code == 200
    assert page.text == REPORT
    assert page.headers["content-security-policy"] == SANDBOX
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert "content-disposition" not in page.headers
    assert 'href="/console/model/report" target="_blank"' in studied.get("/console/model").text


def test_the_report_can_be_downloaded(studied):
    page = studied.get("/console/model/report?download=1")
    name = f'attachment; filename="report-{studied.service.slot.current.id}.html"'
    assert page.headers["content-disposition"] == name
    assert page.headers["content-security-policy"] == SANDBOX
    assert studied.get("/console/model/report?download=2").status_code == 422


def test_a_report_that_was_changed_is_refused(studied):
    (studied.folder / "report.html").write_text(HOSTILE)
    page = studied.get("/console/model/report")
    assert page.status_code == 409
    assert HOSTILE not in page.text
    assert "is not the file that bundle" in page.text
    assert page.headers["content-security-policy"] != SANDBOX


def test_a_report_that_is_gone(studied):
    (studied.folder / "report.html").unlink()
    page = studied.get("/console/model/report")
    assert page.status_code == 404
    assert "is no longer in the folder" in page.text


def test_a_folder_that_is_gone(studied):
    shutil.rmtree(studied.folder)
    assert studied.get("/console/model/report").status_code == 404
    page = studied.get("/console/model")
    assert page.status_code == 200
    assert_mentions(page.text.lower(), "card.md", "no longer in the folder")


def test_a_report_that_is_not_a_file(studied):
    (studied.folder / "report.html").unlink()
    (studied.folder / "report.html").mkdir()
    assert studied.get("/console/model/report").status_code == 404


def test_a_bundle_without_a_report(serving, logits_folder):
    client = serving(logits_folder)
    page = client.get("/console/model/report")
    assert page.status_code == 404
    assert "packed without report.html" in page.text
    shown = client.get("/console/model").text
    assert "packed without a report" in shown
    assert "/console/model/report" not in shown


@pytest.mark.parametrize("kind", ["points", "no points", "no calibrator", "two classes",
                                  "out of scope", "out of scope, no points"])  # fmt: skip
def test_bundles_that_were_packed_by_hand(tmp_path, serving, kind):
    page = serving(logits_bundle(tmp_path / "b", kind).path).get("/console/model")
    assert page.status_code == 200
    seen = text_of(page)
    assert "packed without test figures" in seen
    assert "no record of its candidates" in seen
    assert ("None: the bundle has no operating point" in seen) == kind.endswith("no points")


def test_both_ends_of_a_band_are_shown(tmp_path, serving):
    seen = text_of(serving(logits_bundle(tmp_path / "b", "two classes").path).get("/console/model"))
    assert "Act on a row when its decision score, P(yes), is at least 0.8." in seen
    assert "Clear a row when its decision score, P(yes), is below 0.2." in seen


def test_bundles_with_a_model(serving, text_folder, table_folder):
    assert_mentions(serving(text_folder).get("/console/model").text, "Reads text", "model bilstm")
    seen = serving(table_folder).get("/console/model").text
    assert_mentions(seen, "Reads table rows", "model mlp")


@pytest.mark.parametrize(
    "metrics",
    [
        {"test": 0.9, "candidates": "none", "points": {"a": 1}, "n": True, "why": 3},
        {"test": {"accuracy": 0.9, "auc": [1], "f": {"value": "x"}}, "candidates": [1, {}]},
        {"test": {"ece_ew": {"value": None, "why": "too few rows"}}, "points": [{"check": 3}]},
        {"candidates": [{"name": HOSTILE, "test": {HOSTILE: 0.5}, "chosen": "yes", "weights": -1}]},
        {"test": FIGURES, "verdict": {"text": 3, "miscalibrated": "no"}},
        {"test": FIGURES, "verdict": {"text": HOSTILE, "miscalibrated": True}},
        {"accuracy": 0.93, "by": {"month": [1, 2]}, HOSTILE: HOSTILE},
        {"test": {"accuracy": {"value": 0.5, "low": "x", "high": None, "floor": {"mean": 1}}}},
    ],
)
def test_metrics_of_any_shape(tmp_path, serving, metrics):
    page = serving(study_bundle(tmp_path / "b", metrics=metrics).path).get("/console/model")
    assert page.status_code == 200
    assert "<script>alert" not in page.text
    assert "<img" not in page.text


def test_custom_figures_are_listed(tmp_path, serving):
    metrics = {"test": {"accuracy": 0.9, "lift": 1.5}, "by": {"month": [1, 2]}}
    seen = text_of(
        serving(study_bundle(tmp_path / "b", metrics=metrics).path).get("/console/model")
    )
    assert f"{CATALOGUE['accuracy'].title} 0.9000" in seen
    assert "lift 1.5000" in seen
    assert "by.month 1, 2" in seen


@pytest.mark.parametrize(
    "provenance",
    [
        {"config": [1], "splits": [2], "changes": "x", "confidence_together": "high"},
        {"changes": [{"at": "yesterday", "reason": HOSTILE}, 3]},
        {"config": {HOSTILE: HOSTILE}, "splits": {HOSTILE: {"source": HOSTILE, "rows": 3}}},
    ],
)
def test_provenance_of_any_shape(tmp_path, serving, provenance):
    page = serving(study_bundle(tmp_path / "b", provenance=provenance).path).get("/console/model")
    assert page.status_code == 200
    assert "<script>alert" not in page.text


def test_points_that_were_changed_since_the_study(tmp_path, serving):
    folder = study_bundle(tmp_path / "b").path
    first, second = point("defect", 0.8), point("defect", 0.9)
    for new, reason in ((first, "too many refunds"), (second, HOSTILE)):
        base = load_bundle(folder, device="cpu").manifest["sha256"]
        change = {"what": f"the threshold became {new.threshold}", "by": "anna", "reason": reason}
        points = [BundlePoint(new, "calibrated")]
        Versions(folder).save_points(points, base=base, change=change, begin=lambda packed: None)
    client = serving(folder)
    page = client.get("/console/model")
    seen = text_of(page)
    assert_mentions(seen, "operating points", "changed since the study")
    assert re.search(r"changed 2 times, last on \d+ \w{3} \d{4}, \d\d:\d\d:\d\d UTC", seen)
    assert "from before the operating points were changed" in seen
    assert_mentions(seen, "point was not checked", "test rows", "chosen after the study")
    changes = seen[seen.index("Changes since the study") :]
    assert ", by anna: The threshold became 0.8. Reason: too many refunds" in changes
    assert changes.index("became 0.9.") < changes.index("became 0.8.")
    assert "<script>alert" not in page.text
    assert client.get("/console/model/report").text == REPORT


def test_names_of_classes_are_escaped(tmp_path, serving):
    classes = (HOSTILE, "a`b", "c")
    packed = pack(
        tmp_path / "b", calibrator=temperature(classes=classes), actions={HOSTILE: HOSTILE},
        points=[BundlePoint(point(HOSTILE, 0.5, classes=classes), "calibrated")],
    )  # fmt: skip
    page = serving(packed.path).get("/console/model")
    assert page.status_code == 200
    assert "<script>alert" not in page.text
    assert "<img" not in page.text


def test_every_key_may_see_the_page_and_strangers_may_not(guarded):
    for path in ("/console/model", "/console/model/report"):
        response = guarded.get(path, follow_redirects=False)
        assert response.status_code == 303
        assert response.headers["location"].startswith("/console/login?next=")
    for role in ("predict", "label", "admin"):
        log_in(guarded, guarded.tokens[role])
        assert guarded.get("/console/model").status_code == 200
