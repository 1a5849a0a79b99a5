"""`calibrant threshold` and `decide` misused: one sentence, exit 2, and nothing left behind."""

import json
import shlex
import signal
from pathlib import Path

import numpy as np
import pytest
from tests.few_draws import few_draws
from tests.sentences import assert_mentions
from typer.testing import CliRunner

from calibrant.cli.main import app

ROWS = "1,0.9\n0,0.2\n1,0.8\n0,0.3\n1,0.7\n0,0.6\n" * 50
TWO = f"label,prob\n{ROWS}"
THREE = "label,prob_a,prob_b,prob_c\n" + "a,.8,.1,.1\nb,.1,.8,.1\nc,.1,.1,.8\na,.4,.5,.1\n" * 60
HOLD = ("--hold", "precision>=0.6")


def assert_one_sentence(result):
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    assert result.stderr.startswith("error: ")
    assert result.stderr.count("\n") == 1
    assert result.stderr.endswith(".\n")
    assert "Traceback" not in result.output
    assert "Warning" not in result.output


@pytest.fixture(scope="module")
def point_of_two(tmp_path_factory):
    """Choose a point once, for all tests."""
    folder = tmp_path_factory.mktemp("two")
    (folder / "two.csv").write_text(TWO)
    words = ["threshold", str(folder / "two.csv"), *HOLD, "-o", str(folder / "p.json")]
    with few_draws():
        assert CliRunner().invoke(app, words).exit_code == 0
    return (folder / "p.json").read_text()


@pytest.fixture
def files(point_of_two, tmp_path):
    """Score files, a calibrator and a point in a folder of their own."""
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "two.csv").write_text(TWO)
    (folder / "three.csv").write_text(THREE)
    (folder / "names.csv").write_text("label,prob_x,prob_y\n" + "x,.5,.5\ny,.4,.6\n" * 40)
    (folder / "taken.csv").write_text("prob,decision\n0.5,yes\n")
    calibrator = {"format": 1, "method": "temperature", "classes": ["0", "1"],
                  "params": {"temperature": 2.0}}  # fmt: skip
    (folder / "c.json").write_text(json.dumps(calibrator))
    (folder / "abc.json").write_text(json.dumps({**calibrator, "classes": ["a", "b", "z"]}))
    (folder / "p.json").write_text(point_of_two)
    return folder


def refused(cli, folder, verb, words):
    """Run a command, expect a refusal that changes no file, and return the sentence."""
    before = {p: p.read_bytes() for p in folder.parent.rglob("*") if p.is_file()}
    named = [word.replace("IN", str(folder)) for word in shlex.split(words)]
    assert_one_sentence(cli(verb, *named))
    as_json = cli(verb, *named, "--json")
    assert as_json.exit_code == 2
    error = json.loads(as_json.stdout)["error"]
    assert error["kind"] in ("input", "usage", "split_misuse")
    assert {p: p.read_bytes() for p in folder.parent.rglob("*") if p.is_file()} == before
    return error["message"]


