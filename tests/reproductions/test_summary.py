import json
import math
import random

import pytest
from reproductions.experiment import Method
from reproductions.seed_figures import FIGURES, WAYS
from reproductions.summary import baseline_of, summarise
from tests.reproductions.made_records import (
    ROWS,
    figure,
    made_experiment,
    made_losses,
    made_record,
    made_runs,
    made_summary,
)

from calibrant.errors import InputError


def test_means_over_three_seeds_by_hand():
    plain = made_summary()["ce"]
    raw = plain.figure("raw", "ece_em")
    assert plain.seeds == (0, 1, 2)
    assert raw.value.n == 3
    assert raw.value.mean == pytest.approx(0.08)  # of 0.07, 0.08, 0.09
    assert raw.value.sd == pytest.approx(0.01)
    assert (raw.value.least, raw.value.most) == pytest.approx((0.07, 0.09))
    assert (raw.low, raw.high) == pytest.approx((0.07, 0.09))  # ends of single runs: 0.06 ... 0.10
    assert (raw.floor, raw.floor_q95) == pytest.approx((0.010, 0.015))
    assert plain.mean("temperature", "ece_em") == pytest.approx(0.04)
    assert plain.mean("auto", "ece_em") == pytest.approx(0.02)
    assert plain.seconds.mean == pytest.approx(11)
    assert plain.temperature.mean == pytest.approx(1.5)
    assert plain.published == {"ece_em": 9.0, "ece_em_scaled": 3.0}


def test_every_way_has_every_figure():
    for method in made_summary().methods:
        assert tuple(method.figures) == WAYS
        assert all(tuple(found) == FIGURES for found in method.figures.values())


def test_the_order_of_records_does_not_matter():
    expected = made_summary(losses=made_losses()).to_dict()
    runs = made_runs()
    for seed in range(5):
        random.Random(seed).shuffle(runs)
        assert made_summary(runs, made_losses()).to_dict() == expected


def test_the_same_run_twice_counts_once():
    assert made_summary([*made_runs(), *made_runs()]).to_dict() == made_summary().to_dict()


def test_all_seeds_again_under_other_numbers_change_no_mean():
    again = [{**each, "seed": each["seed"] + 3} for each in made_runs()]
    losses = made_losses()
    more = {(name, seed + 3): each for (name, seed), each in losses.items()}
    once, twice = (
        made_summary(losses=losses),
        made_summary([*made_runs(), *again], {**losses, **more}),
    )
    for a, b in zip(once.methods, twice.methods, strict=True):
        for way in WAYS:
            for name in FIGURES:
                assert b.mean(way, name) == pytest.approx(a.mean(way, name))
        assert b.nll.difference == pytest.approx(a.nll.difference)
        assert b.nll.error == pytest.approx(a.nll.error)  # the rows are no more than they were


def test_one_seed_has_no_standard_deviation():
    found = made_summary([each for each in made_runs() if each["seed"] == 0])
    assert found["ce"].figure("raw", "ece_em").value.sd is None
    assert all(each.state == "open" for each in found.goals)
    assert "reached so far, with 1 seed of the 3 that the goal asks for" in found.goals[0].sentence
    assert found.missing == (("ce", 1), ("ce", 2), ("focal", 1), ("focal", 2))


def test_a_missing_value_is_left_out_and_counted():
    runs = made_runs()
    runs[0]["figures"]["raw"]["ece_em"] = figure(None)
    runs[1]["figures"]["raw"]["nll"] = None
    runs[2]["figures"]["raw"]["brier"]["value"] = math.nan
    for run in runs[:3]:
        run["figures"]["ets"] = None
        run["figures"]["spline"]["error"] = figure(None)
    found = made_summary(runs)["ce"]
    assert found.figure("raw", "ece_em").value.n == 2
    assert found.mean("raw", "ece_em") == pytest.approx(0.085)
    assert found.figure("raw", "nll").value.n == 2
    assert found.figure("raw", "brier").value.n == 2
    assert found.mean("ets", "ece_em") is None
    assert found.mean("spline", "error") is None


def test_an_interval_that_a_run_lacks_is_not_averaged_from_the_others():
    runs = made_runs()
    runs[0]["figures"]["raw"]["ece_em"].update(low=None, floor=None)
    found = made_summary(runs)["ce"].figure("raw", "ece_em")
    assert found.value.n == 3
    assert (found.low, found.floor, found.floor_q95) == (None, None, None)
    assert found.high == pytest.approx(0.09)


