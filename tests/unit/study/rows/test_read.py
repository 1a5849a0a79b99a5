"""What a study reads, what it leaves out and says so, and what it refuses."""

from __future__ import annotations

import json
from itertools import pairwise

import numpy as np
import pytest
from tests.sentences import assert_mentions, refuses
from tests.unit.study.runs import table_config, table_file, text_config

from calibrant.errors import InputError, SplitMisuse
from calibrant.study import StudyConfig
from calibrant.study.rows.read import read_study_rows


def written(folder, rows, name="logs.csv"):
    path = folder / name
    path.write_text("message,reason\n" + "".join(f"{text},{label}\n" for text, label in rows))
    return str(path)


def many(n=60):
    return [(f"message number{i} {'broken' if i % 2 else 'small'}", "ab"[i % 2]) for i in range(n)]


def config(data, **changes):
    told = {"data": data, "text": "message", "label": "reason", "calibrator": "identity"}
    return StudyConfig(**{**told, **changes})


def test_logs_split_eight_to_one_to_one_beside_a_golden_set(tmp_path):
    rows = read_study_rows(text_config(tmp_path))
    sizes = {name: part["rows"] for name, part in rows.sizes().items()}
    assert sizes["train"] == pytest.approx(480, abs=6)
    assert sizes["log_test"] == pytest.approx(60, abs=4)
    assert sizes["steer"] + sizes["choice"] == pytest.approx(60, abs=4)
    assert abs(sizes["steer"] - sizes["choice"]) <= 3
    assert abs(sizes["calibrate"] - sizes["test"]) <= 3


def test_without_a_golden_set_held_out_rows_calibrate_and_test(tmp_path):
    rows = read_study_rows(config(written(tmp_path, many(200))))
    sizes = {name: part["rows"] for name, part in rows.sizes().items()}
    assert sizes == {"train": 140, "steer": 10, "choice": 10, "calibrate": 20, "test": 20}


def test_rows_without_a_text_or_a_label_are_left_out_and_told(tmp_path):
    data = written(tmp_path, [*many(), ("", "a"), ("no label", "")])
    rows = read_study_rows(config(data))
    assert sum(part["rows"] for part in rows.sizes().values()) == 60
    assert rows.notes == (
        "1 row of logs.csv without a label in 'reason' was left out.",
        "1 row of logs.csv without a text in 'message' was left out.",
    )


@pytest.mark.parametrize("word", ["NA", "n/a", "NaN", "null"])
def test_words_for_a_missing_label_are_no_class(tmp_path, word):
    data = written(tmp_path, [*many(), *((f"no label {i}", word) for i in range(40))])
    rows = read_study_rows(config(data))
    assert rows.classes == ("a", "b")
    assert sum(part["rows"] for part in rows.sizes().values()) == 60
    assert_mentions(rows.notes[0], "40 rows", "logs.csv", word, "reason", "--category reason")


def test_a_word_for_a_missing_label_is_a_class_where_the_user_says_so(tmp_path):
    data = written(tmp_path, [*many(), *((f"from Namibia {i}", "NA") for i in range(40))])
    for told in ({"categories": ("reason",)}, {"actions": {"NA": "ship"}}):
        rows = read_study_rows(config(data, **told))
        assert rows.classes == ("NA", "a", "b")
        assert rows.notes == ()
    rows = read_study_rows(config(data, out_of_scope="NA"))
    assert rows.sizes()["calibrate"]["out_of_scope"] > 0


def test_a_label_of_missing_words_alone_is_refused(tmp_path):
    data = written(tmp_path, [(f"no label {i}", "NA") for i in range(40)])
    with refuses(InputError, "logs.csv", "reason", "NA", "--category reason"):
        read_study_rows(config(data))