OUT = "-o IN/new.json"
H = "--hold 'precision>=0.6'"
CHOICES = {
    # targets
    f"IN/two.csv --hold 'precision>=85' {OUT}": "85 percent is 0.85",
    f"IN/two.csv --hold 'precision>=1' {OUT}": "strictly between 0 and 1",
    f"IN/two.csv --hold 'precision>=0' {OUT}": "strictly between 0 and 1",
    f"IN/two.csv --hold 'precision>=-0.5' {OUT}": "strictly between 0 and 1",
    f"IN/two.csv --hold 'precision>=nan' {OUT}": "strictly between 0 and 1",
    f"IN/two.csv --hold 'precision>=85%' {OUT}": "'85%' is no",
    f"IN/two.csv --hold 'exactness>=0.8' {OUT}": "no rate 'exactness'",
    f"IN/two.csv --hold precision {OUT}": "the shell interprets >=",
    f"IN/two.csv --hold 'precision>0.8' {OUT}": "is not a target",
    f"IN/two.csv --hold '' {OUT}": "is not a target",
    f"IN/two.csv --hold 'precision>=0.9' --hold 'precision<=0.5' {OUT}": "contradict",
    f"IN/two.csv --hold 'precision>=0.9' --hold 'false_discovery>=0.5' {OUT}": "contradict",
    f"IN/two.csv --hold 'precision>=0.9' --hold 'precision>=0.8' {OUT}": "are the same condition",
    f"IN/two.csv --hold 'accuracy>=0.6' --hold 'recall>=0.6' {OUT}": "accuracy",
    f"IN/two.csv {OUT}": "--hold is missing",
    f"IN/two.csv --maximise recall {OUT}": "--hold is missing",
    # objectives
    f"IN/two.csv {H} --maximise precision {OUT}": "cannot be maximised",
    f"IN/two.csv {H} --maximise recoll {OUT}": "did you mean 'recall'?",
    f"IN/two.csv {H} --maximise cost {OUT}": "--minimise cost",
    f"IN/two.csv {H} --maximise fpr {OUT}": "it should be small",
    f"IN/two.csv {H} --minimise recall {OUT}": "it should be large",
    f"IN/two.csv {H} --maximise recall --minimise fpr {OUT}": "give one of them",
    f"IN/two.csv --minimise cost {OUT}": "add --cost fp=1,fn=5",
    f"IN/two.csv --cost fp=1 {OUT}": "missing a positive row",
    f"IN/two.csv --cost fp=1,fn=-1 {OUT}": "between 0 and",
    f"IN/two.csv --cost fp=1,fn=1,tp=2 {OUT}": "must cost more",
    f"IN/two.csv --cost fp=1,fn=5 {H} --maximise recall {OUT}": "is not used",
    f"IN/two.csv --hold 'cost<=0.3' {OUT}": "add --cost fp=1,fn=5",
    f"IN/two.csv --hold 'cost<=9' --cost fp=1,fn=5 {OUT}": "between the smallest and the largest",
    f"IN/two.csv --hold 'cost>=0.3' --cost fp=1,fn=5 {OUT}": "upper limit",
    f"IN/two.csv --hold 'cost<=x' --cost fp=1,fn=5 {OUT}": "'x' is not a number",
    # confidence and provenance
    f"IN/two.csv {H} --confidence 95 {OUT}": "--confidence must lie between 0 and 1",
    f"IN/two.csv {H} --confidence high {OUT}": "or be none",
    f"IN/two.csv {H} --candidates 0 {OUT}": "--candidates",
    f"IN/two.csv {H} --fitted-here {OUT}": "name it with --calibrator",
    # classes
    f"IN/two.csv --hold 'spam: precision>=0.6' {OUT}": "'spam' is not a class of",
    f"IN/three.csv --hold 'aa: precision>=0.6' {OUT}": "did you mean 'a'?",
    f"IN/three.csv {H} {OUT}": "has 3 classes: name the one to act on",
    f"IN/three.csv --cost fp=1,fn=2 {OUT}": "--positive a",
    f"IN/three.csv {H} --positive z {OUT}": "--positive z: 'z' is not a class",
    f"IN/three.csv --hold 'a: precision>=0.6' --positive b {OUT}": "name different classes",
    f"IN/three.csv --hold 'a: precision>=0.6' {H} {OUT}": "names no class",
    f"IN/three.csv --hold 'a: accuracy>=0.6' {OUT}": "leave the class out",
    # bands
    f"IN/two.csv --act 'precision>=0.6' {OUT}": "--clear is missing",
    f"IN/two.csv --clear 'npv>=0.6' {OUT}": "--act is missing",
    f"IN/two.csv --act 'precision>=0.6' --clear 'npv>=0.6' {H} {OUT}": "--hold cannot be combined",
    f"IN/two.csv --act 'recall>=0.6' --clear 'npv>=0.6' {OUT}": "rows on that side",
    f"IN/three.csv --act 'a: precision>=0.6' --clear 'b: npv>=0.6' {OUT}": "a band has one class",
    f"IN/three.csv --act 'precision>=0.6' --clear 'npv>=0.6' {OUT}": "--act 'a: precision>=0.6'",
    # files
    f"IN/two.csv {H}": "-o is missing",
    f"IN/two.csv {H} -o IN/two.csv": "ending in .json",
    f"IN/two.csv {H} -o IN/no/p.json": "does not exist",
    f"IN/two.csv {H} -o IN": "is a folder",
    f"IN/two.csv {H} -o /dev/null": "device",
    f"IN/two.csv {H} {OUT} --html IN/new.json": "--html",
    f"IN/two.csv {H} {OUT} --html IN/two.csv": "--html",
    f"IN/two.csv {H} {OUT} --html IN/no/r.html": "does not exist",
    f"IN/two.csv {H} --calibrator IN/c.json -o IN/c.json": "is also an input",
    f"IN/two.csv {H} --calibrator IN/no.json {OUT}": "--calibrator",
    f"IN/two.csv {H} --calibrator IN/p.json {OUT}": "is a point, not a calibrator",
    f"IN/three.csv --hold 'a: recall>=0.5' --calibrator IN/c.json {OUT}": "3 classes",
    f"IN/three.csv --hold 'a: recall>=0.5' --calibrator IN/abc.json {OUT}": "abc.json has 'z'",
    f"IN/no.csv {H} {OUT}": "does not exist",
    f"IN/two.csv {H} --label truth {OUT}": "no label column 'truth'",
}  # fmt: skip


