"""Images as batches: each once, normalised as by hand, changed only where they are learned from."""

import warnings

import numpy as np
import pytest
import torch
from tests.sentences import refuses

from calibrant.data.encoders.image_encoder import ImageEncoder
from calibrant.errors import InputError
from calibrant.training import image_rows
from calibrant.training.image_rows import ImageRows

MEAN, STD = np.array([0.5, 0.4, 0.3]), np.array([0.25, 0.2, 0.1])


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def bytes_of(n=130, height=6, width=5, channels=3, seed=0):
    draw = np.random.default_rng(seed)
    return draw.integers(1, 256, size=(n, height, width, channels), dtype=np.uint8)


def made(n=130, **options):
    return ImageRows(bytes_of(n), np.arange(n) % 7, mean=MEAN, std=STD, **options)


def normalised(images):
    return ((images / 255 - MEAN) / STD).transpose(0, 3, 1, 2)


def dealt(rows, size, **options):
    """Places, images and labels of all batches, joined."""
    batches = list(rows.batches(size, **options))
    places = torch.cat([batch.places for batch in batches])
    images = torch.cat([batch.inputs[0] for batch in batches])
    return places, images, torch.cat([batch.labels for batch in batches])


def test_a_pixel_normalised_by_hand():
    rows = ImageRows(np.full((2, 1, 1, 1), 51, dtype=np.uint8), mean=[0.4], std=[0.1])
    assert next(rows.batches(2)).inputs[0].flatten().tolist() == pytest.approx([-2.0, -2.0])


def test_batches_are_normalised_as_the_formula_says_and_as_the_encoder_does():
    _, images, _ = dealt(made(), 50)
    assert images.dtype == torch.float32
    assert images.numpy() == pytest.approx(normalised(bytes_of()), abs=2e-6)
    encoder = ImageEncoder().fit(bytes_of())
    rows = ImageRows(bytes_of(), mean=encoder.mean_, std=encoder.std_)
    assert np.array_equal(dealt(rows, 50)[1].numpy(), encoder.transform(bytes_of()))


@pytest.mark.parametrize("generator", [None, 5])
def test_each_row_is_dealt_once_with_its_own_image_and_label(generator):
    rows = made()
    order = None if generator is None else seeded(generator)
    places, images, labels = dealt(rows, 32, generator=order)
    assert sorted(places.tolist()) == list(range(130))
    assert torch.equal(images, dealt(rows, 130)[1][places])
    assert torch.equal(labels, rows.labels[places])


def test_without_a_generator_images_come_in_order_and_are_never_changed():
    plain, augmented = made(), made(crop=2, flip=True)
    places, images, labels = dealt(augmented, 32)
    assert places.tolist() == list(range(130))
    assert torch.equal(images, dealt(plain, 32)[1])
    assert torch.equal(labels, plain.labels)
    for rank in (0, 1):
        places, images, _ = dealt(augmented, 32, shard=(rank, 2))
        assert torch.equal(images, dealt(plain, 130)[1][places])


def test_shuffled_images_are_moved_and_mirrored_with_a_border_black_before_it_is_normalised():
    white = np.full((400, 4, 4, 3), 255, dtype=np.uint8)
    rows = ImageRows(white, mean=MEAN, std=STD, crop=1)
    torch.manual_seed(0)
    _, images, _ = dealt(rows, 64, generator=seeded())
    black, bright = -MEAN / STD, (1 - MEAN) / STD
    for channel in range(3):
        values = images[:, channel].unique().tolist()
        assert values == pytest.approx([black[channel], bright[channel]], abs=1e-5)
    rows_black = (images[:, 0] < 0).all(2).sum(1)
    assert sorted(rows_black.unique().tolist()) == [0, 1]
    once = ImageRows(bytes_of(60), mean=MEAN, std=STD, flip=True)
    places, images, _ = dealt(once, 20, generator=seeded())
    plain = dealt(once, 60)[1][places]
    flipped = (images == plain.flip(3)).flatten(1).all(1)
    assert bool((flipped | (images == plain).flatten(1).all(1)).all())
    assert 10 < int(flipped.sum()) < 50


def test_channels_stand_together_in_memory():
    for generator in (None, seeded()):
        for batch in made(crop=1).batches(32, generator=generator):
            assert batch.inputs[0].is_contiguous(memory_format=torch.channels_last)


