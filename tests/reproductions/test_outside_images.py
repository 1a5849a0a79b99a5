from __future__ import annotations

import gzip
import io
import struct

import numpy as np
import pytest
from PIL import Image
from reproductions.outside_images import (
    fashion_mnist,
    outside_images,
    svhn,
    with_noise,
)
from scipy.io import savemat
from tests.data_sets import data_file

from calibrant.errors import InputError

LABELS = struct.pack(">II", 2049, 3) + bytes(3)


@pytest.fixture
def data(tmp_path, monkeypatch):
    monkeypatch.setenv("CALIBRANT_DATA", str(tmp_path))
    for folder in ("svhn", "fashion_mnist"):
        (tmp_path / folder).mkdir()
    return tmp_path


def _colour(n):
    return np.random.default_rng(0).integers(0, 256, (n, 32, 32, 3), dtype=np.uint8)


def _grey(n):
    return np.random.default_rng(1).integers(0, 256, (n, 28, 28), dtype=np.uint8)


def _idx(folder, images, magic=2051):
    header = struct.pack(">IIII", magic, *images.shape)
    for name, data in (
        ("t10k-images-idx3-ubyte.gz", header + images.tobytes()),
        ("t10k-labels-idx1-ubyte.gz", LABELS),
    ):
        (folder / name).write_bytes(gzip.compress(data))


def test_the_published_matlab_file_and_strips_hold_the_same_digits(data):
    images = _colour(4)
    savemat(data / "svhn" / "test_32x32.mat", {"X": images.transpose(1, 2, 3, 0), "y": [1] * 4})
    np.testing.assert_array_equal(svhn(), images)

    kept = io.BytesIO()
    Image.fromarray(images.reshape(-1, 32, 3)).save(kept, "WEBP", lossless=True)
    blob = np.frombuffer(kept.getvalue(), np.uint8)
    np.savez(data / "svhn" / "svhn_test_5000.npz", blob=blob, offsets=[0, len(blob)])
    (data / "svhn" / "test_32x32.mat").unlink()
    np.testing.assert_array_equal(svhn(), images)


def test_the_published_idx_file_and_the_archive_hold_the_same_clothes(data):
    grey = _grey(3)
    _idx(data / "fashion_mnist", grey)
    found = fashion_mnist()

    assert found.shape == (3, 32, 32, 3)
    np.testing.assert_array_equal(found[:, 2:30, 2:30, 1], grey)
    assert not found[:, :2].any()
    assert not found[:, :, 30:].any()
    np.savez(data / "fashion_mnist" / "fashion_mnist_test.npz", images=grey, labels=[0, 1, 2])
    np.testing.assert_array_equal(fashion_mnist(), found)


def test_noise_has_the_spread_that_was_asked_for_and_stays_in_bytes():
    grey = np.full((1200, 32, 32, 3), 128, dtype=np.uint8)
    noisy = with_noise(grey)

    assert noisy.dtype == np.uint8
    assert abs(noisy.std() / 255 - 0.10) < 1e-3
    assert abs(noisy.mean() - 128) < 0.1
    np.testing.assert_array_equal(with_noise(grey), noisy)
    assert (with_noise(grey, seed=2) != noisy).any()
    assert (noisy[0] != noisy[1000]).any()  # the second block has draws of its own
    np.testing.assert_array_equal(with_noise(grey[:10]), noisy[:10])
    np.testing.assert_array_equal(with_noise(grey[:3], sd=0.0), grey[:3])


def test_noise_is_clipped_at_black_and_white():
    for value in (0, 255):
        images = np.full((50, 32, 32, 3), value, dtype=np.uint8)
        # Half of the draws lie beyond the bound, and stay at it.
        assert abs(np.mean(with_noise(images) == value) - 0.5) < 0.02


def test_a_share_cuts_what_is_read(data):
    savemat(data / "svhn" / "test_32x32.mat", {"X": _colour(10).transpose(1, 2, 3, 0)})

    found = outside_images(["svhn", "noise"], _colour(6), share=0.5)

    assert {name: len(images) for name, images in found.items()} == {"svhn": 5, "noise": 6}


def test_damaged_files_are_told(data):
    (data / "svhn" / "test_32x32.mat").write_bytes(b"<html>not found</html>")
    with pytest.raises(InputError, match="is not a readable SVHN file"):
        svhn()
    savemat(data / "svhn" / "test_32x32.mat", {"X": np.zeros((3, 3))})
    with pytest.raises(InputError, match="holds no images of 32 x 32"):
        svhn()
    _idx(data / "fashion_mnist", _grey(3), magic=2049)
    with pytest.raises(InputError, match="is not a packed idx file of images"):
        fashion_mnist()
    (data / "fashion_mnist" / "t10k-images-idx3-ubyte.gz").write_bytes(b"abc")
    with pytest.raises(InputError, match="is not a packed idx file of images"):
        fashion_mnist()


@pytest.mark.data
def test_the_real_digits_and_clothes():
    data_file("svhn_test_5000", "svhn_test_5000.npz")
    data_file("fashion_mnist_test", "fashion_mnist_test.npz")

    digits, clothes = svhn(), fashion_mnist()

    assert digits.shape == (5000, 32, 32, 3)
    mean = digits.mean(axis=(0, 1, 2)) / 255
    np.testing.assert_allclose(mean, [0.4537, 0.4538, 0.4705], atol=1e-3)
    assert clothes.shape == (10_000, 32, 32, 3)
    assert abs(clothes[:, 2:30, 2:30].mean() / 255 - 0.2868) < 1e-3
