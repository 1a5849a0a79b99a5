"""Models of a bundle by kind: a weighted ensemble of different models, saved and loaded."""

import json

import numpy as np
import pytest
from tests.unit.bundle.model_parts import table_scorer, text_scorer

from calibrant.bundle import load_bundle, pack
from calibrant.bundle.scorers import EnsembleScorer, mix_logits
from calibrant.convert import probs_from_logits
from calibrant.data.encoders.table_encoder import TableEncoder
from calibrant.errors import BundleError, InputError
from calibrant.models import MLP
from calibrant.models.scorer import Scorer

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


def test_a_row_that_no_member_scores_stays_equal():
    far = np.zeros((1, 3))
    assert mix_logits([far, far], [0.3, 0.7]).tolist() == [[0.0, 0.0, 0.0]]
    assert mix_logits([far, np.array([[1.0, 0.0, 0.0]])], [0.5, 0.5])[0, 0] != 0.0


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


def test_a_manifest_whose_ensemble_lacks_a_part_is_damaged(tmp_path):
    from calibrant.bundle.manifest import seal_manifest

    bundle = pack(tmp_path / "bundle", scorer=EnsembleScorer(both(), [0.5, 0.5]))
    manifest = json.loads((bundle.path / "manifest.json").read_text())
    del manifest["scorer"]["members"][1]["encoder"]
    (bundle.path / "manifest.json").write_text(json.dumps(seal_manifest(manifest)))
    with pytest.raises(BundleError, match="scorer"):
        load_bundle(bundle.path)
