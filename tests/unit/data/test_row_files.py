"""Rows of a user's file: types, missing cells, streaming, and one sentence for each damage."""

import datetime
import gzip
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.data_sets import data_file
from tests.sentences import assert_mentions, refuses

from calibrant.data import read_rows, scan_rows
from calibrant.errors import InputError
from calibrant.files.write_table import write_tables


def file_of(folder, text, name="rows.csv"):
    file = folder / name
    if isinstance(text, str):
        text = text.encode()
    file.write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
    return file


def types(table):
    return [str(field.type) for field in table.schema]


def column(folder, *cells):
    file = file_of(folder, "a,b\n" + "".join(f"{cell},x\n" for cell in cells))
    return read_rows(file)["a"]


def scanned(file, **options):
    return pa.concat_tables(scan_rows(file, **options))


# --- read_rows ------------------------------------------------------------------------------------


def test_a_column_has_the_type_of_all_its_cells(tmp_path):
    assert column(tmp_path, "1", "-2", "").to_pylist() == [1, -2, None]
    assert column(tmp_path, "1", "2.5", "1e3").to_pylist() == [1.0, 2.5, 1000.0]
    assert column(tmp_path, "true", "False").to_pylist() == [True, False]
    assert column(tmp_path, "2024-01-31", "").to_pylist() == [datetime.datetime(2024, 1, 31), None]
    assert column(tmp_path, "a", "").to_pylist() == ["a", None]
    assert column(tmp_path, "", "").to_pylist() == [None, None]


def test_numbers_with_one_word_far_below_are_text(tmp_path):
    file = file_of(tmp_path, "a,b\n" + "12,1\n" * 600_000 + "oops,2\n")
    table = read_rows(file)
    assert types(table) == ["string", "int64"]
    assert table["a"][0].as_py() == "12"
    assert table["a"][-1].as_py() == "oops"


def test_words_for_missing_numbers_are_missing_and_stay_words_in_text(tmp_path):
    words = ["NA", "null", " ", "NaN", "n/a", "-", "None", "#N/A", "nan"]
    assert column(tmp_path, "1", *words).to_pylist() == [1] + [None] * len(words)
    assert column(tmp_path, "2024-01-31", "-").null_count == 1
    assert column(tmp_path, "Namibia", "NA", "None", " ").to_pylist() == [
        "Namibia",
        "NA",
        "None",
        " ",
    ]


def test_spaces_around_numbers_do_not_make_them_text(tmp_path):
    assert column(tmp_path, " 1", "2 ").to_pylist() == [1, 2]


def test_hexadecimal_and_decimal_commas_stay_text(tmp_path):
    assert column(tmp_path, "0x1F", "2").type == pa.string()
    assert column(tmp_path, '"1,5"', "2").type == pa.string()


def test_columns_named_as_texts_are_text_whatever_they_look_like(tmp_path):
    file = file_of(tmp_path, "id,label\n007,1\n,0\n")
    assert read_rows(file, texts=["id", "label"]).to_pydict() == {
        "id": ["007", None],
        "label": ["1", "0"],
    }
    assert read_rows(file)["id"].to_pylist() == [7, None]


def test_the_separator_is_found(tmp_path):
    for mark, name in ((",", "a.csv"), (";", "a.csv"), ("\t", "a.tsv"), ("\t", "a.tsv.gz")):
        file = file_of(tmp_path, f"text{mark}n\n" + f'"one, two; three"{mark}1\n', name)
        assert read_rows(file).to_pylist() == [{"text": "one, two; three", "n": 1}]


def test_an_unnamed_first_column_and_new_lines_in_cells_work(tmp_path):
    file = file_of(tmp_path, '\ufeff,text\n0,"a\nb"\n1,c\n')
    assert read_rows(file).to_pydict() == {"": [0, 1], "text": ["a\nb", "c"]}
    assert read_rows(file).column_names == ["", "text"]


