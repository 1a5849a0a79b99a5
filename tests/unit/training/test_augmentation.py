"""Images moved and mirrored: what padding, cropping and flipping give, each way equally often."""

import itertools

import pytest
import torch
from scipy.stats import chisquare
from torch.nn import functional

from calibrant.training.image_rows import crop_and_flip, cut_out


def numbered(n=1, height=3, width=4, channels=1):
    """Images in which no two pixels are equal, and none is black."""
    size = height * width * channels
    pixels = torch.arange(1, size + 1).repeat(n, 1) + size * torch.arange(n)[:, None]
    return pixels.reshape(n, height, width, channels)


def padded_and_sliced(images, pad, down, right, mirrored):
    """The plain way: a padded copy, one slice and one flip for each image."""
    found = []
    for image, u, v, m in zip(images, down, right, mirrored, strict=True):
        wide = functional.pad(image.permute(2, 0, 1), (pad,) * 4)
        part = wide[:, pad + u :, pad + v :][:, : image.shape[0], : image.shape[1]]
        found.append((part.flip(2) if m else part).permute(1, 2, 0))
    return torch.stack(found)


def test_a_frame_moved_by_hand():
    image = torch.tensor([[1, 2, 3], [4, 5, 6]]).reshape(1, 2, 3, 1)
    zero, one = torch.tensor([0]), torch.tensor([1])
    lower = cut_out(image, zero, down=one, right=zero)
    assert lower.reshape(2, 3).tolist() == [[4, 5, 6], [0, 0, 0]]
    left = cut_out(image, zero, down=zero, right=-one)
    assert left.reshape(2, 3).tolist() == [[0, 1, 2], [0, 4, 5]]
    both = cut_out(image, zero, down=-one, right=one, mirrored=one)
    assert both.reshape(2, 3).tolist() == [[0, 0, 0], [0, 3, 2]]


def test_mirrored_frames_are_mirrored_and_the_others_are_not():
    images = numbered(2)
    found = cut_out(images, torch.tensor([0, 1]), mirrored=torch.tensor([1, 0]))
    assert torch.equal(found[0], images[0].flip(1))
    assert torch.equal(found[1], images[1])


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("pad", [1, 2, 5])
def test_frames_are_those_of_a_padded_copy(pad, channels):
    moves = list(itertools.product(range(-pad, pad + 1), range(-pad, pad + 1), (0, 1)))
    down, right, mirrored = torch.tensor(moves).T
    images = numbered(len(moves), channels=channels)
    found = cut_out(images, torch.arange(len(moves)), down=down, right=right, mirrored=mirrored)
    assert torch.equal(
        found, padded_and_sliced(images, pad, *(c.tolist() for c in (down, right, mirrored)))
    )


def test_without_border_and_flip_images_are_as_they_were():
    images = numbered(5)
    assert torch.equal(crop_and_flip(images), images)
    assert torch.equal(crop_and_flip(images, places=torch.tensor([3, 0])), images[[3, 0]])


def test_every_move_and_flip_is_equally_likely():
    n, image = 3600, numbered()
    torch.manual_seed(7)
    found = crop_and_flip(image.expand(n, -1, -1, -1), pad=1, flip=True).reshape(n, -1)
    moves = torch.tensor(list(itertools.product((-1, 0, 1), (-1, 0, 1), (0, 1)))).T
    ways = cut_out(
        image, torch.zeros(18, dtype=torch.int64), down=moves[0], right=moves[1], mirrored=moves[2]
    )
    equal = (found[:, None] == ways.reshape(1, 18, -1)).all(2)
    assert equal.sum(1).tolist() == [1] * n
    assert chisquare(equal.sum(0).tolist()).pvalue > 0.01


def test_flips_alone_are_equally_likely_and_move_nothing():
    image = numbered()
    torch.manual_seed(3)
    found = crop_and_flip(image.expand(1000, -1, -1, -1), flip=True)
    flipped = (found == image.flip(2)).flatten(1).all(1)
    assert bool((flipped | (found == image).flatten(1).all(1)).all())
    assert chisquare([int(flipped.sum()), 1000 - int(flipped.sum())]).pvalue > 0.01


def test_the_same_seed_gives_the_same_frames_and_the_next_draw_others():
    images = numbered(20)
    torch.manual_seed(0)
    first, second = (crop_and_flip(images, pad=2, flip=True) for _ in range(2))
    torch.manual_seed(0)
    assert torch.equal(crop_and_flip(images, pad=2, flip=True), first)
    assert not torch.equal(first, second)


def test_the_images_are_left_as_they_are():
    images = numbered(4).to(torch.uint8)
    before = images.clone()
    crop_and_flip(images, pad=1, flip=True).zero_()
    crop_and_flip(images).zero_()
    assert torch.equal(images, before)
    assert crop_and_flip(images, pad=1, flip=True).dtype == torch.uint8


def test_no_value_is_asked_back_from_the_device():
    images = torch.zeros(6, 4, 4, 3, dtype=torch.uint8, device="meta")  # which has no values
    assert crop_and_flip(images, pad=2, flip=True).shape == (6, 4, 4, 3)
