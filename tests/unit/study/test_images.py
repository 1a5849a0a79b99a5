"""A study of images: how folders and npz files are read and divided, and what is refused."""

from __future__ import annotations

import shutil

import numpy as np
import pytest
from PIL import Image
from tests.sentences import assert_mentions, refuses

from calibrant.bundle.files import sha256_of
from calibrant.errors import InputError, SplitMisuse
from calibrant.study import StudyConfig
from calibrant.study.rows.read import read_study_rows
from calibrant.study.rows.read_images import content_hashes
from calibrant.study.rows.rows import OUTSIDE

pytestmark = pytest.mark.usefixtures("rough_intervals")

CLASSES = ("cat", "dog")


def pictures(n, *, seed=0, size=(6, 6), channels=3, n_classes=2):
    """Draw images of which the first pixel tells the class."""
    images = np.random.default_rng(seed).integers(0, 256, (n, *size, channels), dtype=np.uint8)
    labels = np.arange(n) % n_classes
    images[:, 0, 0, :] = labels[:, None]
    return images, labels


def archive(folder, name="logs.npz", n=60, *, seed=0, **arrays):
    """Write an npz file of images; `arrays` go before what is drawn."""
    images, labels = pictures(n, seed=seed)
    path = folder / name
    np.savez(path, **{"images": images, "labels": labels, **arrays})
    return str(path)


def photos(folder, name="photos", n=60, *, seed=0, size=(6, 6), channels=3, classes=CLASSES):
    """Write images into one folder for each class."""
    images, labels = pictures(n, seed=seed, size=size, channels=channels, n_classes=len(classes))
    for place, (image, label) in enumerate(zip(images, labels, strict=True)):
        where = folder / name / classes[label]
        where.mkdir(parents=True, exist_ok=True)
        Image.fromarray(image.squeeze()).save(where / f"{place:03d}.png")
    return str(folder / name)


def read(data, **changes):
    return read_study_rows(settings(data, **changes))


def settings(data, **changes):
    own = {"data": data, "images": True, "calibrator": "identity", "model": "resnet50"}
    return StudyConfig(**{**own, **changes})


def test_images_of_an_archive_keep_their_labels_in_every_split(tmp_path):
    rows = read(archive(tmp_path, n=200))
    sizes = {name: part["rows"] for name, part in rows.sizes().items()}
    assert sizes == {"train": 140, "steer": 10, "choice": 10, "calibrate": 20, "test": 20}
    assert (rows.kind, rows.classes) == ("image", (0, 1))
    for name in sizes:
        part = rows[name]
        assert part.inputs.dtype == np.uint8
        assert part.inputs.shape == (sizes[name], 6, 6, 3)
        np.testing.assert_array_equal(part.inputs[:, 0, 0, 0], part.codes)


def test_classes_of_a_folder_are_its_folders_and_places_its_sorted_files(tmp_path):
    data = photos(tmp_path)
    rows = read(data)
    assert rows.classes == ("cat", "dog")
    np.testing.assert_array_equal(rows["train"].inputs[:, 0, 0, 0], rows["train"].codes)
    files = sorted((tmp_path / "photos").rglob("*.png"))
    told = [np.asarray(Image.open(files[place])) for place in rows.to_file_positions().steer.ids]
    np.testing.assert_array_equal(told, rows["steer"].inputs)


def test_named_classes_of_an_archive_are_told_by_their_names(tmp_path):
    rows = read(archive(tmp_path, classes=["tabby", "beagle"]))
    assert rows.classes == ("beagle", "tabby")
    np.testing.assert_array_equal(rows["test"].inputs[:, 0, 0, 0], 1 - rows["test"].codes)


def test_grey_images_have_one_channel(tmp_path):
    images, _ = pictures(60, channels=1)
    assert read(archive(tmp_path, images=images[..., 0]))["train"].inputs.shape[1:] == (6, 6, 1)
    assert read(photos(tmp_path, channels=1))["train"].inputs.shape[1:] == (6, 6, 1)


def test_equal_images_stay_in_one_split(tmp_path):
    images, labels = pictures(80)
    rows = read(archive(tmp_path, images=images.repeat(2, axis=0), labels=labels.repeat(2)))
    names = ("train", "steer", "choice")
    train, steer, choice = (set(content_hashes(rows[name].inputs)) for name in names)
    held = {name for part in ("calibrate", "test") for name in content_hashes(rows[part].inputs)}
    assert len(choice) == 4
    each = (train, steer, choice, held)
    assert sum(map(len, each)) == len(set().union(*each)) == 80