def test_formats_agree(tmp_path):
    rows = [{"text": "é", "n": 1, "x": 0.5}, {"text": None, "n": 2, "x": None}]
    csv = file_of(tmp_path, "text,n,x\né,1,0.5\n,2,\n")
    jsonl = file_of(tmp_path, "".join(json.dumps(row) + "\n" for row in rows), "rows.jsonl.gz")
    parquet = tmp_path / "rows.parquet"
    pq.write_table(pa.Table.from_pylist(rows), parquet)
    for file in (csv, jsonl, parquet):
        assert read_rows(file).to_pylist() == rows
        assert scanned(file, numbers=["x", "n"], texts=["text"]).to_pylist() == rows


def test_other_types_named_as_texts_become_text(tmp_path):
    parquet = tmp_path / "rows.parquet"
    table = pa.table(
        {
            "whole": pa.array([1.0, None]),
            "half": [0.5, 2.0],
            "int": pa.array([7, None], pa.int8()),
            "word": pa.array(["a", ""]).dictionary_encode(),
            "bytes": [b"x", None],
            "nested": [[1], [2]],
        }
    )
    pq.write_table(table, parquet)
    found = read_rows(parquet, texts=table.column_names[:-1]).to_pydict()
    assert found == {
        "whole": ["1", None],
        "half": ["0.5", "2"],
        "int": ["7", None],
        "word": ["a", None],
        "bytes": ["x", None],
        "nested": [[1], [2]],
    }
    with refuses(InputError, "column 'nested'", "list", "not text: choose another"):
        read_rows(parquet, texts=["nested"])


def test_jsonl_text_that_looks_like_a_date_or_a_number_stays_text(tmp_path):
    file = file_of(tmp_path, '{"a": "2024-01-31", "b": "1"}\n', "rows.jsonl")
    assert read_rows(file).to_pylist() == [{"a": "2024-01-31", "b": "1"}]


def test_jsonl_keys_may_come_late(tmp_path):
    file = file_of(tmp_path, '{"a": 1}\n{"a": 2, "b": "x"}\n', "rows.jsonl")
    assert read_rows(file).to_pylist() == [{"a": 1, "b": None}, {"a": 2, "b": "x"}]


def test_a_folder_and_a_glob_stand_for_their_files(tmp_path):
    file_of(tmp_path, "a,b\n1,x\n", "1.csv")
    file_of(tmp_path, "b,a\ny,two\n", "2.csv")
    expected = {"a": ["1", "two"], "b": ["x", "y"]}
    assert read_rows(tmp_path).to_pydict() == expected
    assert read_rows(tmp_path / "*.csv").to_pydict() == expected
    assert scanned(tmp_path).to_pydict() == expected
    file_of(tmp_path, "a,c\n1,2\n", "3.csv")
    with refuses(InputError, "3.csv", "1.csv", "different columns", "'b'"):
        read_rows(tmp_path)


def test_files_of_types_that_do_not_fit_together_are_refused(tmp_path):
    pq.write_table(pa.table({"a": [1]}), tmp_path / "1.parquet")
    pq.write_table(pa.table({"a": ["x"]}), tmp_path / "2.parquet")
    with refuses(InputError, "columns of different types"):
        read_rows(tmp_path)
    with refuses(InputError, "2.parquet", "types", "same types"):
        scanned(tmp_path)


# --- scan_rows ------------------------------------------------------------------------------------


def test_a_stream_gives_all_rows_in_tables_of_the_size_that_was_asked_for(tmp_path):
    n = 20_000
    file = file_of(tmp_path, "id,x\n" + "".join(f"{i:06d},{i / 2}\n" for i in range(n)))
    tables = list(scan_rows(file, numbers=["x"], batch_rows=1000))
    assert max(table.num_rows for table in tables) <= 1000
    assert {table.schema for table in tables} == {pa.schema([("id", "string"), ("x", "float64")])}
    whole = pa.concat_tables(tables)
    assert whole["id"].to_pylist() == [f"{i:06d}" for i in range(n)]
    np.testing.assert_array_equal(whole["x"].to_numpy(), np.arange(n) / 2)