def test_json_has_no_nan():
    runs = made_runs()
    for run in runs:
        run["figures"]["raw"]["nll"] = figure(math.inf)
        run["temperature"] = math.nan
        run["steer"]["refinement"] = None
    found = made_summary(runs, made_losses())
    again = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert again["methods"][0]["temperature"] is None
    assert again["recipe"] is None
    assert again["goals"] == []
    assert json.dumps(made_summary(losses=made_losses()).to_dict(), allow_nan=False)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"size": "small"}, "different sizes"),
        ({"rows": {"train": 1, "steer": 1, "calib": 1, "test": 9}}, "different rows"),
        ({"classes": ["a", "b", "c"]}, "different classes"),
        ({"experiment": "other"}, "a run of other lies among those of made"),
        ({"method": "brier"}, "no method 'brier'"),
        ({"schema": 2}, "schema 2"),
        ({"temperature": 9.0}, "two different records of made, focal with seed 2"),
    ],
)
def test_runs_that_do_not_belong_together_are_refused_in_one_sentence(change, message):
    runs = [*made_runs(), {**made_runs()[-1], **change}]
    with pytest.raises(InputError, match=message) as told:
        made_summary(runs)
    assert str(told.value).endswith(".")
    assert "\n" not in str(told.value)


def test_a_record_without_its_keys_is_refused():
    broken = made_record()
    del broken["figures"], broken["rows"]
    with pytest.raises(InputError, match="lacks rows, figures: run it again"):
        made_summary([broken])


def test_no_records_is_answered_with_the_command():
    with pytest.raises(InputError, match="run python -m reproductions made"):
        made_summary([])


def test_losses_of_other_rows_are_refused():
    with pytest.raises(InputError, match="for 400 test rows: run it again"):
        made_summary(losses=made_losses(n=399))


def test_missing_runs_are_named():
    found = made_summary(made_runs()[:-1])
    assert found.missing == (("focal", 2),)
    assert "5 runs are here; missing: FL-3 with seed 2." in found.sentences
    assert any("the same seeds" in each for each in found.sentences)
    # A method without any run needs no seeds.
    few = made_summary(made_runs()[:1]).sentences
    assert "1 run is here; missing: CE with seeds 1 and 2; FL-3." in few
    more = tuple(Method(f"m{i}", f"M{i}", {"loss": "ce"}) for i in range(9))
    methods = (*(Method(name, name, {"loss": name}) for name in ("ce", "focal")), *more)
    many = made_summary(made_runs(), methods=methods).sentences
    assert any(each.endswith("missing: M0; M1; M2; M3; M4; M5; 3 more methods.") for each in many)
    assert not any("missing" in each for each in made_summary().sentences)


def test_a_method_that_was_not_run_is_not_shown():
    found = made_summary(made_runs()[:3], made_losses())
    assert [each.name for each in found.methods] == ["ce"]
    assert found.orderings == ()
    assert found.recipe.why.endswith("0.6000 (mean of 3 seeds).")


def test_mixed_hardware_is_said():
    runs = made_runs()
    runs[0]["machine"] = {"cpu": "Two cores", "gpu": "NVIDIA H200"}
    found = made_summary(runs)
    assert found.hardware == {"Two cores": 5, "NVIDIA H200": 1}
    assert found.sentences[-1] == (
        "Made on different hardware, so seconds cannot be compared: Two cores (5 runs), NVIDIA "
        "H200 (1 run)."
    )
    assert made_summary([{**each, "machine": None} for each in runs]).hardware == {"unknown": 6}


def test_days_and_notes():
    runs = [{**each, "note": "fewer posts than in the paper"} for each in made_runs()]
    found = made_summary(runs, why="The rows are made up.")
    assert found.dates == ("2026-11-16", "2026-11-18")
    assert found.notes == ("The rows are made up.", "Fewer posts than in the paper.")
    assert made_summary([{**each, "date": None} for each in runs]).dates is None


def test_no_sentence_claims_significance():
    for losses in (made_losses(-0.1), made_losses(0.1), None):
        assert "significant" not in " ".join(made_summary(losses=losses).sentences)


def test_cross_entropy_is_found_by_name_or_by_its_loss():
    assert baseline_of(made_experiment()) == "ce"
    weighted = Method("weighted", "W", {"loss": "ce", "class_weights": "balanced"})
    plain = Method("plain", "CE", {"loss": "ce"})
    assert baseline_of(made_experiment(methods=(weighted, plain))) == "plain"
    assert baseline_of(made_experiment(methods=(Method("f", "F", {"loss": "focal"}),))) is None


def test_choices_of_an_earlier_rule_are_told():
    several = {"classes": ["a", "b", "c"], "rows": {**ROWS, "calib": 500}}
    old, new = made_record(**several), made_record("focal", **several, comparison={"why": "so"})
    earlier = "runs was made by an earlier rule"
    assert any(f"of all {earlier}" in note for note in summarise(made_experiment(), [old]).notes)
    both = summarise(made_experiment(), [old, new]).notes
    assert any(f"of 1 of 2 {earlier}" in note for note in both)
    assert not any(earlier in note for note in summarise(made_experiment(), [new]).notes)
    two = made_record(rows=several["rows"])  # with two classes the rule is as it was
    assert not any(earlier in note for note in summarise(made_experiment(), [two]).notes)
