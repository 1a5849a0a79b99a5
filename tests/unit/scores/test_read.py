"""Score files of every format give the same scores; bad ones say where and why."""

import gzip
import json
import uuid
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.sentences import refuses

from calibrant.errors import InputError
from calibrant.files.source import BatchLocation
from calibrant.scores import count_rows, read_scores, scan_scores
from calibrant.scores.labels import as_names

CLASSES = ("cat", "dog", "elk")
N = 257


@pytest.fixture(scope="module")
def world():
    rng = np.random.default_rng(1)
    probs = rng.dirichlet([1.0, 1.0, 1.0], N)
    codes = np.array([rng.choice(3, p=p) for p in probs])
    return {
        "labels": np.array(CLASSES)[codes],
        "codes": codes,
        "probs": probs,
        "weights": rng.uniform(0.5, 2.0, N),
        "groups": rng.choice(["a", "b"], N),
    }


def table_of(world):
    columns = {"label": world["labels"], "weight": world["weights"], "site": world["groups"]}
    columns |= {f"prob_{c}": world["probs"][:, k] for k, c in enumerate(CLASSES)}
    return pa.table({name: pa.array(values) for name, values in columns.items()})


def rows_of(table):
    return [",".join(table.column_names)] + [
        ",".join(map(repr_csv, row.values())) for row in table.to_pylist()
    ]


def repr_csv(value):
    return repr(value) if isinstance(value, float) else str(value)


def write(path, table, world):
    path.parent.mkdir(exist_ok=True)
    if path.name.endswith(".csv"):
        path.write_text("\n".join(rows_of(table)))
    elif path.name.endswith(".csv.gz"):
        path.write_bytes(gzip.compress("\n".join(rows_of(table)).encode()))
    elif path.name.endswith(".jsonl"):
        path.write_text("".join(json.dumps(row) + "\n" for row in table.to_pylist()))
    elif path.name.endswith(".jsonl.gz"):
        text = "\n".join(json.dumps(row) for row in table.to_pylist())
        path.write_bytes(gzip.compress(text.encode()))
    elif path.name.endswith(".parquet"):
        pq.write_table(table, path, row_group_size=100)
    else:
        np.savez(
            path,
            labels=world["labels"],
            probs=world["probs"],
            classes=np.array(CLASSES),
            weights=world["weights"],
            groups=world["groups"],
        )
    return path


def assert_is(scores, world):
    assert scores.classes == CLASSES
    np.testing.assert_array_equal(scores.labels, world["codes"])
    np.testing.assert_array_equal(scores.probs, world["probs"])
    np.testing.assert_array_equal(scores.weights, world["weights"])
    np.testing.assert_array_equal(scores.groups, world["groups"])


ENDINGS = ["csv", "csv.gz", "jsonl", "jsonl.gz", "parquet", "npz"]


@pytest.mark.parametrize("ending", ENDINGS)
def test_every_format_gives_the_same_scores(tmp_path, world, ending):
    file = write(tmp_path / f"scores.{ending}", table_of(world), world)
    assert_is(read_scores(file, group="site"), world)


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
@pytest.mark.parametrize("how", ["folder", "glob", "list"])
def test_parts_are_read_in_order(tmp_path, world, ending, how):
    table = table_of(world)
    folder = tmp_path / f"scores.{ending}"  # a folder named like a file, as Spark makes them
    parts = [
        write(folder / f"part-{i}.{ending}", table.slice(start, 100), world)
        for i, start in enumerate(range(0, N, 100))
    ]
    (folder / "_SUCCESS").write_text("")
    path = {"folder": folder, "glob": f"{folder}/part-*.{ending}", "list": parts}[how]
    assert_is(read_scores(path, group="site"), world)


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_scan_gives_the_same_rows_in_batches(tmp_path, world, ending):
    file = write(tmp_path / f"scores.{ending}", table_of(world), world)
    batches = list(scan_scores(file, batch_rows=64))
    assert len(batches) > 1 or ending not in ("parquet", "npz")
    np.testing.assert_array_equal(np.concatenate([b.probs for b in batches]), world["probs"])
    np.testing.assert_array_equal(np.concatenate([b.labels for b in batches]), world["codes"])


@pytest.mark.parametrize("ending", ENDINGS)
def test_count_rows_is_near(tmp_path, world, ending):
    file = write(tmp_path / f"scores.{ending}", table_of(world), world)
    assert N - 2 <= count_rows(file) <= N + 2


@pytest.mark.parametrize("mark", [",", ";", "\t"])
def test_the_separator_is_found_in_the_header(tmp_path, mark):
    file = tmp_path / "scores.csv"
    text = "\ufefflabel,prob_a b,prob_c\na b,0.25,0.75\n\nc, 0.5 ,0.5\n"
    file.write_text(text.replace(",", mark), encoding="utf-8")
    scores = read_scores(file)
    assert scores.classes == ("a b", "c")
    assert scores.probs.tolist() == [[0.25, 0.75], [0.5, 0.5]]