def test_a_class_of_one_image_repeated_names_the_reason(tmp_path):
    images, labels = pictures(60)
    images[labels == 1] = images[1]
    with refuses(InputError, "equal images", "one split"):
        read(archive(tmp_path, images=images))


def test_images_of_both_files_are_named_or_dropped(tmp_path):
    data, golden = photos(tmp_path), photos(tmp_path, "audited", n=40, seed=1)
    shutil.copy(tmp_path / "photos/dog/001.png", tmp_path / "audited/cat/again.png")
    with pytest.raises(SplitMisuse) as error:
        read(data, golden=golden)
    assert_mentions(error.value, "1 image is", data, golden)
    assert_mentions(error.value, "golden images cat/again.png", "dog/001.png")
    rows = read(data, golden=golden, overlap="drop")
    assert len(rows.sources["logs"]) == 59
    assert rows.notes == ("1 image was left out of the logs because it is also in the golden set.",)


def test_a_golden_set_calibrates_and_tests_whatever_its_kind(tmp_path):
    data = photos(tmp_path, n=100)
    golden = archive(tmp_path, "golden.npz", seed=1, classes=np.array(CLASSES))
    rows = read(data, golden=golden)
    sizes = {name: (part["source"], part["rows"]) for name, part in rows.sizes().items()}
    assert sizes == {
        "train": ("logs", 80), "steer": ("logs", 5), "choice": ("logs", 5),
        "log_test": ("logs", 10), "calibrate": ("golden", 30), "test": ("golden", 30),
    }  # fmt: skip


def test_a_golden_set_of_another_size_says_what_to_do(tmp_path):
    data, golden = photos(tmp_path, size=(8, 6)), photos(tmp_path, "audited", seed=1)
    with pytest.raises(InputError) as error:
        read(data, golden=golden)
    assert_mentions(error.value, f"{data} are 8 x 6", f"{golden} are 6 x 6", "--image-size 6")
    rows = read(data, golden=golden, image_size=5)
    assert rows["train"].inputs.shape[1:] == rows["test"].inputs.shape[1:] == (5, 5, 3)


def test_a_grey_golden_set_is_read_in_colour_but_not_the_reverse(tmp_path):
    colour, grey = photos(tmp_path), photos(tmp_path, "grey", seed=1, channels=1)
    assert read(colour, golden=grey)["test"].inputs.shape[1:] == (6, 6, 3)
    with refuses(InputError, "grey", "colour"):
        read(grey, golden=colour)


def test_images_of_no_class_train_nobody(tmp_path):
    data = photos(tmp_path, n=90, classes=("cat", "dog", "blurred"))
    rows = read(data, out_of_scope="blurred")
    assert rows.classes == ("cat", "dog")
    assert not (rows["train"].codes == OUTSIDE).any()
    assert rows.sizes()["test"]["out_of_scope"] > 0
    with refuses(InputError, "label 'blured'"):
        read(data, out_of_scope="blured")


def test_weights_lie_by_the_golden_images(tmp_path):
    weights = np.linspace(1, 2, 60)
    golden = archive(tmp_path, "golden.npz", seed=1, weights=weights)
    rows = read(archive(tmp_path), golden=golden)
    np.testing.assert_array_equal(rows["test"].weights, weights[rows.to_file_positions().test.ids])
    assert rows.notes == ()
    rows = read(golden, golden=archive(tmp_path))
    assert rows["test"].weights is None
    assert_mentions(rows.notes[0], "golden.npz", "not used", "weights")


def test_at_most_so_many_images_are_drawn_and_a_seed_draws_the_same(tmp_path):
    data = archive(tmp_path, n=200)
    rows = read(data, rows=100)
    assert sum(part["rows"] for part in rows.sizes().values()) == 100
    assert rows.notes == (
        "100 of the 200 images of logs.npz were drawn at random, as requested.",
    )  # fmt: skip
    np.testing.assert_array_equal(rows["test"].inputs, read(data, rows=100)["test"].inputs)
    assert not np.array_equal(rows.splits.train.ids, read(data, rows=100, seed=1).splits.train.ids)


