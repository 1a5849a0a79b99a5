"""The densely connected network: sizes by hand, parity with the layers written out, bad input."""

import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from tests.sentences import refuses
from tests.unit.models import image_network_checks as checks

from calibrant.errors import InputError
from calibrant.models import DenseNet121

STEMS = {"cifar": 8, "imagenet": 32}  # and the least side of an image
BLOCKS = (6, 12, 24, 16)


def small(stem="cifar", growth=2):
    torch.manual_seed(0)
    return DenseNet121(3, 3, growth=growth, stem=stem)


def test_numbers_of_weights_are_those_of_the_papers():
    assert checks.number_of_weights(DenseNet121, 3, 10) == 6_956_298
    assert checks.number_of_weights(DenseNet121, 3, 1000, stem="imagenet") == 7_978_856


def by_hand(growth, classes):
    """3 channels, stem of 3x3."""
    width = 2 * growth
    total = 3 * width * 9
    for place, layers in enumerate(BLOCKS):
        for _ in range(layers):
            total += 2 * width + width * 4 * growth  # batch norm and 1x1,
            total += 2 * 4 * growth + 4 * growth * growth * 9  # batch norm and 3x3
            width += growth
        if place < 3:
            total += 2 * width + width * (width // 2)
            width //= 2
    return total + 2 * width + width * classes + classes


@pytest.mark.parametrize(("growth", "classes"), [(32, 10), (32, 100), (12, 10)])
def test_numbers_of_weights_by_hand(growth, classes):
    found = checks.number_of_weights(DenseNet121, 3, classes, growth=growth)
    assert found == by_hand(growth, classes)


def test_layers_are_121():
    with torch.device("meta"):
        parts = list(DenseNet121(3, 10).parameters())
    assert len([part for part in parts if part.ndim > 1]) == 121


def written_out(model, images, stem):
    """The forward pass without a module: matrix products over unfolded windows."""
    layer = checks.Written(model)
    x = layer.conv("features.conv0", images, 2 if stem == "imagenet" else 1)
    if stem == "imagenet":
        x = layer.norm("features.norm0", x).clamp(min=0)
        x = F.unfold(x, 3, padding=1, stride=2).unflatten(1, (-1, 9)).amax(2)  # nothing is below 0
        x = x.unflatten(2, (images.shape[2] // 4, -1))
    for block, layers in enumerate(BLOCKS, start=1):
        for place in range(1, layers + 1):
            at = f"features.denseblock{block}.denselayer{place}"
            out = layer.conv(f"{at}.conv1", layer.norm(f"{at}.norm1", x).clamp(min=0))
            out = layer.conv(f"{at}.conv2", layer.norm(f"{at}.norm2", out).clamp(min=0))
            x = torch.cat([x, out], dim=1)
        if block < 4:
            at = f"features.transition{block}"
            x = layer.conv(f"{at}.conv", layer.norm(f"{at}.norm", x).clamp(min=0))
            corners = (x[:, :, i::2, j::2] for i in (0, 1) for j in (0, 1))
            x = sum(corners) / 4
    x = layer.norm("features.norm5", x).clamp(min=0)
    return layer.linear("classifier", x.mean(dim=(2, 3)))


@pytest.mark.parametrize("stem", STEMS)
def test_logits_equal_the_layers_written_out(stem):
    model = checks.stirred(small(stem))
    images = checks.drawn_images(2, 2 * STEMS[stem]).double()
    expected = written_out(model, images, stem)
    torch.testing.assert_close(model(images), expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("stem", STEMS)
def test_it_over_fits_eight_images(stem):
    checks.check_it_over_fits_eight_images(small(stem, growth=4), 2 * STEMS[stem])


@pytest.mark.parametrize("stem", STEMS)
def test_it_is_rebuilt_from_json_and_weights(stem):
    checks.check_it_is_rebuilt_from_json_and_weights(small(stem), STEMS[stem])


@pytest.mark.parametrize("stem", STEMS)
def test_companions_do_not_matter(stem):
    checks.check_companions_do_not_matter(small(stem), STEMS[stem])


def test_every_weight_is_trained():
    checks.check_every_weight_is_trained(small(growth=4), 16)


def test_first_weights_are_he_normal():
    checks.check_first_weights(small(growth=8))


def test_images_need_not_be_square_or_of_a_power_of_two():
    assert small().eval()(torch.zeros(2, 3, 28, 37)).shape == (2, 3)
    assert small("imagenet").eval()(torch.zeros(2, 3, 33, 65)).shape == (2, 3)


@pytest.mark.parametrize("stem", STEMS)
def test_bad_images_are_named(stem):
    checks.check_bad_images_are_named(small(stem), STEMS[stem])


@pytest.mark.parametrize(("stem", "side"), [("cifar", 15), ("imagenet", 60)])
def test_one_image_of_which_one_value_is_left_cannot_be_trained_on(stem, side):
    model = small(stem)
    with refuses(InputError, "at least two images", "training", "got 1"):
        model(torch.zeros(1, 3, side, side))
    model(torch.zeros(1, 3, side, side + 1))
    assert model.eval()(torch.zeros(1, 3, side, side)).shape == (1, 3)


def test_bad_options_are_named():
    checks.check_bad_options_are_named(
        DenseNet121,
        growth=[(0, "growth must be .* got 0")],
        stem=[("tiny_imagenet", "stem must be 'cifar' or 'imagenet', got 'tiny_imagenet'")],
    )
    checks.check_numpy_numbers_become_pythons(DenseNet121, growth=2)
