"""A candidate that several processes train together: one voice, and one folder."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.unit.study.candidates.test_combined import a_config

from calibrant.errors import InputError
from calibrant.study.candidates.candidate import list_candidates
from calibrant.study.candidates.devices import refuse_torchrun
from calibrant.study.candidates.train_all import train_candidates
from calibrant.study.candidates.trained import load_trained
from calibrant.study.rows.read import read_study_rows


def test_two_processes_train_one_candidate_and_the_first_one_speaks(tmp_path):
    config = a_config(tmp_path, seeds=(0,), devices=2)
    rows, told = read_study_rows(config), []
    asked = list_candidates(config, rows.files, rows.splits)
    found = train_candidates(rows, config, asked, tmp_path / "run", told.append)
    assert sum("ce: epoch 2 of 3" in message for message in told) == 1
    assert len(found[0].scorer().predict_logits(rows["test"].inputs)) == len(rows["test"])
    one = list_candidates(replace(config, devices=1), rows.files, rows.splits)[0]
    assert load_trained(found[0].folder, one, rows) is not None


def test_a_study_starts_its_processes_itself(monkeypatch):
    refuse_torchrun()
    monkeypatch.setenv("WORLD_SIZE", "2")
    refuse_torchrun()  # some job managers set it too
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "2")
    with pytest.raises(InputError, match="leave torchrun out"):
        refuse_torchrun()
