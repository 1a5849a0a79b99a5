"""Dropout that stays on: known truths of thinned networks, fixed masks, threads, saved, refused."""

import copy
import json
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from tests.sentences import refuses
from tests.unit.models import text_network_checks as checks
from torch import nn

from calibrant.convert import ensemble_logits
from calibrant.errors import InputError
from calibrant.models import (
    MLP,
    BiLSTM,
    Ensemble,
    MCDropout,
    ResNet50,
    TextCNN,
    Transformer,
    WideResNet,
    build,
)
from calibrant.models.dropout import Dropout

ROWS = torch.randn(7, 5, generator=torch.Generator().manual_seed(1))


class Linear(nn.Module):
    """Dropout before a linear layer; the identity where `out` is 0."""

    def __init__(self, width, out=0, p=0.25, kind=nn.Dropout):
        super().__init__()
        self.drop = kind(p)
        self.line = nn.Linear(width, out) if out else nn.Flatten()
        self.config = {"model": "linear"}

    def forward(self, x):
        return self.line(self.drop(x))


def mlp(**options):
    torch.manual_seed(0)
    sizes = {"hidden": (16, 12), "dropout": (0.5, 0.25), "batch_norm": False}
    return MLP(5, 3, **{**sizes, **options}).eval()


def thinned(model, *inputs):
    """The logits of each pass: (passes, b, K)."""
    found = [model._run_pass(number, *inputs) for number in range(model.passes)]
    return torch.stack(found).detach()


@pytest.mark.parametrize("kind", [nn.Dropout, Dropout])
def test_a_feature_is_dropped_for_all_rows_or_scaled_up_for_all(kind):
    model = MCDropout(Linear(1000, p=0.2, kind=kind), passes=3).eval()
    for found in thinned(model, torch.ones(4, 1000)):
        assert sorted(found.unique().tolist()) == [0.0, 1.25]
        assert (found == found[0]).all()


def test_the_share_of_dropped_features_is_p_over_passes():
    for p in (0.1, 0.5):
        model = MCDropout(Linear(50, p=p), passes=400).eval()
        dropped = (thinned(model, torch.ones(1, 50)) == 0).double().mean(0)
        assert float(dropped.mean()) == pytest.approx(p, abs=4 * (p * (1 - p) / 20_000) ** 0.5)
        assert float((dropped - p).abs().max()) < 4.5 * (p * (1 - p) / 400) ** 0.5


def test_the_mean_of_thinned_linear_layers_tends_to_the_whole_one():
    torch.manual_seed(0)
    whole = Linear(30, 4).double().eval()
    model = MCDropout(whole, passes=3000).eval()
    rows = torch.randn(5, 30, dtype=torch.float64)
    found = thinned(model, rows)
    expected = whole(rows).detach()
    error = found.std(0) / 3000**0.5
    assert ((found.mean(0) - expected).abs() < 4.5 * error).all()
    few = (found[:30].mean(0) - expected).abs().mean()
    assert (found.mean(0) - expected).abs().mean() < few


def test_a_thinned_mlp_is_the_mlp_with_columns_struck_out():
    member = mlp().double()
    model = MCDropout(member, passes=4, seed=3).eval()
    x = ROWS.double()
    first, _, _, second, _, _, last = member.layers
    for number, found in enumerate(thinned(model, x)):
        kept = [kept_in_pass(3, number, layer, width) for layer, width in enumerate((16, 12))]
        h = first(x).clamp(min=0) * (kept[0] >= 0.5) / 0.5
        h = second(h).clamp(min=0) * (kept[1] >= 0.25) / 0.75
        torch.testing.assert_close(found, last(h).detach(), rtol=0, atol=1e-12)


def kept_in_pass(seed, number, layer, width):
    start = int(np.random.SeedSequence((seed, number, layer)).generate_state(1, np.uint64)[0])
    draw = torch.Generator().manual_seed(start)
    return torch.rand(width, generator=draw, dtype=torch.float64)


def test_logits_are_those_of_an_ensemble_of_the_passes():
    shift = [0.5, -0.25, 0.0]
    for given in (None, shift):
        model = MCDropout(mlp(), passes=6, shift=given).eval()
        passes = thinned(model, ROWS).double().numpy()
        off = np.zeros(3) if given is None else np.array(given)
        expected = ensemble_logits(list(passes - off))
        np.testing.assert_allclose(model(ROWS).detach().numpy(), expected, rtol=0, atol=1e-5)


