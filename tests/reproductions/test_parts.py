"""Rows by their jobs: taking some of them, and halving the steer rows."""

import copy

import numpy as np
import pytest
from reproductions.experiment import experiment_named, experiments
from reproductions.loaders import load
from reproductions.parts import Part, Parts
from reproductions.setting import setting_of
from reproductions.summary import summarise
from tests.reproductions.made_records import made_experiment, made_runs, made_summary

from calibrant.errors import InputError


def made_parts(labels=(0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 3)):
    """Parts whose steer inputs are the numbers of their rows."""
    labels = np.array(labels)
    rows = Part(list(range(len(labels))), labels)
    return Parts(rows, rows, rows, rows, ("a", "b", "c", "d"))


@pytest.mark.parametrize("inputs", [["x", "y", "z"], np.array(["x", "y", "z"])], ids=type)
def test_rows_are_taken_with_their_labels_and_posteriors(inputs):
    part = Part(inputs, np.array([4, 5, 6]), np.eye(3))
    taken = part.take(np.array([2, 0]))
    assert list(taken.inputs) == ["z", "x"]
    assert taken.labels.tolist() == [6, 4]
    assert taken.posterior.tolist() == [[0, 0, 1], [1, 0, 0]]
    assert Part(inputs, part.labels).take(np.array([1])).posterior is None


def test_every_steer_row_goes_to_one_half_and_each_class_is_halved():
    parts = made_parts()
    halved = parts.with_choice()
    followed, kept = halved.steer, halved.choice
    assert sorted([*followed.inputs, *kept.inputs]) == parts.steer.inputs
    assert np.bincount(followed.labels, minlength=4).tolist() == [2, 2, 1, 1]
    assert np.bincount(kept.labels, minlength=4).tolist() == [2, 2, 1, 0]
    assert halved.sizes() == {"train": 11, "steer": 6, "calib": 11, "test": 11, "choice": 5}
    assert "choice" not in parts.sizes()


def test_the_halves_are_drawn_at_random_and_always_alike():
    many = made_parts(np.zeros(400, dtype=int))
    first, second = many.with_choice().choice.inputs, many.with_choice().choice.inputs
    assert first == second
    odd = sum(each % 2 for each in first)
    assert 70 < odd < 130  # not every second row of the file


def test_an_experiment_may_keep_rows_for_the_choice():
    one = experiment_named("newsgroups-cnn").at("toy")
    assert one.own_choice
    sizes = load(one).sizes()
    assert sizes["choice"] == sizes["steer"] == 20


@pytest.mark.parametrize("one", experiments().values(), ids=lambda one: one.name)
def test_only_an_experiment_with_choice_rows_says_so_in_its_setting(one):
    """Records that were made before there were any stay those of their config."""
    told = setting_of(one, one.methods[0])
    assert told.get("own_choice") == (True if one.own_choice else None)


def chosen_runs(refinements):
    """Runs of which the focal method has the least refinement on the steer rows."""
    runs = copy.deepcopy(made_runs())
    for run in runs:
        run["choice"] = {"refinement": refinements[run["method"]]}
    return runs


def test_where_there_are_choice_rows_they_choose_the_recipe():
    assert made_summary().recipe.method == "focal"
    found = made_summary(chosen_runs({"ce": 0.55, "focal": 0.65}))
    assert (found.recipe.method, found.recipe.rows) == ("ce", "choice")
    assert found.recipe.why == (
        "On the choice rows CE has the least log loss after temperature scaling, 0.5500 (mean of "
        "3 seeds); next is FL-3, 0.6500."
    )
    assert {each["compared_on"] for each in found.to_dict()["methods"]} == {"choice"}
    assert "chosen on the choice rows" in found.goals[0].sentence


def test_runs_with_and_without_choice_rows_are_not_mixed():
    one = made_experiment(own_choice=True)
    old = [
        {**run, "setting": setting_of(made_experiment(), method)}
        for run in made_runs()
        for method in one.methods
        if method.name == run["method"]
    ]
    assert summarise(made_experiment(), old).recipe.rows == "steer"
    with pytest.raises(
        InputError, match="own_choice not set instead of True: rerun it with --again"
    ):
        summarise(one, old)