def test_a_stream_does_not_hold_the_file(tmp_path):
    row = "x" * 1000
    file = file_of(tmp_path, "text,n\n" + f"{row},1\n" * 100_000)
    before = pa.total_allocated_bytes()
    most = 0
    for _ in scan_rows(file, texts=["text"]):
        most = max(most, pa.total_allocated_bytes() - before)
    assert most < 80e6 < file.stat().st_size


def test_a_stream_can_be_written_out_again(tmp_path):
    text = '"","id","note"\n"0","007","a"\n"1",,"2024-01-31"\n'
    file = file_of(tmp_path, text)
    write_tables(tmp_path / "again.csv", scan_rows(file))
    assert (tmp_path / "again.csv").read_text() == text


def test_other_columns_of_parquet_and_jsonl_keep_their_types(tmp_path):
    rows = [{"x": 1, "t": "a", "deep": {"k": [1]}, "nothing": None}]
    jsonl = file_of(tmp_path, json.dumps(rows[0]) + "\n", "rows.jsonl")
    parquet = tmp_path / "rows.parquet"
    pq.write_table(pa.Table.from_pylist(rows), parquet)
    for file in (jsonl, parquet):
        table = next(scan_rows(file, numbers=["x"]))
        assert table.to_pylist() == rows
        assert table.schema.field("x").type == pa.float64()
        assert table.schema.field("nothing").type == pa.string()


def test_numbers_are_read_from_any_type_that_holds_them(tmp_path):
    parquet = tmp_path / "rows.parquet"
    pq.write_table(
        pa.table(
            {
                "a": [True, None],
                "b": ["1.5", " NA"],
                "c": pa.array([1, 2]).cast(pa.decimal128(21, 2)),
            }
        ),
        parquet,
    )
    table = next(scan_rows(parquet, numbers=["a", "b", "c"]))
    assert table.to_pydict() == {"a": [1.0, None], "b": [1.5, None], "c": [1.0, 2.0]}
    file = file_of(tmp_path, "a\nTrue\nfalse\n")
    assert next(scan_rows(file, numbers=["a"]))["a"].to_pylist() == [1.0, 0.0]


@pytest.mark.parametrize(
    ("cell", "says"),
    [
        ("many", "'many' is not a number: correct that cell, or leave it empty"),
        ("1;5", "'1;5' is not a number"),
        ('"1,5"', "'1,5' has a decimal comma: write a decimal point"),
        ("1_000", "'1_000' is not a number"),
        ('"1.234,5"', "'1.234,5' has a decimal comma"),
    ],
)
def test_a_cell_that_is_no_number_is_named(tmp_path, cell, says):
    file = file_of(tmp_path, "x,y\n" + "1,2\n" * 10_000 + f"{cell},3\n")
    with pytest.raises(InputError) as caught:
        scanned(file, numbers=["x"])
    assert_mentions(caught.value, "rows.csv", "data row 10,001", "column 'x'", f"'x': {says}")


def test_a_comma_that_means_two_things_is_not_called_a_decimal_one(tmp_path):
    file = file_of(tmp_path, 'x\n1.5\n"1,050"\n')
    with refuses(InputError, "data row 2", "'1,050'", "thousands or decimals", "1050 or 1.05") as e:
        scanned(file, numbers=["x"])
    assert "decimal comma" not in str(e.value)


def test_numbers_and_texts_are_checked_before_the_first_row(tmp_path):
    file = file_of(tmp_path, "Price,text\n1,a\n")
    with refuses(InputError, "no column 'price'", "'Price'?)", "'Price', 'text'"):
        scan_rows(file, numbers=["price"])
    with refuses(InputError, "no column 'label': choose one of its columns"):
        read_rows(file, texts=["label"])
    with refuses(InputError, "'text'", "numbers and texts"):
        scan_rows(file, numbers=["text"], texts=["text"])
    with refuses(InputError, "texts must be a list", "write ['text']"):
        read_rows(file, texts="text")
    with refuses(InputError, "batch_rows must be a whole number >= 1, got 0"):
        scan_rows(file, batch_rows=0)


# --- damage ---------------------------------------------------------------------------------------

