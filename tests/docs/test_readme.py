"""The README is short and true: its blocks run, and print what it says they print."""

import json
import os
import re
import shlex
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from calibrant.data import return_reasons

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", README, re.DOTALL)


def blocks(language):
    return [text for name, text in BLOCKS if name == language]


def session_with(command):
    """Return the console block that contains a command."""
    (session,) = [text for text in blocks("console") if command in text]
    return session


def run(words, folder, *, due=(0,), **variables):
    environment = {**os.environ, "MPLBACKEND": "Agg", "COLUMNS": "100", **variables}
    done = subprocess.run(
        words, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode in due, done.stderr
    return done.stdout


def run_session(session, folder, **options):
    """Run the commands of a console block; each prints the lines that stand below it."""
    for part in session.replace("\\\n", "").split("$ ")[1:]:
        command, *expected = part.splitlines()
        words = shlex.split(command)
        assert words[0] == "calibrant"
        printed = run([sys.executable, "-m", *words], folder, **options).splitlines()
        for line in (line for line in expected if line != "..."):
            start = line.removesuffix("...")
            assert any(found.startswith(start) for found in printed), line


def test_it_is_short():
    assert README.count("\n") <= 150


def test_the_python_blocks_run_and_print_what_they_say(tmp_path):
    code = "\n".join(blocks("python"))
    printed = run([sys.executable, "-c", code], tmp_path)
    assert printed == "".join(blocks("text"))


def test_labelled_rows_become_decisions(tmp_path):
    return_reasons.draw(500, source="logs").write(tmp_path / "tickets.csv")
    for name, seed in (("golden.csv", 0), ("new.csv", 1)):
        return_reasons.draw(200, source="golden", seed=seed).write(tmp_path / name)
    # So few rows take seconds, and promise nothing: train then ends with code 1.
    small = {"CALIBRANT_JOBS": "1", "CALIBRANT_PACK_ANYWAY": "1"}
    run_session(session_with("calibrant train"), tmp_path, due=(0, 1), **small)
    assert (tmp_path / "runs/tickets/report.html").exists()
    assert (tmp_path / "decided.csv").read_text(encoding="utf-8").count("\n") == 201
    ask_service(tmp_path, "runs/tickets/bundle")


def ask_service(folder, bundle):
    """Start the service of the README on a bundle and ask what it asks; the answer looks alike."""
    (block,) = [text for text in blocks("sh") if "calibrant serve" in text]
    command, curl, shown = block.splitlines()
    verb, asked = shlex.split(command)[:2], shlex.split(curl)
    words = [sys.executable, "-m", *verb, bundle, "--port", "0", "--json"]
    with subprocess.Popen(words, cwd=folder, stdout=subprocess.PIPE, text=True) as service:
        told = json.loads("".join(iter(service.stdout.readline, "}\n")) + "}")
        address = asked[1].replace("localhost:8000", told["url"])
        body = asked[asked.index("--json") + 1].encode()
        request = urllib.request.Request(address, body, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=60) as found:
            answer = json.loads(found.read())
        service.terminate()
    assert service.returncode == 0
    names = re.findall(r'"(\w+)":', shown)
    assert names[0] in answer
    assert set(names[1:]) <= set(answer["predictions"][0])


def test_the_session_with_scores_prints_what_it_says(tmp_path):
    run_session(session_with("calibrant evaluate"), tmp_path)
    assert (tmp_path / "report.html").exists()


def test_the_make_targets_exist():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in re.findall(r"make (\w+)", README):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


@pytest.mark.parametrize("target", re.findall(r"\]\((?!http)([^)#]+)\)", README))
def test_links_lead_somewhere(target):
    assert (ROOT / target).exists()


@pytest.mark.parametrize("path", re.findall(r"`(tests/[\w/.]+|src/[\w/.]+)`", README))
def test_named_paths_exist(path):
    assert (ROOT / path).exists()


def test_ci_runs_the_test_command_of_the_readme():
    assert "make test" in (ROOT / ".ci" / "run").read_text(encoding="utf-8")


def test_the_minimum_python_is_said_once_and_the_same():
    pyproject = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    (minimum,) = re.findall(r'requires-python = ">=([\d.]+)"', pyproject)
    assert f"Python {minimum} or newer" in README
