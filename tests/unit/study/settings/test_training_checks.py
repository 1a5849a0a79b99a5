"""What a study asks of networks and training: transformers by folder, images, usual values."""

import pytest
from tests.unit.models.tiny_transformers import no_network, written

from calibrant.errors import InputError
from calibrant.study.settings.training_checks import check_network, check_training

__all__ = ["no_network"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return str(written(tmp_path_factory.mktemp("tiny") / "bert"))


def test_the_folder_of_a_transformer_is_a_network_for_texts(folder, no_network):
    check_network("text", folder, {})
    check_network("text", folder, {"pooling": "mean", "dropout": 0.2})
    assert no_network == []


@pytest.mark.parametrize(
    ("kind", "model", "options", "sentence"),
    [
        (
            "text",
            None,
            {"hidden": 8},
            "model_options names 'hidden', which is not an option of a trans",
        ),
        ("text", None, {"pooling": "max"}, "pooling must be 'auto' or 'own' or 'mean', got 'max'"),
        ("text", "./nowhere", {}, "model names the folder './nowhere', which is not there"),
        (
            "text",
            "bilstmm",
            {},
            r"got 'bilstmm' \(did you mean 'bilstm'\?\): choose bilstm or text",
        ),
        (
            "text",
            "resnet50",
            {},
            "network for texts, got 'resnet50': .* the folder or the hub id of a transf",
        ),
        (
            "text",
            "transformer",
            {},
            "network for texts, got 'transformer'.* or give the folder or the hub id of",
        ),
        ("table", None, {}, "model must be a network for tables, got .*: choose mlp"),
        ("image", None, {}, r"model must be a network for images, got .*: choose .*resnet50"),
        ("image", "bilstm", {}, "model must be a network for images, got 'bilstm'"),
        (
            "image",
            "resnet50",
            {"n_channels": 3},
            "names 'n_channels', which is derived from the data",
        ),
    ],
)
def test_other_networks_are_refused(folder, kind, model, options, sentence):
    with pytest.raises(InputError, match=sentence):
        check_network(kind, folder if model is None else model, options)


def test_a_folder_without_weights_is_named_before_any_row_is_read(tmp_path):
    (written(tmp_path) / "model.safetensors").unlink()
    with pytest.raises(InputError, match=r"holds no weights: model\.safetensors is missing"):
        check_network("text", str(tmp_path), {})


def test_training_options_are_checked_with_their_network(folder):
    transformer = {"model": folder, "model_options": {"pooling": "mean"}}
    check_training("text", {"epochs": 3, "max_length": 100}, (), transformer)
    check_training("text", {"vocabulary": 500, "max_length": 500}, ())
    for training, sentence in (
        ({"max_length": 101}, "max_length must be at most 100, the positions of the transformer"),
        ({"vocabulary": 500}, "vocabulary is about the words of the train texts"),
        ({"epochs": 0}, "epochs must be a whole number of at least 1"),
    ):
        with pytest.raises(InputError, match=sentence):
            check_training("text", training, (), transformer)


@pytest.mark.parametrize("kind", ["text", "image"])
def test_any_usual_value_may_be_asked_for_by_its_word(kind):
    check_training(kind, {"epochs": "auto", "learning_rate": "auto", "schedule": "auto"}, ())
    with pytest.raises(InputError, match=r"momentum must be in \[0, 1\), got 'auto'"):
        check_training(kind, {"momentum": "auto"}, ())


@pytest.mark.parametrize(
    ("kind", "training", "sentence"),
    [
        (
            "image",
            {"crop": 2, "max_length": 3},
            "names 'max_length', which is not an option of ImageClassifier",
        ),
        ("text", {"crop": 2}, "names 'crop', which is not an option of TextClassifier"),
        ("text", {"devices": 2}, r"names 'devices', which the study sets itself: .*--devices"),
        ("text", {"min_count": 0}, "min_count must be a whole number >= 1"),
    ],
)
def test_training_options_of_other_kinds_are_refused(kind, training, sentence):
    with pytest.raises(InputError, match=sentence):
        check_training(kind, training, ())
