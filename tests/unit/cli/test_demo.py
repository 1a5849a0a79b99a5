"""`calibrant demo`: one command from nothing to a report."""

import json

import pytest


def test_it_ends_with_where_the_report_is(cli, tmp_path):
    out = tmp_path / "new" / "demo"
    result = cli("demo", "--out", out)
    assert result.exit_code == 0
    assert result.stdout.lower().startswith("over-confident")
    assert "phone" in result.stdout
    assert result.stdout.rstrip().endswith(str(out / "report.html"))
    assert sorted(p.name for p in out.iterdir()) == ["ideal.csv", "report.html", "scores.csv"]


def test_json_names_groups_and_report(cli, tmp_path):
    found = json.loads(cli("demo", "--out", tmp_path, "--json").stdout)
    assert set(found["groups"]) == {"chat", "email", "phone"}
    assert found["report"] == str(tmp_path / "report.html")


def test_the_examples_of_the_help_work_on_it(cli, tmp_path):
    cli("demo", "--out", tmp_path)
    assert cli("evaluate", tmp_path / "scores.csv", "--group", "channel").exit_code == 0
    assert cli("compare", tmp_path / "scores.csv", tmp_path / "ideal.csv").exit_code == 0


@pytest.mark.parametrize("inside", ["", "deeper"])
def test_a_file_where_the_folder_should_be(cli, tmp_path, inside):
    (tmp_path / "taken").write_text("")
    result = cli("demo", "--out", tmp_path / "taken" / inside)
    assert result.exit_code == 2
    assert "--out" in result.stderr
    assert result.stderr.count("\n") == 1
