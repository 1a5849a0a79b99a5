"""How a command ends when it is our fault, interrupted, cut off, or merely asked for help."""

import json
import signal

import pytest


def fault(*args, **kwargs):
    raise ZeroDivisionError("kept for the log")


def test_our_fault_is_one_sentence_and_a_file(cli, scores, monkeypatch, tmp_path):
    monkeypatch.setattr("calibrant.metrics.evaluate", fault)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    result = cli("evaluate", scores)
    assert result.exit_code == 70
    assert result.stderr.count("\n") == 1
    assert "Traceback" not in result.stderr
    (log,) = tmp_path.glob("calibrant-*.log")
    assert str(log) in result.stderr
    assert "ZeroDivisionError: kept for the log" in log.read_text()


def test_our_fault_as_json_and_with_debug(cli, scores, monkeypatch, tmp_path):
    monkeypatch.setattr("calibrant.metrics.evaluate", fault)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    result = cli("evaluate", scores, "--json")
    assert result.exit_code == 70
    assert json.loads(result.stdout)["error"]["kind"] == "internal"
    debug = cli("evaluate", scores, "--debug")
    assert debug.exit_code == 70
    assert "Traceback" in debug.stderr
    assert len(list(tmp_path.glob("calibrant-*.log"))) == 1


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
def test_an_interruption_leaves_nothing_half_written(forked, scores, tmp_path, sign, code, says):
    process = forked("evaluate", scores, "--html", tmp_path / "report.html", code=SLOW)
    assert process.stderr.readline() == "writing\n"
    process.send_signal(sign)
    out, err = process.communicate(timeout=30)
    assert process.returncode == code
    assert (out, err) == ("", says)
    assert [p.name for p in tmp_path.iterdir()] == ["in"]


SWALLOWED = """
import os, signal, sys
import calibrant.scores
def deaf(*args, **kwargs):
    try:
        os.kill(os.getpid(), signal.SIGINT)
    except KeyboardInterrupt:
        pass
    return real(*args, **kwargs)
real, calibrant.scores.read_scores = calibrant.scores.read_scores, deaf
from calibrant.cli.main import run
run()
"""


def test_an_interruption_that_a_library_swallows_still_counts(forked, scores, tmp_path):
    process = forked("evaluate", scores, "--html", tmp_path / "report.html", code=SWALLOWED)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (130, "", "interrupted\n")
    assert not (tmp_path / "report.html").exists()


@pytest.mark.parametrize("words", [(), ("--json",)])
def test_a_reader_that_leaves_early_is_no_error(spawn, scores, words):
    process = spawn("evaluate", scores, *words)
    process.stdout.close()
    err = process.stderr.read()
    assert process.wait(timeout=60) == 0
    assert err == ""


@pytest.mark.parametrize("words", [(), ("--json",)])
def test_output_to_a_full_disk(spawn, scores, words):
    with open("/dev/full", "w") as full:
        process = spawn("evaluate", scores, *words, stdout=full)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 2
    assert err.count("\n") == 1
    assert "No space left" in err


CLOSED = """
import os, sys
gone, words = sys.argv[1], sys.argv[2:]
os.close({"stdout": 1, "stderr": 2}[gone])
os.execv(sys.executable, [sys.executable, "-m", "calibrant", *words])
"""


@pytest.mark.parametrize("words", [(), ("--json",)])
@pytest.mark.parametrize("gone", ["stdout", "stderr"])
@pytest.mark.parametrize("bad", [False, True])
def test_a_closed_stream_changes_no_exit_code(spawn, scores, tmp_path, words, gone, bad):
    if bad:
        scores.write_text("label,prob\n1,9\n")
    report = tmp_path / "report.html"
    process = spawn(gone, "evaluate", scores, "--html", report, *words, code=CLOSED)
    out, err = process.communicate(timeout=60)
    assert process.returncode == (2 if bad else 0)
    assert "Traceback" not in out + err
    assert report.exists() == (not bad)
    told_in = "stdout" if words else "stderr"
    assert (out if told_in == "stdout" else err).count("got 9") == (bad and gone != told_in)


HYGIENE = """
import sys
sys.modules["torch"] = None
from calibrant.cli.main import app
from typer.testing import CliRunner
result = CliRunner().invoke(app, sys.argv[1:])
heavy = {"plotly", "matplotlib", "pandas", "sklearn", "scipy", "numpy", "pyarrow"}
print(result.exit_code, "Example" in result.stdout, sorted(heavy & set(sys.modules)))
"""


@pytest.mark.parametrize("verb", ["evaluate", "compare", "demo", "doctor"])
def test_help_shows_an_example_and_imports_nothing_heavy(spawn, verb):
    out, err = spawn(verb, "--help", code=HYGIENE).communicate(timeout=60)
    assert out == "0 True []\n"
    assert err == ""


def test_evaluate_runs_without_torch(spawn, scores):
    code = "import sys; sys.modules['torch'] = None; from calibrant.cli.main import run; run()"
    process = spawn("evaluate", scores, "--json", code=code)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    assert json.loads(out)["n"] == 300


def test_the_progress_bar_stays_off_a_pipe(spawn, scores):
    process = spawn("evaluate", scores, "--stream")
    _, err = process.communicate(timeout=60)
    assert process.returncode == 0
    assert err == ""
