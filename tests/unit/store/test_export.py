"""The export: every row once with its latest label, whole or not at all, read as it is."""

import json
import stat
from collections import Counter

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.databases import ON_SQLITE
from tests.sentences import refuses
from tests.unit.store.rows import hours, label, outcome, put, row

from calibrant.errors import InputError, StoreUnavailable
from calibrant.scores import read_scores
from calibrant.store import export


@pytest.fixture
def small_pages(monkeypatch):
    monkeypatch.setattr(export, "_PAGE", 7)


def rows_of(file):
    return pq.read_table(file).to_pylist()


def test_a_prediction_comes_out_with_all_that_is_known_of_it(store, tmp_path):
    given = {"unit": "customer-17", "key": "abc123abc123", "branch": None, "asked_point": 2}
    (one,) = put(store, row(at=hours(1), **given))
    told = [outcome(one, "call", at=hours(2)), outcome(one, at=hours(3), text="accepted")]
    store.outcomes.add(told, [label(one, "bad", at=hours(4)), label(one, at=hours(9))])
    assert store.export(tmp_path / "out.parquet") == 1
    (found,) = rows_of(tmp_path / "out.parquet")
    assert found == {
        "id": one.id, "at": hours(1), "bundle": "b1", "request": one.request, "position": 0,
        "unit": "customer-17", "use_case": "returns", "branch": None, "key": "abc123abc123",
        "text": "it broke", "input": None, "input_hash": one.input_hash, "logits": [2.0, 0.5],
        "predicted": "bad", "score": 0.75, "prob_bad": 0.75, "prob_good": 0.25, "decision": "act",
        "acted_as": "bad", "action": "refund", "operating_point": 1, "asked_point": 2,
        "out_of_scope": False, "latency_ms": 3.5,
        "label": "good", "label_source": "agent", "labelled_at": hours(9),
        "outcomes": [
            {"name": "call", "at": hours(2), "value": 12.5, "text": None},
            {"name": "refund", "at": hours(3), "value": 12.5, "text": "accepted"},
        ],
    }  # fmt: skip
    assert [file.name for file in tmp_path.glob("*.parquet")] == ["out.parquet"]


@ON_SQLITE
def test_inputs_that_are_no_text_are_json_and_those_that_were_not_kept_are_missing(store, tmp_path):
    inputs = [{"row": {"weight": 1.5, "fat": "größer"}}, {"text": "a", "page": 2}, None]
    put(store, *(row(input=given, at=hours(i)) for i, given in enumerate(inputs)))
    store.export(tmp_path / "out.parquet")
    found = rows_of(tmp_path / "out.parquet")
    assert [one["text"] for one in found] == [None, None, None]
    assert [one["input"] and json.loads(one["input"]) for one in found] == inputs
    assert "größer" in found[0]["input"]