def test_quoted_newlines_and_separators_are_part_of_a_name(tmp_path):
    file = tmp_path / "scores.csv"
    file.write_text('note,label,"prob_x,y",prob_z\n"line 1\nline 2","x,y",0.5,0.5\n-,z,1,0\n')
    scores = read_scores(file)
    assert scores.classes == ("x,y", "z")
    assert scores.labels.tolist() == [0, 1]


@pytest.mark.parametrize(
    ("labels", "classes"),
    [
        (pa.array([1, 0, 1], pa.int8()), ("0", "1")),
        (pa.array([1.0, 0.0, 1.0]), ("0", "1")),
        (pa.array([True, False, True]), ("False", "True")),
        (pa.array(["1", "0", "1"]), ("0", "1")),
        (pa.array(["true", "FALSE", "True"]), ("False", "True")),
        (pa.array(["1", "0", "1"]).dictionary_encode(), ("0", "1")),
    ],
    ids=lambda value: str(getattr(value, "type", "")),
)
def test_a_lone_prob_is_of_class_1_or_true(tmp_path, labels, classes):
    file = tmp_path / "scores.parquet"
    pq.write_table(pa.table({"label": labels, "prob": pa.array([0.9, 0.2, 0.6])}), file)
    scores = read_scores(file)
    assert scores.labels.tolist() == [1, 0, 1]
    assert scores.classes == classes
    assert scores.probs.ndim == 1


def test_a_lone_prob_of_a_named_class(tmp_path):
    file = tmp_path / "scores.csv"
    file.write_text("label,prob\nspam,0.9\nspam,0.8\nham,0.1\n")
    scores = read_scores(file, positive="spam")
    assert scores.classes == ("ham", "spam")
    assert scores.labels.tolist() == [1, 1, 0]


def test_the_negative_class_may_first_occur_in_a_later_file(tmp_path):
    for i, text in enumerate(("label,prob\nspam,0.9\n", "label,prob\nham,0.1\n")):
        (tmp_path / f"{i}.csv").write_text(text)
    batches = list(scan_scores(tmp_path, positive="spam"))
    assert [batch.classes for batch in batches] == [("ham", "spam")] * 2


def test_labels_match_columns_as_text_in_any_order_of_columns(tmp_path):
    file = tmp_path / "scores.parquet"
    columns = {"label": [3, 10, 3], "prob_10": [0.1, 0.9, 0.5], "prob_3": [0.9, 0.1, 0.5]}
    pq.write_table(pa.table(columns), file)
    scores = read_scores(file)
    assert scores.classes == ("10", "3")
    assert scores.labels.tolist() == [1, 0, 1]


def test_positive_puts_its_column_second_and_says_so(tmp_path):
    file = tmp_path / "scores.csv"
    file.write_text("label,prob_yes,prob_no\nyes,0.9,0.1\nno,0.4,0.6\n")
    plain, chosen = read_scores(file), read_scores(file, positive="yes")
    assert plain.classes == ("yes", "no")
    assert "'no'" in plain.notes[0]
    assert chosen.classes == ("no", "yes")
    assert chosen.labels.tolist() == [1, 0]
    assert chosen.probs.tolist() == [[0.1, 0.9], [0.6, 0.4]]
    assert "'yes'" in chosen.notes[0]


def test_logits_become_probabilities(tmp_path):
    lone, many = tmp_path / "lone.csv", tmp_path / "many.npz"
    lone.write_text("label,logit\n1,0\n0,-1000\n")
    np.savez(many, labels=[0, 1], logits=[[0.0, 0.0], [0.0, np.log(3.0)]])
    assert read_scores(lone).probs.tolist() == [0.5, 0.0]
    np.testing.assert_allclose(read_scores(many).probs, [[0.5, 0.5], [0.25, 0.75]])


def test_float32_is_not_copied_to_float64(tmp_path):
    file = tmp_path / "scores.parquet"
    pq.write_table(pa.table({"label": [0, 1], "prob": pa.array([0.5, 0.25], pa.float32())}), file)
    assert read_scores(file).probs.dtype == np.float32


def test_npz_names_the_classes_of_a_lone_array(tmp_path):
    file = tmp_path / "scores.npz"
    np.savez(file, labels=["ham", "spam"], probs=[0.1, 0.9], classes=["ham", "spam"])
    assert read_scores(file).classes == ("ham", "spam")


def test_missing_groups_are_a_group(tmp_path):
    file = tmp_path / "scores.jsonl"
    file.write_text('{"label":1,"prob":0.5,"g":"x"}\n{"label":0,"prob":0.5,"g":null}\n')
    assert read_scores(file, group="g").groups.tolist() == ["x", "(missing)"]


def test_a_file_named_twice_is_refused(tmp_path):
    (tmp_path / "a.csv").write_text("label,prob\n1,0.5\n")
    with refuses(InputError, "given twice"):
        read_scores([tmp_path, tmp_path / "a.csv"])


@pytest.mark.parametrize("path", ["", []])
def test_no_path_is_not_the_current_folder(tmp_path, monkeypatch, path):
    (tmp_path / "a.csv").write_text("label,prob\n1,0.5\n")
    monkeypatch.chdir(tmp_path)
    with refuses(InputError, "no score file given"):
        read_scores(path)


