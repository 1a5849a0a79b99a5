"""`calibrant demo`: one command from nothing to a promise that is checked."""

import json
import subprocess
import sys

import pytest
from tests.sentences import assert_mentions

import calibrant

TINY = (("embedding", 8), ("hidden", 8), ("layers", 1))


@pytest.fixture
def small(monkeypatch):
    from calibrant.study.demo import DemoSize

    size = DemoSize(600, 400, 1000, epochs=1, network=TINY, candidates=("ce", "focal:gamma=1"))
    monkeypatch.setattr("calibrant.study.demo.DEMO", size)


def test_it_ends_with_a_table_a_bundle_and_a_report(cli, tmp_path, small):
    out = tmp_path / "new" / "demo"
    result = cli("demo", "--out", out)
    assert result.exit_code == 0, result.stderr
    assert "N-grams, focal, gamma 1" in result.stdout
    assert "1,000 fresh" in result.stdout
    assert_mentions(result.stdout, f"in {out / 'report.html'}")
    assert "known posterior" in result.stdout or "true" in result.stdout.lower()
    names = {"logs.csv", "golden.csv", "scores.csv", "ideal.csv", "report.html", "bundle"}
    assert names <= {path.name for path in out.iterdir()}
    assert calibrant.load_bundle(out / "bundle").decide is not None
    # The same command again trains nothing.
    found = json.loads(cli("demo", "--out", out, "--json").stdout)
    assert [each["loss"] for each in found["candidates"]] == ["ce", "ce", "focal:gamma=1"]
    assert found["truth"]["rows"] == 1000
    names = {"ngrams, ce", "bilstm, ce", "ngrams, focal:gamma=1"}
    assert set(found["truth"]["true_ce"]) == names
    assert len(found["operating_points"]) == 2
    assert found["report"] == str(out / "report.html")


def test_scores_alone_take_no_study(cli, tmp_path):
    result = cli("demo", "--scores", "--out", tmp_path)
    assert result.exit_code == 0
    assert sorted(p.name for p in tmp_path.iterdir()) == ["ideal.csv", "scores.csv"]
    told = json.loads(cli("demo", "--scores", "--out", tmp_path, "--json").stdout)
    assert told["files"] == [str(tmp_path / "scores.csv"), str(tmp_path / "ideal.csv")]


@pytest.mark.parametrize(
    ("words", "mentions"),
    [
        (("--seed", 2**32), ("--seed", "at most 4294967295")),
        (("--out", ""), ("--out is empty",)),
        (("--out", "taken"), ("taken", "report.html", "study")),
    ],
)
def test_what_a_study_would_refuse_is_refused_before_anything_is_written(
    cli, tmp_path, monkeypatch, words, mentions
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken/report.html").write_text("mine")
    result = cli("demo", *words)
    assert result.exit_code == 2
    assert_mentions(result.stderr, *mentions)
    assert [str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*")] == [
        "taken", "taken/report.html",
    ]  # fmt: skip


def test_the_examples_of_the_help_work_on_it(cli, tmp_path):
    cli("demo", "--scores", "--out", tmp_path)
    assert cli("evaluate", tmp_path / "scores.csv", "--group", "channel").exit_code == 0
    assert cli("compare", tmp_path / "scores.csv", tmp_path / "ideal.csv").exit_code == 0


def test_without_torch_it_names_what_is_missing(tmp_path):
    code = (
        "import sys\n"
        "class Without:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'torch': raise ModuleNotFoundError(name, name='torch')\n"
        "sys.meta_path.insert(0, Without())\n"
        "from calibrant.cli.main import run\n"
        "sys.argv = ['calibrant', 'demo', '--out', sys.argv[1]]\n"
        "run()\n"
    )
    command = [sys.executable, "-c", code, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
    assert done.returncode == 2, done.stderr
    assert "calibrant[torch]" in done.stderr
    assert "--scores" in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("inside", ["", "deeper"])
def test_a_file_where_the_folder_should_be(cli, tmp_path, inside):
    (tmp_path / "taken").write_text("")
    result = cli("demo", "--out", tmp_path / "taken" / inside)
    assert result.exit_code == 2
    assert "--out" in result.stderr
    assert result.stderr.count("\n") == 1