def test_every_row_comes_once_and_in_order_of_time(store, tmp_path, small_pages):
    rows = put(store, *(row(at=hours(i // 10)) for i in range(40)))  # ten at each moment
    told = [label(one, "good") for one in rows[::3]]
    store.outcomes.add([outcome(one) for one in rows[::2]], told)
    assert store.export(tmp_path / "out.parquet") == 40
    found = rows_of(tmp_path / "out.parquet")
    assert [one["id"] for one in found] == [
        one.id for one in sorted(rows, key=lambda one: (one.at, one.id))
    ]
    known = {one["id"] for one in found if one["label"] is not None}
    assert known == {one.id for one in rows[::3]}
    assert sum(len(one["outcomes"]) for one in found) == 20


def test_rows_are_taken_by_time_by_use_case_and_by_having_a_label(store, tmp_path, small_pages):
    cases = ("returns", "intents")
    rows = put(store, *(row(at=hours(i), use_case=cases[i % 2]) for i in range(20)))
    store.outcomes.add([], [label(one) for one in rows[5:15]])
    file = tmp_path / "out.parquet"

    def taken(**asked):
        n = store.export(file, **asked)
        found = [one["at"] for one in rows_of(file)]
        assert n == len(found)
        return [i for i in range(20) if hours(i) in found]

    assert taken() == list(range(20))
    assert taken(since=hours(18)) == [18, 19]
    assert taken(until=hours(2)) == [0, 1]
    assert taken(since=hours(3), until=hours(5)) == [3, 4]
    assert taken(use_case="intents", until=hours(6)) == [1, 3, 5]
    assert taken(labelled=True, since=hours(13)) == [13, 14]
    assert taken(use_case="returns", labelled=True) == [6, 8, 10, 12, 14]


@ON_SQLITE
def test_nothing_in_a_range_is_an_empty_file_that_can_be_read(store, tmp_path):
    put(store, row())
    file = tmp_path / "out.parquet"
    assert store.export(file, since=hours(1)) == 0
    table = pq.read_table(file)
    assert table.num_rows == 0
    assert table.schema.field("at").type == pa.timestamp("us", "UTC")
    assert {"id", "predicted", "label", "outcomes"} <= set(table.column_names)


@ON_SQLITE
def test_a_file_is_its_owners_as_the_store_is(store, tmp_path):
    file = tmp_path / "out.parquet"
    file.touch(0o644)
    store.export(file)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


@ON_SQLITE
def test_bundles_with_other_classes_share_a_file(store, tmp_path):
    put(store, row(at=hours(1)))
    other = row(at=hours(2), bundle="b2", probs=[0.1, 0.2, 0.7], logits=[0.0, 1.0, 2.0])
    put(store, other, bundle="b2", classes=("good", "bad", "größer"))
    put(store, bundle="b3", classes=("never used",))
    file = tmp_path / "out.parquet"
    assert store.export(file) == 2
    one, two = rows_of(file)
    assert (one["prob_bad"], one["prob_good"], one["prob_größer"]) == (0.75, 0.25, None)
    assert (two["prob_bad"], two["prob_good"], two["prob_größer"]) == (0.2, 0.1, 0.7)
    told = json.loads(pq.read_schema(file).metadata[export.METADATA])
    assert told == {
        "b1": {"name": "returns", "classes": ["bad", "good"]},
        "b2": {"name": "returns", "classes": ["good", "bad", "größer"]},
    }
    assert "prob_never used" not in pq.read_schema(file).names


@ON_SQLITE
def test_labelled_rows_are_a_score_file(store, tmp_path):
    rows = put(store, *(row(at=hours(i)) for i in range(6)))
    store.outcomes.add([], [label(rows[0], "good"), label(rows[3], "good")])
    store.outcomes.add([], [label(one, "bad", at=hours(1)) for one in rows[:3]])
    store.export(tmp_path / "out.parquet", labelled=True)
    scores = read_scores(tmp_path / "out.parquet")
    assert scores.classes == ("bad", "good")
    assert scores.labels.tolist() == [0, 0, 0, 1]
    assert scores.probs.tolist() == [[0.75, 0.25]] * 4


@ON_SQLITE
def test_labels_that_are_no_class_of_their_bundle_are_left_out_and_counted(
    store, tmp_path, small_pages
):
    rows = put(store, *(row(at=hours(i)) for i in range(10)))
    (new,) = put(store, row(at=hours(11), bundle="b2"), bundle="b2", classes=("bad", "good", "new"))
    names = ["bad", "Bad ", "new", "?", "?"] * 2
    told = [label(one, name) for one, name in zip(rows, names, strict=True)]
    told += [label(new, "new"), label(rows[0], "?"), label(rows[1], "good")]
    store.outcomes.add([], told, other=[one.id for one in told])
    left_out = Counter()
    n = store.export(tmp_path / "out.parquet", labelled=True, left_out=left_out)
    kept = [(each["id"], each["label"]) for each in rows_of(tmp_path / "out.parquet")]
    assert kept == [(rows[1].id, "good"), (rows[5].id, "bad"), (new.id, "new")]
    assert n == 3
    assert left_out == {"?": 5, "new": 2, "Bad ": 1}
    assert store.export(tmp_path / "out.parquet", labelled=True) == 3
    assert store.export(tmp_path / "out.parquet") == 11


def test_rows_that_come_while_it_is_written_are_left_out(store, tmp_path, small_pages, monkeypatch):
    put(store, *(row(at=hours(i)) for i in range(20)))
    real, pages = export._page, []

    def busy(*given):
        pages.append(real(*given))
        put(
            store, row(at=hours(100 + len(pages)), bundle="b2"), bundle="b2", classes=("bad", "new")
        )
        return pages[-1]

    monkeypatch.setattr(export, "_page", busy)
    assert store.export(tmp_path / "out.parquet") == 20
    assert len(pages) == 3
    assert "prob_new" not in pq.read_schema(tmp_path / "out.parquet").names


@pytest.mark.parametrize(
    ("name", "mentions"),
    [
        ("out.csv", ("Parquet", "ending in .parquet")),
        ("no_folder/out.parquet", ("no_folder", "does not exist", "create")),
        ("folder.parquet", ("folder.parquet", "is a folder", "file name")),
    ],
)
def test_a_place_that_will_not_do_is_refused(tmp_path, name, mentions):
    (tmp_path / "folder.parquet").mkdir()
    with refuses(InputError, *mentions):
        export.check_export(tmp_path / name, None, None, name="-o")


def test_a_range_without_an_inside_is_refused(tmp_path):
    for since, until in ((hours(2), hours(1)), (hours(1), hours(1))):
        with refuses(InputError, "since", "before until"):
            export.check_export(tmp_path / "out.parquet", since, until)


@ON_SQLITE
def test_a_full_disk_leaves_the_old_file_and_no_half_one(store, tmp_path, small_pages, monkeypatch):
    file = tmp_path / "out.parquet"
    put(store, *(row(at=hours(i), input={"text": str(i) * 50}) for i in range(20)))
    store.export(file)
    before = file.read_bytes()
    there = sorted(tmp_path.iterdir())

    def full(self, table, **options):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pq.ParquetWriter, "write_table", full)
    with refuses(InputError, "No space left", "free"):
        store.export(file)
    assert file.read_bytes() == before
    assert sorted(tmp_path.iterdir()) == there


def test_a_database_that_goes_away_leaves_no_half_file(store, tmp_path, small_pages, monkeypatch):
    put(store, *(row(at=hours(i)) for i in range(20)))
    there = sorted(tmp_path.iterdir())
    real, pages = export._page, []

    def away(*given):
        pages.append(given)
        if len(pages) == 3:
            raise StoreUnavailable("the store cannot be reached: see that the server runs.")
        return real(*given)

    monkeypatch.setattr(export, "_page", away)
    with pytest.raises(StoreUnavailable):
        store.export(tmp_path / "out.parquet")
    assert sorted(tmp_path.iterdir()) == there


@ON_SQLITE
def test_a_page_has_fewer_rows_where_there_are_many_classes(store, tmp_path, monkeypatch):
    monkeypatch.setattr(export, "_PAGE_SCORES", 30)
    names = ["bad", *(f"class {i}" for i in range(1, 10))]
    rows = [row(at=hours(i), probs=[0.1] * 10, logits=[0.0] * 10) for i in range(7)]
    put(store, *rows, classes=names)
    sizes = []
    real = export._page
    monkeypatch.setattr(export, "_page", lambda *given: sizes.append(real(*given)) or sizes[-1])
    assert store.export(tmp_path / "out.parquet") == 7
    assert [len(page) for page in sizes] == [3, 3, 1]
