"""Bundles of every released format load for ever, and decide as they did when they were packed.

The folders under `fixtures` were written by `write_fixtures` at the time of their format and are
never written again; a new format gets a new folder.
"""

from pathlib import Path

import numpy as np
import pytest
from tests.unit.boosting.models import boosting_scorer
from tests.unit.bundle.model_parts import (
    IMAGES,
    image_scorer,
    know_tiny_images,
    subword_scorer,
    table_scorer,
    text_scorer,
)
from tests.unit.bundle.parts import CLASSES, band, point, points_of, temperature, without_promise
from tests.unit.data.test_linear_scorer import ngram_scorer

from calibrant.bundle import BundlePoint, load_bundle, pack
from calibrant.bundle.manifest import FORMAT
from calibrant.models.scorer import Scorer
from calibrant.ood import OodRule

SORTED = ("defect", "other", "parts")
FIXTURES = Path(__file__).parent / "fixtures"


@pytest.fixture(autouse=True)
def known(monkeypatch):
    """Let the network for images of the fixtures be known, as a user's own would be."""
    know_tiny_images(monkeypatch)


def write_fixtures(folder):
    """Write the bundles of the present format."""
    pack(
        folder / f"format_{FORMAT}",
        calibrator=temperature(),
        points=[
            BundlePoint(point("defect", 0.75), "calibrated"),
            BundlePoint(points_of(point("parts", 0.9), unreachable=["other"]), "raw"),
            BundlePoint(without_promise(None, 0.5, on="probs"), "raw"),
        ],
        actions={"defect": "refund", "parts": "send again"},
        metrics={"nll": {"value": 0.4321}},
        ood=OodRule("energy", -1.5, 0.95, 1000),
    )
    classes = ("no", "yes")
    pack(
        folder / f"format_{FORMAT}_band",
        calibrator=temperature(0.5, classes=classes, zero_as=0.01),
        points=[BundlePoint(band(), "calibrated")],
        actions={"yes": "block"},
    )
    pack(
        folder / f"format_{FORMAT}_text",
        scorer=text_scorer(redact=True),
        calibrator=temperature(),
        points=[BundlePoint(point("parts", 0.5), "calibrated")],
        ood=OodRule("entropy", 1.09, 0.95, 1000),
        metrics={"test": {"accuracy": {"value": 0.9, "low": 0.85, "high": 0.95}}, "n": 400},
        provenance={"splits": {"train": {"source": "logs", "rows": 4}}},
    )
    pack(
        folder / f"format_{FORMAT}_table",
        scorer=table_scorer(),
        points=[BundlePoint(point("defect", 0.5), "raw")],
    )
    pack(
        folder / f"format_{FORMAT}_boosting",
        scorer=boosting_scorer(loss="balanced_softmax", n_estimators=4),
        calibrator=temperature(classes=SORTED),
        points=[BundlePoint(point("defect", 0.5, classes=SORTED), "calibrated")],
    )
    two = [image_scorer(shift=(0.5, 0.0, -0.25), resize=True), image_scorer(start=1, resize=True)]
    pack(
        folder / f"format_{FORMAT}_image",
        scorer=Scorer.ensemble(two),
        calibrator=temperature(),
        points=[BundlePoint(point("other", 0.25), "calibrated")],
    )
    whole = subword_scorer(shift=(0.5, 0.0, -0.25), pooling="mean", dropout=0.25)
    pack(
        folder / f"format_{FORMAT}_subword",
        scorer=Scorer.mc_dropout(whole, passes=3, seed=1),
        points=[BundlePoint(point("defect", 0.41), "raw")],
    )
    pack(
        folder / f"format_{FORMAT}_ngrams",
        scorer=ngram_scorer(shift=(0.5, 0.0, -0.25), classes=CLASSES, column="message"),
        calibrator=temperature(),
        points=[BundlePoint(point("parts", 0.5), "calibrated")],
        ood=OodRule("energy", 1.09, 0.95, 1000, equal=True),
    )


