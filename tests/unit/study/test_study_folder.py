"""The folder of a study: what is refused before any training, and what stays until the end."""

from __future__ import annotations

import errno
import os
import shutil
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from tests.sentences import refuses
from tests.unit.models.tiny_transformers import written
from tests.unit.study.report.study_cases import a_study
from tests.unit.study.runs import table_config, text_config

from calibrant.bundle import load_bundle, pack
from calibrant.errors import InputError, TrainingError
from calibrant.study import StudyConfig, run_study
from calibrant.study.demo import run_demo
from calibrant.study.report.page import study_html
from calibrant.study.result import CandidateResult
from calibrant.study.settings.config_file import read_config
from calibrant.study.study_folder import (
    check_output_folder,
    draft_folder,
    input_files,
    output_folder,
    strip_paths,
)


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    folder = tmp_path_factory.mktemp("folder")
    config = table_config(folder, training={"epochs": 1})
    run_study(config, folder / "run")
    return config, folder / "run"


def content(folder):
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in files
        if path.relative_to(folder).parts[0] != "candidates"
    }


def test_a_study_that_fails_leaves_the_one_before_whole(study):
    config, folder = study
    before = content(folder)
    assert {"study.toml", "splits.json", "result.json", "report.html"} < set(before)
    wild = replace(config, seed=3, training={"epochs": 1, "learning_rate": 1e30})
    with pytest.raises(TrainingError):
        run_study(wild, folder)
    assert content(folder) == before


def test_an_interrupted_study_leaves_the_one_before_whole(study, monkeypatch):
    config, folder = study
    before = content(folder)

    def interrupted(*args, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr("calibrant.study.study.train_gradient_boosting", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run_study(replace(config, seed=4), folder)
    assert content(folder) == before


def test_a_complete_study_replaces_all_of_the_one_before(study, tmp_path):
    config, folder = study
    shutil.copytree(folder, tmp_path / "run")
    before = content(tmp_path / "run")
    run_study(replace(config, seed=5), tmp_path / "run")
    after = content(tmp_path / "run")
    assert set(after) == set(before)
    changed = ("study.toml", "splits.json", "result.json", "report.html", "bundle/manifest.json")
    assert all(after[name] != before[name] for name in changed)


def test_a_bundle_is_packed_once_and_holds_the_report(study, tmp_path, monkeypatch):
    shutil.copytree(study[1], tmp_path / "run")
    folders = []

    def count(folder, **parts):
        folders.append(folder)
        return pack(folder, **parts)

    monkeypatch.setattr("calibrant.study.study.pack", count)
    run_study(replace(study[0], confidence=0.9), tmp_path / "run")
    assert len(folders) == 1
    assert not folders[0].exists()  # it was moved into place
    report = (tmp_path / "run/report.html").read_bytes()
    assert (tmp_path / "run/bundle/report.html").read_bytes() == report
    assert "report.html" in load_bundle(tmp_path / "run/bundle").manifest["files"]


def test_a_study_that_cannot_be_moved_into_place_leaves_the_one_before_whole(study, monkeypatch):
    config, folder = study
    before = content(folder)

    def full(*args):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("calibrant.study.study_folder.shutil.move", full)
    with pytest.raises(InputError, match=r"^--out .*/run/bundle cannot be written: No space left"):
        run_study(replace(config, confidence=0.9), folder)
    assert content(folder) == before


def test_what_a_study_left_may_be_replaced_and_so_may_settings_that_a_person_wrote(study, tmp_path):
    check_output_folder(study[1])
    (tmp_path / "study.toml").write_text('# mine\ndata = "a.csv"\nseeds = [1]\n')
    check_output_folder(tmp_path)


FOREIGN = {
    "notes": (
        "study.toml",
        "my notes",
        "contains a file study.toml that was not written by a study",
    ),
    "other settings": ("study.toml", "[tool.ruff]\n", "study.toml that was not written by a study"),
    "other page": (
        "report.html",
        "<html>mine</html>",
        "report.html that was not written by a study",
    ),
    "other json": ("result.json", '{"mine": 1}', "result.json that was not written by a study"),
    "no json": ("splits.json", "mine", "splits.json that was not written by a study"),
    "a list": ("splits.json", "[1, 2]", "splits.json that was not written by a study"),
    "in the bundle": ("bundle/x.txt", "x", "with other files, not a bundle"),
    "candidates": ("candidates", "x", "a file named candidates where a folder is needed"),
    "a folder": ("result.json/x", "x", "a folder named result.json"),
}


@pytest.mark.parametrize("case", FOREIGN)
@pytest.mark.parametrize("which", ["study", "demo"])
def test_a_file_that_is_not_ours_is_refused_before_any_work(study, tmp_path, case, which):
    name, text, says = FOREIGN[case]
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text(text)
    told = []
    run = run_demo if which == "demo" else partial(run_study, study[0])
    with pytest.raises(InputError, match=says):
        run(tmp_path, progress=told.append)
    assert told == []
    assert [path.read_text() for path in tmp_path.rglob("*") if path.is_file()] == [text]


def test_something_beside_the_bundle_in_its_folder_is_refused_before_any_work(study, tmp_path):
    shutil.copytree(study[1], tmp_path / "run")
    (tmp_path / "run/bundle/notes.txt").write_text("mine")
    before = content(tmp_path / "run")
    with refuses(InputError, "'notes.txt'", "the bundle"):
        run_study(replace(study[0], seed=6), tmp_path / "run")
    assert content(tmp_path / "run") == before


def test_a_setting_that_no_file_can_hold_is_refused_before_any_work(study, tmp_path):
    odd = replace(study[0])
    object.__setattr__(odd, "training", {"epochs": 1, "clip": 1 + 2j})
    told = []
    with refuses(InputError, "setting", "text, a number"):
        run_study(odd, tmp_path / "run", progress=told.append)
    assert told == []
    assert not (tmp_path / "run").exists()


def test_a_full_disk_names_the_folder_that_was_asked_for(study, monkeypatch):
    def full(*args, **options):
        raise OSError(errno.ENOSPC, "No space left on device")

    config, folder = study
    before = content(folder)
    monkeypatch.setattr("calibrant.reports.evaluation.page.render_page", full)
    monkeypatch.setattr("calibrant.study.report.page.render_page", full)
    with refuses(InputError, "--out", "/run", "No space left"):
        run_study(config, folder)
    assert content(folder) == before


def test_an_error_about_a_draft_names_the_file_to_be(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("runs").mkdir()
    with pytest.raises(InputError, match=r"^--out runs/report\.html cannot"), _drafted() as draft:
        raise InputError(f"--out {draft / 'report.html'} cannot be written: make room.")
    assert os.listdir("runs") == []


def _drafted():
    return draft_folder(Path("runs"))


def test_an_error_about_something_else_stays_as_it_is(tmp_path):
    with pytest.raises(InputError, match=r"^tickets\.csv is empty\.$"), draft_folder(tmp_path):
        raise InputError("tickets.csv is empty.")


@pytest.mark.parametrize("out", ["", "  "])
def test_an_empty_path_is_refused_and_the_current_folder_is_a_dot(out, study):
    with pytest.raises(InputError, match="--out is empty"):
        run_study(study[0], out)
    with pytest.raises(InputError, match="--out is empty"):
        run_demo(out)
    assert output_folder(".") == Path()


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
        calibrator="temperature", ood="none", pack_anyway=True,
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
