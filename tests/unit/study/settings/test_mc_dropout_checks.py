"""MC dropout of a transformer that drops nothing is told before anything is trained."""

import pytest
from tests.sentences import refuses
from tests.unit.models.tiny_transformers import written
from tests.unit.study.settings.test_config import text_study

from calibrant.errors import InputError
from calibrant.models import transformer


def test_a_transformer_without_dropout_is_told_before_training(tmp_path, monkeypatch):
    drawn = lambda *given: pytest.fail("weights were drawn")  # noqa: E731
    monkeypatch.setattr(transformer, "network_from", drawn)
    folder = str(written(tmp_path / "llama", "llama"))
    assert text_study(model=folder).mc_dropout == 0
    with refuses(InputError, "mc_dropout", "transformer", "no dropout") as told:
        text_study(model=folder, mc_dropout=5)
    assert "(--model-option pooling=mean --model-option dropout=0.1)." in str(told.value)
    options = {"pooling": "mean", "dropout": 0.1}
    assert text_study(model=folder, mc_dropout=5, model_options=options).mc_dropout == 5
    with refuses(InputError, "no dropout"):
        text_study(model=folder, mc_dropout=5, model_options={"pooling": "mean", "dropout": 0.0})


def test_a_transformer_with_dropout_is_taken(tmp_path):
    assert text_study(model=str(written(tmp_path)), mc_dropout=5).mc_dropout == 5