def test_declared_words_for_a_missing_value_are_missing_labels_of_a_table_too(tmp_path):
    path = tmp_path / "table.csv"
    labels = ["yes", "no", "no", "oops"]
    path.write_text("x,y\n" + "".join(f"{i / 7:.3f},{labels[i % 4]}\n" for i in range(400)))
    told = {"data": str(path), "label": "y", "calibrator": "identity"}
    rows = read_study_rows(StudyConfig(**told, missing=("oops",)))
    assert rows.classes == ("no", "yes")
    kept = read_study_rows(StudyConfig(**told, missing=("oops",), categories=("y",)))
    assert kept.classes == ("no", "oops", "yes")
    assert kept["train"].inputs.names == ("x",)


def test_classes_that_differ_only_in_case_or_blanks_are_told(tmp_path):
    names = ["YES", "yes", "new  item", "new item"]
    data = written(tmp_path, [(f"message {i}", names[i % 4]) for i in range(200)])
    rows = read_study_rows(config(data))
    assert len(rows.classes) == 4
    assert_mentions(rows.notes[0], "'YES' and 'yes'", "'new item' and 'new item'", "make them")


def unnamed(folder, name, cells, sep=","):
    path = folder / "table.csv"
    lines = [f"{cells(i)},{i % 7 / 7:.3f},{'ab'[i % 2]}" for i in range(200)]
    path.write_text("\n".join([f"{name},x,y", *lines, ""]))
    return {"data": str(path), "label": "y", "calibrator": "identity"}


@pytest.mark.parametrize("name", ["", "Unnamed: 0"])
def test_an_unnamed_column_that_numbers_the_rows_is_left_out_and_told(tmp_path, name):
    rows = read_study_rows(StudyConfig(**unnamed(tmp_path, name, str)))
    assert rows["train"].inputs.names == ("x",)
    assert_mentions(rows.notes[0], "table.csv", "numbers the rows", "left out")
    rows = read_study_rows(StudyConfig(**unnamed(tmp_path, name, str), drop=(name,)))
    assert rows["train"].inputs.names == ("x",)
    assert rows.notes == ()


def test_an_unnamed_column_without_a_value_is_left_out_and_told(tmp_path):
    rows = read_study_rows(StudyConfig(**unnamed(tmp_path, "", lambda i: "")))
    assert rows["train"].inputs.names == ("x",)
    assert_mentions(rows.notes[0], "table.csv", "without a name", "no value", "left out")


def test_an_unnamed_column_with_something_to_learn_stays(tmp_path):
    told = unnamed(tmp_path, "", lambda i: i % 5)
    assert read_study_rows(StudyConfig(**told))["train"].inputs.names == ("", "x")
    assert read_study_rows(StudyConfig(**told, drop=("",)))["train"].inputs.names == ("x",)
    kept = read_study_rows(StudyConfig(**told, categories=("",)))
    assert kept["train"].inputs.names == ("", "x")


def coded(folder, cell, name="table.csv"):
    path = folder / name
    lines = [f"{cell(i)},{i % 7 / 7:.3f},{'ab'[i % 2]}" for i in range(400)]
    path.write_text("\n".join(["zip,x,y", *lines, ""]))
    return str(path)


def test_codes_with_leading_zeros_are_categories_and_told(tmp_path):
    told = {"label": "y", "calibrator": "identity", "overlap": "drop"}
    data = coded(tmp_path, lambda i: f"{8000 + 37 * (i % 80):05d}")
    golden = coded(tmp_path, lambda i: 10_000 + 37 * (i % 3), "golden.csv")
    rows = read_study_rows(StudyConfig(data, **told, golden=golden))
    assert "08000" in rows.sources["logs"].inputs.columns[0].to_pylist()
    assert "10037" in rows.sources["golden"].inputs.columns[0].to_pylist()
    assert_mentions(rows.notes[0], "'zip'", "leading zeros", "category")


@pytest.mark.parametrize("cell", [lambda i: f"{i:05d}", lambda i: i % 80, lambda i: f"{i % 9}"])
def test_padded_amounts_and_plain_numbers_stay_numbers(tmp_path, cell):
    rows = read_study_rows(StudyConfig(coded(tmp_path, cell), label="y", calibrator="identity"))
    assert rows.sources["logs"].inputs.columns[0].dtype == float


