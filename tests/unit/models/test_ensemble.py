"""Ensembles: by hand, parity with NumPy, invariances, huge logits, shifts, saved and refused."""

import copy
import json

import numpy as np
import pytest
import torch
from safetensors.torch import load, save
from tests.sentences import refuses
from torch import nn

from calibrant.convert import ensemble_logits, probs_from_logits
from calibrant.errors import InputError
from calibrant.models import MLP, BiLSTM, Ensemble, build
from calibrant.models.ensemble import mean_logits


class Fixed(nn.Module):
    """Gives the logits that it was given, whatever it reads."""

    def __init__(self, logits):
        super().__init__()
        self.register_buffer("logits", torch.as_tensor(logits))
        self.config = {"model": "fixed"}

    def forward(self, *_):
        return self.logits


def mlps(n=3, n_classes=4):
    torch.manual_seed(0)
    return [
        MLP(5, n_classes, hidden=(6 + place,), dropout=(0.1,), batch_norm=False).eval()
        for place in range(n)
    ]


ROWS = torch.randn(7, 5, generator=torch.Generator().manual_seed(1))


def test_two_members_by_hand():
    # Summed exponentials 1 and e^2, probabilities (0.9, 0.1) and (0.5, 0.5).
    one = torch.tensor([[0.9, 0.1]]).log()
    other = torch.tensor([[0.5, 0.5]]).log() + 2.0
    logits = Ensemble([Fixed(one), Fixed(other)])(torch.zeros(1))
    expected = torch.tensor([[0.7, 0.3]]).log() + 1.0
    torch.testing.assert_close(logits, expected, rtol=0, atol=1e-6)
    torch.testing.assert_close(logits.softmax(1), torch.tensor([[0.7, 0.3]]))
    torch.testing.assert_close(logits.logsumexp(1), torch.tensor([1.0]))


def test_probabilities_and_summed_exponentials_are_the_means_of_the_members():
    members = mlps()
    logits = Ensemble(members)(ROWS)
    found = torch.stack([member(ROWS) for member in members])
    torch.testing.assert_close(logits.softmax(1), found.softmax(2).mean(0), rtol=0, atol=1e-6)
    mean = found.logsumexp(2).mean(0)
    torch.testing.assert_close(logits.logsumexp(1), mean, rtol=0, atol=1e-6)


def test_it_equals_its_twin_in_numpy():
    members = [member.double() for member in mlps()]
    shifts = np.random.default_rng(0).normal(size=(3, 4)).round(3)
    for given in (None, shifts):
        together = Ensemble(members, given).double()
        off = np.zeros((3, 4)) if given is None else together.shifts.numpy()
        each = [
            member(ROWS.double()).detach().numpy() - s
            for member, s in zip(members, off, strict=True)
        ]
        found = together(ROWS.double()).detach().numpy()
        np.testing.assert_allclose(found, ensemble_logits(each), rtol=0, atol=1e-12)


def test_one_member_has_its_own_logits():
    member = mlps(1)[0]
    torch.testing.assert_close(Ensemble([member])(ROWS), member(ROWS), rtol=0, atol=1e-6)


def test_the_same_member_many_times_has_its_own_logits():
    member = mlps(1)[0]
    torch.testing.assert_close(Ensemble([member] * 5)(ROWS), member(ROWS), rtol=0, atol=1e-6)


def test_the_order_of_members_and_the_names_of_classes_do_not_matter():
    members = mlps()
    logits = Ensemble(members)(ROWS)
    backwards = Ensemble(members[::-1])(ROWS)
    torch.testing.assert_close(backwards, logits, rtol=0, atol=1e-6)
    each = torch.stack([member(ROWS) for member in members])
    torch.testing.assert_close(mean_logits(each.flip(2)).flip(1), logits, rtol=0, atol=1e-6)


def test_a_constant_on_a_member_moves_all_logits_by_its_share():
    each = torch.stack([member(ROWS) for member in mlps()])
    more = each.clone()
    more[1] += 6.0
    torch.testing.assert_close(mean_logits(more), mean_logits(each) + 2.0, rtol=0, atol=1e-5)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_huge_logits_stay_finite(dtype):
    huge = torch.tensor([[1e4, -1e4, 0.0], [-1e4, 1e4, 0.0], [1e4, 1e4, -1e4]], dtype=dtype)
    logits = Ensemble([Fixed(huge), Fixed(-huge)])(torch.zeros(3))
    assert logits.isfinite().all()
    expected = (huge.softmax(1) + (-huge).softmax(1)) / 2
    torch.testing.assert_close(logits.softmax(1), expected, rtol=0, atol=2e-3)
    assert logits.dtype == dtype


def test_half_precision_is_averaged_in_float32():
    each = [torch.randn(4, 3).to(torch.bfloat16) for _ in range(2)]
    logits = Ensemble([Fixed(part) for part in each])(torch.zeros(1))
    assert logits.dtype == torch.float32
    expected = ensemble_logits([part.double().numpy() for part in each])
    np.testing.assert_allclose(logits.numpy(), expected, atol=1e-5)


