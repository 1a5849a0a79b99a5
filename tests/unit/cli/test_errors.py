"""Every bad input gets one sentence, exit 2, and leaves nothing behind."""

import json
import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.sentences import assert_mentions

from calibrant.errors import InputError

GOOD = "label,prob\n1,0.9\n0,0.2\n"


def text(content, name="s.csv", encoding="utf-8"):
    def make(folder):
        (folder / name).write_text(content, encoding=encoding)
        return folder / name

    return make


def parquet(**columns):
    def make(folder):
        pq.write_table(pa.table(columns), folder / "s.parquet")
        return folder / "s.parquet"

    return make


def npz(**arrays):
    def make(folder):
        np.savez(folder / "s.npz", **arrays)
        return folder / "s.npz"

    return make


def many(*files):
    """Several files in a folder; the folder is the input."""

    def make(folder):
        for file in files:
            file(folder)
        return folder

    return make


def truncated(folder):
    pq.write_table(pa.table({"label": [0, 1] * 500, "prob": [0.5] * 1000}), folder / "s.parquet")
    content = (folder / "s.parquet").read_bytes()
    (folder / "s.parquet").write_bytes(content[: len(content) // 2])
    return folder / "s.parquet"


def damaged_page(folder):
    probs = np.random.default_rng(0).random(5000)
    pq.write_table(pa.table({"label": [0, 1] * 2500, "prob": probs}), folder / "s.parquet")
    content = bytearray((folder / "s.parquet").read_bytes())
    content[4:400] = b"\xff" * 396
    (folder / "s.parquet").write_bytes(bytes(content))
    return folder / "s.parquet"


def raw(content, name):
    def make(folder):
        (folder / name).write_bytes(content)
        return folder / name

    return make


def folder_named_like_a_file(folder):
    (folder / "s.csv").mkdir()
    return folder / "s.csv"


OBJECTS = np.array([{"a": 1}, None], dtype=object)
TWO = "label,prob_a,prob_b\n"

CASES = {
    # values
    "nan": (text("label,prob\n1,0.9\n0,nan\n"), "data row 2, column 'prob'", "got nan"),
    "inf": (text("label,prob\n1,inf\n"), "data row 1, column 'prob'", "got inf"),
    "negative": (text("label,prob\n1,-0.1\n"), "data row 1, column 'prob'", "got -0.1"),
    "above 1": (text("label,prob\n1,0.5\n1,90\n"), "data row 2, column 'prob'", "got 90"),
    "missing value": (text("label,prob\n1,0.5\n1,\n"), "data row 2, column 'prob'", "missing"),
    "parquet nan": (parquet(label=[1], prob=[float("nan")]), "data row 1", "got nan"),
    "parquet null": (parquet(label=[1, 0], prob=[0.5, None]), "data row 2", "missing"),
    "json nan": (text('{"label":1,"prob":NaN}\n', "s.jsonl"), "data row 1", "nan"),
    "npz nan": (npz(labels=[0, 1], probs=[0.5, np.nan]), "data row 2, probs", "got nan"),
    "logit inf": (text("label,logit\n1,inf\n"), "data row 1, column 'logit'", "got inf"),
    "sum": (text(TWO + "a,0.5,0.5\nb,0.5,0.6\n"), "data row 2", "sum to 1.1"),
    "not a number": (text("label,prob\n1,0.5\n1,high\n"), "data row 2, column 'prob'", "'high'"),
    "decimal comma": (text("label;prob\n1;0,5\n"), "data row 1, column 'prob'", "decimal comma"),
    "decimal comma in csv": (text("label,prob\n1,0,5\n"), "data row 1", "decimal comma"),
    "short row": (text("label,prob\n1,0.5\n1\n"), "data row 2", "has 1 cells"),
    "wrong type": (parquet(label=[1], prob=["0.5"]), "column 'prob'", "must be numeric"),
    "list column": (parquet(label=[1], prob=[[0.5]]), "column 'prob'", "must be numeric"),
    "json type": (text('{"label":1,"prob":0.5}\n{"label":1,"prob":"x"}\n', "s.jsonl"),
                  "data row 2, column 'prob'", "wrong type"),
    "json missing key": (text('{"label":1,"prob":0.5}\n{"label":1}\n', "s.jsonl"),
                         "data row 2, column 'prob'", "missing"),
    "not json": (text('{"label":1,"prob":0.5}\n{"label":\n', "s.jsonl"), "data row 2", "not JSON"),
    "json array": (text("[1, 2]\n", "s.jsonl"), "data row 1", "not a JSON object"),
    # labels
    "label not in classes": (text(TWO + "a,0.5,0.5\nc,0.5,0.5\n"), "data row 2", "'c'"),
    "label needs positive": (text("label,prob\nyes,0.5\n"), "data row 1", "--positive"),
    "label out of range": (parquet(label=[0, 2], prob=[0.5, 0.5]), "data row 2", "'2'"),
    "missing label": (text("label,prob\n1,0.5\n,0.5\n"), "data row 2", "label is missing"),
    "null label": (parquet(label=[None, 1], prob=[0.5, 0.5]), "data row 1", "label is missing"),
    "nan label": (parquet(label=[1.0, float("nan")], prob=[0.5, 0.5]), "data row 2", "missing"),
    "label type": (parquet(label=[[1]], prob=[0.5]), "column 'label'", "list"),
    # weights
    "negative weight": (text("label,prob,weight\n1,0.5,-1\n"), "column 'weight'", "got -1"),
    "infinite weight": (text("label,prob,weight\n1,0.5,inf\n"), "column 'weight'", "got inf"),
    "zero weights": (text("label,prob,weight\n1,0.5,0\n"), "column 'weight'", "zero"),
    # columns
    "no label": (text("Labels,prob\n1,0.5\n"), "'label'", "'Labels'?"),
    "no scores": (text("label,probability\n1,0.5\n"), "no score columns", "'probability'?"),
    "no header": (text("1,0.5\n0,0.4\n"), "'label'", "first line"),
    "both kinds": (text("label,prob_a,logit_a\na,0.5,1\n"), "'prob_a'", "'logit_a'"),
    "lone and many": (text("label,prob,prob_a\na,0.5,1\n"), "'prob'", "'prob_a'"),
    "one class column": (text("label,prob_a\na,0.5\n"), "'prob_a'", "--positive a"),
    "nameless class": (text("label,prob_,prob_a\na,0.5,0.5\n"), "'prob_'", "without a class"),
    "twice": (text("label,prob_a,prob_a\na,0.5,0.5\n"), "'prob_a'", "twice"),
    "twice in json": (text('{"label":1,"prob":0.5,"prob":1}\n', "s.jsonl"), "'prob'", "twice"),
    # files
    "empty": (text(""), "s.csv", "is empty"),
    "blank": (text("\n \n"), "s.csv", "is empty"),
    "header only": (text("label,prob\n"), "s.csv", "no rows"),
    "empty parquet": (parquet(label=pa.array([], pa.int64()), prob=pa.array([], pa.float64())),
                      "s.parquet", "no rows"),
    "truncated parquet": (truncated, "s.parquet", "truncated"),
    "damaged parquet": (damaged_page, "s.parquet", "damaged"),
    "not parquet": (text("hello world, this is text", "s.parquet"), "s.parquet", "not parquet"),
    "not npz": (text("hello world", "s.npz"), "s.npz", "numpy"),
    "not gzip": (text(GOOD, "s.csv.gz"), "s.csv.gz", "cannot be read"),
    "binary": (raw(b"label,prob\x00\x01\x02", "s.csv"), "s.csv", "binary"),
    "latin-1": (text("label,prob_caf\xe9,prob_b\nb,0,1\n", encoding="latin-1"), "s.csv", "UTF-8"),
    "wrong suffix": (text(GOOD, "s.xlsx"), "s.xlsx", ".csv, .parquet"),
    "does not exist": (lambda folder: folder / "nope.csv", "nope.csv", "does not exist"),
    "empty folder": (lambda folder: folder, "folder without", ".csv"),
    "folder like a file": (folder_named_like_a_file, "s.csv is a folder", ".csv"),
    "no match": (lambda folder: folder / "*.csv", "*.csv", "matches no"),
    "mixed types": (many(text(GOOD), npz(labels=[0, 1], probs=[0.5, 0.5])), "one type", "s.npz"),
    "other columns": (many(text(GOOD, "a.csv"), text(TWO + "a,1,0\n", "b.csv")), "b.csv", "other"),
    "weights in one": (many(text(GOOD, "a.csv"), text("label,prob,weight\n1,1,1\n", "b.csv")),
                       "b.csv", "weight"),
    # npz
    "npz length": (npz(labels=[0, 1, 1], probs=[0.5, 0.5]), "labels and probs", "3 and 2"),
    "npz objects": (npz(labels=OBJECTS, probs=[0.5, 0.5]), "labels", "never unpickled"),
    "npz one-hot": (npz(labels=[[0, 1]], probs=[0.5]), "labels", "one-hot"),
    "npz classes": (npz(labels=[0], probs=[[0.5, 0.5]], classes=["a"]), "classes", "1 names"),
    "npz twice": (npz(labels=[0], probs=[[0.5, 0.5]], classes=["a", "a"]), "classes", "twice"),
    "npz both": (npz(labels=[0], probs=[0.5], logits=[0.5]), "'prob'", "'logit'"),
    "npz no labels": (npz(y=[0], probs=[0.5]), "'label'", "s.npz"),
    "npz no scores": (npz(labels=[0]), "s.npz", "no score columns"),
    "npz shape": (npz(labels=[0], probs=np.ones((1, 1))), "probs", "(1, 1)"),
}  # fmt: skip


def assert_one_sentence(result):
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    assert result.stderr.startswith("error: ")
    assert result.stderr.count("\n") == 1
    assert result.stderr.endswith(".\n")
    assert "Traceback" not in result.output
    assert ". " not in result.stderr.replace("...", "")


@pytest.mark.parametrize("how", [(), ("--stream",)], ids=["memory", "stream"])
@pytest.mark.parametrize("case", CASES)
def test_bad_score_files(cli, tmp_path, case, how):
    make, where, what = CASES[case]
    folder = tmp_path / "in"
    folder.mkdir()
    path = make(folder)
    before = sorted(tmp_path.rglob("*"))
    result = cli("evaluate", path, "--html", tmp_path / "report.html", *how)
    assert_one_sentence(result)
    assert where in result.stderr
    assert what in result.stderr
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("case", ["nan", "truncated parquet", "does not exist"])
def test_bad_score_files_as_json(cli, tmp_path, case):
    result = cli("evaluate", CASES[case][0](tmp_path), "--json")
    error = json.loads(result.stdout)["error"]
    assert result.exit_code == 2
    assert error["kind"] == "input"
    assert CASES[case][1] in error["message"]
    assert result.stderr == ""


USAGE = {
    "group missing": (("--group", "plac"), "'place'?"),
    "group in a stream": (("--group", "place", "--stream"), "--no-stream"),
    "confidence": (("--confidence", "95"), "--confidence"),
    "bins": (("--bins", "0"), "--bins"),
    "target": (("--target", "bottom-label"), "--target"),
    "option": (("--grup", "place"), "--grup"),
    "label": (("--label", "lab"), "'label'?"),
    "positive": (("--positive", "7"), "'7'"),
}


@pytest.mark.parametrize("case", USAGE)
def test_bad_options(cli, scores, tmp_path, case):
    words, what = USAGE[case]
    result = cli("evaluate", scores, "--html", tmp_path / "report.html", *words)
    assert result.exit_code == 2
    assert what in result.stderr
    assert result.stderr.count("\n") == 1
    assert not (tmp_path / "report.html").exists()
    as_json = cli("evaluate", scores, "--json", *words)
    assert as_json.exit_code == 2
    assert what in json.loads(as_json.stdout)["error"]["message"]


@pytest.mark.parametrize(
    ("words", "what"),
    [(("evaluat",), "evaluate"), (("evaluate",), "SCORES"), (("--nope",), "--nope")],
)
def test_bad_command_lines(cli, words, what):
    result = cli(*words)
    assert result.exit_code == 2
    assert what in result.stderr
    assert "--help" in result.stderr
    assert result.stderr.count("\n") == 1


def test_no_verb_shows_the_help(cli):
    result = cli()
    assert result.exit_code == 2
    assert "evaluate" in result.stdout


@pytest.mark.parametrize(
    ("name", "mentions"),
    [
        ("no/such/report.html", ("does not exist",)),
        (".", ("is a folder",)),
        ("in/scores.csv", ("scores.csv", "input")),
    ],
)
def test_a_report_that_cannot_be_written_is_told_before_the_work(
    cli, scores, tmp_path, monkeypatch, name, mentions
):
    monkeypatch.setattr("calibrant.scores.read_scores", None)  # calling it would be our fault: 70
    content = scores.read_bytes()
    result = cli("evaluate", scores, "--html", tmp_path / name)
    assert_one_sentence(result)
    assert_mentions(result.stderr, *mentions)
    assert scores.read_bytes() == content


def test_a_device_is_not_replaced_by_a_report(cli, scores):
    result = cli("evaluate", scores, "--html", "/dev/full")
    assert_one_sentence(result)
    assert Path("/dev/full").is_char_device()


def test_a_disk_that_fills_up_leaves_the_old_report(cli, scores, tmp_path, monkeypatch):
    def full(path, text, **options):
        path.write_bytes(b"half a page")
        raise OSError(28, "No space left on device")

    report = tmp_path / "report.html"
    report.write_text("old")
    monkeypatch.setattr(Path, "write_text", full)
    result = cli("evaluate", scores, "--html", report)
    assert_one_sentence(result)
    assert "No space left" in result.stderr
    assert report.read_text() == "old"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["in", "report.html"]


def test_a_file_without_permission(spawn, tmp_path):
    if os.geteuid() != 0:
        file = text(GOOD)(tmp_path)
        file.chmod(0)
        process = spawn("evaluate", file)
        _, err = process.communicate()
        assert process.returncode == 2
        assert "permission denied" in err
        return
    # root may read everything, so the refusal is played
    from calibrant.scores import files as score_files

    class Refusing:
        def __init__(self, file, ask):
            raise PermissionError(13, "Permission denied")

    known = score_files._READERS[".csv"]
    score_files._READERS[".csv"] = Refusing
    try:
        with pytest.raises(InputError, match="permission denied"):
            score_files.open_source(text(GOOD)(tmp_path), score_files.ColumnOptions())
    finally:
        score_files._READERS[".csv"] = known


def test_out_of_memory_names_the_remedy(cli, scores, monkeypatch):
    def greedy(*args, **kwargs):
        raise MemoryError

    monkeypatch.setattr("calibrant.scores.read_scores", greedy)
    result = cli("evaluate", scores)
    assert_one_sentence(result)
    assert "--stream" in result.stderr