def test_numbers_as_text_are_read_or_the_option_is_named(tmp_path):
    def written_as(cell):
        rows = [{"p": cell(i), "x": i / 7, "y": "ab"[i % 2]} for i in range(400)]
        (tmp_path / "t.jsonl").write_text("\n".join(map(json.dumps, rows)))
        return read_study_rows(StudyConfig(str(tmp_path / "t.jsonl"), "y", calibrator="identity"))

    assert written_as(lambda i: f"{i / 4:.2f}").sources["logs"].inputs.columns[0].dtype == float
    with refuses(InputError, "column 'p'", "numbers as text", "--category p", "convert"):
        written_as(lambda i: str(i))


def test_a_text_that_trains_does_not_judge(tmp_path):
    twice = [row for row in many(80) for _ in range(2)]
    rows = read_study_rows(config(written(tmp_path, twice)))
    train, steer, choice = (set(rows[name].inputs) for name in ("train", "steer", "choice"))
    held = {*rows["calibrate"].inputs, *rows["test"].inputs}
    assert len(choice) == 4
    each = (train, steer, choice, held)
    assert sum(map(len, each)) == len(set().union(*each)) == 80


def test_texts_are_redacted_unless_that_is_switched_off(tmp_path):
    data = written(tmp_path, [(f"write to me{i}@example.com", "ab"[i % 2]) for i in range(60)])
    kept = read_study_rows(config(data, redact=False))["train"].inputs
    assert all("@example.com" in text for text in kept)
    # Redacted, the texts are all alike; they were told apart before.
    hidden = read_study_rows(config(data))["train"].inputs
    assert not any("@" in text for text in hidden)


def test_at_most_so_many_rows_are_drawn(tmp_path):
    rows = read_study_rows(config(written(tmp_path, many(200)), rows=100))
    assert sum(part["rows"] for part in rows.sizes().values()) == 100
    assert "100 of the 200 rows" in rows.notes[0]


def test_rows_of_both_files_are_named_or_dropped(tmp_path):
    data = written(tmp_path, many(100))
    golden = written(tmp_path, [*many(100)[:2], *((f"other {i}", "ab"[i % 2]) for i in range(60))],
                     "golden.csv")  # fmt: skip
    with refuses(SplitMisuse, "2 rows", "golden data rows 1 (row 1 of"):
        read_study_rows(config(data, golden=golden))
    rows = read_study_rows(config(data, golden=golden, overlap="drop"))
    assert rows.sources["logs"].codes.shape == (98,)
    assert_mentions(rows.notes[0], "2 rows", "left out", "logs")


def test_a_class_that_only_the_golden_set_has_is_named(tmp_path):
    golden = written(tmp_path, [(f"other {i}", "abc"[i % 3]) for i in range(90)], "golden.csv")
    with refuses(InputError, "label 'c'", "the logs", "(data rows 3"):
        read_study_rows(config(written(tmp_path, many(100)), golden=golden))


def test_numbers_as_labels_stay_numbers_also_where_one_is_missing(tmp_path):
    data = written(tmp_path, [*((text, i % 2) for i, (text, _) in enumerate(many(80))), ("x", "")])
    assert read_study_rows(config(data)).classes == (0, 1)


def test_groups_stay_together_and_time_goes_forward(tmp_path):
    table_file(tmp_path)
    grouped = read_study_rows(table_config(tmp_path, group="customer", drop=("day",)))
    assert "customer" not in grouped["train"].inputs.names
    later = read_study_rows(table_config(tmp_path, time="day", drop=("customer",), seeds=(0, 1)))
    names = ("train", "steer", "choice", "calibrate", "test")
    order = [later.splits.parts()[name].ids for name in names]
    assert all(a.max() < b.min() for a, b in pairwise(order))


