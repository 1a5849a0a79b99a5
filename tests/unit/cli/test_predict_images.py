"""`calibrant predict` with a bundle that reads images: a folder of files, or an npz file."""

import json
import os
import signal

import numpy as np
import pyarrow as pa
import pytest
import torch
from PIL import Image
from tests.sentences import assert_mentions
from tests.unit.bundle.model_parts import (
    CLASSES,
    image_scorer,
    know_tiny_images,
    table_scorer,
    text_scorer,
)
from tests.unit.bundle.parts import point, points_of, rows, temperature
from tests.unit.cli.verbs.test_predict import NEW, PEAK, messages, read, refused, same, written

from calibrant.bundle import BundlePoint, pack
from calibrant.data import read_images
from calibrant.data.encoders.image_encoder import ImageEncoder
from calibrant.models import ResNet50, scoring
from calibrant.models.scorer import Scorer
from calibrant.ood import OodRule

__all__ = ["refused"]  # a fixture

MANY = np.random.default_rng(0).integers(0, 256, (30, 4, 5, 3), dtype=np.uint8)


@pytest.fixture(autouse=True)
def known(monkeypatch):
    know_tiny_images(monkeypatch)


@pytest.fixture
def images(tmp_path):
    """A bundle that reads images of 4 x 5 pixels, with a calibrator, points and a rule."""
    return packed(tmp_path / "bundle")


def packed(folder, *, resize=False):
    scorer = image_scorer(resize=resize)
    return pack(
        folder,
        scorer=scorer,
        calibrator=temperature(4.0),
        points=[BundlePoint(points_of(point(threshold=0.53), point("other", 0.35)), "calibrated")],
        ood=OodRule.fit(scorer.predict_logits(MANY), quantile=0.8),
        actions={"defect": "refund"},
    )


@pytest.fixture
def folder(tmp_path):
    """Write the images as files, without classes."""
    return files(tmp_path / "photos")


def files(folder, images=MANY):
    folder.mkdir(parents=True)
    for number, image in enumerate(images):
        Image.fromarray(image).save(folder / f"{number:03d}.png")
    return folder


@pytest.mark.parametrize("ending", ["parquet", "csv", "jsonl"])
def test_a_folder_is_decided_as_in_memory(cli, images, folder, tmp_path, ending):
    out = tmp_path / f"out.{ending}"
    result = cli("predict", images.path, folder, "-o", out)
    assert result.exit_code == 0, result.output
    found, decided = read(out), images.decide(MANY)
    assert list(found) == ["image", *NEW, "out_of_scope"]
    assert found["image"] == [f"{number:03d}.png" for number in range(30)]
    same(found, decided)
    assert found["out_of_scope"] == decided.out_of_scope.tolist()
    assert set(found["decision"]) == {"act", "abstain"}
    assert 0 < sum(found["out_of_scope"]) < 30
    assert_mentions(result.stdout, f"in {out}")


def test_the_size_of_batches_makes_no_difference(cli, images, folder, tmp_path, monkeypatch):
    for name, pixels in (("one", 20), ("seven", 140), ("all", 2**16)):
        monkeypatch.setattr(scoring, "_PIXELS", {"cpu": pixels})
        result = cli("predict", images.path, folder, "-o", tmp_path / f"{name}.parquet")
        assert result.exit_code == 0, result.output
        same(read(tmp_path / f"{name}.parquet"), images.decide(MANY))


def test_labels_and_weights_of_an_archive_come_along(cli, images, tmp_path):
    labels = [CLASSES[number % 2] for number in range(30)]  # of one class there is not an image
    file = tmp_path / "photos.npz"
    np.savez(file, images=MANY, labels=labels, weights=np.arange(1.0, 31.0), classes=CLASSES)
    result = cli("predict", images.path, file, "-o", tmp_path / "out.csv")
    assert (result.exit_code, result.stderr) == (0, "")
    found = read(tmp_path / "out.csv")
    assert list(found) == ["image", "label", "weight", *NEW, "out_of_scope"]
    assert found["image"] == list(range(30))
    assert (found["label"], found["weight"]) == (labels, list(range(1, 31)))
    same(found, images.decide(MANY))


