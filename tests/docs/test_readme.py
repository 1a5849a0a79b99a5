"""The README is short and true: its blocks run, and print what it says they print."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", README, re.DOTALL)


def blocks(language):
    return [text for name, text in BLOCKS if name == language]


def run(words, folder):
    environment = {**os.environ, "MPLBACKEND": "Agg", "COLUMNS": "100"}
    return subprocess.run(
        words, cwd=folder, env=environment, capture_output=True, text=True, check=True
    ).stdout


def test_it_is_short():
    assert README.count("\n") <= 150


def test_the_python_blocks_run_and_print_what_they_say(tmp_path):
    code = "\n".join(blocks("python"))
    printed = run([sys.executable, "-c", code], tmp_path)
    assert printed == "".join(blocks("text"))


def test_the_shell_session_prints_what_it_says(tmp_path):
    session = blocks("console")[0]
    for part in session.split("$ ")[1:]:
        command, *expected = part.splitlines()
        words = shlex.split(command)
        assert words[0] == "calibrant"
        printed = run([sys.executable, "-m", *words], tmp_path).splitlines()
        for line in (line for line in expected if line != "..."):
            start = line.removesuffix("...")
            assert any(found.startswith(start) for found in printed), line
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
