"""Ensembles and MC dropout as candidates: made of trained networks, judged and packed as one."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace

import numpy as np
import pytest
from tests.sentences import assert_mentions
from tests.unit.study.runs import table_file

import calibrant
from calibrant.calibrators import TemperatureScaling
from calibrant.convert import probs_from_logits
from calibrant.metrics import nll
from calibrant.study import StudyConfig, run_study
from calibrant.study.candidates.candidate import StudyCandidate, list_candidates
from calibrant.study.candidates.combined import build_ensemble
from calibrant.study.candidates.train_all import train_candidates
from calibrant.study.candidates.trained import TrainedCandidate, fit_and_save_candidate
from calibrant.study.choose import compare_candidates
from calibrant.study.rows.read import read_study_rows

pytestmark = pytest.mark.usefixtures("rough_intervals")

NAMES = [
    "ce", "ce (seed 1)", "ce, MC dropout (4 passes)", "ce (seed 1), MC dropout (4 passes)",
    "ce, ensemble of 2",
]  # fmt: skip
THINNED, ENSEMBLE = 2, 4


def a_config(folder, **changes):
    """Return the settings of the smallest study that averages can be made in."""
    settings = {
        "data": table_file(folder, n=600), "label": "fraud", "drop": ("customer", "day"),
        "candidates": ("ce",), "seeds": (0, 1), "training": {"epochs": 3}, "jobs": 1,
        "model_options": {"hidden": (16,), "dropout": (0.3,)},
        "calibrator": "temperature", "ood": "none", "model": "mlp", "pack_anyway": True,
    }  # fmt: skip
    return StudyConfig(**{**settings, **changes})


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """A study of two networks that is asked for averages later; the ensemble is packed."""
    folder = tmp_path_factory.mktemp("combined")
    config, told = a_config(folder), []
    rows = read_study_rows(config)
    alone = list_candidates(config, rows.files, rows.splits)
    train_candidates(rows, config, alone, folder / "run" / "candidates", str)
    config = replace(config, ensemble=True, mc_dropout=4)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            "calibrant.study.study.compare_candidates",
            lambda *args: replace(compare_candidates(*args), chosen=ENSEMBLE),
        )
        result = run_study(config, folder / "run", progress=told.append)
    return config, folder / "run", result, told


@pytest.fixture(scope="module")
def made(study):
    config, folder, _, _ = study
    rows = read_study_rows(config)
    asked = list_candidates(config, rows.files, rows.splits)
    told = []
    return rows, train_candidates(rows, config, asked, folder / "candidates", told.append), told


def test_averages_asked_for_later_train_nothing_again(study):
    _, _, result, told = study
    assert sum("trained before" in message for message in told) == 2
    assert not any("epoch" in message for message in told)
    assert sum("MC dropout (4 passes): scoring the test rows" in message for message in told) == 2
    assert [one.name for one in result.candidates] == [*NAMES, "HistGradientBoosting"]


def test_only_what_is_about_the_networks_changes_them(study):
    config, _, _, _ = study
    splits = read_study_rows(config).splits

    def fingerprint(**changes):
        return list_candidates(replace(config, **changes), {"data": "x"}, splits)[0].fingerprint

    own = fingerprint()
    same = ({"ensemble": False}, {"mc_dropout": 0}, {"mc_dropout": 9}, {"devices": 2}, {"jobs": 1})
    assert {fingerprint(**changes) for changes in same} == {own}
    assert fingerprint(training={"epochs": 4}) != own
    passes = [replace(config, mc_dropout=n) for n in (4, 5)]
    folders = [list_candidates(each, {"data": "x"}, splits)[THINNED].folder for each in passes]
    assert folders[0] != folders[1]


def test_what_is_there_is_taken_as_it_is(study, made):
    _, _, told = made
    assert sum("scored before, reused" in message for message in told) == 2
    assert len(told) == 4


def test_an_ensemble_gives_the_mean_of_its_members_probabilities_on_every_split(made):
    _, found, _ = made
    assert set(found[ENSEMBLE].logits) == set(found[0].logits)
    for name, logits in found[ENSEMBLE].logits.items():
        mean = np.mean([probs_from_logits(one.logits[name]) for one in found[:2]], axis=0)
        np.testing.assert_allclose(probs_from_logits(logits), mean, rtol=1e-6)


def test_one_figure_chooses_among_networks_and_averages(made):
    rows, found, _ = made
    codes = rows["choice"].codes
    for one in found:
        logits = one.logits["choice"]
        fitted = TemperatureScaling(smooth=True).fit(logits, codes, classes=range(2))
        expected = nll(codes, fitted.predict_proba(logits))
        assert one.refinement == pytest.approx(expected, rel=1e-9), one.candidate.name


def test_facts_are_sums_over_the_members_and_there_are_no_epochs(study, made):
    _, _, result, _ = study
    _, found, _ = made
    for one, members in ((found[ENSEMBLE], found[:2]), (found[THINNED], found[:1])):
        assert one.facts["weights"] == sum(each.facts["weights"] for each in members)
        assert one.facts["seconds"] >= sum(each.facts["seconds"] for each in members)
        assert (one.facts["epochs"], one.facts["records"]) == (0, [])
    assert result.candidates[ENSEMBLE].members == (0, 1)


@pytest.mark.parametrize("place", [THINNED, ENSEMBLE])
def test_the_running_model_gives_the_logits_that_were_judged_to_the_bit(made, place):
    rows, found, _ = made
    model = found[place].scorer()
    for name, judged in found[place].logits.items():
        np.testing.assert_array_equal(model.predict_logits(rows[name].inputs), judged)


def test_the_bundle_holds_all_members_and_decides_as_one(study, made):
    _, folder, result, _ = study
    rows, found, _ = made
    bundle = calibrant.load_bundle(folder / "bundle")
    assert bundle.scorer.config["model"] == "ensemble"
    assert len(bundle.scorer.config["members"]) == 2
    logits = bundle.predict_logits(rows["test"].inputs)
    np.testing.assert_array_equal(logits, found[ENSEMBLE].logits["test"])
    measured = nll(rows["test"].codes, bundle.predict_proba(rows["test"].inputs))
    assert measured == pytest.approx(result.calibrated["nll"].value, abs=1e-5)
    card = (folder / "bundle" / "card.md").read_text()
    assert_mentions(card, "averages", "2 models")


def test_the_json_says_how_each_candidate_comes_to_its_scores(study):
    _, folder, _, _ = study
    saved = json.loads((folder / "result.json").read_text())
    assert [one["way"] for one in saved["candidates"]] == [
        "one", "one", "mc_dropout", "mc_dropout", "ensemble", "one",
    ]  # fmt: skip
    assert saved["candidates"][ENSEMBLE]["members"] == [0, 1]
    assert saved["candidates"][THINNED]["passes"] == 4
    assert saved["chosen"]["way"] == "ensemble"
    assert "members" not in saved["candidates"][0]


def test_a_damaged_average_is_scored_again_to_the_same_bits(study, made):
    config, folder, _, _ = study
    rows, found, _ = made
    one = found[THINNED]
    (one.folder / "done.json").write_text("{")
    asked = [each.candidate for each in found]
    again = train_candidates(rows, config, asked, folder / "candidates", str)
    for name, logits in one.logits.items():
        np.testing.assert_array_equal(again[THINNED].logits[name], logits)


def test_an_ensemble_of_networks_with_shifts_is_judged_as_it_runs(tmp_path):
    config = a_config(tmp_path, candidates=("balanced_softmax",), resample="over", ensemble=True)
    rows = read_study_rows(config)
    asked = list_candidates(config, rows.files, rows.splits)
    both = train_candidates(rows, config, asked, tmp_path, str)[-1]
    assert both.candidate.loss == "balanced_softmax"
    assert both.members[0].facts["scorer"]["log_shift"] is not None
    for name, judged in both.logits.items():
        np.testing.assert_array_equal(both.scorer().predict_logits(rows[name].inputs), judged)


def test_an_average_of_a_network_that_was_trained_again_is_scored_again(tmp_path):
    config = a_config(tmp_path, seeds=(0,), mc_dropout=3)
    rows = read_study_rows(config)
    one, thinned = list_candidates(config, rows.files, rows.splits)
    before = train_candidates(rows, config, [one, thinned], tmp_path, str)[1]
    other = replace(config, training={"epochs": 3, "learning_rate": 0.01})
    shutil.rmtree(tmp_path / one.folder)
    (tmp_path / one.folder).mkdir()
    fit_and_save_candidate(rows, other, one, tmp_path / one.folder, str)  # as another device would
    told = []
    after = train_candidates(rows, config, [one, thinned], tmp_path, told.append)[1]
    assert_mentions(told[0], "ce:", "reused")
    assert_mentions(told[1], "steer rows")
    assert not np.array_equal(after.logits["test"], before.logits["test"])
    expected = after.scorer().predict_logits(rows["test"].inputs)
    np.testing.assert_array_equal(after.logits["test"], expected)


def test_an_ensemble_of_fewer_than_two_trained_networks_fails_in_a_sentence(made):
    rows, found, _ = made
    asked = found[ENSEMBLE].candidate
    folder = found[0].folder.parent
    some = build_ensemble(asked, [*found[:2], "it diverged"], folder, rows)
    assert len(some.members) == 2
    assert build_ensemble(asked, ["it diverged", found[1]], folder, rows) == (
        "an ensemble needs at least two networks, but 1 of the 2 of ce could be trained."
    )


def test_a_network_without_dropout_fails_alone(tmp_path):
    config = a_config(tmp_path, seeds=(0,), model_options={"hidden": (8,), "dropout": (0.0,)})
    rows = read_study_rows(config)
    one = list_candidates(config, rows.files, rows.splits)[0]
    thinned = StudyCandidate("ce", 0, "0123456789abcdef", "mc_dropout", (one,), passes=2)
    told = []
    found = train_candidates(rows, config, [one, thinned], tmp_path, told.append)
    assert isinstance(found[0], TrainedCandidate)
    assert "no dropout" in found[1]
    assert told[-1] == f"ce, MC dropout (2 passes): failed: {found[1]}"


def test_averages_of_a_network_that_failed_say_so(tmp_path):
    config = a_config(tmp_path, training={"epochs": 1, "learning_rate": 1e30}, ensemble=True)
    config = replace(config, mc_dropout=2)
    rows = read_study_rows(config)
    asked = list_candidates(config, rows.files, rows.splits)
    found = train_candidates(rows, config, asked, tmp_path, str)
    assert found[THINNED] == "the network that it averages could not be trained."
    assert_mentions(found[ENSEMBLE], "0 of the 2 of ce")
