"""The small convolutional network: size by hand, parity with the layers written out, bad input."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from tests.sentences import refuses
from tests.unit.models import image_network_checks as checks

from calibrant.errors import InputError
from calibrant.models import SmallCNN
from calibrant.models.small_cnn import _square


def small(**options):
    torch.manual_seed(0)
    return SmallCNN(3, 3, **{"width": 4, **options})


def test_number_of_weights_by_hand():
    total = 0
    for before, after in ((3, 32), (32, 64), (64, 128), (128, 128), (128, 128)):
        total += 9 * before * after + 2 * after
    assert checks.number_of_weights(SmallCNN, 3, 10) == total + 128 * 10 + 10 == 390_186


def written_out(model, images):
    """The forward pass without a module: matrix products over unfolded windows."""
    layer = checks.Written(model)

    def convolved(name, x):
        return layer.norm(f"{name}.1", layer.conv(f"{name}.0", x)).clamp(min=0)

    x = images
    for place in (0, 2, 4):
        x = convolved(f"layers.{place}", x)
        height, width = (length // 2 * 2 for length in x.shape[2:])
        x = x[..., :height, :width]
        x = x.unflatten(3, (-1, 2)).unflatten(2, (-1, 2)).amax(dim=(3, 5))
    x = x + convolved("block.1", convolved("block.0", x))
    return layer.linear("fc", x.flatten(2).max(dim=2).values)


@pytest.mark.parametrize("size", [8, 13, 28])
def test_logits_equal_the_layers_written_out(size):
    model = checks.stirred(small())
    images = checks.drawn_images(2, size).double()
    torch.testing.assert_close(model(images), written_out(model, images), rtol=1e-9, atol=1e-9)


def test_large_images_are_averaged_over_squares_first():
    model = checks.stirred(small(side=10))
    images = checks.drawn_images(2, 28).double()  # 3 x 3 pixels: 28 / 2 is more than 10
    means = images[..., :27, :27].reshape(2, 3, 9, 3, 9, 3).mean(dim=(3, 5))
    torch.testing.assert_close(model(images), written_out(model, means), rtol=1e-9, atol=1e-9)
    wide = F.pad(images, (0, 372))  # 28 x 400: more squares would leave fewer than 8 rows
    fewer = wide[..., :27, :399].reshape(2, 3, 9, 3, 133, 3).mean(dim=(3, 5))
    torch.testing.assert_close(model(wide), written_out(model, fewer), rtol=1e-9, atol=1e-9)


def test_squares_are_as_small_as_the_pixels_allow():
    sizes = {(28, 28): 1, (40, 40): 1, (41, 40): 2, (64, 64): 2, (224, 224): 6, (9, 900): 1}
    assert {size: _square(*size, side=40) for size in sizes} == sizes


def test_an_enlarged_image_has_the_logits_of_the_original():
    model, images = checks.stirred(small()), checks.drawn_images(2, 40).double()
    for times in (2, 3, 5):
        larger = images.repeat_interleave(times, dim=2).repeat_interleave(times, dim=3)
        torch.testing.assert_close(model(larger), model(images), rtol=1e-9, atol=1e-9)


def test_dropout_drops_in_training_only():
    model, images = small(dropout=0.5), checks.drawn_images(2, 8)
    torch.manual_seed(0)
    assert not torch.equal(model(images), model(images))
    assert torch.equal(model.eval()(images), model(images))


def test_it_over_fits_eight_images():
    checks.check_it_over_fits_eight_images(small(width=8), 8)


def test_it_is_rebuilt_from_json_and_weights():
    checks.check_it_is_rebuilt_from_json_and_weights(small(dropout=0.25, side=9), 8)


def test_companions_do_not_matter():
    checks.check_companions_do_not_matter(small(), 16)


def test_every_weight_is_trained():
    checks.check_every_weight_is_trained(small(), 16)


@pytest.mark.parametrize("size", [8, 96])
def test_it_is_one_graph(size):
    checks.check_it_is_one_graph(small(), size)


def test_first_weights_are_he_normal():
    checks.check_first_weights(small(width=16))


def test_bad_images_are_named():
    checks.check_bad_images_are_named(small(), 8)


def test_one_image_of_which_one_value_is_left_cannot_be_trained_on():
    for size in (8, 15):
        with refuses(InputError, "at least two images", "training", "got 1"):
            small()(torch.zeros(1, 3, size, size))
    small()(torch.zeros(1, 3, 8, 16))


def test_bad_options_are_named():
    checks.check_bad_options_are_named(
        SmallCNN,
        width=[(0, "width must be .* got 0"), (1.5, "width must be .* got 1.5")],
        side=[(7, "side must be .* at least 8, got 7"), (True, "side must be .* got True")],
        dropout=[(1.0, "dropout must be .* below 1, got 1.0")],
    )
    checks.check_numpy_numbers_become_pythons(SmallCNN, width=np.int64(4), side=np.int64(9))