def test_the_same_seed_divides_alike_and_another_does_not(tmp_path):
    data = written(tmp_path, many(200))
    one, same, other = (
        read_study_rows(config(data, seed=seed)).splits.train.ids for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(one, same)
    assert not np.array_equal(one, other)


def test_weights_must_be_numbers(tmp_path):
    settings = text_config(tmp_path, weight="id")
    with refuses(InputError, "number", "each row"):
        read_study_rows(settings)


def test_a_label_out_of_scope_that_no_row_has_is_a_slip(tmp_path):
    with refuses(InputError, "label 'ooos'", "--out-of-scope"):
        read_study_rows(config(written(tmp_path, many()), out_of_scope="ooos"))


def test_a_golden_set_without_a_class_says_so(tmp_path):
    logs = written(tmp_path, [(f"message {i}", "abc"[i % 3]) for i in range(90)])
    golden = written(tmp_path, [(f"other {i}", "ab"[i % 2]) for i in range(60)], "golden.csv")
    rows = read_study_rows(config(logs, golden=golden))
    assert_mentions(rows.notes[-1], "golden set", "'c'")


def test_columns_that_cannot_be_learned_from_are_all_named(tmp_path):
    settings = table_config(tmp_path, drop=())
    head, *lines = (tmp_path / "table.csv").read_text(encoding="utf-8").splitlines()
    rows = [f"{head},ticket,id"]
    rows += [f"{line},t{i},row{i}" for i, line in enumerate(lines)]
    (tmp_path / "table.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    with refuses(InputError, "leave it out", "--drop 'ticket' --drop 'id'"):
        read_study_rows(settings)


def test_a_class_of_one_text_repeated_names_the_reason(tmp_path):
    same = [("broken", "b")] * 30 + [(f"message {i}", "a") for i in range(60)]
    with refuses(InputError, "equal texts", "one split"):
        read_study_rows(config(written(tmp_path, same)))


def test_a_folder_of_files_is_read_whole_and_a_pattern_is_refused(tmp_path):
    rows = many(120)
    written(tmp_path, rows[:60], "a.csv")
    written(tmp_path, rows[60:], "b.csv")
    found = read_study_rows(config(str(tmp_path)))
    assert sum(part["rows"] for part in found.sizes().values()) == 120
    with refuses(InputError, "a pattern", "one file", "a folder"):
        read_study_rows(config(str(tmp_path / "*.csv")))


def test_splits_are_told_as_rows_of_the_files(tmp_path):
    data = written(tmp_path, [("", "a"), *many(200)])
    rows = read_study_rows(config(data, rows=100))
    lines = (tmp_path / "logs.csv").read_text().splitlines()[1:]
    told = [lines[i].split(",")[0] for i in rows.to_file_positions().steer.ids]
    assert told == rows["steer"].inputs


@pytest.mark.parametrize("row", [3, 700, 1400])
def test_an_infinite_cell_is_refused_where_the_file_has_it_whatever_its_split(tmp_path, row):
    settings = table_config(tmp_path)
    lines = (tmp_path / "table.csv").read_text().splitlines()
    lines[row] = "inf" + lines[row][lines[row].index(",") :]
    (tmp_path / "table.csv").write_text("\n".join(lines) + "\n")
    with refuses(InputError, "table.csv", f"data row {row:,}", "'amount'", "inf"):
        read_study_rows(settings)


def test_a_value_that_erases_its_column_is_refused_before_training(tmp_path):
    settings = table_config(tmp_path)
    lines = (tmp_path / "table.csv").read_text().splitlines()
    for row in (3, 4, 5, 6):  # one of them trains
        lines[row] = "1e300" + lines[row][lines[row].index(",") :]
    (tmp_path / "table.csv").write_text("\n".join(lines) + "\n")
    with pytest.raises(InputError, match=r"'amount' .*1e\+300, .*--drop"):
        read_study_rows(settings)


def test_whole_numbers_that_became_floats_name_rows_of_no_class(tmp_path):
    path = tmp_path / "logs.csv"
    labels = ["", *(f"{i % 4}.0" for i in range(200))]
    path.write_text("message,reason\n" + "".join(f"text {i},{y}\n" for i, y in enumerate(labels)))
    for name in ("3", "3.0"):
        rows = read_study_rows(config(str(path), out_of_scope=name, candidates=("ce",)))
        assert rows.classes == (0, 1, 2)
