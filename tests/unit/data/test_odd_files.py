"""Files that other tools write: unusual types, mixed lines, names that the file itself gives."""

import gzip
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.sentences import assert_mentions, refuses

from calibrant.errors import InputError
from calibrant.scores import Scores, read_scores, scan_scores
from calibrant.scores.paired import pair_scores


def jsonl(folder, *rows):
    file = folder / "scores.jsonl"
    file.write_text(
        "".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows)
    )
    return file


def npz(folder, **arrays):
    np.savez(folder / "scores.npz", **arrays)
    return folder / "scores.npz"


@pytest.mark.parametrize("kind", [">f8", ">f4", "<f4", np.longdouble])
@pytest.mark.parametrize("labels", [[0, 2], np.array([0, 2], ">i4"), np.array(["0", "2"], ">U1")])
def test_npz_of_another_machine(tmp_path, kind, labels):
    probs = np.array([[0.5, 0.25, 0.25], [0.125, 0.375, 0.5]])
    scores = read_scores(npz(tmp_path, labels=labels, probs=probs.astype(kind)))
    assert scores.labels.tolist() == [0, 2]
    assert scores.probs.tolist() == probs.tolist()
    assert scores.probs.dtype in (np.float32, np.float64)
    assert scores.probs.dtype.isnative


LATE = {
    "weight": ({"label": 1, "prob": 0.5}, {"weight": 7}, {}),
    "id": ({"label": 1, "prob": 0.5}, {"id": 7}, {"ids": "id"}),
    "logit_c": ({"label": "a", "logit_a": 1, "logit_b": 0}, {"logit_c": 7}, {}),
    "prob_é": ({"label": "a", "prob_a": 1, "prob_b": 0}, {"prob_é": 0}, {}),
}


@pytest.mark.parametrize("name", LATE)
def test_jsonl_keys_that_come_late_are_refused(tmp_path, name):
    row, more, options = LATE[name]
    file = jsonl(tmp_path, row, row, {**row, **more})
    with refuses(InputError, "data row 3", f"'{name}'", "first line"):
        read_scores(file, **options)


def test_jsonl_keys_inside_another_value_do_not_count(tmp_path):
    row = {"label": 1, "prob": 0.5}
    file = jsonl(tmp_path, row, {**row, "meta": {"prob_x": 1, "weight": 2}, "other": "weight"})
    assert read_scores(file).weights is None


def test_jsonl_key_written_with_escapes_is_the_same_key(tmp_path):
    first = {"label": "é", "prob_é": 0.5, "prob_b": 0.5}
    file = jsonl(tmp_path, json.dumps(first, ensure_ascii=False), first)
    assert read_scores(file).labels.tolist() == [0, 0]


@pytest.mark.parametrize("labels", [(1, 0.0), (1.0, 0), (0.0, 1), (True, False), ("1", "0")])
def test_jsonl_numbers_may_be_mixed(tmp_path, labels):
    file = jsonl(tmp_path, *({"label": label, "prob": 0.5} for label in labels))
    assert read_scores(file).labels.tolist() == [int(label) for label in labels]


@pytest.mark.parametrize(
    ("labels", "said"),
    [
        ((True, 0), ("data row 2", "column 'label'", "'label': 0", "wrong type", "true or false")),
        ((1, True), ("data row 2", "column 'label'", "true", "wrong type", "numbers")),
        (("a", 1), ("data row 2", "column 'label'", "'label': 1", "wrong type", "text")),
        ((None, 1), ("data row 1", "column 'label'", "missing")),
        ((1, None), ("data row 2", "column 'label'", "missing")),
        (({"a": 1}, 1), ("data row 1", '{"a": 1}', "not a single value")),
        ((1, 10**30), ("data row 2", "integer range")),
    ],
)
def test_jsonl_labels_of_other_types_get_a_true_sentence(tmp_path, labels, said):
    file = jsonl(tmp_path, *({"label": label, "prob": 0.5} for label in labels))
    with refuses(InputError, *said):
        read_scores(file)


def test_jsonl_groups_may_begin_with_null(tmp_path):
    file = jsonl(tmp_path, *({"label": 1, "prob": 0.5, "g": g} for g in (None, 3, 4.0)))
    assert read_scores(file, group="g").groups.tolist() == ["(missing)", "3", "4"]


@pytest.mark.parametrize(("classes", "stray"), [(["1", "2"], "0"), (["a", "b"], "true")])
def test_npz_with_named_classes_knows_no_other_label(tmp_path, classes, stray):
    file = npz(tmp_path, labels=[*classes, stray], probs=[0.1, 0.2, 0.3], classes=classes)
    with pytest.raises(InputError) as error:
        read_scores(file)
    said = str(error.value)
    assert_mentions(said, "data row 3", "labels", f"label '{stray}'")
    assert f"'{classes[0]}', '{classes[1]}'" in said
    assert "--positive" not in said


def test_npz_with_named_classes_may_not_be_contradicted(tmp_path):
    file = npz(tmp_path, labels=["a", "b"], probs=[0.1, 0.2], classes=["a", "b"])
    assert read_scores(file, positive="b").classes == ("a", "b")
    for positive in ("a", "c"):
        with pytest.raises(InputError, match=f"--positive {positive} contradicts"):
            read_scores(file, positive=positive)


def test_npz_files_must_name_the_same_classes(tmp_path):
    for name, classes in (("a", ["a", "b"]), ("b", ["b", "a"])):
        np.savez(tmp_path / f"{name}.npz", labels=classes, probs=[0.1, 0.9], classes=classes)
    with refuses(InputError, "b.npz", "classes", "a.npz"):
        read_scores(tmp_path)


