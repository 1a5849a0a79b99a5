"""What settings of AdaFocal do: series by value, noise over seeds, answers in words."""

import copy

import pytest
from reproductions.adafocal_settings import (
    later_error,
    setting_headline,
    setting_words,
    settings_of,
)
from reproductions.experiment import Method
from reproductions.summary import summarise
from tests.reproductions.made_records import figure, made_experiment, made_losses, made_record

LOSSES = {
    "ce": "ce", "default": "adafocal", "bins-5": "adafocal:n_bins=5,min_count=1",
    "bins-30": "adafocal:n_bins=30,min_count=1", "strength-5": "adafocal:strength=5",
    "low": "adafocal:strength=5,gamma_min=-4",
}  # fmt: skip
LATER = {"default": 0.05, "bins-5": 0.051, "bins-30": 0.052, "strength-5": 0.02, "low": 0.02}
METHODS = tuple(Method(name, name, {"loss": loss}) for name, loss in LOSSES.items())


def runs_of(later=LATER, auto=0.03):
    """Three seeds of each method, a hundredth apart over the second half of four epochs."""
    runs = []
    for name in LOSSES:
        for seed in range(3):
            run = copy.deepcopy(made_record(name, seed, ece=0.08 + 0.02 * seed))
            ends = (0.5, 0.5, later.get(name, 0.2), later.get(name, 0.2) + 0.01 * seed)
            run["test_history"] = [{"ece_em": each} for each in ends]
            run["figures"]["auto"]["ece_em"] = figure(auto + 0.001 * seed)
            runs.append(run)
    return runs


def told_of(runs, losses=None):
    experiment = made_experiment(methods=METHODS, published={})
    summary = summarise(experiment, runs, losses)
    by_method = {name: [run for run in runs if run["method"] == name] for name in LOSSES}
    return (
        setting_headline(experiment, summary, by_method),
        setting_words(experiment, summary, by_method),
    )


def test_values_stand_in_order_with_the_usual_one_among_them():
    experiment = made_experiment(methods=METHODS, published={})
    found = settings_of(experiment, summarise(experiment, runs_of()).methods)
    values = {name: [(one.text, one.usual) for one in each] for name, each in found.items()}
    assert values == {
        "n_bins": [("5", False), ("15", True), ("30", False)],
        "strength": [("1", True), ("5", False)],
        "gamma_min": [("-4", False), ("-1.5", True)],
    }
    assert [one.changed for one in found["gamma_min"]] == [False, True]  # of lambda 5
    assert settings_of(experiment, []) == {}


def test_the_later_epochs_are_the_second_half():
    runs = [{"test_history": [{"ece_em": each} for each in (9.0, 9.0, 9.0, 0.1, 0.3, 0.5, 0.7)]}]
    assert later_error(runs).mean == pytest.approx(0.4)
    assert later_error([{"test_history": None}, {"test_history": [{"ece_em": 0.1}]}]) is None


def test_an_answer_for_each_setting():
    headline, (noise, bins, strength, low, after) = told_of(runs_of())
    assert headline == (
        "Of 3 settings only lambda (1: 5.5 %, 5: 2.5 %) changes ECE_EM as trained (mean of the "
        "later half of the epochs) by more than seeds do; after calibration none does."
    )
    assert "(default) have ECE_EM 8.0 to 12.0 % as trained at the epoch that is kept" in noise
    assert "and 5.0 to 6.0 % as the mean over the second half" in noise
    assert "3 seeds of 6 do one time in 10" in noise
    assert bins == (
        "Number of bins (usual: 15): no value is distinguished from the usual one. "
        "ECE_EM by value: "
        "5: 5.6 %, 15: 5.5 %, 30: 5.7 %."
    )
    assert strength.startswith("Lambda, the strength of each step (usual: 1): 5 is better.")
    assert low == (
        "Smallest gamma (usual: -1.5; all at strength-5): -4 and -1.5 gave the very same runs, so "
        "it never came into play."
    )
    assert after.endswith(
        "have ECE_EM 3.1 to 3.1 %, plain cross-entropy 3.1 %; none is distinguished."
    )


def test_a_worse_value_and_one_that_still_tells_after_calibration():
    runs = runs_of({**LATER, "bins-30": 0.2})
    for run in runs:
        if run["method"] == "bins-5":
            run["figures"]["auto"]["ece_em"] = figure(0.06 + 0.001 * run["seed"])
    headline, words = told_of(runs)
    assert "only number of bins (5: 5.6 %, 15: 5.5 %, 30: 20.5 %) and lambda" in headline
    assert headline.endswith("seeds do; after calibration number of bins still tell.")
    assert "30 is worse." in words[1]
    assert "distinguished from the usual value: number of bins 5." in words[-1]


def test_seeds_that_just_do_not_overlap_are_not_enough():
    """One wide spread beside a narrow one: apart by luck, and by less than two standard errors."""
    runs = runs_of()
    for run, value in zip(
        [r for r in runs if r["method"] == "bins-5"], (0.061, 0.061, 0.2), strict=True
    ):
        run["test_history"] = [{"ece_em": value}] * 2
    assert "no value is distinguished" in told_of(runs)[1][1]


def test_log_losses_beside_cross_entropy_are_counted():
    rows = made_losses()
    losses = {
        (name, s): rows["focal" if name == "low" else "ce", s] for name in LOSSES for s in range(3)
    }
    words = told_of(runs_of(), losses)[1]
    assert words[-1].endswith("by two standard errors over test rows: 1 better, 4 level, 0 worse.")


def test_without_a_series_there_is_nothing_to_tell():
    experiment = made_experiment(published={})
    runs = [made_record("ce", seed) for seed in range(3)]
    summary = summarise(experiment, runs)
    assert setting_headline(experiment, summary, {"ce": runs}) == ""
    assert setting_words(experiment, summary, {"ce": runs}) == ()


def test_limits_that_gammas_came_to_are_told():
    losses = {
        "ce": "ce",
        "default": "adafocal",
        "50": "adafocal:gamma_max=50",
        "70": "adafocal:gamma_max=70",
    }
    methods = tuple(Method(name, name, {"loss": loss}) for name, loss in losses.items())
    largest = {"default": 20.0, "50": 50.0, "70": 61.0}
    runs = {}
    for name in losses:
        runs[name] = [copy.deepcopy(made_record(name, seed)) for seed in range(3)]
        for seed, run in enumerate(runs[name]):
            later = 0.1 + 0.01 * len(name) + 0.001 * seed
            run["test_history"] = [{"ece_em": later}] * 4
        runs[name][0]["gammas"] = [[1.0, 1.0], [largest.get(name, 1.0), 2.0]]
    experiment = made_experiment(methods=methods, published={})
    summary = summarise(experiment, [run for each in runs.values() for run in each])
    _, answer, *_ = setting_words(experiment, summary, runs)
    assert answer.startswith("Largest gamma (usual: 20): ")
    assert answer.endswith(" Some gamma came to its limit at 20 and 50.")
