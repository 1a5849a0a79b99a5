"""ImageEncoder: mean and spread of the train images alone, and other images refused in words."""

import io
import itertools
import json

import numpy as np
import pytest
import torch
from PIL import Image
from tests.data_sets import data_file
from tests.sentences import refuses

from calibrant.data import ImageEncoder
from calibrant.data.encoders import image_encoder
from calibrant.data.encoders.image_encoder import as_images, scale_and_offset
from calibrant.errors import InputError, NotFitted


def drawn(n=50, height=7, width=5, channels=3, seed=0):
    draw = np.random.default_rng(seed)
    return draw.integers(0, 256, size=(n, height, width, channels), dtype=np.uint8)


def test_mean_and_spread_by_hand():
    encoder = ImageEncoder().fit(np.array([0, 0, 255, 255], dtype=np.uint8).reshape(2, 1, 2, 1))
    assert (encoder.mean_.tolist(), encoder.std_.tolist()) == ([0.5], [0.5])
    assert encoder.transform([[[255, 0]]]).tolist() == [[[[1.0, -1.0]]]]


@pytest.mark.parametrize("channels", [1, 3])
def test_mean_and_spread_are_those_of_numpy(channels, monkeypatch):
    images = drawn(channels=channels)
    encoder = ImageEncoder().fit(images)
    assert encoder.mean_ == pytest.approx((images / 255).mean((0, 1, 2)), abs=1e-12)
    assert encoder.std_ == pytest.approx((images / 255).std((0, 1, 2)), abs=1e-12)
    assert (encoder.size_, encoder.channels_) == ((7, 5), channels)
    monkeypatch.setattr(image_encoder, "_BLOCK", 7 * 5 * channels * 3)  # three images at a time
    again = ImageEncoder().fit(images)
    assert np.array_equal(again.mean_, encoder.mean_)
    assert np.array_equal(again.std_, encoder.std_)


def test_numbers_are_those_of_the_formula():
    images = drawn()
    encoder = ImageEncoder().fit(images)
    found = encoder.transform(images)
    expected = ((images / 255 - encoder.mean_) / encoder.std_).transpose(0, 3, 1, 2)
    assert found.dtype == np.float32
    assert found == pytest.approx(expected, abs=2e-6)
    assert found.mean((0, 2, 3)) == pytest.approx(np.zeros(3), abs=1e-5)
    assert found.std((0, 2, 3)) == pytest.approx(np.ones(3), abs=1e-5)


def test_the_order_of_images_and_of_pixels_makes_no_difference():
    images = drawn()
    one = ImageEncoder().fit(images)
    other = ImageEncoder().fit(images[::-1, ::-1, ::-1])
    assert np.array_equal(one.mean_, other.mean_)
    assert np.array_equal(one.std_, other.std_)


def test_a_channel_of_one_colour_has_spread_1():
    images = drawn()
    images[..., 1] = 77
    encoder = ImageEncoder().fit(images)
    assert encoder.std_[1] == 1
    assert encoder.transform(images)[:, 1] == pytest.approx(0, abs=1e-6)


def test_nothing_is_learned_from_other_images():
    encoder = ImageEncoder().fit(drawn())
    before = encoder.to_dict()
    encoder.transform(drawn(seed=1))
    assert encoder.to_dict() == before


def test_what_was_learned_survives_json():
    encoder = ImageEncoder().fit(drawn())
    saved = json.loads(json.dumps(encoder.to_dict()))
    assert (saved["format"], saved["kind"]) == (1, "image")
    again = ImageEncoder.from_dict(saved)
    assert again.to_dict() == encoder.to_dict()
    assert np.array_equal(again.transform(drawn(seed=1)), encoder.transform(drawn(seed=1)))


def test_another_encoder_or_format_is_refused():
    saved = ImageEncoder().fit(drawn()).to_dict()
    for change in ({"kind": "text"}, {"format": 2}):
        with refuses(InputError, "not an image encoder of format 1"):
            ImageEncoder.from_dict({**saved, **change})
    with refuses(InputError, "mean must", "one finite number for each of the 3"):
        ImageEncoder.from_dict({**saved, "mean": [0.5]})
    with refuses(InputError, "std must be above 0"):
        ImageEncoder.from_dict({**saved, "std": [0.5, 0.0, 0.5]})