def test_format_1_decides_as_it_did():
    bundle = load_bundle(FIXTURES / "format_1")
    assert bundle.classes == ("defect", "parts", "other")
    assert bundle.metrics == {"nll": {"value": 0.4321}}
    assert [each.decides_on for each in bundle.points] == ["calibrated", "raw", "raw"]
    assert bundle.points[0].promises == (
        "Precision is at least 85 % for class 'defect', with 95 % confidence.",
    )
    assert bundle.points[1].result.unreachable["other"].n == 2000
    logits = [[4.0, 0.0, 0.0], [3.0, 0.0, 0.0], [0.0, 4.0, 0.0], [0.0, 2.0, 0.0], [0.1, 0.0, 0.0]]
    found = bundle.decide(logits)
    assert found.decision.tolist() == ["act", "act", "act", "act", "abstain"]
    assert found.operating_point.tolist() == [0, 2, 1, 2, -1]
    assert found.acted_as.tolist() == ["defect", "defect", "parts", "parts", None]
    assert found.action.tolist() == ["refund", "refund", "send again", "send again", None]
    expected = [0.7869860421615985, 0.10650697891920076, 0.10650697891920076]
    assert found.probabilities[0].tolist() == pytest.approx(expected, rel=1e-12)


def test_a_band_of_format_1_decides_as_it_did():
    bundle = load_bundle(FIXTURES / "format_1_band")
    found = bundle.decide(probs=[0.0, 0.3, 0.4, 0.6, 0.7])
    assert found.decision.tolist() == ["clear", "clear", "abstain", "abstain", "act"]
    assert found.action.tolist() == [None, None, None, None, "block"]
    odds = 0.01 / 0.99
    assert found.probabilities[0, 1] == pytest.approx(odds**2 / (1 + odds**2), rel=1e-9)


@pytest.mark.parametrize("version", [2, 3, 4])
def test_format_2_and_later_decide_as_they_did_and_leave_rows_out_of_scope(version):
    bundle = load_bundle(FIXTURES / f"format_{version}")
    assert bundle.ood == OodRule("energy", -1.5, 0.95, 1000)
    logits = [[4.0, 0.0, 0.0], [3.0, 0.0, 0.0], [0.0, 4.0, 0.0], [0.1, 0.0, 0.0], [4.0, -9.0, -9.0],
              [1.0, -9.0, -9.0]]  # fmt: skip
    found = bundle.decide(logits)
    assert found.decision.tolist() == ["act", "act", "act", "abstain", "act", "abstain"]
    assert found.operating_point.tolist() == [0, 2, 1, -1, 0, -1]
    assert found.out_of_scope.tolist() == [False, False, False, True, False, True]


@pytest.mark.parametrize("version", [2, 3, 4])
def test_a_model_for_texts_gives_what_it_gave(version):
    bundle = load_bundle(FIXTURES / f"format_{version}_text", device="cpu")
    assert bundle.classes == ("defect", "parts", "other")
    assert bundle.scorer.redact
    assert bundle.columns.texts == ("message",)
    texts = ["it came broken", "Too SMALL?", ""]
    expected = [[-3.232186, 5.24028, 4.101167], [-10.141868, 7.618372, 11.744494],
                [-1.496328, 3.72409, 1.89756]]  # fmt: skip
    assert bundle.predict_logits(texts) == pytest.approx(np.array(expected), abs=1e-5)
    found = bundle.decide(texts)
    assert found.decision.tolist() == ["act", "abstain", "act"]
    assert str(found) == "3 rows: 2 act, 0 clear, 1 abstain (0 out of scope)."


@pytest.mark.parametrize("version", [2, 3, 4])
def test_a_model_for_tables_gives_what_it_gave(version):
    bundle = load_bundle(FIXTURES / f"format_{version}_table", device="cpu")
    rows = {"price": [1.0, None, 100.0], "shelf": ["LOW", "top", None]}
    expected = [[2.694775, -3.455562, -4.042435], [-3.15774, -0.900542, 2.598311],
                [201.368713, 125.911469, -162.806259]]  # fmt: skip
    assert bundle.predict_logits(rows) == pytest.approx(np.array(expected), abs=1e-4)
    assert bundle.decide(rows).decision.tolist() == ["act", "abstain", "act"]


