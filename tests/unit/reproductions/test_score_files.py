"""Logits that a run leaves behind: read by every verb, and its figures come out of them again."""

import json

import numpy as np
import pytest

from calibrant.convert import probs_from_logits
from calibrant.data import read_scores
from calibrant.reproductions import Asked, experiment_named, reproduce
from calibrant.reproductions.figures import run_figures
from calibrant.reproductions.score_files import as_kept, score_file


@pytest.mark.parametrize("name", ["newsgroups-cnn", "long-tail-mammography"])
def test_the_figures_of_a_record_are_those_of_its_files(name, tmp_path):
    one = experiment_named(name)
    method = one.at("toy").methods[0].name
    [path] = reproduce(one, tmp_path, Asked(size="toy", methods=[method], seeds=[0]))
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
    kept = as_kept(np.array([[3.0, 1.0, 2.5], [0.1, 0.1, -1e9]]))
    assert kept.tolist() == [[0.0, -2.0, -0.5], [0.0, 0.0, -60000.0]]


def test_keeping_again_changes_nothing_and_probabilities_hardly_move():
    logits = 8.0 * np.random.default_rng(0).normal(size=(2000, 10))
    kept = as_kept(logits)
    assert (as_kept(kept) == kept).all()
    ours, own = probs_from_logits(kept), probs_from_logits(logits)
    assert np.abs(ours - own).max() < 5e-4
    assert np.abs(np.log(ours) - np.log(own)).max() < 0.02
