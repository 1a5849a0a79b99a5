"""`calibrant calibrate` misused: one sentence, exit 2, and nothing left behind."""

import json
import re
from pathlib import Path

import pytest
from tests.sentences import assert_mentions

TWO = "label,prob\n" + "1,0.9\n0,0.2\n1,0.6\n0,0.7\n" * 10
THREE = "label,prob_a,prob_b,prob_c\n" + "a,0.6,0.3,0.1\nb,0.3,0.6,0.1\n" * 15
SAVED = {
    "format": 1,
    "method": "temperature",
    "classes": ["0", "1"],
    "params": {"temperature": 2.0},
    "settings": {},
}


def assert_one_sentence(result):
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    assert result.stderr.startswith("error: ")
    assert result.stderr.count("\n") == 1
    assert result.stderr.endswith(".\n")
    assert "Traceback" not in result.output
    assert "Warning" not in result.output


@pytest.fixture
def run(cli, tmp_path):
    """Fit on a text, expect a refusal, and return the sentence."""

    def refused(content, *words, name="s.csv"):
        folder = tmp_path / "in"
        folder.mkdir(exist_ok=True)
        (folder / name).write_text(content)
        before = sorted(tmp_path.rglob("*"))
        result = cli("calibrate", folder / name, "-o", tmp_path / "c.json", *words)
        assert_one_sentence(result)
        assert sorted(tmp_path.rglob("*")) == before
        return result.stderr

    return refused


FILES = {
    "no label": ("truth,prob\n1,0.5\n", "no label column 'label'"),
    "no scores": ("label,score\n1,0.5\n", "no score columns"),
    "empty": ("", "is empty"),
    "no rows": ("label,prob\n", "no rows"),
    "nan": ("label,logit\n1,0.5\n0,nan\n", "data row 2, column 'logit'"),
    "infinite": ("label,logit\n1,inf\n0,1\n", "data row 1, column 'logit'"),
    "percent": ("label,prob\n1,90\n0,1\n", "divide by 100"),
    "missing label": ("label,prob\n1,0.5\n,0.5\n", "data row 2, column 'label'"),
    "one class": ("label,prob\n" + "1,0.5\n" * 9, "all 9 labels are '1'"),
    "one row": ("label,prob\n1,0.5\n", "the only label is '1'"),
    "names": ("label,prob\nyes,0.5\nno,0.4\n", "--positive"),
}


@pytest.mark.parametrize("case", FILES)
@pytest.mark.parametrize("method", ["auto", "temperature"])
def test_bad_score_files(run, case, method):
    content, said = FILES[case]
    assert said in run(content, "--method", method)


def test_a_class_that_a_method_needs(run):
    assert_mentions(run(THREE, "--method", "vector"), "none", "label 'c'")


def test_too_few_rows(run):
    assert_mentions(run("label,prob\n1,0.4\n0,0.6\n"), "at least 20 rows", "got 2")


METHODS = {
    "temperatures": "did you mean 'temperature'?",
    "": "unknown method",
    "chain": "available in Python",
    "temperature:objectives=nll": "did you mean 'objective'?",
    "identity:x=1": "it has none",
    "temperature:n_bins": "'n_bins' is not a setting",
    "temperature:n_bins=1,n_bins=2": "set twice",
    "temperature:n_bins=many": "n_bins must be a whole number, got 'many'",
    "temperature:lowest=x": "lowest must be a number, got 'x'",
    "temperature:objective=7": "objective must be a word, got 7",
    "temperature:objective=zzz": "objective must be",
    "auto:folds=1": "folds must",
    "auto:repeats=x": "repeats must",
    "prior_correction:source=abc": "source",
    "auto:candidates=[bogus]": "no calibration method 'bogus'",
    "prior_correction:source=[1,2,3]": "one number for each of the 2 classes",
}


@pytest.mark.parametrize("method", METHODS)
def test_bad_methods(run, method):
    assert METHODS[method] in run(TWO, "--method", method)


def test_a_method_that_breaks_down_over_its_settings(run, monkeypatch):
    def fault(self, rows):
        raise TypeError("no such thing")

    monkeypatch.setattr("calibrant.calibrators.TemperatureScaling._learn", fault)
    said = run(TWO, "--method", "temperature:n_bins=7")
    assert_mentions(said, "--method temperature", "settings", "no such thing")


def test_a_method_that_breaks_down_by_itself_is_our_fault(cli, tmp_path, monkeypatch):
    def fault(self, rows):
        raise TypeError("no such thing")

    (tmp_path / "s.csv").write_text(TWO)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr("calibrant.calibrators.TemperatureScaling._learn", fault)
    words = ("-o", tmp_path / "c.json", "--method", "temperature")
    assert cli("calibrate", tmp_path / "s.csv", *words).exit_code == 70
    assert not (tmp_path / "c.json").exists()


@pytest.fixture
def files(tmp_path):
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "two.csv").write_text(TWO)
    (folder / "three.csv").write_text(THREE)
    (folder / "other.csv").write_text(TWO.replace("0.6", "0.5"))
    (folder / "names.csv").write_text("label,prob_x,prob_y\nx,0.5,0.5\ny,0.5,0.5\n")
    (folder / "good.json").write_text(json.dumps(SAVED))
    return folder


def refused(cli, folder, words):
    before = {p: p.read_bytes() for p in folder.parent.rglob("*") if p.is_file()}
    named = [re.sub(r"^IN\b", str(folder), word) for word in words.split()]
    result = cli("calibrate", *named)
    assert_one_sentence(result)
    assert {p: p.read_bytes() for p in folder.parent.rglob("*") if p.is_file()} == before
    as_json = cli("calibrate", *named, "--json")
    assert as_json.exit_code == 2
    error = json.loads(as_json.stdout)["error"]
    assert error["kind"] in ("input", "usage")
    return error["message"]


