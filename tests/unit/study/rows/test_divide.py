"""Which rows choose the candidate: half of the steer share, where there is something to choose."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.sentences import assert_mentions, refuses
from tests.unit.study.runs import table_config, text_config

from calibrant.data import read_rows
from calibrant.data.splitting import split_rows
from calibrant.errors import InputError
from calibrant.study import StudyConfig
from calibrant.study.candidates.candidate import list_candidates
from calibrant.study.rows.divide import halve_steer
from calibrant.study.rows.read import read_study_rows

LABELS = st.lists(st.sampled_from("abcde"), min_size=1, max_size=40)
GROUPED = st.lists(st.tuples(st.sampled_from("abcd"), st.integers(0, 9)), min_size=1, max_size=40)

SEVERAL = {
    "several losses": {"candidates": ("ce", "adafocal")},
    "several seeds": {"seeds": (0, 1)},
    "an average beside its network": {"mc_dropout": 4},
}


def texts(folder, counts, **changes):
    """Write so many different texts of each class, and return the settings of a study of them."""
    path = folder / "logs.csv"
    rows = [(f"text {name} {i}", name) for name, n in counts.items() for i in range(n)]
    path.write_text("message,reason\n" + "".join(f"{text},{name}\n" for text, name in rows))
    told = {"data": str(path), "text": "message", "label": "reason", "calibrator": "identity"}
    return StudyConfig(**{**told, "candidates": ("ce", "adafocal"), **changes})


def reasons(rows, split):
    return Counter(rows.labels(rows[split].codes).tolist())


def test_the_second_share_steers_and_chooses_and_the_others_stay_what_they_are(tmp_path):
    several = texts(tmp_path, {"a": 150, "b": 50}, shares="6:2:2")
    rows = read_study_rows(several)
    alone = read_study_rows(replace(several, candidates=("ce",)))
    for name in ("train", "calibrate", "test"):
        np.testing.assert_array_equal(
            getattr(rows.splits, name).ids, getattr(alone.splits, name).ids
        )
    both = np.union1d(rows.splits.steer.ids, rows.splits.choice.ids)
    np.testing.assert_array_equal(both, alone.splits.steer.ids)
    assert reasons(rows, "steer") == reasons(rows, "choice") == {"a": 15, "b": 5}
    assert "choice" not in alone.sizes()
    assert list(rows.sizes()) == ["train", "steer", "choice", "calibrate", "test"]


@pytest.mark.parametrize("changes", SEVERAL.values(), ids=SEVERAL)
def test_whatever_makes_several_candidates_keeps_choice_rows(tmp_path, changes):
    config = table_config(tmp_path, model_options={"hidden": (16,), "dropout": (0.1,)})
    assert not config.compares
    assert len(read_study_rows(config).splits.choice) == 0
    assert replace(config, **changes).compares
    assert len(read_study_rows(replace(config, **changes)).splits.choice) > 50


def test_no_candidate_is_kept_for_another_split(tmp_path):
    config = texts(tmp_path, {"a": 150, "b": 50})
    rows = read_study_rows(config)
    alone = read_study_rows(replace(config, candidates=("ce",)))

    def folder(splits):
        return list_candidates(config, rows.files, splits)[0].folder

    assert folder(rows.splits) != folder(alone.splits)
    fewer = replace(rows.splits.choice, ids=rows.splits.choice.ids[1:])
    assert folder(replace(rows.splits, choice=fewer)) != folder(rows.splits)
    assert folder(read_study_rows(config).splits) == folder(rows.splits)


def test_rows_of_one_group_do_not_steer_and_choose(tmp_path):
    rows = read_study_rows(table_config(tmp_path, group="customer", drop=("day",), seeds=(0, 1)))
    owners = read_rows(tmp_path / "table.csv")["customer"].to_pylist()
    splits = rows.to_file_positions()
    steer, choice = ({owners[i] for i in part.ids} for part in (splits.steer, splits.choice))
    assert len(steer) > 10
    assert len(choice) > 10
    assert not steer & choice


def test_rows_of_no_class_neither_steer_nor_choose(tmp_path):
    config = texts(tmp_path, {"a": 100, "b": 60, "other": 40}, out_of_scope="other")
    rows = read_study_rows(config)
    for name in ("steer", "choice"):
        assert set(reasons(rows, name)) == {"a", "b"}
        assert rows[name].inside.all()


def test_a_class_that_cannot_be_on_both_sides_steers_and_a_note_says_so(tmp_path):
    config = texts(tmp_path, {"a": 100, "b": 60, "rare": 8, "scarce": 9})
    rows = read_study_rows(config)
    assert reasons(rows, "steer") == {"a": 5, "b": 3, "rare": 1, "scarce": 1}
    assert reasons(rows, "choice") == {"a": 5, "b": 3}
    assert rows.notes == (
        "There is no choice row of 'rare', 'scarce': the candidates were not compared on that.",
    )
    assert read_study_rows(replace(config, candidates=("ce",))).notes == ()


def test_a_class_of_two_steer_rows_is_on_both_sides(tmp_path):
    rows = read_study_rows(texts(tmp_path, {"a": 100, "rare": 20}))
    assert reasons(rows, "steer")["rare"] == reasons(rows, "choice")["rare"] == 1


@pytest.mark.parametrize("counts", [{"a": 30, "b": 10}, {"a": 11, "b": 10, "c": 9}])
def test_too_few_rows_to_choose_on_are_refused_in_one_sentence(tmp_path, counts):
    config = texts(tmp_path, counts)
    with pytest.raises(InputError) as error:
        read_study_rows(config)
    steer = len(read_study_rows(replace(config, candidates=("ce",))).splits.steer)
    assert_mentions(
        error.value,
        config.data,
        f"the {steer} rows",
        "steer",
        "choice",
        "--shares 6:3:1",
        "--candidates ce",
    )
    rows = read_study_rows(replace(config, shares=(4, 4, 2)))  # the remedy works
    assert len(rows.splits.choice) >= 2


def test_one_moment_in_the_steer_share_cannot_choose(tmp_path):
    # A day has 10 rows of 1,500.
    config = table_config(tmp_path, time="day", drop=("customer",), shares="139:1:10")
    assert len(read_study_rows(config).splits.steer) == 10
    with refuses(InputError, "10 rows", "steer share", "halved"):
        read_study_rows(replace(config, seeds=(0, 1)))


def test_a_study_of_texts_halves_them_by_class(tmp_path):
    rows = read_study_rows(text_config(tmp_path))
    steer, choice = reasons(rows, "steer"), reasons(rows, "choice")
    assert set(steer) == set(choice) == set(rows.classes)
    assert all(abs(steer[name] - choice[name]) <= 1 for name in rows.classes)
    assert not set(rows["steer"].inputs) & set(rows["choice"].inputs)


def repeated(folder, **changes):
    """Ten texts of each class, forty times each; return the settings of a study of them."""
    path = folder / "logs.csv"
    rows = 40 * [(f"text {name} {i}", name) for name in ("a", "b") for i in range(10)]
    path.write_text("message,reason,who\n" + "".join(f"{t},{n},{t}\n" for t, n in rows))
    told = {"data": str(path), "text": "message", "label": "reason", "candidates": ("ce",)}
    return StudyConfig(**{**told, "calibrator": "identity", **changes})


def test_without_a_golden_set_each_text_calibrates_or_tests_once(tmp_path):
    rows = read_study_rows(repeated(tmp_path))
    judging = [*rows["calibrate"].inputs, *rows["test"].inputs]
    assert len(set(judging)) == len(judging)
    assert set(judging).isdisjoint(rows["train"].inputs)
    assert len(rows["train"].inputs) > 400  # those that train come as often as they do
    left = 800 - sum(part["rows"] for part in rows.sizes().values())
    assert any(note.startswith(f"{left} rows with the text of another were") for note in rows.notes)


def test_rows_of_a_group_that_was_named_are_all_kept(tmp_path):
    rows = read_study_rows(repeated(tmp_path, group="who"))
    assert sum(part["rows"] for part in rows.sizes().values()) == 800


def test_different_texts_all_have_a_job(tmp_path):
    rows = read_study_rows(texts(tmp_path, {"a": 150, "b": 50}))
    assert sum(part["rows"] for part in rows.sizes().values()) == 200
    assert not any("of another" in note for note in rows.notes)


def test_too_few_different_texts_to_calibrate_on_are_told(tmp_path):
    told = r"only \d rows are left to calibrate on.*: \d+ with the text of another were left out"
    with pytest.raises(InputError, match=told):
        read_study_rows(repeated(tmp_path, calibrator="auto"))


def counts(labels, positions):
    return Counter(labels[place] for place in positions)


@given(LABELS, st.integers(0, 5))
@settings(max_examples=60, deadline=None)
def test_every_class_is_halved_and_a_lone_row_steers(labels, seed):
    steer, choice = halve_steer(labels, n=len(labels), seed=seed)
    assert sorted([*steer, *choice]) == list(range(len(labels)))
    whole, chosen = Counter(labels), counts(labels, choice)
    for name, n in whole.items():
        assert chosen[name] in (n // 2, (n + 1) // 2)
        assert chosen[name] < n  # at least one steers
        assert (chosen[name] == 0) == (n == 1)


@given(GROUPED, st.integers(0, 5))
@settings(max_examples=100, deadline=None)
def test_groups_stay_together_whatever_they_hold(rows, seed):
    labels, groups = zip(*rows, strict=True)
    steer, choice = halve_steer(labels, groups=groups, seed=seed)
    assert sorted([*steer, *choice]) == list(range(len(labels)))
    assert not {groups[i] for i in steer} & {groups[i] for i in choice}


def test_the_halves_are_in_order_and_alike_for_one_seed_only():
    labels = ["a"] * 60 + ["b"] * 40
    one, same, other = (halve_steer(labels, n=100, seed=seed) for seed in (0, 0, 1))
    for half, again in zip(one, same, strict=True):
        np.testing.assert_array_equal(half, again)
        np.testing.assert_array_equal(half, np.sort(half))
    assert not np.array_equal(one[1], other[1])
    assert counts(labels, one[1]) == {"a": 30, "b": 20}


def test_a_class_of_one_group_stays_with_the_steer_rows_and_takes_the_group_along():
    labels = ["rare", "a", "a", "a", "a", "a"]
    groups = ["g", "g", "h", "i", "j", "k"]
    steer, choice = halve_steer(labels, groups=groups)
    assert {0, 1} <= set(steer)
    assert counts(labels, choice) == {"a": 2}


def test_a_class_that_is_left_in_one_group_stays_too():
    # "b" stands in g, which stays for "rare", and in h: h alone cannot be halved.
    labels = ["rare", "b", "b", "a", "a", "a", "a"]
    groups = ["g", "g", "h", "i", "j", "k", "l"]
    steer, choice = halve_steer(labels, groups=groups)
    assert {0, 1, 2} <= set(steer)
    assert counts(labels, choice) == {"a": 2}


def test_a_row_without_a_group_stands_for_itself():
    steer, choice = halve_steer(["a"] * 6, groups=["g", None, None, "g", None, None])
    assert len(steer) == len(choice) == 3
    assert (0 in steer) == (3 in steer)


def test_groups_too_large_to_part_every_class_are_halved_without_regard_to_classes():
    # Wherever the groups go, one half lacks a class.
    labels = ["a", "b", "b", "c", "c", "a"]
    groups = ["g", "g", "h", "h", "i", "i"]
    with refuses(InputError, "groups", "class 'c'", "smaller groups"):
        split_rows(labels, (1, 1), groups=groups)
    steer, choice = halve_steer(labels, groups=groups)
    assert {len(steer), len(choice)} == {2, 4}
    assert not {groups[i] for i in steer} & {groups[i] for i in choice}


def test_where_every_class_is_alone_nothing_is_left_to_choose_on():
    steer, choice = halve_steer(["a", "b", "c"], n=3)
    assert (steer.tolist(), choice.tolist()) == ([0, 1, 2], [])


def test_the_later_half_chooses_and_one_moment_cannot_be_halved():
    steer, choice = halve_steer(["a", "b", "a", "b"], times=[4, 1, 2, 3])
    assert (steer.tolist(), choice.tolist()) == ([1, 2], [0, 3])
    with refuses(InputError, "times", "only 1 distinct", "finer times"):
        halve_steer(["a", "b"], times=[1, 1])


def test_without_classes_rows_are_halved_at_random():
    steer, choice = halve_steer(None, n=100)
    assert len(steer) == len(choice) == 50
    assert not np.array_equal(steer, np.arange(50))