def test_boosted_trees_give_what_they_gave_to_the_bit():
    bundle = load_bundle(FIXTURES / "format_4_boosting")
    rows = {"price": [1.0, None, 40.0, 1e9], "shelf": ["LOW", "top", None, "moon"]}
    expected = [[-1.6932927101071744, 0.09989754318163291, -2.3806483171850252],
                [-0.04691669592956915, -1.493159714988784, -2.3759303668789307],
                [-1.6963572036646373, -0.2335876221150146, -1.6881230908797855],
                [0.0, 0.0, 0.0]]  # fmt: skip
    assert bundle.predict_logits(rows).tolist() == expected
    assert bundle.decide(rows).decision.tolist() == ["abstain", "act", "abstain", "abstain"]
    found = bundle.scorer.explain(rows)
    assert found.rows[0].parts == ("price", "shelf")
    assert found.logits[:3] == pytest.approx(bundle.predict_logits(rows)[:3], abs=1e-9)


@pytest.mark.parametrize("version", [3, 4])
def test_an_ensemble_for_images_gives_what_it_gave(version):
    bundle = load_bundle(FIXTURES / f"format_{version}_image", device="cpu")
    assert (bundle.scorer.kind, bundle.scorer.resize) == ("image", True)
    assert (bundle.scorer.encoder.size_, bundle.scorer.encoder.channels_) == ((4, 5), 3)
    assert bundle.scorer.networks == ("tiny_image", "tiny_image")
    expected = [[8.009068, -1.066366, 6.773037], [8.985272, -1.614485, 6.771915],
                [7.523467, -2.274331, 6.187262]]  # fmt: skip
    assert bundle.predict_logits(IMAGES[:3]) == pytest.approx(np.array(expected), abs=1e-4)
    assert bundle.decide(IMAGES[:3]).decision.tolist() == ["act", "abstain", "act"]


@pytest.mark.parametrize("version", [3, 4])
def test_a_thinned_transformer_gives_what_it_gave(version):
    bundle = load_bundle(FIXTURES / f"format_{version}_subword", device="cpu")
    assert bundle.scorer.networks == ("transformer",)
    assert bundle.scorer.encoder.max_length == 8
    texts = ["it came broken", "Too SMALL?", ""]
    expected = [[-0.974854, -4.546272, -0.580512], [-0.937947, -4.433747, -0.532823],
                [-1.189274, -5.285233, -0.86625]]  # fmt: skip
    assert bundle.predict_logits(texts) == pytest.approx(np.array(expected), abs=1e-4)
    assert bundle.decide(texts).decision.tolist() == ["abstain", "abstain", "act"]


def test_a_linear_model_for_texts_gives_what_it_gave():
    bundle = load_bundle(FIXTURES / "format_4_ngrams", device="cpu")
    assert bundle.scorer.networks == ("ngrams",)
    assert bundle.columns.texts == ("message",)
    texts = ["it came broken", "Too SMALL 👍?", ""]
    expected = [[-0.431662, -1.909927, -0.368224], [-0.220827, 1.451583, 1.328008], [0.0] * 3]
    assert bundle.predict_logits(texts) == pytest.approx(np.array(expected), abs=1e-5)
    found = bundle.decide(texts)
    assert found.out_of_scope.tolist() == [False, False, True]


def test_what_is_packed_today_is_what_the_fixtures_hold(tmp_path):
    """A change of the format without a new number would show here."""
    write_fixtures(tmp_path)
    for folder in sorted(tmp_path.iterdir()):
        old, new = (load_bundle(place / folder.name).to_dict() for place in (FIXTURES, tmp_path))
        for key in set(new) - {"provenance", "files", "sha256"}:
            assert _without_new_keys(new[key], old[key]) == old[key], key


def _without_new_keys(new, old):
    """Keys may be added to what is saved; those that were there stay.

    An architecture is told in the words of the transformers library, which has versions of its own.
    """
    if isinstance(new, dict) and isinstance(old, dict):
        same = {"architecture": old["architecture"]} if "architecture" in old else {}
        kept = {key: _without_new_keys(new[key], old[key]) for key in old if key in new}
        return kept | same
    if isinstance(new, list) and isinstance(old, list) and len(new) == len(old):
        return [_without_new_keys(a, b) for a, b in zip(new, old, strict=True)]
    return new


def test_every_format_has_its_fixture():
    for version in range(1, FORMAT + 1):
        assert load_bundle(FIXTURES / f"format_{version}").manifest["format"] == version
