"""Bundles of boosted trees: packed, loaded, served, mixed with networks, used without torch."""

import json
import subprocess
import sys

import pytest
from tests.sentences import refuses
from tests.unit.boosting.models import CLASSES, TABLE, boosting_scorer
from tests.unit.bundle.model_parts import with_known_weights
from tests.unit.bundle.parts import point, temperature
from tests.unit.serving.bundles import rows_of
from tests.unit.serving.running import running

from calibrant.bundle import BundlePoint, load_bundle, pack
from calibrant.bundle.scorers import EnsembleScorer
from calibrant.client import Client
from calibrant.data.encoders.table_encoder import TableEncoder
from calibrant.errors import BundleError
from calibrant.models import MLP
from calibrant.models.scorer import Scorer


def packed(folder, scorer=None):
    points = [BundlePoint(point("defect", 0.5, classes=CLASSES), "calibrated")]
    calibrator = temperature(classes=CLASSES)
    scorer = boosting_scorer() if scorer is None else scorer
    return pack(folder, scorer=scorer, calibrator=calibrator, points=points)


def test_a_packed_model_gives_the_same_logits_to_the_bit(tmp_path):
    scorer = boosting_scorer()
    bundle = packed(tmp_path / "bundle", scorer)
    loaded = load_bundle(tmp_path / "bundle")
    assert loaded.predict_logits(TABLE).tolist() == scorer.predict_logits(TABLE).tolist()
    assert loaded.decide(TABLE).decision.tolist() == bundle.decide(TABLE).decision.tolist()
    assert {"act", "abstain"} == set(loaded.decide(TABLE).decision.tolist())
    assert loaded.manifest["scorer"]["kind"] == "boosting"
    assert {file.name for file in bundle.path.iterdir()} == {
        "manifest.json",
        "card.md",
        "model.txt",
    }
    card = (bundle.path / "card.md").read_text()
    assert "boosting" in card
    assert "model.txt" in card
    assert "lightgbm" in loaded.manifest["provenance"]["packages"]


def test_a_network_and_trees_are_averaged(tmp_path):
    encoder = TableEncoder().fit(TABLE)
    width = len(encoder.get_feature_names_out())
    network = with_known_weights(MLP(width, 3, hidden=[4], dropout=[0.0]))
    mixed = EnsembleScorer(
        [boosting_scorer(), Scorer(encoder, network, classes=CLASSES)], [0.7, 0.3]
    )
    bundle = packed(tmp_path / "bundle", mixed)
    loaded = load_bundle(bundle.path, device="cpu")
    assert loaded.predict_logits(TABLE).tolist() == mixed.predict_logits(TABLE).tolist()
    assert loaded.scorer.networks == ("boosting", "mlp")


def test_it_is_served(tmp_path):
    bundle = packed(tmp_path / "bundle")
    rows = rows_of(TABLE)[:20]
    with running(bundle.path, str(tmp_path / "calibrant.db")) as service:
        answer = Client(service.url).predict(rows=rows)
    decided = bundle.decide(rows)
    assert [each.decision for each in answer.predictions] == decided.decision.tolist()


def test_a_changed_or_damaged_model_is_refused(tmp_path):
    bundle = packed(tmp_path / "bundle")
    model = bundle.path / "model.txt"
    model.write_bytes(model.read_bytes().replace(b"leaf_value=", b"leaf_value=1", 1))
    with refuses(BundleError, "model.txt", "changed"):
        load_bundle(bundle.path)


def test_a_bundle_with_a_missing_part_is_refused(tmp_path):
    from calibrant.bundle.manifest import seal_manifest

    bundle = packed(tmp_path / "bundle")
    manifest = json.loads((bundle.path / "manifest.json").read_text())
    for key in ("start", "encoder"):
        broken = {k: v for k, v in manifest["scorer"].items() if k != key}
        sealed = seal_manifest({**manifest, "scorer": broken})
        (bundle.path / "manifest.json").write_text(json.dumps(sealed))
        with refuses(BundleError, "damaged"):
            load_bundle(bundle.path)


@pytest.mark.parametrize("hidden", ["torch", "lightgbm"])
def test_only_lightgbm_is_needed(tmp_path, hidden):
    bundle = packed(tmp_path / "bundle")
    (tmp_path / "rows.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows_of(TABLE)))
    code = f"""
import sys
import sklearn.base  # some versions of scipy look into whatever stands for torch
sys.modules[{hidden!r}] = None
from calibrant.cli.main import run
sys.argv = ["calibrant", "predict", {str(bundle.path)!r}, {str(tmp_path / "rows.jsonl")!r},
            "-o", {str(tmp_path / "out.jsonl")!r}]
run()
"""
    ended = subprocess.run(
        [sys.executable, "-c", code], check=False, capture_output=True, text=True, timeout=120
    )
    if hidden == "lightgbm":
        assert ended.returncode == 2
        assert "calibrant[boosting]" in ended.stderr
        return
    assert ended.returncode == 0, ended.stderr
    lines = (tmp_path / "out.jsonl").read_text().splitlines()
    decided = bundle.decide(TABLE).decision.tolist()
    assert [json.loads(line)["decision"] for line in lines] == decided
