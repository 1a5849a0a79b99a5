"""Residual networks: sizes by hand, parity with the layers written out, over-fitting, bad input."""

import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from tests.sentences import refuses
from tests.unit.models import image_network_checks as checks

from calibrant.errors import InputError
from calibrant.models import ResNet50, ResNet110

STEMS = {"cifar": 8, "tiny_imagenet": 16, "imagenet": 32}  # and the least side of an image


def small(stem="cifar", kind=ResNet50):
    torch.manual_seed(0)
    return kind(3, 3, stem=stem, width=4)


def test_numbers_of_weights_are_those_of_the_papers():
    assert checks.number_of_weights(ResNet50, 3, 10) == 23_520_842
    assert checks.number_of_weights(ResNet50, 3, 1000, stem="imagenet") == 25_557_032
    assert checks.number_of_weights(ResNet110, 3, 10) == 45_864_522


def by_hand(blocks, last):
    """3 channels, stem of 3x3; last: weights of the linear layer."""
    total, before = 3 * 64 * 9 + 2 * 64, 64
    for stage, count in enumerate(blocks):
        w = 64 * 2**stage
        norms = 2 * (w + w + 4 * w)
        inner = 9 * w * w + w * 4 * w + norms
        total += before * w + inner  # the first block,
        total += before * 4 * w + 2 * 4 * w  # its shortcut,
        total += (count - 1) * (4 * w * w + inner)  # and the others
        before = 4 * w
    return total + last


@pytest.mark.parametrize(("kind", "blocks"), [(ResNet50, (3, 4, 6, 3)), (ResNet110, (3, 4, 26, 3))])
def test_numbers_of_weights_by_hand(kind, blocks):
    ten = 2048 * 10 + 10
    assert checks.number_of_weights(kind, 3, 10) == by_hand(blocks, ten)
    tiny = 8192 * 200 + 200
    assert checks.number_of_weights(kind, 3, 200, stem="tiny_imagenet") == by_hand(blocks, tiny)


def test_8192_numbers_reach_the_last_layer_on_tiny_imagenet():
    with torch.device("meta"):
        model = ResNet50(3, 200, stem="tiny_imagenet")
        assert model(torch.zeros(2, 3, 64, 64)).shape == (2, 200)
    assert (model.fc.in_features, model.fc.out_features) == (8192, 200)


def test_layers_are_50_and_110():
    for kind, layers in ((ResNet50, 50), (ResNet110, 110)):
        with torch.device("meta"):
            parts = dict(kind(3, 10).named_parameters())
        counted = [name for name, part in parts.items() if part.ndim > 1]
        assert len([name for name in counted if "downsample" not in name]) == layers