def test_shifts_are_taken_off_each_member():
    members = mlps(2)
    shifts = [[0.5, 0.0, -1.0, 2.0], [0.0, 0.25, 3.0, 0.0]]
    logits = Ensemble(members, shifts)(ROWS)
    each = [member(ROWS).detach().numpy() - s for member, s in zip(members, shifts, strict=True)]
    mean = np.mean([probs_from_logits(part) for part in each], axis=0)
    np.testing.assert_allclose(logits.softmax(1).detach().numpy(), mean, atol=1e-6)
    none = Ensemble(members, np.zeros((2, 4)))(ROWS)
    torch.testing.assert_close(none, Ensemble(members)(ROWS), rtol=0, atol=0)


@pytest.mark.parametrize("shifts", [None, [[0.5, 0.25, -1.0, 2.0], [0.1, 0.2, 0.3, 0.4]]])
def test_config_as_json_and_weights_make_the_same_ensemble(shifts):
    together = Ensemble(mlps(2), shifts).eval()
    weights = load(save({k: v.contiguous() for k, v in together.state_dict().items()}))
    named = {name.rsplit(".", 1)[0] for name in weights} - {"shifts"}
    assert named == {f"members.{m}.layers.{n}" for m in (0, 1) for n in (0, 3)}
    again = build(json.loads(json.dumps(together.config))).eval()
    again.load_state_dict(weights)
    assert again.config == together.config
    assert torch.equal(again(ROWS), together(ROWS))
    assert ("shifts" in weights) == (shifts is not None)


def test_members_may_be_configs_or_networks_and_are_not_copied():
    member = mlps(1)[0]
    together = Ensemble([member, member.config])
    assert together.members[0] is member
    assert together.members[1].config == member.config
    assert together.config == {"model": "ensemble", "members": [member.config] * 2}
    assert Ensemble(nn.ModuleList([member])).members[0] is member


def test_ensembles_of_ensembles_are_rebuilt():
    inner = Ensemble(mlps(2))
    outer = Ensemble([inner, mlps(1)[0]])
    again = build(json.loads(json.dumps(outer.config)))
    again.load_state_dict(outer.state_dict())
    assert torch.equal(again.eval()(ROWS), outer.eval()(ROWS))


def test_networks_of_texts_are_members_too():
    torch.manual_seed(0)
    members = [BiLSTM(9, 3, embedding=4, hidden=3).eval() for _ in range(2)]
    inputs = torch.tensor([[4, 5, 6], [7, 0, 0]]), torch.tensor([3, 1])
    mean = sum(member(*inputs).softmax(1) for member in members) / 2
    torch.testing.assert_close(Ensemble(members)(*inputs).softmax(1), mean, rtol=0, atol=1e-6)


def test_gradients_reach_every_member():
    together = Ensemble(mlps(2)).train()
    together(ROWS).square().sum().backward()
    assert all(weights.grad.any() for weights in together.parameters())


def test_it_is_copied_and_moved_with_its_shifts():
    together = copy.deepcopy(Ensemble(mlps(2), np.ones((2, 4)))).double()
    assert together.shifts.dtype == torch.float64
    assert together.eval()(ROWS.double()).dtype == torch.float64


def test_members_of_other_numbers_of_classes_are_refused_when_called():
    together = Ensemble([*mlps(2), *mlps(1, n_classes=3)])
    with refuses(InputError, "got 4", "logits", "members[0] and 3", "members[2]"):
        together(ROWS)
    with refuses(InputError, "shift", "2 classes", "4 logits"):
        Ensemble(mlps(1), [[0.0, 0.0]])(ROWS)


def test_bad_members_are_named():
    mlp = mlps(1)[0]
    unnamed = nn.Linear(2, 2)
    unnamed.config = {"width": 2}
    for members, sentence in [
        ([], ("members", "at least one network", "got none")),
        (mlp, ("members", "list", "networks", "got MLP")),
        (mlp.config, ("members", "list", "networks", "got dict")),
        ("mlp", ("members", "list", "networks", "got str")),
        ([mlp, nn.Linear(5, 4)], ("members[1]", "network", "config", "got Linear")),
        ([mlp, unnamed], ("members[1]", "network", "config", "got Linear")),
        ([3], ("members[0]", "network", "config", "got int")),
        ([{"model": "mpl"}], ("members[0]['model']", "name", "network", "got 'mpl'")),
        ([{**mlp.config, "wide": 1}], ("members[0] names 'wide'", "not an option")),
    ]:
        with refuses(InputError, *sentence):
            Ensemble(members)


@pytest.mark.parametrize(
    "shifts",
    [[0.0, 1.0], [[0.0]], [[0.0], [np.nan]], [["a"], ["b"]], [[1.0], [1.0, 2.0]], [[]] * 2],
)
def test_bad_shifts_are_named(shifts):
    with refuses(InputError, "shifts", "finite numbers", "shape (2, classes)"):
        Ensemble(mlps(2), shifts)
