from __future__ import annotations

import numpy as np
import pytest
from PIL import Image
from reproductions.image_parts import paper_order
from reproductions.imagenet import imagenet
from torch import nn

from calibrant import ImageClassifier
from calibrant.errors import InputError
from reproductions import image_folder

WNIDS = ("n01440764", "n01443537")


def _picture(path, shade, size=(40, 30)):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", size, (shade, shade, shade)).save(path, quality=100)


@pytest.fixture
def folders(tmp_path, monkeypatch):
    monkeypatch.setenv("CALIBRANT_DATA", str(tmp_path))
    root = tmp_path / "imagenet"
    for place, wnid in enumerate(WNIDS):
        for n in range(6):
            _picture(root / "train" / wnid / f"{wnid}_{n}.JPEG", 100 * place + 10 * n)
        for n in range(8):
            _picture(root / "val" / wnid / f"ILSVRC2012_val_{n:08}.JPEG", 100 * place + 10 * n)
        (root / "train" / wnid / "list.txt").write_text("")
    return root


def _shades(part):
    return part.inputs.mean(axis=(1, 2, 3)).round().astype(int).tolist()


def test_validation_images_are_shared_out_by_the_papers_shuffle(folders):
    parts = imagenet({"image_size": 24})

    assert parts.sizes() == {"train": 12, "steer": 4, "calib": 4, "test": 8}
    assert parts.train.inputs.shape == (12, 24, 24, 3)
    assert _shades(parts.train) == [0, 100, 10, 110, 20, 120, 30, 130, 40, 140, 50, 150]
    shades = np.array([100 * place + 10 * n for place in range(2) for n in range(8)])
    order = paper_order(16)
    assert _shades(parts.steer) == shades[order[:4]].tolist()
    assert _shades(parts.calib) == shades[order[4:8]].tolist()
    assert _shades(parts.test) == shades[order[8:]].tolist()
    np.testing.assert_array_equal(parts.test.labels, order[8:] // 8)
    assert parts.classes == WNIDS
    assert "a quarter calibrates" in parts.note


def test_fewer_rows_hold_all_classes(folders):
    parts = imagenet({"image_size": 8, "rows": 4})

    assert parts.sizes() == {"train": 4, "steer": 2, "calib": 2, "test": 3}
    assert parts.train.labels.tolist() == [0, 1, 0, 1]


def test_224_pixels_are_the_papers(folders):
    assert imagenet({"rows": 2}).train.inputs.shape == (2, 224, 224, 3)


def test_odd_files_are_read_in_colour(folders):
    first = folders / "train" / WNIDS[0] / f"{WNIDS[0]}_0.JPEG"
    Image.new("CMYK", (30, 40), (0, 0, 0, 255)).save(first, format="JPEG")
    Image.new("L", (9, 9), 77).save(first.with_name(f"{WNIDS[0]}_1.JPEG"), format="PNG")

    images = imagenet({"image_size": 16}).train.inputs

    assert images[0].max() < 10
    assert (images[2] == 77).all()


def test_too_many_pixels_are_refused_before_any_is_read(folders, monkeypatch):
    monkeypatch.setattr(image_folder, "_memory", lambda: 4_000_000)
    monkeypatch.setattr(image_folder, "_image", None)  # it must not come so far

    with pytest.raises(InputError, match=r"take 0\.0 GiB, and this machine has 0\.0 GiB of memory"):
        imagenet({"image_size": 224})


def test_the_memory_of_a_machine_bounds_all_of_imagenet(monkeypatch):
    monkeypatch.setattr(image_folder, "_memory", lambda: 64 * 2**30)
    message = (
        r"the images take 186\.6 GiB, and this machine has 64\.0 GiB of memory: set "
        r"reading\.image_size to fewer pixels, such as 64"
    )

    with pytest.raises(InputError, match=message):
        image_folder.check_memory(1_331_167 * 3 * 224**2)
    image_folder.check_memory(1_331_167 * 3 * 64**2)
    monkeypatch.setattr(image_folder, "_memory", lambda: None)  # a system that does not tell
    image_folder.check_memory(10**15)


def test_a_cache_keeps_pixels_on_the_disk_and_a_classifier_reads_them_there(
    folders, tmp_path, monkeypatch
):
    monkeypatch.setattr(image_folder, "_memory", lambda: 1000)
    reading = {"image_size": 16, "cache": str(tmp_path / "cache")}
    parts = imagenet(reading)

    assert isinstance(parts.train.inputs, np.memmap)
    kept = sorted((tmp_path / "cache").iterdir())
    assert [file.suffix for file in kept] == [".npy"] * 4
    monkeypatch.setattr(image_folder, "_image", None)  # nothing is decoded again
    again = imagenet(reading)
    np.testing.assert_array_equal(again.train.inputs, parts.train.inputs)

    def linear(n_channels, n_classes):
        return nn.Sequential(nn.Flatten(), nn.Linear(n_channels * 256, n_classes))

    model = ImageClassifier(model=linear, epochs=1, batch_size=4, crop=1, device="cpu")
    steer = (again.steer.inputs, again.steer.labels)
    model.fit(again.train.inputs, again.train.labels, steer=steer)
    assert model.predict_logits(again.test.inputs).shape == (8, 2)


def test_a_run_that_broke_off_leaves_no_array_that_looks_whole(folders, tmp_path):
    (folders / "train" / WNIDS[0] / f"{WNIDS[0]}_3.JPEG").write_bytes(b"...")
    reading = {"image_size": 16, "cache": str(tmp_path / "cache")}

    with pytest.raises(InputError, match="is not a readable image"):
        imagenet(reading)

    assert not list((tmp_path / "cache").glob("*.npy"))


def test_folders_that_do_not_fit_are_told(folders):
    (folders / "val" / WNIDS[1]).rename(folders / "val" / "n99")
    with pytest.raises(InputError, match=f"'{WNIDS[1]}' is in one of them only"):
        imagenet({})
    for place in (folders / "val").iterdir():
        for file in place.iterdir():
            file.rename(folders / "val" / f"{place.name}{file.name}")
    with pytest.raises(InputError, match="sort the images into one folder for each class"):
        imagenet({})


@pytest.mark.parametrize("size", [0, 1.5, "64", True])
def test_an_image_size_that_is_no_number_of_pixels_is_told(folders, size):
    with pytest.raises(InputError, match="image_size must be a whole number of pixels"):
        imagenet({"image_size": size})


def test_missing_folders_are_told_with_where_to_get_them(tmp_path, monkeypatch):
    monkeypatch.setenv("CALIBRANT_DATA", str(tmp_path))

    with pytest.raises(InputError, match=r"image-net\.org"):
        imagenet({})


def test_made_images_are_as_large_as_the_network_wants():
    assert imagenet({"made": True, "image_size": 224}).train.inputs.shape == (240, 32, 32, 3)