TABLE = pa.BufferOutputStream()
pq.write_table(pa.table({"a": list(range(5000))}), TABLE)
PARQUET = TABLE.getvalue().to_pybytes()

DAMAGED = {
    "empty": ("rows.csv", b"", "is empty: it needs column names and at least one row"),
    "spaces": ("rows.csv", b"\n \n", "is empty: it needs a header and at least one row"),
    "header": ("rows.csv", b"a,b\n", ("column names", "no rows")),
    "header without a newline": ("rows.csv", b"a,b", ("ends in its header", "one row")),
    "latin": ("rows.csv", "a\né\n".encode("latin-1"), ("not UTF-8 text", "save it as UTF-8")),
    "late latin": ("rows.csv", b"a\n" + b"x\n" * 2**20 + b"\xe9\n", ("not UTF-8 text",)),
    "binary": ("rows.csv", b"a\0b\n1\n", ("binary data", "not text")),
    "ragged": ("rows.csv", b"a,b\n1,2\n3\n", ("data row 2", "1 cells", "header has 2")),
    "long": ("rows.csv", b"a,b\n1,2\n3,4,5\n", ("data row 2", "3 cells", "header has 2")),
    "twice": ("rows.csv", b"a,b,a\n1,2,3\n", ("column 'a' twice", "rename or drop")),
    "unnamed": ("rows.csv", b"a,,\n1,2,3\n", ("2 columns without a name",)),
    "cut gz": (
        "rows.csv.gz",
        gzip.compress(b"a,b\n" + b"1,2\n" * 9999)[:40],
        ("damaged or truncated",),
    ),
    "no gz": ("rows.csv.gz", b"a,b\n1,2\n", ("damaged or truncated",)),
    "parquet": ("rows.parquet", b"PAR1 nothing", ("damaged, truncated", "not parquet")),
    "cut parquet": ("rows.parquet", PARQUET[:-9], ("damaged, truncated", "not parquet")),
    "json": ("rows.jsonl", b'{"a": 1}\n{"a": \n', ("data row 2", "not JSON")),
    "json list": ("rows.jsonl", b"[1, 2]\n", ("data row 1", "not a JSON object")),
    "json mixed": ("rows.jsonl", b'{"a": 1}\n{"a": "x"}\n', ("column 'a'", "different type")),
    "json twice": ("rows.jsonl", b'{"a": 1, "a": 2}\n', ("column 'a' twice",)),
    "suffix": ("rows.xlsx", b"x", ("not a data file", ".csv", ".tsv", ".parquet")),
}


@pytest.mark.parametrize("read", [read_rows, scanned])
def test_damage_is_one_sentence(tmp_path, subtests, read):
    for case, (name, content, mentions) in DAMAGED.items():
        with subtests.test(case):
            file = tmp_path / name
            file.write_bytes(content)
            with refuses(InputError, file, *mentions) as caught:
                read(file)
            assert "\n" not in str(caught.value)


def test_damage_inside_a_parquet_file_is_one_sentence(tmp_path):
    file = tmp_path / "rows.parquet"
    file.write_bytes(PARQUET[:100] + b"\xff" * 500 + PARQUET[600:])
    with refuses(InputError, "is damaged, truncated or not parquet"):
        read_rows(file)


def test_a_file_that_is_not_there_is_named_with_the_nearest(tmp_path):
    file_of(tmp_path, "a\n1\n", "returns.csv")
    with refuses(InputError, "return.csv does not exist (did you mean", "returns"):
        read_rows(tmp_path / "return.csv")
    with refuses(InputError, "no data file given"):
        read_rows("")
    (tmp_path / "sub").mkdir()
    with refuses(InputError, "a folder without .csv, .tsv, .parquet or"):
        read_rows(tmp_path / "sub")