def test_wide_files_with_long_headers(tmp_path):
    names = [f"prob_class_with_a_rather_long_name_{k:05d}" for k in range(9000)]
    values = ["1"] + ["0"] * 8999
    label = names[0].removeprefix("prob_")
    file = tmp_path / "scores.csv"
    file.write_text("\n".join([",".join(["label", *names]), ",".join([label, *values])]))
    assert read_scores(file).probs.shape == (1, 9000)


def test_too_many_groups_are_refused(tmp_path):
    file = tmp_path / "scores.csv"
    file.write_text("label,prob,g\n" + "".join(f"1,0.5,{i}\n" for i in range(300)))
    with refuses(InputError, "'g' has 300 distinct values"):
        read_scores(file, group="g")


def test_one_class_only_is_noted(tmp_path):
    file = tmp_path / "scores.csv"
    file.write_text("label,prob\n1,0.5\n1,0.75\n")
    assert "All 2 labels are '1'" in read_scores(file).notes[0]


def test_rows_are_counted_over_batches(tmp_path):
    file = tmp_path / "scores.parquet"
    probs = np.full(5000, 0.5)
    probs[4321] = 1.5
    pq.write_table(pa.table({"label": np.zeros(5000, int), "prob": probs}), file)
    with refuses(InputError, "data row 4,322, column 'prob'", "got 1.5"):
        list(scan_scores(file, batch_rows=1000))


def test_a_bad_cell_far_into_a_text_file_is_found(tmp_path):
    rows = ["1,0.5"] * 2_000_000
    rows[1_900_000] = "1,oops"
    file = tmp_path / "scores.csv"
    file.write_text("label,prob\n" + "\n".join(rows))
    with refuses(InputError, "data row 1,900,001, column 'prob': 'oops'"):
        read_scores(file)


def test_zero_weights_are_fine_in_one_batch_but_not_in_all(tmp_path):
    file = tmp_path / "scores.parquet"
    columns = {"label": [0, 1, 1], "prob": [0.1, 0.9, 0.8], "weight": [0.0, 0.0, 1.0]}
    pq.write_table(pa.table(columns), file)
    assert [b.n for b in scan_scores(file, batch_rows=2)] == [2, 1]


def test_whole_numbers_in_an_npz_are_positions_in_its_class_names(tmp_path):
    file = tmp_path / "scores.npz"
    np.savez(file, labels=[0, 1, 1], probs=[0.2, 0.9, 0.6], classes=["stay", "churn"])
    found = read_scores(file)
    assert found.classes == ("stay", "churn")
    assert found.labels.tolist() == [0, 1, 1]
    np.savez(file, labels=[0, 2], probs=[0.2, 0.9], classes=["stay", "churn"])
    with refuses(InputError, "data row 2, labels: label 2", "position in classes"):
        read_scores(file)


@pytest.mark.parametrize("cells", [[{"a": 1}, {"a": 2}], [[1], [2]]])
@pytest.mark.parametrize("part", ["group", "ids"])
def test_a_nested_column_cannot_name_rows_or_groups(tmp_path, cells, part):
    file = tmp_path / "nested.parquet"
    pq.write_table(pa.table({"label": [0, 1], "prob": [0.2, 0.7], "s": cells}), file)
    with refuses(InputError, "nested.parquet: column 's' has type", "single values"):
        read_scores(file, **{part: "s"})


class UUIDs(pa.ExtensionType):
    """What newer versions of pyarrow read a UUID column of a Parquet file as."""

    def __init__(self):
        super().__init__(pa.binary(16), "tests.uuid")

    def __arrow_ext_serialize__(self):
        return b""

    def __arrow_ext_scalar_class__(self):
        return UUIDScalar


class UUIDScalar(pa.ExtensionScalar):
    def as_py(self, **options):
        return None if self.value is None else uuid.UUID(bytes=self.value.as_py())


def test_uuids_name_rows():
    names = [uuid.UUID(int=7), None, uuid.UUID(int=8)]
    stored = pa.array([name and name.bytes for name in names], pa.binary(16))
    column = pa.ExtensionArray.from_storage(UUIDs(), stored)
    found = as_names(column, "id", BatchLocation(Path("rows.parquet")))
    assert found.tolist() == [str(names[0]), "(missing)", str(names[2])]


@pytest.mark.parametrize(
    ("head", "row", "mentions"),
    [
        ("label,logit", "0,1e300", ("column 'logit'", "-1e+100 and 1e+100", "got 1e+300")),
        (
            "label,logit_0,logit_1",
            "0,1,-1e100",
            ("column 'logit_1'", "-1e+100 and 1e+100", "got -1e+100"),
        ),
        ("label,logit", "0,inf", ("column 'logit'", "finite number", "got inf")),
    ],
)
def test_logits_without_a_square_are_told_with_row_and_column(tmp_path, head, row, mentions):
    file = tmp_path / "huge.csv"
    good = "1" + ",2" * head.count("logit")
    file.write_text(f"{head}\n{good}\n{row}\n", encoding="utf-8")
    with refuses(InputError, "huge.csv", "data row 2", *mentions):
        read_scores(file)
