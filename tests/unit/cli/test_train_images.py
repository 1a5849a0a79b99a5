"""`calibrant train --images` on real files: one small study, and bad files in one sentence."""

import json

import numpy as np
import pytest
from PIL import Image

from calibrant.bundle import load_bundle


def archive(path, labels, **arrays):
    images = np.random.default_rng(0).integers(0, 256, (len(labels), 4, 4, 3), dtype=np.uint8)
    np.savez(path, **{"images": images, "labels": labels, **arrays})


@pytest.fixture
def images(tmp_path, monkeypatch):
    """Work in a folder with images that no study can be made of."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    (tmp_path / "bare/cat").mkdir(parents=True)
    (tmp_path / "broken/cat").mkdir(parents=True)
    (tmp_path / "broken/cat/1.png").write_bytes(b"no picture")
    (tmp_path / "tickets.csv").write_text("message,label\nbroken,a\n")
    (tmp_path / "torn.npz").write_bytes(b"PK no archive")
    archive("one.npz", [0] * 40)
    archive("rare.npz", [0, 1] * 20 + [2])
    archive("unlabelled.npz", [""] * 40)
    archive("good.npz", [0, 1] * 60)
    archive("other.npz", [0, 1] * 60, images=np.zeros((120, 8, 8, 3), np.uint8))
    archive("floats.npz", [0, 1] * 60, images=np.zeros((120, 4, 4, 3)))
    np.savez("nothing.npz", labels=[0, 1])
    return tmp_path


BAD_IMAGES = {
    "no folder": (("nowhere", "--images"), "nowhere does not exist"),
    "nothing in it": (("empty", "--images"), "empty has no subfolders"),
    "class without images": (("bare", "--images"), "bare/cat has no images"),
    "no picture": (("broken", "--images"), "broken/cat/1.png"),
    "a table": (("tickets.csv", "--images"), "neither a folder nor an .npz file"),
    "torn": (("torn.npz", "--images"), "torn.npz"),
    "no images": (("nothing.npz", "--images"), "has no array 'images'"),
    "one class": (("one.npz", "--images"), "only one class, 0: give images of at least two"),
    "rare class": (("rare.npz", "--images"), "the class 2 has 1 image, but each of the 4 splits"),
    "no labels": (("unlabelled.npz", "--images"), "none of its 40 images has a label"),
    "floats": (("floats.npz", "--images"), "whole numbers 0..255"),
    "no golden set": (("good.npz", "--images", "--golden", "nowhere"), "nowhere does not exist"),
    "golden size": (("good.npz", "--images", "--golden", "other.npz"), "like --image-size 4"),
    "same images": (("good.npz", "--images", "--golden", "good.npz"), "120 images are both in"),
    "arrays as texts": (("good.npz", "--text", "message"), "add --images if they are images"),
    "arrays as a table": (("good.npz", "--tabular"), "add --images if they are images"),
    "folder as texts": (("broken", "--text", "message"), "is a folder without .csv"),
}


@pytest.mark.parametrize("case", BAD_IMAGES)
def test_images_that_no_study_can_be_made_of_are_one_sentence(cli, images, case):
    words, says = BAD_IMAGES[case]
    before = sorted(images.rglob("*"))
    result = cli("train", *words, "--out", "out")
    assert result.exit_code == 2, result.output
    assert says in result.stderr
    assert result.stderr.count("\n") == 1
    assert "Traceback" not in result.output
    assert result.stdout == ""
    assert sorted(images.rglob("*")) == before


def photos(folder, n, seed):
    """Write pictures of two classes: bright at the top, and bright at the bottom."""
    draw = np.random.default_rng(seed)
    for place in range(n):
        name = ("top", "bottom")[place % 2]
        picture = draw.integers(0, 100, (10, 8, 3), dtype=np.uint8)
        picture[: 4 if name == "top" else 10, :][-4:] += 100
        (folder / name).mkdir(parents=True, exist_ok=True)
        Image.fromarray(picture).save(folder / name / f"{place:03d}.png")


def test_a_folder_of_images_becomes_a_bundle(cli, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    photos(tmp_path / "photos", 80, seed=0)
    photos(tmp_path / "audited", 60, seed=1)
    words = (
        "photos/", "--images", "--image-size", 8, "--golden", "audited/", "--candidates", "ce",
        "--model-option", "width=4", "--epochs", 2, "--batch-size", 16, "--learning-rate", 0.01,
        "--training", "flip=false", "--jobs", 1, "--out", "out", "--json",
        "--model", "resnet50", "--pack-anyway",
    )  # fmt: skip
    result = cli("train", *words)
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert (found["kind"], found["classes"]) == ("image", ["bottom", "top"])
    assert found["splits"]["train"]["rows"] == 64
    assert found["splits"]["test"]["source"] == "golden"
    bundle = load_bundle("out/bundle")
    assert bundle.classes == ("bottom", "top")