@pytest.mark.parametrize("words", CHOICES)
def test_a_choice_that_cannot_be(cli, files, words):
    assert CHOICES[words] in refused(cli, files, "threshold", words)


LATE = (
    "contradict",
    "are the same condition",
    "cannot be maximised",
    "that side",
    "accuracy",
    "spam",
)
EARLY = [w for w in CHOICES if "three" not in w and not any(x in CHOICES[w] for x in LATE)]


@pytest.mark.parametrize("words", EARLY)
def test_nothing_is_read_before_options_and_outputs_are_checked(cli, files, words, monkeypatch):
    monkeypatch.setattr(
        "calibrant.workflows.point_rows.read_scores", None
    )  # would be our fault: 70
    refused(cli, files, "threshold", words)


FILES = {
    "empty": ("", "is empty"),
    "no rows": ("label,prob\n", "no rows"),
    "nan": ("label,prob\n1,0.5\n0,nan\n", "data row 2, column 'prob'"),
    "no label": ("truth,prob\n1,0.5\n", "no label column 'label'"),
    "no scores": ("label,score\n1,0.5\n", "no score columns"),
    "missing label": ("label,prob\n1,0.5\n,0.5\n", "data row 2, column 'label'"),
    "names": ("label,prob\nyes,0.5\nno,0.4\n", "--positive"),
    "no positives": ("label,prob\n" + "0,0.5\n0,0.1\n" * 30, "no row has the label '1'"),
    "no negatives": ("label,prob\n" + "1,0.5\n1,0.1\n" * 30, "all rows have the label '1'"),
    "small weights": ("label,prob,weight\n" + "1,0.9,0.5\n0,0.1,1\n" * 30, "at least 1, got 0.5"),
    "one heavy row": ("label,prob,weight\n1,0.9,1e9\n" + "1,.9,1\n0,.1,1\n" * 30, "of all weight"),
    "infinite weight": ("label,prob,weight\n1,0.5,inf\n0,0.4,1\n", "column 'weight'"),
}


@pytest.mark.parametrize("case", FILES)
@pytest.mark.parametrize("words", [HOLD, ("--act", "precision>=0.6", "--clear", "npv>=0.6")])
def test_bad_score_files(cli, tmp_path, case, words):
    content, said = FILES[case]
    file = tmp_path / "s.csv"
    file.write_text(content)
    result = cli("threshold", file, *words, "-o", tmp_path / "p.json")
    assert_one_sentence(result)
    assert said in result.stderr
    assert [p.name for p in tmp_path.iterdir()] == ["s.csv"]


@pytest.mark.parametrize(
    ("rows", "limit", "mentions"),
    [
        ("label,prob\n" + "1,0.9\n0,0.1\n" * 30, "3", ("without weights",)),
        ("label,prob,weight\n" + "1,0.9,5\n0,0.1,1\n" * 30, "3", ("got 3", "row weighs 5")),
    ],
)
def test_a_largest_weight_that_cannot_be_is_refused_by_its_flag(
    cli, tmp_path, rows, limit, mentions
):
    (tmp_path / "s.csv").write_text(rows)
    words = (*HOLD, "--largest-weight", limit, "-o", tmp_path / "p.json")
    result = cli("threshold", tmp_path / "s.csv", *words)
    assert_one_sentence(result)
    assert "--largest-weight" in result.stderr
    assert_mentions(result.stderr, *mentions)


