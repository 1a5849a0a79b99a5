"""Models of a bundle by kind: a weighted ensemble of different models, saved and loaded."""

import json

import numpy as np
import pytest
from tests.sentences import refuses
from tests.unit.boosting.models import CLASSES, TABLE, boosting_scorer
from tests.unit.bundle.model_parts import table_scorer, text_scorer

from calibrant.bundle import load_bundle, pack
from calibrant.bundle.manifest import seal_manifest
from calibrant.bundle.scorers import EnsembleScorer, mix_logits
from calibrant.convert import probs_from_logits
from calibrant.data.encoders.table_encoder import TableEncoder
from calibrant.data.linear_scorer import LinearScorer
from calibrant.errors import BundleError, InputError
from calibrant.models import MLP
from calibrant.models.scorer import Scorer
from calibrant.ood import OodRule

ROWS = {"price": [1.0, None, 100.0], "shelf": ["LOW", "top", None]}


def other_scorer(classes=("defect", "parts", "other")):
    """Another model for the same columns, with another encoder and a shift."""
    table = {"price": [float(i) for i in range(30)], "shelf": ["low", "top", "side"] * 10}
    encoder = TableEncoder().fit(table)
    width = len(encoder.get_feature_names_out())
    return Scorer(
        encoder, MLP(width, 3, hidden=(2,), dropout=(0.0,)), (0.5, 0.0, -0.5), classes=classes
    )


def both():
    return [table_scorer(), other_scorer()]


def test_it_averages_the_probabilities_with_the_weights():
    one, other = both()
    mixed = EnsembleScorer([one, other], [0.3, 0.7]).predict_logits(ROWS)
    expected = 0.3 * probs_from_logits(one.predict_logits(ROWS)) + 0.7 * probs_from_logits(
        other.predict_logits(ROWS)
    )
    assert probs_from_logits(mixed)[:2] == pytest.approx(expected[:2], rel=1e-12)


def test_a_weight_of_one_gives_the_probabilities_of_that_member():
    logits = [np.array([[2.0, -1.0, 0.0]]), np.array([[0.0, 5.0, 1.0]])]
    mixed = mix_logits(logits, [1.0, 0.0])
    assert probs_from_logits(mixed) == pytest.approx(probs_from_logits(logits[0]), rel=1e-12)


def test_a_row_that_a_member_with_a_weight_cannot_score_gets_equal_logits():
    far, read = np.zeros((1, 3)), np.array([[1.0, 0.0, 0.0]])
    assert mix_logits([far, far], [0.3, 0.7]).tolist() == [[0.0, 0.0, 0.0]]
    assert mix_logits([far, read], [0.5, 0.5]).tolist() == [[0.0, 0.0, 0.0]]
    assert mix_logits([read, far], [0.5, 0.5]).tolist() == [[0.0, 0.0, 0.0]]
    without = mix_logits([far, read], [0.0, 1.0])
    assert probs_from_logits(without) == pytest.approx(probs_from_logits(read))


def test_a_category_that_only_one_member_can_read_is_flagged(tmp_path):
    trees = boosting_scorer()
    encoder = TableEncoder().fit(TABLE)
    width = len(encoder.get_feature_names_out())
    weights = np.linspace(-1.0, 1.0, width * 3).reshape(width, 3)
    linear = LinearScorer(encoder, weights, np.zeros(3), name="linear", classes=CLASSES)
    row = {"price": [20.0, 20.0], "shelf": ["never seen", "top"]}
    assert linear.predict_logits(row).any(axis=1).all()
    mixed = EnsembleScorer([trees, linear], [0.6, 0.4])
    assert mixed.predict_logits(row).any(axis=1).tolist() == [False, True]
    assert mixed.is_unscorable(row).tolist() == [True, False]
    rule = OodRule.unreadable(100)
    bundle = pack(tmp_path / "bundle", scorer=mixed, ood=rule)
    assert rule.flags(load_bundle(bundle.path).predict_logits(row)).tolist() == [True, False]
    assert "same probability for every class" in (bundle.path / "card.md").read_text()