def test_images_of_another_size_or_colour_are_refused_with_both_sizes():
    encoder = ImageEncoder().fit(drawn())
    with refuses(InputError, "7 x 5 colour images as at fit, got 5 x 7 colour images"):
        encoder.transform(drawn(height=5, width=7))
    with refuses(InputError, "colour images as at fit, got 7 x 5 grey images"):
        encoder.transform(drawn(channels=1))
    with refuses(InputError, "steer X must be 7 x 5"):
        encoder.check_images(drawn(height=5), name="steer X")


def test_before_fit_it_says_so():
    for use in (
        lambda e: e.transform(drawn()),
        lambda e: e.to_dict(),
        lambda e: e.check_images(drawn()),
    ):
        with refuses(NotFitted, "call fit with the train images"):
            use(ImageEncoder())


@pytest.mark.parametrize(
    "given",
    [
        lambda images: images,
        list,
        torch.from_numpy,
        lambda images: [torch.from_numpy(image) for image in images],
        lambda images: [Image.fromarray(image) for image in images],
        lambda images: images.astype(np.int64),
        lambda images: images.tolist(),
        lambda images: np.array([*images, None], dtype=object)[:-1],
    ],
)
def test_images_of_any_kind_are_read_alike(given):
    assert np.array_equal(as_images(given(drawn(4))), drawn(4))


def test_grey_images_get_their_channel():
    grey = drawn(channels=1)
    assert np.array_equal(as_images(grey[..., 0]), grey)
    assert np.array_equal(as_images(list(grey[..., 0])), grey)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (drawn() / 255, ("whole numbers 0..255", "(uint8)", "got float64", "0..1", "pass")),
        (drawn() > 9, ("got bool",)),
        (drawn().astype(int) + 9, ("0..255, got 26",)),
        (drawn().astype(int) - 9, ("0..255, got -9",)),
        (drawn().transpose(0, 3, 1, 2), ("got (50, 3, 7, 5)", "pass images.transpose")),
        (drawn(channels=4), ("1 channel", "grey or 3", "colour", "got (50, 7, 5, 4)")),
        (drawn()[0, 0], ("got (5, 3)",)),
        (drawn()[0], ("colour image", "7 grey ones", "pass images[None]")),
        (drawn(0), ("images is empty",)),
        ([], ("images is empty",)),
        (np.array(3), ("images is empty",)),
        (drawn(height=0), ("at least one pixel",)),
        ([drawn(height=3)[0], drawn()[0]], ("image 0", "shape (3, 5, 3)", "image 1", "1 has (7")),
        ("folder", ("got str", "use read_images")),
        (None, ("got NoneType", "use read_images")),
        (["a.png"], ("row 0", "'a.png'", "use read_images")),
        ([None], ("row 0 is NoneType",)),
        ([[[1, 2], [3]]], ("row 0 is list",)),
    ],
)  # fmt: skip
def test_what_is_no_images_is_named(given, message):
    with refuses(InputError, *message):
        as_images(given)


def test_the_name_of_the_images_is_told():
    with refuses(InputError, "X", "whole numbers"):
        as_images(drawn() / 255, name="X")


def test_scale_and_offset_are_the_formula():
    scale, offset = scale_and_offset([0.4914], [0.247])
    for value in range(256):
        assert float(value * scale[0] + offset[0]) == pytest.approx(
            (value / 255 - 0.4914) / 0.247, abs=1e-6
        )


def strips(file):
    """The images of a CIFAR-10 shard, which lie one under another in lossless pictures."""
    with np.load(file, allow_pickle=False) as shard:
        blob, offsets = shard["blob"].tobytes(), shard["offsets"]
    pictures = [Image.open(io.BytesIO(blob[a:b])) for a, b in itertools.pairwise(offsets)]
    return np.concatenate(
        [np.asarray(one.convert("RGB")).reshape(-1, 32, 32, 3) for one in pictures]
    )


@pytest.mark.data
def test_cifar_10_has_the_means_and_spreads_that_everyone_writes_down():
    files = [data_file("cifar10", f"cifar10_train_{part}.npz") for part in range(5)]
    encoder = ImageEncoder().fit(np.concatenate([strips(file) for file in files]))
    assert encoder.mean_ == pytest.approx([0.4914, 0.4822, 0.4465], abs=5e-5)
    assert encoder.std_ == pytest.approx([0.2470, 0.2435, 0.2616], abs=5e-5)