def test_too_few_rows_is_an_answer(cli, tmp_path):
    (tmp_path / "s.csv").write_text("label,prob\n" + "1,0.9\n0,0.1\n" * 5)
    result = cli("threshold", tmp_path / "s.csv", *HOLD, "-o", tmp_path / "p.json", "--json")
    assert result.exit_code == 1
    found = json.loads(result.stdout)
    assert found["reached"] is False
    assert (found["n"], found["positives"]) == (10, 5)
    assert not (tmp_path / "p.json").exists()


def test_no_confidence_and_still_out_of_reach(cli, tmp_path):
    rng = np.random.default_rng(0)
    rows = (f"{y},{p:.3f}" for y, p in zip(rng.integers(0, 2, 300), rng.random(300), strict=True))
    (tmp_path / "s.csv").write_text("label,prob\n" + "\n".join(rows))
    words = ("--hold", "precision>=0.9", "--hold", "recall>=0.9", "--confidence", "none")
    result = cli("threshold", tmp_path / "s.csv", *words, "-o", tmp_path / "p.json")
    assert result.exit_code == 1
    assert "confidence" not in result.stdout
    assert_mentions(result.stdout, "target", "less")


DECISIONS = {
    "IN/two.csv": "--point is missing",
    "IN/two.csv --point IN/no.json": "--point",
    "IN/two.csv --point IN": "is not a file",
    "IN/two.csv --point IN/two.csv": "not a saved point",
    "IN/two.csv --point IN/c.json": "is a calibrator, not a point",
    "IN/two.csv --point IN/p.json -o IN/two.csv": "is also an input",
    "IN/two.csv --point IN/p.json -o IN/p.json": "must end in",
    "IN/two.csv --point IN/p.json -o IN/d.xlsx": "must end in",
    "IN/two.csv --point IN/p.json -o IN/no/d.csv": "does not exist",
    "IN/three.csv --point IN/p.json": "3 classes, but",
    "IN/names.csv --point IN/p.json": "p.json has '0'",
    "IN/two.csv --point IN/p.json --positive yes": "--positive yes",
    "IN/two.csv --point IN/p.json --check": "did not choose the point",
    "IN/taken.csv --point IN/p.json -o IN/d.csv": "already has a column 'decision'",
    "IN/no.csv --point IN/p.json": "does not exist",
}


@pytest.mark.parametrize("words", DECISIONS)
def test_a_decision_that_cannot_be(cli, files, words):
    assert DECISIONS[words] in refused(cli, files, "decide", words)


DAMAGE = {
    "newer": ({"format": 2}, "reads formats up to 1"),
    "no format": ({"format": None}, "format null"),
    "true format": ({"format": True}, "format true"),
    "no threshold": ({"threshold": None}, "damaged"),
    "text": ({"threshold": "high"}, "damaged"),
    "beyond": ({"threshold": 1.5}, "damaged"),
    "on": ({"on": "scores"}, "damaged"),
    "class": ({"class": "spam"}, "damaged"),
    "classes": ({"classes": ["0"]}, "damaged"),
    "classes type": ({"classes": 5}, "damaged"),
    "hold": ({"hold": ["precision"]}, "precision"),
    "rates": ({"rates": 3}, "damaged"),
    "confidence": ({"confidence": 95}, "damaged"),
    "calibrator": ({"calibrator": {"format": 1}}, "calibrator"),
    "calibrator type": ({"calibrator": 5}, "calibrator"),
    "its classes": ({"calibrator": {"format": 1, "method": "temperature", "classes": ["x", "y"],
                                    "params": {"temperature": 1}}}, "'x'"),
    "unreached": ({"reached": False}, "contains no threshold"),
}  # fmt: skip


@pytest.mark.parametrize("case", DAMAGE)
def test_a_damaged_point(cli, files, case):
    change, said = DAMAGE[case]
    whole = {**json.loads((files / "p.json").read_text()), **change}
    (files / "bad.json").write_text(json.dumps(whole))
    assert said in refused(cli, files, "decide", "IN/two.csv --point IN/bad.json")


