"""Logits that a run leaves behind: read by every verb, and its figures come out of them again."""

import contextlib
import json

import numpy as np
import pytest
from reproductions.calibrate_again import saved_logits
from reproductions.figures import run_figures
from reproductions.score_files import as_saved, score_file

from calibrant.convert import probs_from_logits
from calibrant.errors import InputError
from calibrant.scores import read_scores
from reproductions import RunRequest, experiment_named, reproduce


@pytest.mark.parametrize("name", ["newsgroups-cnn", "long-tail-mammography"])
def test_the_figures_of_a_record_are_those_of_its_files(name, tmp_path):
    one = experiment_named(name)
    method = one.at("toy").methods[0].name
    [path] = reproduce(one, tmp_path, RunRequest(size="toy", methods=[method], seeds=[0]))
    record = json.loads(path.read_text())
    calib, test = (read_scores(score_file(path, part)) for part in ("calib", "test"))
    assert list(test.classes) == [str(each) for each in record["classes"]]
    assert (len(calib.labels), len(test.labels)) == (
        record["rows"]["calib"],
        record["rows"]["test"],
    )
    with np.load(score_file(path, "calib")) as first, np.load(score_file(path, "test")) as second:
        found = run_figures(
            (first["logits"].astype(float), first["labels"].astype(int)),
            (second["logits"].astype(float), second["labels"].astype(int)),
        )
    for way, figures in record["figures"].items():
        for figure, told in figures.items():
            assert found.figures[way][figure]["value"] == pytest.approx(told["value"], rel=1e-5)
    assert found.chosen == record["chosen"] == record["comparison"]["chosen"]
    assert found.calib_nll == pytest.approx(record["calib"]["nll"], rel=1e-5)


def test_what_is_kept_by_hand():
    kept = as_saved(np.array([[3.0, 1.0, 2.5], [0.1, 0.1, -1e9]]))
    assert kept.tolist() == [[0.0, -2.0, -0.5], [0.0, 0.0, -60000.0]]


def test_keeping_again_changes_nothing_and_probabilities_hardly_move():
    logits = 8.0 * np.random.default_rng(0).normal(size=(2000, 10))
    kept = as_saved(logits)
    assert (as_saved(kept) == kept).all()
    ours, own = probs_from_logits(kept), probs_from_logits(logits)
    assert np.abs(ours - own).max() < 5e-4
    assert np.abs(np.log(ours) - np.log(own)).max() < 0.02


CNN = experiment_named("newsgroups-cnn")
ONE = {"size": "toy", "methods": ["ce"], "seeds": [0]}


@pytest.fixture
def run(tmp_path):
    [path] = reproduce(CNN, tmp_path, RunRequest(**ONE))
    return path


def test_calibrators_are_fitted_again_and_the_rest_stays(run):
    before, losses = json.loads(run.read_text()), np.load(run.with_suffix(".npz"))["auto"]
    other = {**before, "chosen": "none", "temperature": 9.0, "figures": {}, "comparison": None}
    run.write_text(json.dumps(other))
    np.savez(run.with_suffix(".npz"), temperature=0 * losses, auto=0 * losses)
    assert reproduce(CNN, run.parents[1], RunRequest(**ONE, calibrate_again=True)) == [run]
    assert json.loads(run.read_text()) == before
    assert (np.load(run.with_suffix(".npz"))["auto"] == losses).all()


def test_what_cannot_be_calibrated_again_is_told_before_anything_is_written(run, tmp_path):
    before = run.read_text()
    again = {**ONE, "calibrate_again": True}
    for wanted, said in (
        ({**again, "seeds": [0, 1]}, "ce-1.json is not there, or not whole: run it first"),
        ({**again, "overrides": {"epochs": 3}}, "is a run with epochs"),
    ):
        with pytest.raises(InputError, match=said):
            reproduce(CNN, run.parents[1], RunRequest(**wanted))
    whole = score_file(run, "calib").read_bytes()
    score_file(run, "calib").write_bytes(score_file(run, "test").read_bytes())
    with pytest.raises(InputError, match=r"ce-0\.calib\.npz holds .* rows, but the run has"):
        reproduce(CNN, run.parents[1], RunRequest(**again))
    for place in range(0, len(whole), 97):  # one byte at a time: a sentence, or harmless
        score_file(run, "calib").write_bytes(whole[:place] + b"\xff" + whole[place + 1 :])
        with contextlib.suppress(InputError):
            saved_logits(run)
    score_file(run, "calib").write_bytes(b"no arrays")
    with pytest.raises(InputError, match=r"ce-0\.calib\.npz does not hold logits of a run"):
        reproduce(CNN, run.parents[1], RunRequest(**again))
    score_file(run, "calib").unlink()
    with pytest.raises(InputError, match="earlier runs kept no logits; run it --again"):
        reproduce(CNN, run.parents[1], RunRequest(**again))
    assert run.read_text() == before
    with pytest.raises(InputError, match=r"it-tickets has figures \(paper_columns, promise\)"):
        reproduce(experiment_named("it-tickets"), tmp_path, RunRequest(**again))


def test_of_several_runs_none_is_written_where_one_cannot_be(tmp_path):
    both = {**ONE, "seeds": [0, 1]}
    first, second = reproduce(CNN, tmp_path, RunRequest(**both))
    first.write_text(json.dumps({**json.loads(first.read_text()), "chosen": "none"}))
    score_file(second, "test").unlink()
    before = first.read_text()
    with pytest.raises(InputError, match="earlier runs kept no logits"):
        reproduce(CNN, tmp_path, RunRequest(**both, calibrate_again=True))
    assert first.read_text() == before
