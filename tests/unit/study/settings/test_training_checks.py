"""What a study asks of networks and training: transformers by folder, images, usual values."""

import pytest
from tests.sentences import refuses
from tests.unit.models.tiny_transformers import no_network, written
from tests.unit.study.settings.test_config import image_study, table_study, text_study

from calibrant.errors import InputError
from calibrant.models import transformer

__all__ = ["no_network"]

STUDIES = {"text": text_study, "table": table_study, "image": image_study}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return str(written(tmp_path_factory.mktemp("tiny") / "bert"))


def test_the_folder_of_a_transformer_is_a_network_for_texts(folder, no_network):
    text_study(model=folder)
    text_study(model=folder, model_options={"pooling": "mean", "dropout": 0.2})
    assert no_network == []


@pytest.mark.parametrize(
    ("kind", "model", "options", "mentions"),
    [
        (
            "text",
            None,
            {"hidden": 8},
            ("model_options", "'hidden'", "not an option"),
        ),
        ("text", None, {"pooling": "max"}, ("pooling", "'auto' or 'own' or 'mean'", "got 'max'")),
        ("text", "./nowhere", {}, ("model", "folder './nowhere'", "not there")),
        (
            "text",
            "bilstmm",
            {},
            ("got 'bilstmm'", "did you mean 'bilstm'?", "choose ngrams"),
        ),
        (
            "text",
            "resnet50",
            {},
            ("model for texts", "got 'resnet50'", "folder", "hub id"),
        ),
        (
            "text",
            "transformer",
            {},
            ("model for texts", "got 'transformer'", "folder", "hub id"),
        ),
        ("table", None, {}, ("model for tables", "choose", "mlp")),
        ("image", None, {}, ("model for images", "choose", "resnet50")),
        ("image", "bilstm", {}, ("model for images", "got 'bilstm'")),
        (
            "image",
            "resnet50",
            {"n_channels": 3},
            ("'n_channels'", "from the data"),
        ),
    ],
)
def test_other_networks_are_refused(folder, kind, model, options, mentions):
    with refuses(InputError, *mentions):
        STUDIES[kind](model=folder if model is None else model, model_options=options)


def test_a_folder_without_weights_is_named_before_any_row_is_read(tmp_path):
    (written(tmp_path) / "model.safetensors").unlink()
    with refuses(InputError, "no weights", "model.safetensors"):
        text_study(model=str(tmp_path))


def test_training_options_are_checked_with_their_network(folder):
    own = {"model": folder, "model_options": {"pooling": "mean"}}
    text_study(training={"epochs": 3, "max_length": 100}, **own)
    text_study(training={"vocabulary": 500, "max_length": 500})
    for training, sentence in (
        ({"max_length": 101}, "max_length must be at most 100, the positions of the transformer"),
        ({"vocabulary": 500}, "vocabulary is about the words of the train texts"),
        ({"epochs": 0}, "epochs must be a whole number of at least 1"),
    ):
        with pytest.raises(InputError, match=sentence):
            text_study(training=training, **own)


@pytest.mark.parametrize("kind", ["text", "image"])
def test_any_usual_value_may_be_asked_for_by_its_word(kind):
    STUDIES[kind](training={"epochs": "auto", "learning_rate": "auto", "schedule": "auto"})
    with refuses(InputError, "momentum", "[0, 1)", "got 'auto'"):
        STUDIES[kind](training={"momentum": "auto"})


@pytest.mark.parametrize(
    ("kind", "training", "mentions"),
    [
        (
            "image",
            {"crop": 2, "max_length": 3},
            ("'max_length'", "option of ImageClassifier"),
        ),
        ("text", {"crop": 2}, ("'crop'", "option of TextClassifier")),
        ("text", {"devices": 2}, ("'devices'", "--devices")),
        ("text", {"min_count": 0}, ("min_count", "whole number", ">= 1")),
    ],
)
def test_training_options_of_other_kinds_are_refused(kind, training, mentions):
    with refuses(InputError, *mentions):
        STUDIES[kind](training=training)


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