def test_folders_of_classes_come_along_and_the_output_may_be_judged(cli, images, tmp_path):
    for place, name in enumerate(CLASSES):
        files(tmp_path / "photos" / name, MANY[10 * place : 10 * place + 10])
    result = cli("predict", images.path, tmp_path / "photos", "-o", tmp_path / "out.csv")
    assert result.exit_code == 0, result.output
    found = read(tmp_path / "out.csv")
    assert found["image"][9:11] == ["defect/009.png", "other/000.png"]
    assert found["label"] == ["defect"] * 10 + ["other"] * 10 + ["parts"] * 10
    judged = cli("evaluate", tmp_path / "out.csv", "--json")
    assert json.loads(judged.stdout)["classes"] == list(CLASSES)


def test_one_image_file(cli, images, folder, tmp_path):
    result = cli("predict", images.path, folder / "007.png", "-o", tmp_path / "out.parquet")
    assert result.exit_code == 0, result.output
    assert read(tmp_path / "out.parquet")["image"] == ["007.png"]


def test_without_a_place_images_are_only_counted(cli, images, folder):
    result = cli("predict", images.path, folder, "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    decided = images.decide(MANY)
    assert (found["n"], found["decisions"]) == (30, decided.counts)
    assert found["out_of_scope"] == int(decided.out_of_scope.sum())


def test_photos_of_any_size_are_resized_as_in_training(cli, tmp_path):
    bundle = packed(tmp_path / "bundle", resize=True)
    folder, draw = tmp_path / "photos", np.random.default_rng(1)
    folder.mkdir()
    for number, (height, width) in enumerate([(40, 30), (9, 64), (4, 5), (50, 50)]):
        pixels = draw.integers(0, 256, (height, width, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(folder / f"{number}.png")
    result = cli("predict", bundle.path, folder, "-o", tmp_path / "out.parquet")
    assert result.exit_code == 0, result.output
    os.renames(folder, tmp_path / "again" / "class")
    expected = read_images(tmp_path / "again", size=(4, 5)).images
    same(read(tmp_path / "out.parquet"), bundle.decide(expected))
    np.savez(tmp_path / "large.npz", images=draw.integers(0, 256, (3, 8, 10, 3), dtype=np.uint8))
    result = cli("predict", bundle.path, tmp_path / "large.npz", "-o", tmp_path / "out.parquet")
    assert result.exit_code == 0, result.output
    assert read(tmp_path / "out.parquet")["image"] == ["0", "1", "2"]


def test_grey_files_are_read_in_colour(cli, images, tmp_path):
    grey = MANY[..., 0]
    result = cli("predict", images.path, files(tmp_path / "grey", grey), "-o", tmp_path / "o.csv")
    assert result.exit_code == 0, result.output
    same(read(tmp_path / "o.csv"), images.decide(np.repeat(grey[..., None], 3, axis=3)))


# --- misuse: one sentence, exit code 2, and nothing written ---


def test_other_files_than_images(refused, images, tmp_path):
    file = written(tmp_path / "in.csv", {"message": messages(3)})
    assert_mentions(refused(images.path, file), "in.csv", "reads images", "a folder of images")
    assert "does not exist" in refused(images.path, tmp_path / "nothing")
    (tmp_path / "empty").mkdir()
    written(tmp_path / "empty/in.csv", {"message": messages(3)})
    assert "without png, jpg" in refused(images.path, tmp_path / "empty")


@pytest.mark.parametrize(
    ("scorer", "read"), [(text_scorer, "texts"), (table_scorer, "rows of a table")]
)
def test_images_for_a_bundle_that_reads_something_else(refused, folder, tmp_path, scorer, read):
    bundle = pack(tmp_path / "other", scorer=scorer())
    np.savez(tmp_path / "photos.npz", images=MANY)
    files(tmp_path / "classes" / "a")
    given = (folder, folder / "001.png", tmp_path / "photos.npz", tmp_path / "classes")
    for data in given:
        said = refused(bundle.path, data)
        assert_mentions(said, data, "images", f"reads {read}", ".csv")


def test_an_image_that_cannot_be_read_is_named(refused, images, folder):
    whole = (folder / "017.png").read_bytes()
    for content in (b"", b"no image", whole[: len(whole) // 2]):
        (folder / "017.png").write_bytes(content)
        said = refused(images.path, folder)
        assert_mentions(said, folder / "017.png", "read as an image")


def test_images_of_other_sizes(refused, images, folder, tmp_path):
    large = files(tmp_path / "large", np.zeros((3, 9, 7, 3), dtype=np.uint8))
    said = refused(images.path, large)
    assert_mentions(said, large, "000.png", "9 x 7", "reads 4 x 5", "resize")
    Image.new("RGB", (9, 9)).save(folder / "zz.png")
    said = refused(images.path, folder)
    assert_mentions(said, "000.png has 4 x 5", "zz.png has 9 x 9", "reads 4 x 5", "resize")
    assert "--image-size" not in said  # it makes squares only
    np.savez(tmp_path / "large.npz", images=np.zeros((2, 3, 3, 3), dtype=np.uint8))
    assert_mentions(refused(images.path, tmp_path / "large.npz"), "0 has 3 x 3", "reads 4 x 5")


def test_a_remedy_for_a_bundle_of_square_images(refused, tmp_path):
    bundle = large_network(tmp_path / "bundle")
    photos = files(tmp_path / "photos", np.zeros((3, 9, 7, 3), dtype=np.uint8))
    assert_mentions(refused(bundle.path, photos), "resize", "--image-size 8")


def test_archives_that_hold_no_images(refused, images, tmp_path):
    np.savez(tmp_path / "in.npz", logits=rows(3))
    assert_mentions(
        refused(images.path, tmp_path / "in.npz"), "in.npz", "no array 'images'", "'logits'"
    )
    np.savez(tmp_path / "in.npz", images=MANY / 255)
    assert_mentions(refused(images.path, tmp_path / "in.npz"), "in.npz", "whole numbers", "0..255")
    (tmp_path / "in.npz").write_bytes(b"PK")
    assert "in.npz is damaged" in refused(images.path, tmp_path / "in.npz")


def test_options_that_do_not_fit_the_bundle(refused, images, folder):
    assert_mentions(
        refused(images.path, folder, "--text", "message"),
        "--text message",
        "reads images",
        "leave --text out",
    )
    assert "leave --positive out" in refused(images.path, folder, "--positive", "defect")


# --- processes of their own ---


def large_network(folder, size=8):
    """Pack a network that every process knows."""
    torch.manual_seed(0)
    some = np.random.default_rng(0).integers(0, 256, (9, size, size, 3), dtype=np.uint8)
    stem = "cifar" if size < 32 else "imagenet"  # which looks at fewer dots of large images
    network = ResNet50(3, 3, width=1, stem=stem)
    return pack(folder, scorer=Scorer(ImageEncoder().fit(some), network, classes=CLASSES))


SLOW = """
import sys, time
import calibrant.models.scorer as scorer
import calibrant.models.scoring as scoring
real = scorer.Scorer.predict_logits
def slow(self, inputs):
    found = real(self, inputs)
    print("one batch", file=sys.stderr, flush=True)
    time.sleep(1)
    return found
scorer.Scorer.predict_logits = slow
scoring._PIXELS = {"cpu": 1}
from calibrant.cli.main import run
sys.argv = ["calibrant", *sys.argv[1:]]
run()
"""


@pytest.mark.parametrize(
    ("sign", "code", "says"), [(signal.SIGINT, 130, "interrupted"), (signal.SIGTERM, 143, "")]
)
def test_an_interruption_leaves_nothing(forked, tmp_path, sign, code, says):
    bundle, new = large_network(tmp_path / "bundle"), tmp_path / "new.parquet"
    photos = files(tmp_path / "photos", np.zeros((200, 8, 8, 3), dtype=np.uint8))
    new.write_text("old")
    process = forked("predict", bundle.path, photos, "-o", new, code=SLOW)
    assert process.stderr.readline() == "one batch\n"
    process.send_signal(sign)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (code, "")
    assert err.replace("one batch\n", "").strip() == says
    assert new.read_text() == "old"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["bundle", "new.parquet", "photos"]


@pytest.mark.verify
def test_memory_does_not_grow_with_the_folder(spawn, tmp_path):
    """2,000 images more, which would need 55 MB as bytes and 220 MB as numbers."""
    bundle = large_network(tmp_path / "bundle", size=96)
    photos = files(tmp_path / "photos", MANY[:1])
    Image.effect_noise((96, 96), 50).convert("RGB").save(photos / "000.png")
    peaks = []
    for n in (200, 2200):
        for number in range(len(list(photos.iterdir())), n):
            os.link(photos / "000.png", photos / f"{number:05d}.png")
        words = ("predict", bundle.path, photos, "-o", tmp_path / "new.csv")
        printed, err = spawn(*words, code=PEAK).communicate(timeout=300)
        peaks.append(int(printed or err) / 1024)
    assert pa.csv.read_csv(tmp_path / "new.csv").num_rows == 2200
    assert peaks[1] - peaks[0] < 30
