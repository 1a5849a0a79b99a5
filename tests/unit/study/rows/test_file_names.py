"""What a study hands on names files, but does not tell where they lay."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.unit.models.tiny_transformers import written
from tests.unit.study.report.study_cases import a_study
from tests.unit.study.runs import text_config

from calibrant.study import StudyConfig, run_study
from calibrant.study.report.page import study_html
from calibrant.study.result import CandidateResult
from calibrant.study.rows.file_names import input_files, strip_paths
from calibrant.study.settings.config_file import read_config


@pytest.fixture(scope="module")
def images(tmp_path_factory):
    """A study of images with notes about both of its files."""
    folder, rng = tmp_path_factory.mktemp("somewhere"), np.random.default_rng(0)
    for name in ("logs", "golden"):
        pixels, labels = rng.integers(0, 200, (120, 6, 6, 1), dtype=np.uint8), np.arange(120) % 2
        pixels[labels == 1] += 40
        arrays = {"images": pixels, "labels": labels, "weights": np.ones(120)}
        np.savez(folder / f"{name}.npz", **arrays, classes=np.array(["a", "b", "never"]))
    config = StudyConfig(
        str(folder / "logs.npz"), golden=str(folder / "golden.npz"), images=True, jobs=1,
        candidates=("ce",), model="wrn_26_10",
        model_options={"widen": 1, "blocks": 1}, training={"epochs": 1, "batch_size": 32},
        calibrator="temperature", ood="none",
    )  # fmt: skip
    return folder, config, run_study(config, folder / "run")


def test_nothing_that_is_handed_on_tells_where_the_files_of_a_study_lay(images):
    folder, _, result = images
    shipped = [folder / "run/report.html", folder / "run/result.json"]
    shipped += [path for path in (folder / "run/bundle").iterdir() if path.suffix != ".safetensors"]
    assert {"manifest.json", "card.md", "report.html"} <= {path.name for path in shipped}
    for path in shipped:
        assert str(folder).encode() not in path.read_bytes(), path.name
    assert any(note.startswith("logs.npz: classes has 3 names") for note in result.notes)
    assert any("The weights in logs.npz were not used" in note for note in result.notes)
    assert (result.config["data"], result.config["golden"]) == ("logs.npz", "golden.npz")


def test_the_settings_keep_their_paths_for_the_next_run(images):
    folder, config, _ = images
    assert StudyConfig.from_dict(read_config(folder / "run/study.toml")) == config


def test_sentences_name_the_folder_of_a_model_without_its_place(tmp_path):
    model, out = written(tmp_path / "a place" / "bert"), tmp_path / "run"
    config = text_config(tmp_path, model=str(model), model_options={}, training={})
    notes = (
        f"the weights in {str(model)!r} lack 2 of 40.",
        f"what is in {out}/candidates/ce cannot be read, nor {Path.home()}/.cache/hub.",
        f"{config.data}: 2 rows were left out; {model}-2 and /and/or are other words.",
    )
    failed = CandidateResult("ce", 0, failed=f"{model / 'config.json'} is damaged.")
    told = replace(a_study(), notes=notes, candidates=(*a_study().candidates, failed))
    found = strip_paths(replace(told, config=config.to_dict()), config, out)
    assert found.notes == (
        "the weights in 'bert' lack 2 of 40.",
        "what is in run/candidates/ce cannot be read, nor ~/.cache/hub.",
        f"logs.csv: 2 rows were left out; {model}-2 and /and/or are other words.",
    )
    assert found.candidates[-1].failed == "bert/config.json is damaged."
    assert [found.config[role] for role in ("data", "golden", "model")] == [
        "logs.csv", "golden.csv", "bert",
    ]  # fmt: skip
    assert str(tmp_path) not in study_html(replace(found, notes=found.notes[:2]))
    assert input_files(config)["model"] == model


def test_a_network_that_is_no_folder_is_called_as_it_is(tmp_path):
    config = text_config(tmp_path, model="text_cnn", model_options={})
    assert list(input_files(config)) == ["data", "golden"]
    told = strip_paths(replace(a_study(), config=config.to_dict()), config, tmp_path)
    assert told.config["model"] == "text_cnn"