def test_a_packed_ensemble_gives_the_same_logits_to_the_bit(tmp_path):
    mixed = EnsembleScorer(both(), [0.25, 0.75])
    bundle = pack(tmp_path / "bundle", scorer=mixed)
    loaded = load_bundle(tmp_path / "bundle", device="cpu")
    assert loaded.predict_logits(ROWS).tolist() == mixed.predict_logits(ROWS).tolist()
    assert bundle.manifest["scorer"]["kind"] == "ensemble"
    names = {file.name for file in bundle.path.iterdir()}
    assert {"member-0-model.safetensors", "member-1-model.safetensors"} <= names
    assert loaded.scorer.networks == ("mlp", "mlp")
    assert "ensemble" in (bundle.path / "card.md").read_text()


def test_members_must_read_the_same_rows_and_classes():
    with pytest.raises(InputError, match="same kind"):
        EnsembleScorer([table_scorer(), text_scorer()], [0.5, 0.5])
    with pytest.raises(InputError, match="same classes"):
        EnsembleScorer([table_scorer(), other_scorer(("a", "b", "c"))], [0.5, 0.5])
    with pytest.raises(InputError, match="at least two"):
        EnsembleScorer([table_scorer()], [1.0])


@pytest.mark.parametrize("weights", [[0.5], [0.5, 0.6], [1.5, -0.5], [float("nan"), 1.0]])
def test_weights_must_be_shares(weights):
    with pytest.raises(InputError, match="weights"):
        EnsembleScorer(both(), weights)


def write_scorer(bundle, scorer):
    """Replace the scorer in a manifest, whose hash then holds again."""
    file = bundle.path / "manifest.json"
    manifest = {**json.loads(file.read_text()), "scorer": scorer}
    file.write_text(json.dumps(seal_manifest(manifest)))


def nested(scorer, levels):
    """Put a scorer into ensembles within ensembles."""
    for _ in range(levels):
        scorer = {"kind": "ensemble", "members": [scorer, scorer], "weights": [0.5, 0.5]}
        scorer["members"][1] = {"kind": "none"}
    return scorer


def test_a_manifest_whose_ensemble_lacks_a_part_is_damaged(tmp_path):
    bundle = pack(tmp_path / "bundle", scorer=EnsembleScorer(both(), [0.5, 0.5]))
    saved = bundle.manifest["scorer"]
    lacking = {k: v for k, v in saved["members"][1].items() if k != "encoder"}
    for broken in ([saved["members"][0], lacking], 5, ["x", "y"], saved["members"][:1]):
        write_scorer(bundle, {**saved, "members": broken})
        with refuses(BundleError, "scorer", "damaged"):
            load_bundle(bundle.path)


@pytest.mark.parametrize("members", [5, ["x"], [{"kind": "onnx"}]])
def test_members_of_a_single_model_mean_nothing(tmp_path, members):
    bundle = pack(tmp_path / "bundle", scorer=table_scorer())
    write_scorer(bundle, {**bundle.manifest["scorer"], "members": members})
    assert load_bundle(bundle.path).scorer.networks == ("mlp",)
    write_scorer(bundle, {"kind": "none", "members": members})
    assert load_bundle(bundle.path).scorer is None


def test_members_of_members_are_checked(tmp_path):
    inner = EnsembleScorer(both(), [0.5, 0.5])
    scorer = EnsembleScorer([inner, other_scorer()], [0.5, 0.5])
    bundle = pack(tmp_path / "bundle", scorer=scorer)
    loaded = load_bundle(bundle.path)
    assert loaded.predict_logits(ROWS).tolist() == scorer.predict_logits(ROWS).tolist()
    saved = json.loads((bundle.path / "manifest.json").read_text())["scorer"]
    saved["members"][0]["members"][1]["kind"] = "onnx"
    write_scorer(bundle, saved)
    with refuses(BundleError, "onnx", "upgrade"):
        load_bundle(bundle.path)
    for levels in (31, 200):
        write_scorer(bundle, nested(saved["members"][1], levels))
        with refuses(BundleError, "scorer", "damaged"):
            load_bundle(bundle.path)
