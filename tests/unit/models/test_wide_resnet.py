"""The wide residual network: size by hand, parity with the layers written out, bad input."""

import pytest
import torch
from tests.sentences import refuses
from tests.unit.models import image_network_checks as checks

from calibrant.errors import InputError
from calibrant.models import WideResNet


def small(**options):
    torch.manual_seed(0)
    return WideResNet(3, 3, **{"widen": 1, "blocks": 2, **options})


def test_number_of_weights_is_that_of_the_paper():
    assert checks.number_of_weights(WideResNet, 3, 10) == 36_479_194


def test_number_of_weights_by_hand():
    total, before = 3 * 16 * 9, 16
    for w in (160, 320, 640):
        total += 2 * before + before * w * 9 + 2 * w + w * w * 9  # the first block,
        total += before * w  # its shortcut,
        total += 3 * (2 * w + w * w * 9 + 2 * w + w * w * 9)  # and three others
        before = w
    total += 2 * 640 + 640 * 10 + 10
    assert checks.number_of_weights(WideResNet, 3, 10) == total


def test_defaults_are_those_of_the_paper():
    with torch.device("meta"):
        model = WideResNet(3, 10)
    groups = (model.group1, model.group2, model.group3)
    assert [len(group) for group in groups] == [4, 4, 4]
    assert [group[-1].conv2.out_channels for group in groups] == [160, 320, 640]
    assert [group[0].conv1.stride for group in groups] == [(1, 1), (2, 2), (2, 2)]
    assert model.conv1.weight.shape == (16, 3, 3, 3)
    assert model.config["dropout"] == 0.0


def written_out(model, images, blocks):
    """The forward pass without a module: matrix products over unfolded windows."""
    layer = checks.Written(model)
    x = layer.conv("conv1", images)
    for group in (1, 2, 3):
        for block in range(blocks):
            at = f"group{group}.{block}"
            stride = 2 if group > 1 and block == 0 else 1
            ready = layer.norm(f"{at}.bn1", x).clamp(min=0)
            out = layer.conv(f"{at}.conv1", ready, stride)
            out = layer.conv(f"{at}.conv2", layer.norm(f"{at}.bn2", out).clamp(min=0))
            if layer.holds(f"{at}.shortcut"):
                x = layer.conv(f"{at}.shortcut", ready, stride)
            x = x + out
    return layer.linear("fc", layer.norm("bn", x).clamp(min=0).mean(dim=(2, 3)))


@pytest.mark.parametrize("options", [{}, {"widen": 2, "blocks": 1}, {"dropout": 0.5}])
def test_logits_equal_the_layers_written_out(options):
    model = checks.stirred(small(**options))
    images = checks.drawn_images(2, 12).double()
    expected = written_out(model, images, options.get("blocks", 2))
    torch.testing.assert_close(model(images), expected, rtol=1e-9, atol=1e-9)


def test_dropout_drops_in_training_only():
    model, images = small(dropout=0.5), checks.drawn_images(2, 8)
    torch.manual_seed(0)
    assert not torch.equal(model(images), model(images))
    assert torch.equal(model.eval()(images), model(images))
    plain = small()
    assert torch.equal(plain(images), plain(images))


def test_it_over_fits_eight_images():
    checks.check_it_over_fits_eight_images(small(), 8)


def test_it_is_rebuilt_from_json_and_weights():
    checks.check_it_is_rebuilt_from_json_and_weights(small(dropout=0.25), 8)


def test_companions_do_not_matter():
    checks.check_companions_do_not_matter(small(), 8)


def test_every_weight_is_trained():
    checks.check_every_weight_is_trained(small(), 8)


def test_it_is_one_graph():
    checks.check_it_is_one_graph(small(), 8)


def test_first_weights_are_he_normal():
    checks.check_first_weights(small())


def test_bad_images_are_named():
    checks.check_bad_images_are_named(small(), 4)


def test_one_image_of_which_one_value_is_left_cannot_be_trained_on():
    with refuses(InputError, "at least two images", "training", "got 1"):
        small()(torch.zeros(1, 3, 4, 4))
    small()(torch.zeros(1, 3, 4, 5))


def test_bad_options_are_named():
    checks.check_bad_options_are_named(
        WideResNet,
        widen=[(0, "widen must be .* got 0"), (1.5, "widen must be .* got 1.5")],
        blocks=[(0, "blocks must be .* got 0")],
        dropout=[(1.0, "dropout must be .* below 1, got 1.0")],
    )
    checks.check_numpy_numbers_become_pythons(WideResNet, widen=1, blocks=1)