def written_out(model, images, blocks, stem):
    """The forward pass without a module: matrix products over unfolded windows."""
    layer = checks.Written(model)
    x = layer.norm("bn1", layer.conv("conv1", images, 2 if stem == "imagenet" else 1)).clamp(min=0)
    if stem == "imagenet":
        x = F.unfold(x, 3, padding=1, stride=2).unflatten(1, (-1, 9)).amax(2)  # nothing is below 0
        x = x.unflatten(2, (images.shape[2] // 4, -1))
    for stage, count in enumerate(blocks, start=1):
        for block in range(count):
            at = f"layer{stage}.{block}"
            stride = 2 if stage > 1 and block == 0 else 1
            out = layer.norm(f"{at}.bn1", layer.conv(f"{at}.conv1", x)).clamp(min=0)
            out = layer.norm(f"{at}.bn2", layer.conv(f"{at}.conv2", out, stride)).clamp(min=0)
            out = layer.norm(f"{at}.bn3", layer.conv(f"{at}.conv3", out))
            if layer.holds(f"{at}.downsample.0"):
                x = layer.conv(f"{at}.downsample.0", x, stride)
                x = layer.norm(f"{at}.downsample.1", x)
            x = (x + out).clamp(min=0)
    if stem == "tiny_imagenet":
        half = x.shape[2] // 2
        quarters = [x[:, :, i : i + half, j : j + half] for i in (0, half) for j in (0, half)]
        pooled = torch.stack([part.mean(dim=(2, 3)) for part in quarters], dim=2).flatten(1)
    else:
        pooled = x.mean(dim=(2, 3))
    return layer.linear("fc", pooled)


@pytest.mark.parametrize("stem", STEMS)
def test_logits_equal_the_layers_written_out(stem):
    model = checks.stirred(small(stem))
    images = checks.drawn_images(2, 2 * STEMS[stem]).double()
    expected = written_out(model, images, (3, 4, 6, 3), stem)
    torch.testing.assert_close(model(images), expected, rtol=1e-9, atol=1e-9)


def test_logits_of_110_layers_equal_the_layers_written_out():
    model = checks.stirred(small(kind=ResNet110))
    images = checks.drawn_images(2, 16).double()
    expected = written_out(model, images, (3, 4, 26, 3), "cifar")
    torch.testing.assert_close(model(images), expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("stem", STEMS)
def test_it_over_fits_eight_images(stem):
    checks.check_it_over_fits_eight_images(small(stem), 2 * STEMS[stem])


def test_110_layers_over_fit_eight_images():
    checks.check_it_over_fits_eight_images(small(kind=ResNet110), 16)


@pytest.mark.parametrize("stem", STEMS)
def test_it_is_rebuilt_from_json_and_weights(stem):
    checks.check_it_is_rebuilt_from_json_and_weights(small(stem), STEMS[stem])


@pytest.mark.parametrize("stem", STEMS)
def test_companions_do_not_matter(stem):
    checks.check_companions_do_not_matter(small(stem), STEMS[stem])


def test_every_weight_is_trained():
    checks.check_every_weight_is_trained(small(), 16)


def test_first_weights_are_he_normal():
    checks.check_first_weights(small())


def test_images_need_not_be_square_or_of_a_power_of_two():
    assert small().eval()(torch.zeros(2, 3, 28, 37)).shape == (2, 3)
    assert small("tiny_imagenet").eval()(torch.zeros(2, 3, 37, 17)).shape == (2, 3)
    assert small("imagenet").eval()(torch.zeros(2, 3, 33, 65)).shape == (2, 3)


@pytest.mark.parametrize("stem", STEMS)
def test_bad_images_are_named(stem):
    checks.check_bad_images_are_named(small(stem), STEMS[stem])


@pytest.mark.parametrize(("stem", "side"), [("cifar", 8), ("imagenet", 32)])
def test_one_image_of_which_one_value_is_left_cannot_be_trained_on(stem, side):
    model = small(stem)
    with refuses(InputError, "at least two images", "training", "got 1"):
        model(torch.zeros(1, 3, side, side))
    model(torch.zeros(1, 3, side + 1, side))
    assert model.eval()(torch.zeros(1, 3, side, side)).shape == (1, 3)
    small("tiny_imagenet")(torch.zeros(1, 3, 16, 16))


def test_bad_options_are_named():
    checks.check_bad_options_are_named(
        ResNet50,
        width=[(0, "width must be .* got 0"), (True, "width must be .* got True")],
        stem=[("svhn", "stem must be 'cifar' or 'tiny_imagenet' or 'imagenet', got 'svhn'")],
    )
    checks.check_numpy_numbers_become_pythons(ResNet110, width=2)


@pytest.mark.parametrize("kind", [ResNet50, ResNet110])
def test_blocks_that_begin_at_zero_pass_on_what_came_in(kind):
    torch.manual_seed(0)
    plain = kind(3, 2, width=2).eval()
    torch.manual_seed(0)
    model = kind(3, 2, width=2, zero_init=True).eval()
    x = torch.rand(2, 8, 8, 8)  # what a block gets is never below 0
    assert torch.equal(model.layer1[1](x), x)
    assert not torch.equal(plain.layer1[1](x), x)
    other = {name for name, part in plain.state_dict().items() if not _same(model, name, part)}
    assert other
    assert all(name.endswith("bn3.weight") for name in other)
    assert model.config["zero_init"]
    assert not plain.config["zero_init"]


def _same(model, name, part):
    return torch.equal(model.state_dict()[name], part)