def test_passes_differ_and_one_seed_gives_one_answer():
    passes = thinned(MCDropout(mlp(), passes=5).eval(), ROWS)
    assert len(passes.flatten(1).unique(dim=0)) == 5
    model = MCDropout(mlp(), passes=5).eval()
    assert torch.equal(model(ROWS), model(ROWS))
    assert torch.equal(model(ROWS), MCDropout(mlp(), passes=5).eval()(ROWS))
    assert not torch.allclose(model(ROWS), MCDropout(mlp(), passes=5, seed=1).eval()(ROWS))
    more = thinned(MCDropout(mlp(), passes=9).eval(), ROWS)
    assert torch.equal(more[:5], passes)  # a further pass leaves those before it as they are


def test_layers_are_thinned_independently():
    class Two(nn.Module):
        def __init__(self):
            super().__init__()
            self.one, self.two = nn.Dropout(0.5), nn.Dropout(0.5)
            self.off = nn.Dropout(0.0)
            self.again = self.one
            self.config = {"model": "two"}

        def forward(self, x):
            return torch.cat((self.one(x), self.two(x), self.off(x), self.again(x)), dim=1)

    found = thinned(MCDropout(Two(), passes=1).eval(), torch.ones(1, 200))[0, 0].view(4, 200)
    both = ((found[0] > 0) == (found[1] > 0)).double().mean()
    assert 0.3 < float(both) < 0.7
    assert (found[2] == 1).all()
    assert torch.equal(found[3], found[0])  # one layer that is used twice


def test_channels_of_maps_and_last_dimensions_of_sequences_are_dropped():
    model = MCDropout(Linear(0, p=0.5), passes=1).eval()
    maps = thinned(model, torch.ones(2, 40, 3, 3))[0].view(2, 40, 9)
    assert (maps == maps[:1, :, :1]).all()
    assert set(maps.unique().tolist()) == {0.0, 2.0}
    sequences = thinned(model, torch.ones(2, 7, 40))[0].view(2, 7, 40)
    assert torch.equal(sequences, sequences[:1, :1].expand(2, 7, 40))
    assert torch.equal(sequences[0, 0], maps[0, :, 0])


def test_a_layer_that_drops_everything_gives_zeros():
    assert not thinned(MCDropout(Linear(9, p=1.0), passes=1).eval(), torch.ones(2, 9)).any()


def test_a_row_depends_neither_on_its_batch_nor_on_padding():
    model = MCDropout(mlp(), passes=4).double().eval()
    alone = torch.cat([model(row.unsqueeze(0)) for row in ROWS.double()])
    torch.testing.assert_close(alone, model(ROWS.double()), rtol=0, atol=1e-12)
    torch.manual_seed(0)
    for member in (
        BiLSTM(40, 3, embedding=12, hidden=8),
        TextCNN(40, 3, embedding=12, filters=10),
    ):
        checks.check_padding_and_companions_do_not_matter(MCDropout(member, passes=3))


def test_networks_of_texts_and_images_are_thinned():
    torch.manual_seed(0)
    inputs = torch.tensor([[4, 5, 6], [7, 0, 0]]), torch.tensor([3, 1])
    for member in (
        BiLSTM(9, 3, embedding=8, hidden=32, embedding_dropout=0.5, dense_dropout=0.5),
        TextCNN(9, 3, embedding=8, filters=32, dropout=0.5),
    ):
        model = MCDropout(member.eval(), passes=4).eval()
        assert len(thinned(model, *inputs).flatten(1).unique(dim=0)) == 4
        assert not torch.allclose(model(*inputs), member(*inputs))
    member = WideResNet(3, 3, widen=1, blocks=1, dropout=0.5).eval()
    images = torch.randn(2, 3, 8, 8)
    found = thinned(MCDropout(member, passes=4).eval(), images)
    assert len(found.flatten(1).unique(dim=0)) == 4


def test_a_transformer_is_thinned():
    pytest.importorskip("transformers")
    torch.manual_seed(0)
    sizes = {"vocab_size": 40, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2}
    member = Transformer({"model_type": "bert", "intermediate_size": 16, **sizes}, 3)
    model = MCDropout(member, passes=3).eval()
    checks.check_padding_and_companions_do_not_matter(model)
    tokens, lengths = checks.drawn_texts(4)
    assert len(thinned(model, tokens, lengths).flatten(1).unique(dim=0)) == 3


def test_the_users_randomness_is_left_alone():
    model = MCDropout(mlp(), passes=3).eval()
    before = torch.get_rng_state()
    numpy_before = np.random.get_state()[1].copy()
    model(ROWS)
    assert torch.equal(torch.get_rng_state(), before)
    assert (np.random.get_state()[1] == numpy_before).all()


def test_threads_may_share_it():
    torch.manual_seed(0)
    models = [MCDropout(mlp(), passes=8, seed=seed).eval() for seed in range(2)]
    rows = [torch.randn(16, 5) for _ in range(24)]
    with torch.no_grad():
        expected = [models[place % 2](part) for place, part in enumerate(rows)]

    def answer(place):
        with torch.inference_mode():
            return models[place % 2](rows[place])

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(answer, range(24)))
    assert all(torch.equal(one, other) for one, other in zip(found, expected, strict=True))


