"""Which classifier a candidate is: its defaults, its epochs, and what a model's folder counts."""

from __future__ import annotations

import shutil
from dataclasses import replace

import numpy as np
import pytest
from tests.unit.models.tiny_transformers import written
from tests.unit.study.runs import table_config, text_config

import calibrant
from calibrant.study import StudyConfig, run_study
from calibrant.study.candidates.candidate import StudyCandidate, list_candidates
from calibrant.study.candidates.classifier import build_classifier, step_options
from calibrant.study.rows.read import read_study_rows
from calibrant.study.settings.kinds import TEXT
from calibrant.training import image

ONE = StudyCandidate("ce", 3, "0123456789abcdef")


def made(config, tmp_path):
    return build_classifier(config, replace(ONE, model=config.models[0]), tmp_path, str)


def test_texts_from_nothing_get_the_small_defaults_and_own_options_win(tmp_path):
    found = made(text_config(tmp_path, model_options={"hidden": 8}), tmp_path)
    assert found.model_options == {"embedding": 64, "hidden": 8, "layers": 1}
    assert (found.epochs, found.learning_rate, found.seed) == (2, TEXT["learning_rate"], 3)
    assert found.hooks[0].name == "ce (seed 3)"


def test_tables_get_the_network_s_options(tmp_path):
    found = made(table_config(tmp_path, devices=2), tmp_path)
    assert (found.hidden, found.devices) == ((16,), 2)


def test_a_pretrained_model_gets_what_is_usual_for_it(tmp_path):
    folder = str(written(tmp_path / "bert"))
    config = text_config(tmp_path, model=folder, model_options={}, training={})
    found = made(config, tmp_path)
    assert (found.model, found.epochs) == (folder, "auto")
    assert found.hooks[0].epochs == found._options().epochs < 20


def test_a_pretrained_model_counts_by_its_content_and_not_by_its_place(tmp_path):
    config = text_config(tmp_path, model=str(written(tmp_path / "bert")), model_options={})
    splits = read_study_rows(config).splits

    def fingerprint(folder):
        given = {**config.to_dict(), "model": str(folder)}
        return list_candidates(StudyConfig.from_dict(given), {}, splits)[0].fingerprint

    first = fingerprint(tmp_path / "bert")
    assert fingerprint(shutil.copytree(tmp_path / "bert", tmp_path / "copy")) == first
    assert fingerprint(written(tmp_path / "other", seed=1)) != first


def test_what_is_usual_counts_as_what_it_is_now(tmp_path, monkeypatch):
    pixels = np.random.default_rng(0).integers(0, 256, (60, 6, 6, 1), dtype=np.uint8)
    np.savez(tmp_path / "logs.npz", images=pixels, labels=np.arange(60) % 2)
    settings = {"data": str(tmp_path / "logs.npz"), "images": True, "calibrator": "identity"}
    settings |= {"model": "wrn_26_10", "model_options": {"widen": 1, "blocks": 1}}
    splits = read_study_rows(StudyConfig(**settings)).splits

    def fingerprint(**training):
        return list_candidates(StudyConfig(**settings, training=training), {}, splits)[
            0
        ].fingerprint

    own, usual = fingerprint(), dict(image._RUN)
    assert fingerprint(accumulate=4, device="cpu") == own
    assert fingerprint(epochs=usual["epochs"], crop=4) == own
    assert len({own, fingerprint(crop=2), fingerprint(flip=False), fingerprint(epochs=3)}) == 4
    monkeypatch.setattr(image, "_RUN", {**usual, "schedule": "cosine"})
    assert fingerprint() != own


def test_the_longest_text_of_a_pretrained_model_counts(tmp_path, monkeypatch):
    folder = str(written(tmp_path / "bert"))
    config = text_config(tmp_path, model=folder, model_options={}, training={})
    own = step_options(config, config.models[0])
    monkeypatch.setattr("calibrant.training.text._MAX_LENGTH", 5)
    assert own.pop("max_length") > step_options(config, config.models[0]).pop("max_length") == 5
    assert (own["epochs"], "model" in own) == (made(config, tmp_path)._options().epochs, False)


@pytest.fixture(scope="module")
def images(tmp_path_factory):
    """A study of images: two networks, and averages of them."""
    folder, rng = tmp_path_factory.mktemp("images"), np.random.default_rng(0)
    labels = np.arange(300) % 3
    pixels = rng.integers(0, 200, (300, 8, 8, 3), dtype=np.uint8)
    pixels[np.arange(300), :, :, labels] += 40
    np.savez(folder / "logs.npz", images=pixels, labels=labels, classes=np.array(["a", "b", "c"]))
    config = StudyConfig(
        str(folder / "logs.npz"), images=True, candidates=("ce",), seeds=(0, 1), ensemble=True,
        mc_dropout=2, model="wrn_26_10", model_options={"widen": 1, "blocks": 1, "dropout": 0.2},
        training={"epochs": 1, "batch_size": 32}, calibrator="temperature", jobs=1,
        pack_anyway=True,
    )  # fmt: skip
    return pixels, folder / "run", run_study(config, folder / "run")


def test_images_are_trained_averaged_and_packed(images):
    pixels, folder, result = images
    assert [one.failed for one in result.candidates] == 5 * [None]
    assert result.kind == "image"
    bundle = calibrant.load_bundle(folder / "bundle")
    assert bundle.predict_proba(pixels[:4]).shape == (4, 3)
    assert bundle.classes == ("a", "b", "c")