@pytest.mark.parametrize("offset", [{"local": 6, "central": 8}, {"local": 8, "central": 10}])
def test_npz_that_cannot_be_unpacked(tmp_path, offset):
    file = npz(tmp_path, labels=[0, 1], probs=[0.1, 0.2])
    content = bytearray(file.read_bytes())
    for mark, place in ((b"PK\x03\x04", offset["local"]), (b"PK\x01\x02", offset["central"])):
        at = content.find(mark)
        while at >= 0:
            content[at + place] = 97  # an unknown method; as a flag, 97 is odd: encrypted
            at = content.find(mark, at + 4)
    file.write_bytes(bytes(content))
    with refuses(InputError, "scores.npz cannot be unpacked ("):
        read_scores(file)


def test_a_positive_class_that_never_occurs_is_noted(tmp_path):
    file = tmp_path / "scores.csv"
    file.write_text("label,prob\nyes,0.3\nyes,0.7\n")
    for notes in (
        read_scores(file, positive="yess").notes,
        next(scan_scores(file, positive="yess")).notes,
    ):
        assert "No label is 'yess'" in notes[0]
    assert not any("No label" in note for note in read_scores(file, positive="yes").notes)


@pytest.mark.parametrize("damage", ["cut", "changed"])
def test_gzip_that_breaks_off_late_names_the_file(tmp_path, damage):
    rng = np.random.default_rng(0)
    text = "label,prob\n" + "".join(f"1,{p:.6f}\n" for p in rng.random(400_000))
    content = bytearray(gzip.compress(text.encode(), 1))
    late = len(content) * 3 // 4
    if damage == "cut":
        del content[late:]
    else:
        content[late : late + 80] = rng.bytes(80)
    file = tmp_path / "scores.csv.gz"
    file.write_bytes(bytes(content))
    with refuses(InputError, "scores.csv.gz", ":"):
        read_scores(file)


@pytest.mark.parametrize("name", ["prob_a", "logit", "prob"])
@pytest.mark.parametrize("part", ["label", "group"])
def test_a_score_column_has_no_other_part(tmp_path, name, part):
    file = tmp_path / "scores.csv"
    file.write_text(f"label,{name}\n1,0.5\n")
    with refuses(InputError, f"--{part} {name}", "score column", "cannot be"):
        read_scores(file, **{part: name})


@pytest.mark.parametrize("label", ["nan", "NaN", "", " ", "NA", "null", "None"])
@pytest.mark.parametrize("positive", [None, "1"])
def test_a_missing_label_in_text(tmp_path, label, positive):
    file = tmp_path / "scores.csv"
    file.write_text(f"label,prob\n1,0.5\n0,0.5\n{label},0.5\n")
    with refuses(InputError, "data row 3, column 'label': the label is missing"):
        read_scores(file, positive=positive)


def test_a_class_may_be_called_none(tmp_path):
    file = tmp_path / "scores.csv"
    file.write_text("label,prob_none,prob_nan\nnone,0.5,0.5\nnan,0.5,0.5\n")
    assert read_scores(file).labels.tolist() == [0, 1]


def test_spaces_around_class_names_do_not_count(tmp_path):
    file = tmp_path / "scores.csv"
    file.write_text("label,prob_ cat,prob_dog \ncat,0.5,0.5\ndog,0.2,0.8\n")
    assert read_scores(file).classes == ("cat", "dog")
    file.write_text("label,prob_ cat,prob_cat\ncat,0.5,0.5\n")
    with refuses(InputError, "the class 'cat' twice"):
        read_scores(file)


@pytest.mark.parametrize("kind", ["string_view", "large_string", "large_binary", "binary"])
def test_parquet_text_of_every_kind(tmp_path, kind):
    if not hasattr(pa, kind):
        pytest.skip(f"this pyarrow has no {kind}")
    words = pa.array(["a", "b", "a"]).cast(getattr(pa, kind)())
    table = pa.table({"label": words, "g": words, "prob_a": [0.1] * 3, "prob_b": [0.9] * 3})
    pq.write_table(table, tmp_path / "scores.parquet")
    scores = read_scores(tmp_path / "scores.parquet", group="g")
    assert scores.labels.tolist() == [0, 1, 0]
    assert scores.groups.tolist() == ["a", "b", "a"]


def test_true_and_1_are_the_same_class_for_a_pair():
    codes, probs = np.array([0, 1]), np.array([0.1, 0.8])
    a, b = Scores(codes, probs, ("0", "1")), Scores(codes, probs, ("False", "True"))
    for first, second in ((a, b), (b, a)):
        found = pair_scores(first, second)[1]
        assert found.classes == first.classes
        assert found.labels.tolist() == [0, 1]
        assert found.probs.tolist() == [0.1, 0.8]
    turned = Scores(codes[::-1], np.array([[0.1, 0.9], [0.8, 0.2]]), ("true", "false"))
    assert pair_scores(a, turned)[1].probs.tolist() == [0.1, 0.8]


def test_one_row_is_not_many(tmp_path):
    file = tmp_path / "scores.csv"
    file.write_text("label,prob\n1,0.5\n")
    assert read_scores(file).notes[0].startswith("The only label is '1'")


def test_the_label_is_no_group(tmp_path):
    path = tmp_path / "scores.csv"
    path.write_text("label,prob\n1,0.7\n0,0.2\n")
    with refuses(InputError, "--group label: the column 'label' of", "is the label"):
        read_scores(path, group="label")
