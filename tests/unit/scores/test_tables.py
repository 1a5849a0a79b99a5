"""Score files with all their columns: nothing is lost on the way to new probabilities."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest
from tests.sentences import refuses

from calibrant.errors import InputError
from calibrant.files.write_table import write_tables
from calibrant.scores import read_scores
from calibrant.scores.tables import ScoreTable


def text(folder, content, name="scores.csv"):
    (folder / name).write_text(content)
    return folder / name


def jsonl(folder, *rows, name="scores.jsonl"):
    return text(folder, "".join(json.dumps(row) + "\n" for row in rows), name)


def tables_of(path, **options):
    """All columns again, with the probabilities that the logits mean."""
    table = ScoreTable(path, **options)
    for batch in table.batches():
        odds = np.exp(batch.logits - batch.logits.max(axis=1, keepdims=True))
        yield table.with_probs(batch, odds / odds.sum(axis=1, keepdims=True))


def rows_of(path, **options):
    return pa.concat_tables(tables_of(path, **options)).to_pylist()


def test_csv_keeps_every_cell_as_it_was_written(tmp_path):
    content = 'id,note,label,logit_a,logit_b,when\n007,"x, ""y""\nz",a,0,0,2024-01-31\n,NA,b,0,0,\n'
    first, second = rows_of(text(tmp_path, content))
    assert first == {
        "id": "007", "note": 'x, "y"\nz', "label": "a", "prob_a": 0.5, "prob_b": 0.5,
        "when": "2024-01-31",
    }  # fmt: skip
    assert (second["id"], second["note"], second["when"]) == ("", "NA", "")


def test_labels_need_not_be_there(tmp_path):
    assert rows_of(text(tmp_path, "prob_b,prob_a\n0.5,0.5\n")) == [{"prob_b": 0.5, "prob_a": 0.5}]
    rows = rows_of(jsonl(tmp_path, {"logit": 0.0, "id": 3}))
    assert rows == [{"prob": 0.5, "id": 3}]


def test_parquet_keeps_its_types(tmp_path):
    columns = {
        "id": pa.array([1, 2], pa.int32()),
        "tags": pa.array([["a"], []]),
        "kind": pa.array(["x", "y"]).dictionary_encode(),
        "prob": pa.array([0.25, 0.5], pa.float32()),
        "weight": pa.array([1, 2], pa.int8()),
    }
    pq.write_table(pa.table(columns), tmp_path / "s.parquet")
    (found,) = tables_of(tmp_path / "s.parquet")
    assert found.column_names == list(columns)
    for name in ("id", "tags", "kind", "weight"):
        assert found.schema.field(name).type == columns[name].type
        assert found[name].to_pylist() == columns[name].to_pylist()
    assert found["prob"].to_pylist() == [0.25, 0.5]


def test_jsonl_keeps_what_is_nested_late_or_looks_like_a_date(tmp_path):
    rows = [
        {"id": 1, "logit": 0.0, "meta": {"a": 1}, "when": "2024-01-31"},
        {"id": 2, "logit": 0.0, "meta": {"a": 2, "b": ["x"]}, "when": "2024-01-31 10:00:00"},
        {"id": 2.5, "logit": 0.0, "extra": True, "when": "soon"},
    ]
    found = rows_of(jsonl(tmp_path, *rows))
    assert [row["id"] for row in found] == [1, 2, 2.5]
    assert [row["when"] for row in found] == [row["when"] for row in rows]
    assert found[1]["meta"] == {"a": 2, "b": ["x"]}
    assert found[2]["extra"] is True
    assert found[0]["extra"] is None


@pytest.mark.parametrize(
    ("late", "said"),
    [
        ({"id": "x", "logit": 0.0}, ("data row 2", "column 'id'", "different type")),
        ({"id": 2, "logit": 0.0, "logit_a": 1.0}, ("data row 2", "'logit_a'", "first")),
        ({"id": 2, "logit": "x"}, ("data row 2", "column 'logit'")),
    ],
)
def test_jsonl_that_changes_its_mind(tmp_path, late, said):
    with refuses(InputError, *said):
        rows_of(jsonl(tmp_path, {"id": 1, "logit": 0.0}, late))


def test_jsonl_with_a_broken_line(tmp_path):
    with refuses(InputError, "data row 2 is not JSON"):
        rows_of(text(tmp_path, '{"logit": 1}\n{"logit":\n', "s.jsonl"))
    with refuses(InputError, "'logit' twice"):
        rows_of(text(tmp_path, '{"logit": 1, "logit": 2}\n', "s.jsonl"))


def test_npz_keeps_one_value_for_each_row_and_names_the_rest(tmp_path):
    file = tmp_path / "s.npz"
    np.savez(
        file, labels=[1, 0], logits=[0.0, 0.0], classes=["stay", "churn"], ids=["x", "y"],
        amount=[1.5, 2.5], features=np.zeros((2, 3)), version=3,
    )  # fmt: skip
    table = ScoreTable(file)
    assert "'features', 'version'" in table.notes[0]
    found = rows_of(file)
    assert found[0] == {
        "label": "churn", "prob_stay": 0.5, "prob_churn": 0.5, "id": "x", "amount": 1.5,
    }  # fmt: skip


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_parts_keep_their_order_and_must_have_the_same_columns(tmp_path, ending):
    for i in range(3):
        rows = pa.table({"id": [f"{i}-{j}" for j in range(4)], "logit": [0.5] * 4})
        write_tables(tmp_path / f"{i}.{ending}", [rows])
    found = [row["id"] for row in rows_of(tmp_path)]
    assert found == [f"{i}-{j}" for i in range(3) for j in range(4)]
    write_tables(tmp_path / f"3.{ending}", [pa.table({"logit": [0.5], "other": ["x"]})])
    with refuses(InputError, f"3.{ending}", "different columns", "'id'"):
        rows_of(tmp_path)


def test_a_column_of_another_type_in_a_later_file(tmp_path):
    for name, ids in (("1", [1, 2]), ("2", ["x", "y"])):
        pq.write_table(pa.table({"id": ids, "prob": [0.5, 0.5]}), tmp_path / f"{name}.parquet")
    with refuses(InputError, "2.parquet: column 'id' has type string, but int64"):
        rows_of(tmp_path)


def test_no_rows(tmp_path):
    with refuses(InputError, "no rows"):
        rows_of(text(tmp_path, "label,prob\n"))


LONE = {
    "1": (None, ("0", "1"), [0, 1]),
    "true": (None, ("False", "True"), [0, 1]),
    "second": ("spam", ("ham", "spam"), [0, 1]),
    "first": ("ham", ("ham", "spam"), [1, 0]),
    "turned": (None, ("1", "0"), [1, 0]),
}


@pytest.mark.parametrize("case", LONE)
def test_a_lone_column_finds_its_class(tmp_path, case):
    positive, classes, order = LONE[case]
    table = ScoreTable(text(tmp_path, "prob\n0.25\n"), positive=positive)
    assert table.order(classes, name="c.json") == order


@pytest.mark.parametrize(
    ("positive", "classes", "said"),
    [
        (None, ("ham", "spam"), ("'prob'", "c.json", "'ham'", "'spam'", "--positive s")),
        ("egg", ("ham", "spam"), ("--positive egg", "not a class", "c.json")),
        (None, ("a", "b", "c"), ("'prob'", "two classes", "c.json has 3")),
    ],
)
def test_a_lone_column_of_another_class(tmp_path, positive, classes, said):
    table = ScoreTable(text(tmp_path, "prob\n0.25\n"), positive=positive)
    with refuses(InputError, *said):
        table.order(classes, name="c.json")


def test_an_archive_that_names_its_classes_is_not_contradicted(tmp_path):
    np.savez(tmp_path / "s.npz", probs=[0.5], classes=["stay", "churn"])
    assert ScoreTable(tmp_path / "s.npz").order(("churn", "stay"), name="c.json") == [1, 0]
    with refuses(InputError, "--positive stay contradicts"):
        ScoreTable(tmp_path / "s.npz", positive="stay")


@pytest.mark.parametrize("ending", ["parquet", "csv", "csv.gz", "jsonl", "jsonl.gz"])
def test_what_is_written_reads_the_same(tmp_path, ending):
    parts = [
        pa.table({"label": ["a", "b"], "prob_a": [0.1, 1e-9], "prob_b": [0.9, 1 - 1e-9]}),
        pa.table({"label": ["b"], "prob_a": [1 / 3], "prob_b": [2 / 3]}),
    ]
    file = tmp_path / f"out.{ending}"
    assert write_tables(file, iter(parts)) == 3
    assert read_scores(file).probs.tolist() == [[0.1, 0.9], [1e-9, 1 - 1e-9], [1 / 3, 2 / 3]]
    assert [p.name for p in tmp_path.iterdir()] == [f"out.{ending}"]


def test_parquet_row_groups_are_gathered(tmp_path, monkeypatch):
    part = pa.table({"x": np.arange(1000)})
    write_tables(tmp_path / "a.parquet", [part] * 10)
    assert pq.ParquetFile(tmp_path / "a.parquet").num_row_groups == 1
    monkeypatch.setattr("calibrant.files.write_table._ROW_GROUP", 20_000)
    write_tables(tmp_path / "a.parquet", [part] * 10)
    assert pq.ParquetFile(tmp_path / "a.parquet").num_row_groups == 4
    assert pq.read_table(tmp_path / "a.parquet").num_rows == 10_000


def test_text_formats_write_what_they_can(tmp_path):
    import datetime
    import decimal

    odd = pa.table(
        {
            "when": [datetime.datetime(2024, 1, 31, 10), None],
            "money": [decimal.Decimal("1.50"), None],
            "kind": pa.array(["x", None]).dictionary_encode(),
            "raw": [b"abc", None],
            "gap": [float("nan"), 1.0],
        }
    )
    write_tables(tmp_path / "a.jsonl", [odd])
    first = json.loads((tmp_path / "a.jsonl").read_text().splitlines()[0])
    assert first == {
        "when": "2024-01-31T10:00:00", "money": "1.50", "kind": "x", "raw": "abc", "gap": None,
    }  # fmt: skip
    write_tables(tmp_path / "a.csv", [odd])
    assert pacsv.read_csv(tmp_path / "a.csv").num_rows == 2


def test_nested_columns_do_not_fit_into_csv(tmp_path):
    with refuses(InputError, "column 'tags' of type list", "parquet"):
        write_tables(tmp_path / "a.csv", [pa.table({"tags": [["a"]]})])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["a.npz", "a", "a.json", "a.parquet.gz"])
def test_other_endings_are_refused(tmp_path, name):
    with refuses(InputError, "must end in .parquet, .csv or .jsonl"):
        write_tables(tmp_path / name, [pa.table({"a": [1]})])


@pytest.mark.parametrize("ending", ["parquet", "csv", "jsonl"])
@pytest.mark.parametrize("error", [KeyboardInterrupt, InputError("late"), SystemExit(143)])
def test_nothing_stays_of_a_table_that_breaks_off(tmp_path, ending, error):
    def parts():
        yield pa.table({"x": np.arange(1000)})
        raise error

    file = tmp_path / f"out.{ending}"
    file.write_text("old")
    with pytest.raises(type(error) if isinstance(error, Exception | SystemExit) else error):
        write_tables(file, parts())
    assert file.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == [file.name]