def test_in_training_it_is_the_network_with_its_usual_dropout():
    model = MCDropout(mlp(dropout=(0.5, 0.5)), passes=3, shift=[1.0, 0.0, 0.0]).train()
    torch.manual_seed(0)
    found = torch.stack([model(ROWS) for _ in range(3)])
    assert len(found.unique(dim=0)) == 3
    torch.manual_seed(0)
    member = mlp(dropout=(0.5, 0.5)).train()
    torch.manual_seed(0)
    shift = torch.tensor([1.0, 0.0, 0.0])
    torch.testing.assert_close(found[0], member(ROWS) - shift, rtol=0, atol=1e-6)
    found.sum().backward()
    assert all(weights.grad is not None for weights in model.parameters())


def test_gradients_flow_after_an_answer_in_inference_mode():
    model = MCDropout(mlp().double(), passes=3).eval()
    with torch.inference_mode():
        model(ROWS.double())
    model(ROWS.double()).square().sum().backward()
    assert all(weights.grad.isfinite().all() for weights in model.parameters())


def test_the_network_is_copied_and_stays_as_it_was():
    member = mlp()
    before = member(ROWS)
    model = MCDropout(member, passes=2).eval()
    assert [type(layer) for layer in member.layers if isinstance(layer, nn.Dropout)] == [
        Dropout
    ] * 2
    assert torch.equal(member(ROWS), before)
    member.layers[0].weight.data.zero_()
    assert model.member.layers[0].weight.any()


@pytest.mark.parametrize("shift", [None, [0.5, 0.25, -1.0]])
def test_config_as_json_and_weights_make_the_same_network(shift):
    member = mlp()
    model = MCDropout(member, passes=4, seed=5, shift=shift).eval()
    again = build(json.loads(json.dumps(model.config))).eval()
    again.load_state_dict(model.state_dict())
    assert again.config == model.config
    assert torch.equal(again(ROWS), model(ROWS))
    weights = set(model.state_dict()) - {"shift"}
    assert weights == {f"member.{name}" for name in member.state_dict()}  # each of them once
    copied = copy.deepcopy(model)
    assert torch.equal(copied(ROWS), model(ROWS))


def test_it_is_a_member_of_an_ensemble_and_an_ensemble_its_member():
    members = [MCDropout(mlp(), passes=3, seed=seed).eval() for seed in (0, 1)]
    mean = sum(member(ROWS).softmax(1) for member in members) / 2
    torch.testing.assert_close(Ensemble(members)(ROWS).softmax(1), mean, rtol=0, atol=1e-6)
    model = MCDropout(Ensemble([mlp(), mlp()]), passes=3).eval()
    passes = thinned(model, ROWS)
    torch.testing.assert_close(model(ROWS).softmax(1), passes.softmax(2).mean(0))
    assert len(passes.flatten(1).unique(dim=0)) == 3


def test_networks_without_dropout_are_refused():
    with refuses(InputError, "resnet50", "no dropout", "keep", "choose", "network"):
        MCDropout(ResNet50(3, 3, width=2))
    with refuses(InputError, "mlp", "no dropout", "keep"):
        MCDropout(mlp(dropout=(0.0, 0.0)))
    with refuses(InputError, "mc_dropout keeps", "already"):
        MCDropout(MCDropout(mlp()))
    with refuses(InputError, "ensemble keeps", "dropout", "already"):
        MCDropout(Ensemble([mlp(), MCDropout(mlp())]))


def test_bad_options_are_named():
    for options, sentence in [
        ({"passes": 0}, ("passes", "whole number", "at least 1", "got 0")),
        ({"passes": 2.5}, ("passes", "whole number", "at least 1", "got 2.5")),
        ({"seed": -1}, ("seed", "whole number", "at least 0", "got -1")),
        ({"shift": [[1.0, 2.0, 3.0]]}, ("shift", "finite numbers", "shape (classes,)")),
        ({"shift": [1.0, np.inf, 3.0]}, ("shift", "finite numbers", "shape (classes,)")),
        ({"member": nn.Linear(5, 3)}, ("member must be a network with a config", "got Linear")),
        ({"member": {"model": "mpl"}}, ("member['model']", "name", "network", "got 'mpl'")),
    ]:
        with refuses(InputError, *sentence):
            MCDropout(**{"member": mlp(), **options})
    with refuses(InputError, "shift", "2 classes", "3 logits"):
        MCDropout(mlp(), shift=[0.0, 1.0]).eval()(ROWS)
