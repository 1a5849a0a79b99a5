"""`calibrant compare`: two models on the same rows, by order or by id."""

import json

import numpy as np
import pytest
from tests.sentences import assert_mentions

from calibrant.data import write_example


@pytest.fixture
def pair(tmp_path):
    one = write_example(tmp_path / "over.csv", n=400)
    return one, write_example(tmp_path / "ideal.csv", n=400, ideal=True)


def lines_of(file):
    head, *rows = file.read_text().splitlines()
    return head, rows


def test_the_ideal_model_wins(cli, pair):
    result = cli("compare", *pair, "--json")
    found = json.loads(result.stdout)
    assert result.exit_code == 0
    assert found["models"] == ["over", "ideal"]
    assert found["n"] == 400
    assert found["differences"]["nll"]["high"] < 0
    assert_mentions(found["verdict"], "log loss of ideal", "lower")


def test_it_prints_the_verdict_and_the_names(cli, pair):
    result = cli("compare", *pair, "--names", "old, new")
    assert result.exit_code == 0
    assert_mentions(result.stdout.splitlines()[0], "log loss of new", "lower", "of old")


def test_rows_are_matched_by_id(cli, pair):
    expected = json.loads(cli("compare", *pair, "--json").stdout)
    head, rows = lines_of(pair[1])
    pair[1].write_text("\n".join([head, *reversed(rows)]))
    assert json.loads(cli("compare", *pair, "--json").stdout) == expected


def test_columns_may_come_in_another_order(cli, tmp_path):
    (tmp_path / "a.csv").write_text("label,prob_x,prob_y\n" + "x,0.75,0.25\ny,0.5,0.5\n" * 9)
    (tmp_path / "b.csv").write_text("label,prob_y,prob_x\n" + "x,0.25,0.75\ny,0.5,0.5\n" * 9)
    found = json.loads(cli("compare", tmp_path / "a.csv", tmp_path / "b.csv", "--json").stdout)
    assert found["differences"]["nll"]["difference"] == 0


def test_a_lone_prob_compares_with_two_columns(cli, tmp_path):
    (tmp_path / "a.csv").write_text("label,prob\n" + "1,0.75\n0,0.5\n" * 9)
    (tmp_path / "b.csv").write_text("label,prob_0,prob_1\n" + "1,0.25,0.75\n0,0.5,0.5\n" * 9)
    for words in (("a.csv", "b.csv"), ("b.csv", "a.csv")):
        found = json.loads(cli("compare", *(tmp_path / w for w in words), "--json").stdout)
        assert found["differences"]["brier"]["difference"] == 0


def without_ids(head, rows):
    return [line.split(",", 1)[1] for line in (head, *rows)]


def relabelled(head, rows):
    changed = rows[6].replace('"others"', '"missing_parts"').split(",")
    changed[2] = '"item_defective"' if changed[2] != '"item_defective"' else '"others"'
    return [head, *rows[:6], ",".join(changed), *rows[7:]]


def with_weights(by):
    return lambda head, rows: [f'{head},"weight"', *(f"{row},{by}" for row in rows)]


CHANGES = {
    "label by id": (None, relabelled, ("the row with id '7'", "ideal.csv")),
    "label by order": (
        without_ids,
        lambda head, rows: without_ids(*(lambda h, *r: (h, r))(*relabelled(head, rows))),
        ("data row 7", "column 'id'"),
    ),
    "length": (without_ids, lambda h, r: without_ids(h, r[:-1]), ("400 rows", "399")),
    "id missing": (None, lambda h, r: [h, *r[:-1]], ("the id '400'", "missing in")),
    "id new": (None, lambda h, r: [h, *r, r[0].replace("1", "9999", 1)], ("'9999'", "missing in")),
    "id twice": (None, lambda h, r: [h, *r, r[0]], ("the id '1'", "more than once")),
    "classes": (None, lambda h, r: [line.replace("others", "rest") for line in (h, *r)],
                ("different classes", "'others'")),
    "weights": (with_weights(1), with_weights(2), ("weight 1", "2 in")),
}  # fmt: skip


@pytest.mark.parametrize("case", CHANGES)
def test_rows_that_differ_are_named(cli, pair, case):
    first, second, said = CHANGES[case]
    for file, change in zip(pair, (first, second), strict=True):
        if change is not None:
            file.write_text("\n".join(change(*lines_of(file))))
    result = cli("compare", *pair)
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    assert result.stderr.count("\n") == 1
    for words in said:
        assert words in result.stderr


def test_weights_may_stand_in_one_file_only(cli, pair):
    plain = json.loads(cli("compare", *pair, "--json").stdout)
    pair[0].write_text("\n".join(with_weights(1.0)(*lines_of(pair[0]))))
    found = json.loads(cli("compare", *pair, "--json").stdout)
    assert np.isclose(
        found["differences"]["nll"]["difference"], plain["differences"]["nll"]["difference"]
    )


@pytest.mark.parametrize("names", ["one", "a,b,c", "a,a", ",b"])
def test_bad_names(cli, pair, names):
    result = cli("compare", *pair, "--names", names)
    assert result.exit_code == 2
    assert "--names" in result.stderr


def test_a_missing_second_file(cli, pair):
    result = cli("compare", pair[0], pair[1].with_name("idael.csv"))
    assert result.exit_code == 2
    assert "ideal.csv" in result.stderr


def test_labels_saved_as_true_and_false_are_0_and_1(cli, tmp_path):
    (tmp_path / "a.csv").write_text("label,prob\n" + "1,0.75\n0,0.5\n" * 9)
    (tmp_path / "b.csv").write_text("label,prob\n" + "true,0.75\nfalse,0.5\n" * 9)
    for words in (("a.csv", "b.csv"), ("b.csv", "a.csv")):
        result = cli("compare", *(tmp_path / w for w in words), "--json")
        assert result.exit_code == 0, result.output
        assert json.loads(result.stdout)["differences"]["nll"]["difference"] == 0
