"""Dropout: how many values are dropped, what is kept of the rest, and when nothing is."""

import math

import pytest
import torch
from torch import nn

from calibrant.models.dropout import Dropout, keep_mask


@pytest.mark.parametrize("share", [0.1, 0.2, 0.25, 0.3, 0.5, 0.9, 1 / 256, 1 / 3])
def test_the_right_share_is_dropped_and_the_mean_is_kept(share):
    torch.manual_seed(0)
    n = 1_000_000
    mask = keep_mask(torch.empty(n), share)
    dropped = int((mask == 0).sum())
    # Rounded to 1/65536, within five standard errors.
    error = 5 * math.sqrt(n * share * (1 - share)) + n / 65_536
    assert abs(dropped - n * share) < error
    assert mask.unique().tolist() == pytest.approx([0, 1 / (1 - share)], rel=2e-4)


def test_a_kept_value_is_scaled_by_the_exact_share_of_levels():
    cut = round(0.3 * 65_536)
    assert keep_mask(torch.empty(100), 0.3).double().max() == pytest.approx(
        65_536 / (65_536 - cut), rel=1e-7
    )


def test_neighbours_are_dropped_independently():
    torch.manual_seed(0)
    kept = keep_mask(torch.empty(125_000, 8), 0.5) > 0
    both = (kept.unsqueeze(2) & kept.unsqueeze(1)).double().mean(0)
    apart = both[~torch.eye(8, dtype=torch.bool)]
    assert (apart - 0.25).abs().max() < 5 * math.sqrt(0.25 * 0.75 / 125_000)


@pytest.mark.parametrize("shape", [(0,), (1,), (7, 3), (2, 3, 5)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_mask_has_the_shape_and_precision_of_the_values(shape, dtype):
    mask = keep_mask(torch.empty(shape, dtype=dtype), 0.3)
    assert (mask.shape, mask.dtype) == (torch.Size(shape), dtype)


def test_what_is_dropped_has_no_gradient_and_the_rest_a_scaled_one():
    torch.manual_seed(0)
    values = torch.ones(50, requires_grad=True)
    out = Dropout(0.5)(values)
    out.sum().backward()
    assert torch.equal(values.grad, out.detach())
    assert sorted(set(out.tolist())) == [0.0, 2.0]


def test_a_seed_fixes_what_is_dropped():
    def drawn(seed):
        torch.manual_seed(seed)
        return Dropout(0.3)(torch.ones(64)).tolist()

    assert drawn(1) == drawn(1) != drawn(2)


def test_nothing_is_dropped_in_evaluation_or_with_share_0():
    values = torch.ones(64)
    assert Dropout(0.5).eval()(values) is values
    assert Dropout(0.0)(values) is values


def test_the_values_that_came_in_are_not_written_to():
    values = torch.ones(64)
    Dropout(0.5)(values)
    assert torch.equal(values, torch.ones(64))


def test_half_precision_is_dropped_as_torch_does():
    values = torch.ones(64, dtype=torch.bfloat16)
    torch.manual_seed(0)
    expected = nn.Dropout(0.5)(values)
    torch.manual_seed(0)
    assert torch.equal(Dropout(0.5)(values), expected)


def test_nearly_everything_can_be_dropped():
    assert Dropout(0.9999999)(torch.ones(1000)).isfinite().all()