def test_the_same_seeds_deal_the_same_batches():
    rows = made(crop=2, flip=True)
    found = []
    for _ in range(2):
        torch.manual_seed(1)
        found.append(dealt(rows, 32, generator=seeded()))
    assert all(torch.equal(one, other) for one, other in zip(*found, strict=True))
    other = dealt(rows, 32, generator=seeded())  # the order is the same, the moves are not
    assert torch.equal(other[0], found[0][0])
    assert not torch.equal(other[1], found[0][1])


def test_in_blocks_the_same_is_dealt_as_all_at_once(monkeypatch):
    rows = made(flip=False)
    whole = dealt(rows, 32, generator=seeded())
    monkeypatch.setattr(image_rows, "_BLOCK", 1)
    assert all(
        torch.equal(one, other)
        for one, other in zip(whole, dealt(rows, 32, generator=seeded()), strict=True)
    )


@pytest.mark.parametrize("n", [129, 130, 131, 132])
def test_two_processes_share_each_batch(n):
    rows = made(n, crop=1, flip=True)
    alone = list(rows.batches(64, generator=seeded()))
    shared = [list(rows.batches(64, generator=seeded(), shard=(rank, 2))) for rank in (0, 1)]
    assert len(shared[0]) == len(shared[1])
    together = torch.cat([batch.places for part in shared for batch in part])
    assert sorted(together.tolist()) == list(range(n))
    assert shared[0][0].places.tolist() == alone[0].places[::2].tolist()
    assert all(len(batch.labels) > 1 for part in shared for batch in part)
    in_order = [dealt(rows, 64, shard=(rank, 2))[0].tolist() for rank in (0, 1)]
    assert sorted(in_order[0] + in_order[1]) == list(range(n))


def test_size_in_bytes_is_that_of_bytes_not_of_floats():
    assert made(10).nbytes == 10 * 6 * 5 * 3 + 10 * 8


def test_on_a_device_batches_are_made_there_and_no_value_is_asked_back():
    moved = made(crop=2, flip=True).to(torch.device("meta"))  # a device without values
    assert {moved.images.device.type, moved.labels.device.type} == {"meta"}
    for generator in (None, seeded()):
        batches = list(moved.batches(32, generator=generator))
        parts = {part.device.type for b in batches for part in (b.places, *b.inputs, b.labels)}
        assert parts == {"meta"}
        assert sum(len(batch.labels) for batch in batches) == 130


def test_grey_images_and_tensors_are_read():
    grey = ImageRows(np.zeros((4, 8, 9), dtype=np.uint8), mean=[0.0], std=[1.0])
    assert next(grey.batches(4)).inputs[0].shape == (4, 1, 8, 9)
    tensor = torch.from_numpy(bytes_of(9))
    found = dealt(ImageRows(tensor, mean=MEAN, std=STD), 4)[1]
    assert torch.equal(found, dealt(ImageRows(bytes_of(9), mean=MEAN, std=STD), 4)[1])


def test_images_that_must_not_be_written_to_bring_no_warning():
    images = bytes_of(4)
    images.flags.writeable = False
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ImageRows(images, mean=MEAN, std=STD)


def test_what_is_done_to_images_is_told():
    assert made().augmentation == ""
    assert made(crop=2).augmentation == "crop 2"
    assert made(crop=2, flip=True).augmentation == "crop 2 flip"


def test_bad_options_are_named():
    for crop in (-1, 5, 1.5, True, "4"):
        with refuses(InputError, "crop", "whole number", "pixels", "0 to 4"):
            made(4, crop=crop)
    with refuses(InputError, "flip", "True", "False", "got 1"):
        made(4, flip=1)
    with refuses(InputError, "3 channels", "images", "got 1"):
        ImageRows(bytes_of(2), mean=[0.5], std=[0.5])
    with refuses(InputError, "std", "above 0"):
        ImageRows(bytes_of(2), mean=MEAN, std=[0.5, 0.0, 0.5])
    with refuses(InputError, "labels", "class per row"):
        ImageRows(bytes_of(2), [1, 2, 3], mean=MEAN, std=STD)
    with pytest.raises(InputError, match="uint8"):
        ImageRows(torch.zeros(2, 4, 4, 3), mean=MEAN, std=STD)
    with pytest.raises(InputError, match="batch_size"):
        next(made(4).batches(0))