CELLS = st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"]), max_size=8)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(CELLS, CELLS), min_size=1, max_size=20))
def test_any_text_comes_back_as_it_was_written(tmp_path_factory, rows):
    table = pa.table({"a": [a for a, _ in rows], "b": [b for _, b in rows]})
    file = tmp_path_factory.mktemp("rows") / "rows.csv"
    write_tables(file, [table])
    expected = [[cell or None for cell in column.to_pylist()] for column in table.columns]
    for found in (read_rows(file, texts=["a", "b"]), scanned(file)):
        assert [column.to_pylist() for column in found.columns] == expected


# --- real files -----------------------------------------------------------------------------------

REAL = {
    ("it_tickets", "it_tickets.parquet"): (47837, ["large_string", "int8", "large_string"]),
    ("womens_clothing", "womens_clothing_reviews.csv.gz"): (
        23486,
        ["int64"] * 3 + ["string"] * 2 + ["int64"] * 3 + ["string"] * 3,
    ),
    ("clinc150", "clinc150_imbalanced.jsonl.gz"): (19225, ["string", "int64", "string", "string"]),
    ("bank_marketing", "bank-additional-full.csv.gz"): (
        41188,
        ["int64"] + ["string"] * 9 + ["int64"] * 4 + ["string"] + ["double"] * 5 + ["string"],
    ),
    ("creditcard_fraud_undersampled", "creditcard_fraud_undersampled.csv.gz"): (
        11290,
        ["int64"] + ["double"] * 29 + ["int64"],
    ),
}


@pytest.mark.data
@pytest.mark.parametrize("where", REAL, ids=lambda where: where[0])
def test_real_files_are_read_whole_and_as_streams(where):
    file = data_file(*where)
    rows, kinds = REAL[where]
    table = read_rows(file)
    assert table.num_rows == rows
    assert types(table) == kinds
    numbers = [f.name for f in table.schema if pa.types.is_integer(f.type)]
    streamed = scanned(file, numbers=numbers)
    assert streamed.column_names == table.column_names
    assert streamed.num_rows == rows
    for name in numbers:
        assert streamed[name].to_pylist() == table[name].to_pylist()


@pytest.mark.data
def test_empty_texts_of_a_real_file_are_missing():
    table = read_rows(data_file("womens_clothing", "womens_clothing_reviews.csv.gz"))
    assert table.column_names[0] == ""
    assert table["Review Text"].null_count == 845


def test_tables_have_the_rows_that_were_asked_for_wherever_blocks_of_a_file_end(
    tmp_path, monkeypatch
):
    rows = [f"{i},{'x' * (i % 13)}" for i in range(100)]
    (tmp_path / "a.csv").write_text("\n".join(["id,text", *rows[:70]]))
    (tmp_path / "b.csv").write_text("\n".join(["id,text", *rows[70:]]))
    for block in (40, 300, 1 << 20):
        monkeypatch.setattr("calibrant.files.csv._TEXT_BLOCKS", (block,))
        for batch_rows, last in ((1, 1), (30, 10), (64, 36), (100, 100), (1000, 100)):
            found = list(scan_rows(tmp_path, texts=["text"], batch_rows=batch_rows))
            assert {table.num_rows for table in found[:-1]} <= {batch_rows}
            assert found[-1].num_rows == last
            assert pa.concat_tables(found)["id"].to_pylist() == [str(i) for i in range(100)]


@pytest.mark.parametrize("size", [1_100_000, 9_000_000])
def test_a_row_longer_than_a_block_is_read_and_no_row_comes_twice(tmp_path, size):
    texts = [f"{i} " + "x" * 500 for i in range(2000)]
    texts[1500] = "y" * size
    table = pa.table({"text": texts})
    write_tables(tmp_path / "a.csv", [table])
    assert pa.concat_tables(scan_rows(tmp_path / "a.csv")).equals(table)
    assert read_rows(tmp_path / "a.csv").equals(table)


def test_a_folder_is_not_meant_by_the_name_of_a_file(tmp_path):
    (tmp_path / "o_nofile").mkdir()
    with refuses(InputError, "nofile.csv does not exist") as caught:
        read_rows(tmp_path / "nofile.csv")
    assert "(" not in str(caught.value).partition("nofile.csv")[2]  # no "(did you mean ...)"
