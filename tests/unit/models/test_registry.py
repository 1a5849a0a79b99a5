"""Networks by name: a config and the weights make the same network again."""

import json

import numpy as np
import pytest
import torch
from tests.sentences import refuses
from torch import nn

from calibrant.errors import InputError
from calibrant.models import (
    MLP,
    BiLSTM,
    DenseNet121,
    Ensemble,
    MCDropout,
    ResNet50,
    ResNet110,
    SmallCNN,
    TextCNN,
    Transformer,
    WideResNet,
    build,
    models,
    register,
)

TINY_BERT = {
    "model_type": "bert",
    "vocab_size": 9,
    "hidden_size": 8,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 16,
}
BUILT = {
    "bilstm": lambda: BiLSTM(9, 3, embedding=4, hidden=3, layers=1, dense=5),
    "densenet121": lambda: DenseNet121(1, 3, growth=2),
    "ensemble": lambda: Ensemble([BUILT["mlp"](), BUILT["mlp"]()], shifts=np.ones((2, 3))),
    "mc_dropout": lambda: MCDropout(BUILT["mlp"](), passes=3, seed=1, shift=np.ones(3)),
    "mlp": lambda: MLP(4, 3, hidden=(8,), dropout=(0.1,), batch_norm=False),
    "resnet110": lambda: ResNet110(1, 3, stem="tiny_imagenet", width=2),
    "resnet50": lambda: ResNet50(1, 3, width=2),
    "small_cnn": lambda: SmallCNN(1, 3, width=2, side=12),
    "text_cnn": lambda: TextCNN(9, 3, embedding=4, filters=3, width=3, vectors=np.ones((9, 4))),
    "transformer": lambda: Transformer(TINY_BERT, 3, pooling="mean", dropout=0.2),
    "wrn_26_10": lambda: WideResNet(1, 3, widen=1, blocks=1),
}
_TEXTS = (torch.ones(2, 4, dtype=torch.int64), torch.tensor([4, 2]))
_TABLE = (torch.ones(2, 4),)
_IMAGES = (torch.ones(2, 1, 16, 16),)
INPUTS = {
    "bilstm": _TEXTS,
    "densenet121": _IMAGES,
    "ensemble": _TABLE,
    "mc_dropout": _TABLE,
    "mlp": _TABLE,
    "resnet110": _IMAGES,
    "resnet50": _IMAGES,
    "small_cnn": _IMAGES,
    "text_cnn": _TEXTS,
    "transformer": _TEXTS,
    "wrn_26_10": _IMAGES,
}


def test_every_registered_network_is_tested_here():
    assert sorted(models()) == sorted(BUILT)


@pytest.mark.parametrize("name", sorted(BUILT))
def test_config_as_json_and_weights_make_the_same_network(name):
    torch.manual_seed(0)
    model = BUILT[name]().eval()
    again = build(json.loads(json.dumps(model.config)))
    again.load_state_dict(model.state_dict())
    assert again.config == model.config
    assert type(again) is type(model) is models()[name]
    assert torch.equal(again.eval()(*INPUTS[name]), model(*INPUTS[name]))
    trained = [weights.requires_grad for weights in model.parameters()]
    assert [weights.requires_grad for weights in again.parameters()] == trained


def test_an_unknown_name_suggests_the_nearest():
    with refuses(InputError, "got 'bilstn'", "you mean 'bilstm'?"):
        build({"model": "bilstn"})
    with refuses(InputError, "got None", "known", "bilstm", "densenet121", "ensemble"):
        build({})


def test_a_config_that_does_not_fit_is_named():
    with refuses(InputError, "config names 'wide'", "not an option", "'mlp'"):
        build({"model": "mlp", "n_features": 3, "n_classes": 2, "wide": 1})
    with refuses(InputError, "not an option", "network 'mlp'", "you mean 'hidden'"):
        build({"model": "mlp", "n_features": 3, "n_classes": 2, "hiddn": (8,)})
    with refuses(InputError, "not fit", "network 'mlp'", "n_features"):
        build({"model": "mlp", "n_classes": 2})


def test_numbers_of_numpy_become_pythons_in_the_config():
    eight, half = np.int64(8), np.float32(0.5)
    for model in (
        MLP(eight, np.int32(3), hidden=(eight,), dropout=[half], batch_norm=np.True_),
        BiLSTM(eight, 3, embedding=eight, hidden=eight, dense_dropout=half),
        TextCNN(eight, 3, embedding=eight, filters=eight, width=np.int16(3), dropout=half),
    ):
        assert build(json.loads(json.dumps(model.config))).config == model.config


def test_booleans_are_no_sizes_and_no_shares():
    for options in ({"hidden": (True,)}, {"hidden": (np.True_,)}, {"dropout": (True,)}):
        with pytest.raises(InputError, match="got True"):
            MLP(3, 2, **{"hidden": (8,), "dropout": (0.5,), **options})


def test_a_name_is_given_once():
    with refuses(InputError, "'mlp'", "taken", "MLP"):
        register("mlp")(nn.Linear)
    assert register("mlp")(MLP) is MLP
