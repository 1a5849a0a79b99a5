import copy
import math

import pytest
from reproductions.experiment import Method
from reproductions.ordering import order_sentences
from tests.reproductions.made_records import (
    figure,
    made_record,
    made_runs,
    made_summary,
)


def test_order_by_hand():
    before, after = made_summary().orderings
    pair = before.pairs[0]
    assert (before.figure, before.way) == ("ece_em", "raw")
    assert (pair.first, pair.second) == ("FL-3", "CE")  # the paper's smaller figure first
    assert pair.paper == pytest.approx(0.05)
    assert pair.noise == pytest.approx(0.01)  # both 2 x 0.005 and 0.002 x sqrt(10000 / 400)
    assert pair.ours == pytest.approx(0.04)
    assert pair.error == pytest.approx(0.01 * math.sqrt(2 / 3))
    assert pair.outside
    assert pair.outcome == "same order"
    assert after.way == "temperature"
    assert not after.pairs[0].outside  # half a point
    assert "the paper's gap between FL-3 and CE is within noise" in str(after)


def with_raw(plain, focal):
    runs = copy.deepcopy(made_runs())
    for run in runs:
        value = (plain if run["method"] == "ce" else focal)[run["seed"]]
        run["figures"]["raw"]["ece_em"] = figure(value, (0.010, 0.015))
    return runs


@pytest.mark.parametrize(
    ("plain", "focal", "outcome"),
    [
        ((0.08, 0.08, 0.08), (0.04, 0.04, 0.04), "same order"),
        ((0.04, 0.04, 0.04), (0.08, 0.08, 0.08), "opposite order"),
        ((0.048, 0.048, 0.048), (0.04, 0.04, 0.04), "within noise"),  # within noise of the rows
        ((0.02, 0.08, 0.14), (0.04, 0.05, 0.06), "within noise"),  # seeds too far apart
    ],
)
def test_outcomes(plain, focal, outcome):
    found = made_summary(with_raw(plain, focal)).orderings[0]
    assert found.pairs[0].outcome == outcome
    assert found.counted()[outcome] == 1
    assert sum(found.counted().values()) == 1


def test_with_one_seed_intervals_tell_methods_apart():
    def outcome(plain, focal):
        runs = [each for each in with_raw(3 * [plain], 3 * [focal]) if each["seed"] == 0]
        return made_summary(runs).orderings[0].pairs[0].outcome

    assert outcome(0.080, 0.040) == "same order"  # [0.07, 0.09] and [0.03, 0.05]
    assert outcome(0.055, 0.040) == "within noise"  # [0.045, 0.065] and [0.03, 0.05]
    runs = [each for each in made_runs() if each["seed"] == 0]
    runs[0]["figures"]["raw"]["ece_em"]["low"] = None
    assert made_summary(runs).orderings[0].pairs[0].outcome == "within noise"


def test_without_floors_the_noise_hangs_on_the_rows_alone():
    runs = copy.deepcopy(made_runs())
    for run in runs:
        run["figures"]["raw"]["ece_em"]["floor"] = None
        run["rows"] = {"train": 1, "steer": 1, "calib": 1, "test": 40_000}
    assert made_summary(runs).orderings[0].pairs[0].noise == pytest.approx(0.001)


@pytest.mark.parametrize(
    ("change", "other"),
    [({}, {"faithful": False}), ({"epochs": 3}, {}), ({"size": "small"}, {})],
)
def test_on_a_shorter_schedule_no_order_is_claimed(change, other):
    found = made_summary([{**each, **change} for each in made_runs()], **other)
    assert not found.faithful
    assert not found.orderings[0].claim
    assert found.orderings[0].counted()["same order"] == 1
    assert str(found.orderings[0]).endswith("not trained as the paper's: no claim about the order.")


def test_where_no_order_is_claimed_one_sentence_counts_the_gaps_of_all_figures():
    found = made_summary(faithful=False)
    (sentence,) = order_sentences(found.orderings)
    assert sentence in found.sentences
    assert sentence == (
        "No order of methods is claimed, since ours are not trained as the paper's were. Of the "
        "paper's gaps beyond noise, ours go the same way in 1 and the other way in 0 "
        "of 1 (ECE_EM before calibrating)."
    )
    assert len(order_sentences(made_summary().orderings)) == 2  # one a figure where it is claimed
    assert order_sentences(()) == []


def test_early_stopping_is_not_a_shorter_schedule():
    runs = [{**each, "epochs": 3} for each in made_runs()]
    assert made_summary(runs, training={"epochs": 10, "patience": 2}).faithful


def test_order_of_equally_wide_bins_where_the_paper_has_those():
    published = {"ce": {"ece": 9.0}, "focal": {"ece": 4.0}}
    (found,) = made_summary(published=published).orderings
    assert (found.figure, found.way) == ("ece_ew", "raw")
    assert str(found) == (
        "ECE_EW before calibrating: FL-3 has less than CE in the paper, beyond noise (1.00 points "
        "at 400 rows), and here too."
    )


def test_of_two_methods_alone_a_sentence_names_both():
    def told(ce, focal, paper=6.0):
        runs = [made_record("ce", s, ece=ce + 0.001 * s) for s in range(3)]
        runs += [made_record("focal", s, ece=focal + 0.001 * s) for s in range(3)]
        published = {"ce": {"ece_em": 9.0}, "focal": {"ece_em": paper}}
        return str(made_summary(runs, published=published).orderings[0])

    assert told(0.09, 0.02).endswith(" rows), and here too.")
    assert told(0.02, 0.09).endswith(" rows), but here CE has less.")
    assert told(0.02, 0.021).endswith(" rows), but here the gap is within noise.")
    assert told(0.09, 0.02, paper=8.99) == (
        "ECE_EM before calibrating: the paper's gap between FL-3 and CE is within noise."
    )


def test_a_sentence_names_a_few_pairs_and_counts_the_rest():
    methods = tuple(Method(f"m{i}", f"M{i}", {"loss": f"l{i}"}) for i in range(5))
    published = {f"m{i}": {"ece_em": 10.0 + 5 * i} for i in range(5)}
    runs = [
        made_record(f"m{i}", seed, ece=0.5 - 0.1 * i + 0.001 * seed)
        for i in range(5)
        for seed in range(3)
    ]
    found = made_summary(runs, methods=methods, published=published).orderings[0]
    assert found.counted() == {"same order": 0, "opposite order": 10, "within noise": 0}
    fields = found.to_dict()
    counts = [fields[name] for name in ("same_order", "opposite_order", "not_told_apart")]
    assert counts == [0, 10, 0]
    told = "none in the same order, 10 in the opposite order (M0 and M1; M0 and M2; M0 and M3; "
    assert f"{told}7 more), none within noise." in str(found)