FIT = {
    "IN/two.csv": "-o is missing",
    "IN/two.csv -o IN/no/c.json": "does not exist",
    "IN/two.csv -o IN": "is a folder",
    "IN/two.csv -o IN/two.csv": "ending in .json",
    "IN/two.csv -o IN/c.parquet": "ending in .json",
    "IN/two.csv -o /dev/null": "device",
    "IN/two.csv -o IN/c.json --html IN/c.json": "--html",
    "IN/two.csv -o IN/c.json --html IN/two.csv": "--html",
    "IN/two.csv -o IN/c.json --html IN/no/r.html": "does not exist",
    "IN/two.csv -o IN/c.json --test IN/two.csv": "also fitted on",
    "IN/two.csv -o IN/c.json --test IN/three.csv": "3 classes",
    "IN/two.csv -o IN/c.json --test IN/names.csv": "two.csv has '0'",
    "IN/two.csv -o IN/c.json --test IN/nope.csv": "does not exist",
    "IN/two.csv -o IN/c.json --score accuracy": "--score",
    "IN/two.csv -o IN/c.json --label truth": "'truth'",
    "IN/nope.csv -o IN/c.json": "does not exist",
}


@pytest.mark.parametrize("words", FIT)
def test_a_fit_that_cannot_be(cli, files, words):
    assert FIT[words] in refused(cli, files, words)


def test_nothing_is_read_before_the_outputs_are_checked(cli, files, monkeypatch):
    monkeypatch.setattr("calibrant.scores.read_scores", None)  # calling it would be our fault: 70
    for words in list(FIT)[:9]:
        refused(cli, files, words)


APPLY = {
    "--apply IN/good.json IN/two.csv": "-o is missing",
    "--apply IN/good.json IN/two.csv -o IN/two.csv": "is also an input",
    "--apply IN/good.json IN/two.csv -o IN/good.json": "must end in",
    "--apply IN/good.json IN/two.csv -o IN/out.xlsx": "must end in",
    "--apply IN/good.json IN/two.csv -o IN/no/out.csv": "does not exist",
    "--apply IN/good.json IN/two.csv -o IN/out.csv --html IN/r.html": "--html applies to fitting",
    "--apply IN/good.json IN/two.csv -o IN/out.csv --method auto": "--method applies to fitting",
    "--apply IN/good.json IN/three.csv -o IN/out.csv": "3 classes, but",
    "--apply IN/good.json IN/names.csv -o IN/out.csv": "good.json has '0'",
    "--apply IN/good.json IN/two.csv -o IN/out.csv --positive yes": "--positive yes",
    "--apply IN/good.json IN/nope.csv -o IN/out.csv": "does not exist",
    "--apply IN/nope.json IN/two.csv -o IN/out.csv": "does not exist",
    "--apply IN IN/two.csv -o IN/out.csv": "is not a file",
    "--apply IN/two.csv IN/two.csv -o IN/out.csv": "is not a saved calibrator",
}


@pytest.mark.parametrize("words", APPLY)
def test_an_application_that_cannot_be(cli, files, words):
    assert APPLY[words] in refused(cli, files, words)


DAMAGE = {
    "newer": ({"format": 2}, "reads formats up to 1"),
    "no format": ({"format": None}, "format null"),
    "method": ({"method": "bogus"}, "'bogus'"),
    "one class": ({"classes": ["a"]}, "at least two names"),
    "a class twice": ({"classes": ["0", "1", "1"]}, "'classes'"),
    "no params": ({"params": None}, "no 'params'"),
    "empty params": ({"params": {}}, "incomplete or damaged"),
    "text": ({"params": {"temperature": "hot"}}, "incomplete or damaged"),
    "zero": ({"params": {"temperature": 0}}, "damaged"),
    "settings": ({"settings": {"bogus": 1}}, "incomplete or damaged"),
    "settings type": ({"settings": 5}, "incomplete or damaged"),
}


@pytest.mark.parametrize("case", DAMAGE)
def test_a_damaged_calibrator(cli, files, case):
    change, said = DAMAGE[case]
    (files / "bad.json").write_text(json.dumps({**SAVED, **change}))
    words = "--apply IN/bad.json IN/two.csv -o IN/out.csv"
    assert said in refused(cli, files, words)


@pytest.mark.parametrize(
    "content", ["", "{", "[]", "null", '{"format": NaN}', "[" * 90_000, "\xff"]
)
def test_a_calibrator_that_is_none(cli, files, content):
    (files / "bad.json").write_text(content, encoding="latin-1")
    message = refused(cli, files, "--apply IN/bad.json IN/two.csv -o IN/out.csv")
    assert_mentions(message, "bad.json", "saved calibrator")


def test_a_disk_that_fills_up_leaves_the_old_calibrator(cli, files, tmp_path, monkeypatch):
    def full(path, text, **options):
        path.write_bytes(b"half")
        raise OSError(28, "No space left on device")

    out = tmp_path / "c.json"
    out.write_text("old")
    monkeypatch.setattr(Path, "write_text", full)
    result = cli("calibrate", files / "two.csv", "-o", out, "--method", "temperature")
    assert_one_sentence(result)
    assert "No space left" in result.stderr
    assert out.read_text() == "old"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["c.json", "in"]


def test_out_of_memory_names_a_remedy_that_this_verb_has(cli, files, tmp_path, monkeypatch):
    def greedy(*args, **kwargs):
        raise MemoryError

    monkeypatch.setattr("calibrant.scores.read_scores", greedy)
    result = cli("calibrate", files / "two.csv", "-o", tmp_path / "c.json")
    assert_one_sentence(result)
    assert "fewer rows" in result.stderr
