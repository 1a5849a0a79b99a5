"""What networks for images share: padded convolutions, first weights and checks of a batch."""

import pytest
import torch
from tests.sentences import refuses
from torch import nn

from calibrant.errors import InputError
from calibrant.models.image_network import check_images, check_stem, convolution, prepare


@pytest.mark.parametrize("size", [1, 3, 7])
def test_only_the_stride_shrinks_an_image(size):
    images = torch.zeros(1, 2, 9, 8)
    assert convolution(2, 5, size)(images).shape == (1, 5, 9, 8)
    assert convolution(2, 5, size, stride=2)(images).shape == (1, 5, 5, 4)
    assert convolution(2, 5, size).bias is None


def test_first_weights_keep_the_spread_of_gradients():
    torch.manual_seed(0)
    network = nn.Sequential(nn.Conv2d(8, 64, 3, padding=1), nn.BatchNorm2d(64))
    linear = nn.Linear(4, 4)
    before = linear.weight.clone()
    prepare(network)
    prepare(linear)
    weights = network[0].weight.detach()
    assert float(weights.std()) == pytest.approx((2 / (9 * 64)) ** 0.5, rel=0.05)
    assert float(weights.mean()) == pytest.approx(0.0, abs=0.003)
    assert weights.is_contiguous(memory_format=torch.channels_last)
    assert torch.equal(linear.weight, before)


def test_weights_stay_leaves_that_are_trained():
    network = nn.Conv2d(3, 4, 3)
    prepare(network)
    assert network.weight.is_leaf
    assert network.weight.requires_grad


def test_half_precision_and_an_empty_batch_are_images():
    check_images(torch.zeros(2, 1, 8, 8, dtype=torch.bfloat16), 1, least=8, lone=8)
    check_images(torch.zeros(0, 1, 8, 8), 1, least=8, lone=8)


def test_a_lone_image_is_refused_up_to_its_size():
    check_images(torch.zeros(1, 1, 8, 8), 1, least=8)
    check_images(torch.zeros(1, 1, 8, 9), 1, least=8, lone=8)
    with refuses(InputError, "small", "8 x 8", "got 1", "use", "larger batch_size"):
        check_images(torch.zeros(1, 1, 8, 8), 1, least=8, lone=8)


def test_an_unknown_stem_is_named():
    check_stem("one", ("one", "two"))
    with refuses(InputError, "stem", "'one'", "'two'", "got None"):
        check_stem(None, ("one", "two"))
