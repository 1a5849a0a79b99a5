from __future__ import annotations

import zipfile

import numpy as np
import pytest
from PIL import Image
from reproductions.tiny_imagenet import tiny_imagenet

from calibrant.errors import InputError

INDICES = (0, 2, 10, 449, 450, 474, 475, 499)
WNIDS = ("n02", "n01")  # in the order of the file, which is not the alphabet's


def _picture(path, shade, mode="RGB"):
    path.parent.mkdir(parents=True, exist_ok=True)
    colour = shade if mode == "L" else (shade, shade, shade)
    Image.new(mode, (64, 64), colour).save(path, quality=100)


def _official(root):
    """A folder in the layout of the published zip, with shades that tell its files apart."""
    for place, wnid in enumerate(sorted(WNIDS)):
        for rank, index in enumerate(INDICES):
            grey = "L" if index == 2 else "RGB"  # some are grey
            shade = 100 * place + 10 * rank
            _picture(root / "train" / wnid / "images" / f"{wnid}_{index}.JPEG", shade, grey)
        (root / "train" / wnid / f"{wnid}_boxes.txt").write_text("")
    for n in range(6):
        _picture(root / "val" / "images" / f"val_{n}.JPEG", 40 * n)
    lines = [f"val_{n}.JPEG\t{WNIDS[n % 2]}\t0\t0\t63\t63\n" for n in range(6)]
    (root / "val" / "val_annotations.txt").write_text("".join(lines))
    _picture(root / "test" / "images" / "test_0.JPEG", 0)
    (root / "wnids.txt").write_text("\n".join(WNIDS) + "\n")
    (root / "words.txt").write_text("n01\tcrane, bird\nn02\tcrane, machine\nn03\tdog\n")


@pytest.fixture
def official(tmp_path, monkeypatch):
    monkeypatch.setenv("CALIBRANT_DATA", str(tmp_path))
    root = tmp_path / "tiny-imagenet-200"
    _official(root)
    return root


def _shades(part):
    assert np.ptp(part.inputs.astype(int), axis=(1, 2, 3)).max() <= 2
    return part.inputs.mean(axis=(1, 2, 3)).round().astype(int).tolist()


def test_the_number_of_an_image_tells_its_part(official):
    parts = tiny_imagenet({})

    assert parts.sizes() == {"train": 8, "steer": 4, "calib": 4, "test": 6}
    assert parts.train.inputs.shape[1:] == (64, 64, 3)
    # By number, not by name (10 comes after 2), and all classes of a number together.
    assert _shades(parts.train) == [0, 100, 10, 110, 20, 120, 30, 130]
    assert parts.train.labels.tolist() == [0, 1] * 4
    assert _shades(parts.steer) == [40, 140, 50, 150]
    assert _shades(parts.calib) == [60, 160, 70, 170]
    assert _shades(parts.test) == [0, 40, 80, 120, 160, 200]
    assert parts.test.labels.tolist() == [1, 0] * 3
    assert parts.classes == ("crane (n01)", "crane (n02)")
    assert "25 of them steer" in parts.note


def test_the_zip_holds_the_same_as_the_folder(official, tmp_path, monkeypatch):
    from_folder = tiny_imagenet({})
    place = tmp_path / "packed" / "tiny_imagenet"
    place.mkdir(parents=True)
    with zipfile.ZipFile(place / "tiny-imagenet-200.zip", "w") as packed:
        for file in official.rglob("*"):
            packed.write(file, file.relative_to(official.parent))
    monkeypatch.setenv("CALIBRANT_DATA", str(tmp_path / "packed"))

    from_zip = tiny_imagenet({})

    for part in ("train", "steer", "calib", "test"):
        mine, other = getattr(from_zip, part), getattr(from_folder, part)
        np.testing.assert_array_equal(mine.inputs, other.inputs)
        np.testing.assert_array_equal(mine.labels, other.labels)


def test_fewer_rows_hold_all_classes(official):
    parts = tiny_imagenet({"rows": 4})

    assert parts.sizes() == {"train": 4, "steer": 2, "calib": 2, "test": 3}
    assert parts.train.labels.tolist() == [0, 1, 0, 1]


def test_damage_is_told(official):
    (official / "train" / "n01" / "images" / "n01_0.JPEG").write_bytes(b"...")
    with pytest.raises(InputError, match=r"train/n01/images/n01_0.JPEG .* is not a readable image"):
        tiny_imagenet({})
    (official / "val" / "val_annotations.txt").write_text("val_0.JPEG\tn99\n")
    with pytest.raises(InputError, match=r"names no file and class of wnids\.txt"):
        tiny_imagenet({})
    (official / "val" / "val_annotations.txt").unlink()
    with pytest.raises(InputError, match=r"holds no readable val/val_annotations\.txt"):
        tiny_imagenet({})
    (official / "wnids.txt").write_text("n98")
    with pytest.raises(InputError, match="holds no train/CLASS/images"):
        tiny_imagenet({})


def test_what_is_no_zip_is_told(tmp_path, monkeypatch):
    monkeypatch.setenv("CALIBRANT_DATA", str(tmp_path))
    (tmp_path / "tiny_imagenet").mkdir()
    (tmp_path / "tiny_imagenet" / "tiny-imagenet-200.zip").write_bytes(b"<html></html>")

    with pytest.raises(InputError, match="neither a folder nor a zip"):
        tiny_imagenet({})


def test_made_images_are_as_large_as_the_network_wants():
    assert tiny_imagenet({"made": True}).train.inputs.shape == (240, 16, 16, 3)
