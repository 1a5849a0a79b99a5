"""One scale on every page: decision score and threshold together, calibrated probability apart."""

import html
import re

import numpy as np
import pytest
from tests.sentences import assert_mentions
from tests.unit.bundle.parts import CLASSES, point, rows, temperature
from tests.unit.serving.console.conftest import csrf_of

from calibrant.bundle import BundlePoint, CalibRows, pack

PLACE = "A decision score of 0.75 is a calibrated probability of 0.9."
"""Log-odds of 3/4 are log 3; a temperature of 1/2 doubles them to those of 9/10."""


def bundle_of(folder, classes, of):
    logits = rows(400, len(classes), seed=3)
    codes = np.random.default_rng(0).integers(0, len(classes), 400)
    return pack(
        folder,
        points=[BundlePoint(point(of, 0.75, classes=classes), "raw")],
        calibrator=temperature(0.5, classes),
        calib=CalibRows(logits, codes),
    ).path


@pytest.fixture
def two(serving, tmp_path):
    """A service whose calibrator keeps the order of both classes."""
    return serving(bundle_of(tmp_path / "two", ("no", "yes"), "yes"))


@pytest.fixture
def three(serving, tmp_path):
    """A service whose calibrator does not keep the order of any class."""
    return serving(bundle_of(tmp_path / "three", CLASSES, "defect"))


def text_of(page):
    assert page.status_code == 200, page.text
    main = page.text[page.text.index("<main") :].replace("<wbr>", "")
    main = re.sub(r"<script.*?</script>", " ", main, flags=re.DOTALL)
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", main)).split())


def try_logits(client, *logits):
    csrf = csrf_of(client.get("/console/try"))
    fields = {f"value-{i}": str(value) for i, value in enumerate(logits)}
    bundle = client.service.slot.current.hash
    return text_of(client.post("/console/try", data={"csrf": csrf, "bundle": bundle, **fields}))


def pages_of(client, logits):
    """Return the text of every page that shows a threshold, for one row left to a person."""
    body = {"inputs": [{"logits": logits}]}
    (row,) = client.post("/v1/predict", json=body).json()["predictions"]
    assert row["decision"] == "abstain"
    return row, {
        "overview": text_of(client.get("/console")),
        "model": text_of(client.get("/console/model")),
        "thresholds": text_of(client.get("/console/thresholds")),
        "predictions": text_of(client.get("/console/predictions")),
        "prediction": text_of(client.get(f"/console/predictions/{row['id']}")),
        "try": try_logits(client, *logits),
    }


def test_a_row_above_the_number_of_the_threshold_is_explained(two):
    row, pages = pages_of(two, [0.0, 0.85])
    assert row["probabilities"]["yes"] == pytest.approx(0.8455, abs=1e-4)
    assert row["decision_score"] == pytest.approx(0.7006, abs=1e-4)
    assert (row["decision_threshold"], row["decision_rule"]) == (0.75, "act on 'yes'")
    assert row["calibrated_threshold"] == pytest.approx(0.9)
    for name in ("prediction", "try"):
        assert_mentions(pages[name], "decision score, the model’s own probability of")
        assert_mentions(pages[name], "0.7006", "threshold 0.75", "left to a person", PLACE)
        assert_mentions(pages[name], "a calibrated probability of")
    for name in ("model", "thresholds", "try"):
        assert PLACE in pages[name]
    assert_mentions(pages["overview"], "from a decision score of 0.75 (calibrated probability 0.9)")
    assert_mentions(pages["predictions"], "0.846", "0.7006", "threshold 0.75")


def test_nothing_is_said_of_the_other_scale_where_the_order_is_lost(three):
    row, pages = pages_of(three, [0.8, 0.0, 0.0])
    assert row["decision_score"] < row["decision_threshold"] == 0.75
    assert row["calibrated_threshold"] is None
    for name, text in pages.items():
        assert "decision score" in text.lower(), name
        assert "is a calibrated probability of" not in text, name
        assert "(calibrated probability" not in text, name
    assert_mentions(pages["overview"], "'defect' from a decision score of 0.75.")


def test_the_bundle_describes_its_rules(two, three):
    (rule,) = two.get("/v1/bundle").json()["rules"]
    assert rule["class"] == "yes"
    assert (rule["threshold"], rule["calibrated_threshold"]) == (0.75, pytest.approx(0.9))
    assert (rule["same_scale"], rule["alternative"], rule["clears"]) == (False, False, False)
    assert three.get("/v1/bundle").json()["rules"][0]["calibrated_threshold"] is None