@pytest.mark.parametrize("lost", ["threshold", "classes", "class", "logit", "on", "hold", "rates"])
def test_a_point_that_lost_a_part(cli, files, lost):
    whole = json.loads((files / "p.json").read_text())
    del whole[lost]
    (files / "bad.json").write_text(json.dumps(whole))
    assert "bad.json" in refused(cli, files, "decide", "IN/two.csv --point IN/bad.json")


SHAPES = {
    "points": {"points": 5},
    "no points": {"points": []},
    "points of text": {"points": ["a"], "unreachable": [], "confidence": 0.9, "flagged_twice": 0},
    "points alone": {"points": [{}]},
    "upper": {"upper": {}},
    "upper type": {"upper": 3, "lower": 4, "confidence": 0.9, "automated": 0.5},
    "list": [1],
    "other": {"name": "something else"},
}


@pytest.mark.parametrize("case", SHAPES)
def test_what_looks_like_several_points_or_a_band(cli, files, case):
    shape = SHAPES[case]
    content = {"format": 1, **shape} if isinstance(shape, dict) else shape
    (files / "bad.json").write_text(json.dumps(content))
    assert "bad.json" in refused(cli, files, "decide", "IN/two.csv --point IN/bad.json")


@pytest.mark.parametrize("content", ["", "{", "null", '{"format": NaN}', "[" * 90_000, "\xff"])
def test_a_point_that_is_none(cli, files, content):
    (files / "bad.json").write_text(content, encoding="latin-1")
    message = refused(cli, files, "decide", "IN/two.csv --point IN/bad.json")
    assert_mentions(message, "bad.json", "saved point")


def test_a_calibrator_that_computes_nonsense(cli, files, monkeypatch):
    def broken(self, logits):
        return np.full(logits.shape, np.nan)

    monkeypatch.setattr("calibrant.calibrators.TemperatureScaling.predict_log_proba", broken)
    words = f"IN/two.csv {H} --calibrator IN/c.json {OUT}"
    assert_mentions(refused(cli, files, "threshold", words), "NaN", "data row 1")


def test_a_disk_that_fills_up_leaves_the_old_point(cli, files, tmp_path, monkeypatch):
    def full(path, text, **options):
        path.write_bytes(b"half")
        raise OSError(28, "No space left on device")

    out = tmp_path / "p.json"
    out.write_text("old")
    monkeypatch.setattr(Path, "write_text", full)
    result = cli("threshold", files / "two.csv", *HOLD, "-o", out)
    assert_one_sentence(result)
    assert "No space left" in result.stderr
    assert out.read_text() == "old"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["in", "p.json"]


SLOW = """
import sys, time
from pathlib import Path
def slow(path, text, **options):
    open(path, "w").write("half")
    print("writing", file=sys.stderr, flush=True)
    for _ in range(1200): time.sleep(0.05)  # a signal just before one long sleep would be lost
Path.write_text = slow
from calibrant.cli.main import run
sys.argv = ["calibrant", *sys.argv[1:]]
run()
"""


@pytest.mark.parametrize(
    ("sign", "code", "says"), [(signal.SIGINT, 130, "interrupted\n"), (signal.SIGTERM, 143, "")]
)
def test_an_interruption_leaves_nothing_half_written(forked, files, tmp_path, sign, code, says):
    process = forked("threshold", files / "two.csv", *HOLD, "-o", tmp_path / "p.json", code=SLOW)
    assert process.stderr.readline() == "writing\n"
    process.send_signal(sign)
    out, err = process.communicate(timeout=30)
    assert (process.returncode, out, err) == (code, "", says)
    assert [p.name for p in tmp_path.iterdir()] == ["in"]


def test_out_of_memory_names_a_remedy_that_this_verb_has(cli, files, tmp_path, monkeypatch):
    def greedy(*args, **kwargs):
        raise MemoryError

    monkeypatch.setattr("calibrant.workflows.point_rows.read_scores", greedy)
    result = cli("threshold", files / "two.csv", *HOLD, "-o", tmp_path / "p.json")
    assert_one_sentence(result)
    assert "fewer rows" in result.stderr