def test_images_without_a_label_and_classes_without_an_image_are_told(tmp_path):
    labels = np.array([*CLASSES, ""])[np.r_[np.arange(58) % 2, 2, 2]]
    rows = read(archive(tmp_path, labels=labels))
    assert rows.notes == ("2 images of logs.npz without a label were left out.",)
    rows = read(archive(tmp_path, classes=["cat", "dog", "owl"]))
    assert_mentions(rows.notes[0], "first without", "'owl'")


def test_a_class_that_only_the_golden_set_has_is_named_by_its_files(tmp_path):
    golden = photos(tmp_path, "audited", seed=1, n=90, classes=("cat", "dog", "owl"))
    with pytest.raises(InputError) as error:
        read(photos(tmp_path), golden=golden)
    says = "has the label 'owl', which the logs do not train on (images owl/002.png, owl/005.png"
    assert says in str(error.value)


REFUSED = {
    "one class": (
        {"labels": np.zeros(60, int)},
        "the label has only one class, 0: give images of at least two classes.",
    ),
    "rare class": (
        {"labels": np.r_[np.arange(58) % 2, 2, 2]},
        "the class 2 has 2 images, but each of the 4 splits needs one",
    ),
    "labels that name images": (
        {"labels": np.arange(60)},
        "60 different values in 60 images, so it identifies images rather than classes: give each "
        "class one name or number.",
    ),
    "labels that are all empty": ({"labels": [""] * 60}, "none of its 60 images has a label"),
    "labels that are not whole": ({"labels": np.linspace(0, 1, 60)}, "names or whole numbers"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_labels_that_no_study_can_be_made_of_are_told_in_one_sentence(tmp_path, case):
    arrays, says = REFUSED[case]
    data = archive(tmp_path, **arrays)
    with pytest.raises(InputError) as error:
        read(data)
    assert says in str(error.value)
    assert str(error.value).startswith(data)
    assert "\n" not in str(error.value)
    assert "--label" not in str(error.value)


def test_an_archive_without_labels_says_where_they_go(tmp_path):
    np.savez(tmp_path / "bare.npz", images=pictures(60)[0])
    with refuses(InputError, "bare.npz", "no labels", "each class"):
        read(str(tmp_path / "bare.npz"))


def test_too_few_images_to_calibrate_on_are_told_before_training(tmp_path):
    with refuses(InputError, "rows are left", "calibrate"):
        read(archive(tmp_path), calibrator="auto")


def test_a_folder_is_known_by_the_names_and_bytes_of_its_files(tmp_path):
    data = photos(tmp_path, n=8)
    first = sha256_of(tmp_path / "photos")
    assert first == sha256_of(shutil.copytree(data, tmp_path / "elsewhere"))
    (tmp_path / "photos/cat/.DS_Store").write_bytes(b"droppings")
    assert sha256_of(tmp_path / "photos") == first
    (tmp_path / "photos/cat/000.png").rename(tmp_path / "photos/cat/999.png")
    renamed = sha256_of(tmp_path / "photos")
    with (tmp_path / "photos/cat/999.png").open("ab") as file:
        file.write(b"\0")
    assert len({first, renamed, sha256_of(tmp_path / "photos")}) == 3


def test_a_folder_with_links_is_read_through_them_and_ends(tmp_path):
    photos(tmp_path, n=8)
    (tmp_path / "linked").mkdir()
    for name in CLASSES:
        (tmp_path / "linked" / name).symlink_to(tmp_path / "photos" / name)
    assert sha256_of(tmp_path / "linked") == sha256_of(tmp_path / "photos")
    (tmp_path / "linked/back").symlink_to(tmp_path / "linked")
    assert sha256_of(tmp_path / "linked") == sha256_of(tmp_path / "photos")


def test_files_are_known_by_their_hashes(tmp_path):
    data, golden = archive(tmp_path), photos(tmp_path, classes=("0", "1"), seed=1)
    rows = read(data, golden=golden)
    assert rows.files == {"data": sha256_of(tmp_path / "logs.npz"),
                          "golden": sha256_of(tmp_path / "photos")}  # fmt: skip


def test_hashes_are_of_pixels_alone():
    images, _ = pictures(3)
    turned = np.asfortranarray(images)
    assert content_hashes(images) == content_hashes(turned)
    assert len(set(content_hashes(images))) == 3
