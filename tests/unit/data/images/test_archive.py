"""Images in a numpy archive: labels as names, and each thing that is wrong in one sentence."""

import warnings

import numpy as np
import pytest
from tests.sentences import refuses

from calibrant.data import read_images, scan_images
from calibrant.errors import InputError

IMAGES = np.random.default_rng(0).integers(0, 256, size=(4, 6, 5, 3), dtype=np.uint8)


def saved(tmp_path, **arrays):
    file = tmp_path / "images.npz"
    np.savez(file, **{"images": IMAGES, **arrays})
    return file


def test_an_archive_is_read_as_it_was_saved(tmp_path):
    found = read_images(saved(tmp_path, labels=[2, 0, 1, 0], weights=[1, 2, 3, 4]))
    assert np.array_equal(found.images, IMAGES)
    assert found.labels == [2, 0, 1, 0]
    assert found.classes == (0, 1, 2)
    assert found.names == ["0", "1", "2", "3"]
    assert found.weights.tolist() == [1, 2, 3, 4]
    assert len(found) == 4


@pytest.mark.parametrize("classes", [["cat", "dog"], [b"cat", b"dog"]])
@pytest.mark.parametrize("labels", [[0, 1, 1, 0], [False, True, True, False]])
def test_labels_are_positions_in_classes(tmp_path, classes, labels):
    found = read_images(saved(tmp_path, labels=labels, classes=classes))
    assert found.labels == ["cat", "dog", "dog", "cat"]
    assert found.classes == ("cat", "dog")


def test_names_stay_names(tmp_path):
    words = ["cat", "dog", "dog", "cat"]
    assert read_images(saved(tmp_path, labels=words)).labels == words
    assert read_images(saved(tmp_path, labels=np.array(words, dtype="S"))).labels == words
    found = read_images(saved(tmp_path, labels=words, classes=["dog", "cat"]))
    assert (found.labels, found.classes) == (words, ("dog", "cat"))


def test_without_labels_there_are_none(tmp_path):
    found = read_images(saved(tmp_path))
    assert (found.labels, found.classes, found.weights) == (None, None, None)


def test_grey_images_size_and_channels(tmp_path):
    grey = saved(tmp_path, images=IMAGES[..., 0])
    assert read_images(grey).images.shape == (4, 6, 5, 1)
    repeated = read_images(grey, channels=3).images
    assert np.array_equal(repeated, IMAGES[..., :1].repeat(3, axis=3))
    assert read_images(saved(tmp_path), size=4).images.shape == (4, 4, 4, 3)
    assert read_images(saved(tmp_path), channels=1).images.shape == (4, 6, 5, 1)


def test_scanning_gives_the_same_in_parts(tmp_path):
    file = saved(tmp_path, labels=[2, 0, 1, 0], weights=[1, 2, 3, 4])
    parts = list(scan_images(file, batch=3))
    assert [len(part) for part in parts] == [3, 1]
    assert np.array_equal(np.concatenate([part.images for part in parts]), IMAGES)
    assert [label for part in parts for label in part.labels] == [2, 0, 1, 0]
    assert parts[1].names == ["3"]
    assert parts[1].weights.tolist() == [4]
    assert next(scan_images(saved(tmp_path))).labels is None


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"images": IMAGES / 255}, ("images.npz", "whole numbers", "got float64")),
        ({"images": IMAGES[:0]}, ("images is empty",)),
        ({"images": np.array([IMAGES[0], None], dtype=object)}, ("images", "Python objects")),
        ({"labels": [1, 2]}, ("label", "4 images", "got shape (2,)")),
        ({"labels": np.eye(4, dtype=int)}, ("got shape (4, 4)",)),
        ({"labels": [0.0, 1.0, 1.0, 0.0]}, ("labels", "names", "whole numbers", "got float64")),
        ({"labels": np.array([b"\xff"] * 4)}, ("labels", "UTF-8")),
        ({"labels": [0, 1, 2, 1], "classes": ["cat", "dog"]}, ("label 2", "image 2", "2 names")),
        ({"labels": [0, 1, -1, 1], "classes": ["cat", "dog"]}, ("label -1", "image 2", "position")),
        ({"labels": list("abca"), "classes": ["a", "b"]}, ("label 'c'", "image 2", "in classes")),
        ({"labels": [0, 1, 1, 1], "classes": ["cat", "cat"]}, ("classes", "'cat' twice")),
        ({"labels": [0, 1, 1, 1], "classes": [["cat", "dog"]]}, ("classes", "list of names")),
        ({"weights": [1, 2]}, ("weights", "shape (4,)")),
        ({"weights": [1, 2, -3, 4]}, ("weights", "between 0")),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told_in_one_sentence(tmp_path, arrays, message):
    with refuses(InputError, *message) as told:
        read_images(saved(tmp_path, **arrays))
    assert "\n" not in str(told.value)


def test_an_archive_without_images_is_named(tmp_path):
    np.savez(tmp_path / "a.npz", pictures=IMAGES, labels=[0] * 4)
    with refuses(InputError, "has no array 'images'", "'pictures', 'labels'"):
        read_images(tmp_path / "a.npz")


def test_a_class_without_an_image_is_warned_of(tmp_path):
    classes = ["cat", "dog", "emu"]
    with pytest.warns(UserWarning, match="classes has 3 names, but only 2 .*'emu'"):
        read_images(saved(tmp_path, labels=[0, 1, 1, 0], classes=classes))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read_images(saved(tmp_path, labels=[0, 1, 2, 0], classes=classes))
