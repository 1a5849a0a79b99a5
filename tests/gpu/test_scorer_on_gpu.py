"""A model of a bundle on a GPU gives what it gives on a CPU; skipped where torch sees none."""

import numpy as np
import pytest
import torch
from tests.unit.bundle.model_parts import TABLE, TEXTS, table_scorer, text_scorer

from calibrant.bundle import load_bundle, pack
from calibrant.models.scorer import Scorer

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="torch sees no GPU here")


@pytest.mark.parametrize(
    ("scorer", "inputs"), [(text_scorer(), TEXTS * 2000), (table_scorer(), TABLE)]
)
def test_a_bundle_runs_on_the_gpu_where_there_is_one(tmp_path, scorer, inputs):
    made = pack(tmp_path / "b", scorer=scorer)
    there = load_bundle(made.path)
    assert there.scorer.device.type == "cuda"
    found, expected = there.predict_logits(inputs), scorer.predict_logits(inputs)
    assert np.abs(found - expected).max() < 0.02  # the GPU may round products to 10 bits


def test_a_scorer_on_the_gpu_is_packed_for_any_machine(tmp_path):
    here = text_scorer()
    there = Scorer(here.encoder, here.model, here.shift, column="message", device="cuda")
    made = pack(tmp_path / "b", scorer=there, classes=here.classes)
    assert made.scorer.device.type == "cpu"
    assert made.predict_logits(TEXTS) == pytest.approx(here.predict_logits(TEXTS), abs=1e-6)
