"""A model of a bundle on a GPU gives what it gives on a CPU; skipped where torch sees none."""

import numpy as np
import pytest
import torch
from tests.unit.bundle.model_parts import (
    CLASSES,
    IMAGES,
    TABLE,
    TEXTS,
    image_scorer,
    know_tiny_images,
    subword_scorer,
    table_scorer,
    text_scorer,
)

from calibrant.bundle import load_bundle, pack
from calibrant.data.encoders.image_encoder import ImageEncoder
from calibrant.models import ResNet50
from calibrant.models.scorer import Scorer

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="torch sees no GPU here")


def two_for_images():
    return Scorer.ensemble([image_scorer(shift=(0.5, 0.0, -0.25)), image_scorer(start=1)])


MANY = {"text": TEXTS * 2000, "table": TABLE, "image": np.tile(IMAGES, (500, 1, 1, 1))}
MODELS = {
    "texts": text_scorer,
    "tables": table_scorer,
    "images": image_scorer,
    "ensemble": two_for_images,
    "thinned": lambda: Scorer.mc_dropout(image_scorer(), passes=5),
    "transformer": lambda: subword_scorer(pooling="mean"),
    "thinned transformer": lambda: Scorer.mc_dropout(subword_scorer(pooling="mean"), passes=3),
}


@pytest.mark.parametrize("name", MODELS)
def test_a_bundle_runs_on_the_gpu_where_there_is_one(tmp_path, monkeypatch, name):
    know_tiny_images(monkeypatch)
    scorer = MODELS[name]()
    inputs = MANY[scorer.kind]
    made = pack(tmp_path / "b", scorer=scorer)
    there = load_bundle(made.path)
    assert there.scorer.device.type == "cuda"
    found, expected = there.predict_logits(inputs), scorer.predict_logits(inputs)
    # The GPU may round products to 10 bits, and those of filters are many.
    assert np.abs(found - expected).max() < (0.1 if scorer.kind == "image" else 0.02)


def test_a_scorer_on_the_gpu_is_packed_for_any_machine(tmp_path):
    here = text_scorer()
    there = Scorer(here.encoder, here.model, here.shift, column="message", device="cuda")
    made = pack(tmp_path / "b", scorer=there, classes=here.classes)
    assert made.scorer.device.type == "cpu"
    assert made.predict_logits(TEXTS) == pytest.approx(here.predict_logits(TEXTS), abs=1e-6)


def test_averages_are_made_where_their_members_are():
    here = table_scorer(dropout=[0.25])
    there = Scorer(here.encoder, here.model, here.shift, classes=CLASSES, device="cuda")
    for made in (Scorer.ensemble([there, here]), Scorer.mc_dropout(there, passes=3)):
        assert made.device.type == "cuda"
        assert made.predict_logits(TABLE).shape == (4, 3)


def test_images_go_to_the_gpu_as_bytes_and_a_batch_at_a_time(tmp_path):
    """5,000 images are 15 MB as bytes; all of them as numbers would be 61 MB at least."""
    images = np.random.default_rng(0).integers(0, 256, (5000, 32, 32, 3), dtype=np.uint8)
    torch.manual_seed(0)
    scorer = Scorer(ImageEncoder().fit(images), ResNet50(3, 3, width=1), device="cuda")
    scorer.predict_logits(images[:1024])
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    few = peak_of(scorer, images[:1024]) - before
    many = peak_of(scorer, images) - before
    assert many - few < 8 * 2**20
    here = Scorer(scorer.encoder, scorer.model)
    assert np.abs(here.predict_logits(images[:64]) - scorer.predict_logits(images[:64])).max() < 0.1


def peak_of(scorer, images):
    torch.cuda.reset_peak_memory_stats()
    scorer.predict_logits(images)
    return torch.cuda.max_memory_allocated()
