"""`calibrant evaluate`: the same figures from every format, as text, JSON and page."""

import json

import numpy as np
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest
from tests.sentences import assert_mentions

from calibrant.data import write_example
from calibrant.metrics import evaluate

METRICS = {
    *("ece_ew", "ece_em", "mce", "ece_debiased", "ece_sweep_ew", "ece_sweep_em", "ece_classwise"),
    *("ece_smooth", "ks", "nll", "brier", "accuracy", "precision_macro", "recall_macro"),
    *("f1_macro", "auroc", "auprc", "aurc"),
}


def strict(text):
    """Parse JSON that must not hold NaN or Infinity."""

    def refuse(word):
        raise AssertionError(f"{word} in JSON")

    return json.loads(text, parse_constant=refuse)


@pytest.fixture(scope="module")
def example(tmp_path_factory):
    return write_example(tmp_path_factory.mktemp("example") / "scores.csv", n=600)


def test_json_has_the_stable_shape(cli, example):
    result = cli("evaluate", example, "--json")
    found = strict(result.stdout)
    assert result.exit_code == 0
    assert result.stderr == ""
    assert found["schema"] == 1
    assert found["n"] == 600
    assert found["target"] == "top-label"
    assert found["classes"][0] == "item_defective"
    assert set(found["metrics"]) >= METRICS
    for figure in found["metrics"].values():
        assert {"value", "low", "high", "floor", "definition"} <= set(figure)
    assert "over-confident" in found["verdict"]


def test_the_verdict_comes_first(cli, example):
    result = cli("evaluate", example)
    assert result.exit_code == 0
    assert result.stdout.lower().startswith("over-confident")
    assert "item_defective" in result.stdout


def test_every_format_gives_the_same_figures(cli, example, tmp_path):
    table = pacsv.read_csv(example)
    pq.write_table(table, tmp_path / "scores.parquet")
    lines = [json.dumps(row) for row in table.to_pylist()]
    (tmp_path / "scores.jsonl").write_text("\n".join(lines))
    columns = [name for name in table.column_names if name.startswith("prob_")]
    np.savez(
        tmp_path / "scores.npz",
        labels=table["label"].to_numpy(zero_copy_only=False).astype(str),
        probs=np.column_stack([table[name].to_numpy() for name in columns]),
        classes=[name.removeprefix("prob_") for name in columns],
    )
    folder = tmp_path / "parts"
    folder.mkdir()
    for i in range(3):
        pq.write_table(table.slice(200 * i, 200), folder / f"{i}.parquet")
    files = [tmp_path / f"scores.{ending}" for ending in ("parquet", "jsonl", "npz")]
    parts = sorted(folder.iterdir())
    expected = strict(cli("evaluate", example, "--json").stdout)
    for words in (*([file] for file in files), [folder], [f"{folder}/*.parquet"], parts):
        assert strict(cli("evaluate", *words, "--json").stdout) == expected


def test_it_gives_what_the_library_gives(cli, scores):
    columns = pacsv.read_csv(scores)
    direct = evaluate(columns["label"].to_numpy(), columns["prob"].to_numpy(), n_bins=10, rng=3)
    found = strict(cli("evaluate", scores, "--json", "--bins", 10, "--seed", 3).stdout)
    assert found["metrics"] == direct.to_dict()["metrics"]
    assert found["target"] == "positive"


def test_groups_each_get_a_verdict(cli, scores):
    found = strict(cli("evaluate", scores, "--json", "--group", "place").stdout)
    assert set(found["groups"]) == {"north", "south"}
    assert sum(group["n"] for group in found["groups"].values()) == 300
    assert "north" in cli("evaluate", scores, "--group", "place").stdout


def test_the_report_is_written_and_its_place_told(cli, scores, tmp_path):
    report = tmp_path / "report.html"
    result = cli("evaluate", scores, "--html", report)
    assert result.exit_code == 0
    assert result.stdout.rstrip().endswith(str(report))
    assert "<html" in report.read_text(encoding="utf-8")
    assert report.stat().st_mode & 0o444 == 0o444
    found = strict(cli("evaluate", scores, "--html", report, "--json").stdout)
    assert found["report"] == str(report)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["in", "report.html"]


def test_a_stream_prints_the_same_keys(cli, scores):
    whole = strict(cli("evaluate", scores, "--json").stdout)
    stream = strict(cli("evaluate", scores, "--json", "--stream").stdout)
    assert set(stream["metrics"]) == set(whole["metrics"])
    assert stream["classes"] == whole["classes"]
    assert stream["metrics"]["accuracy"]["value"] == whole["metrics"]["accuracy"]["value"]
    for figure in stream["metrics"].values():
        assert figure["value"] is not None or figure["why"]


def test_many_rows_are_streamed_unless_told_otherwise(cli, scores, monkeypatch):
    monkeypatch.setattr("calibrant.cli.verbs.evaluate.MOST_IN_MEMORY", 100)
    missing = strict(cli("evaluate", scores, "--json").stdout)["metrics"]["ece_sweep_em"]
    assert missing["value"] is None
    whole = strict(cli("evaluate", scores, "--json", "--no-stream").stdout)
    assert whole["metrics"]["ece_sweep_em"]["value"] is not None


def test_weights_reach_both_paths(cli, scores):
    lines = scores.read_text().splitlines()
    lines = [f"{line},{'weight' if i == 0 else 1 + i % 3}" for i, line in enumerate(lines)]
    scores.write_text("\n".join(lines))
    for words in ((), ("--stream",)):
        found = strict(cli("evaluate", scores, "--json", *words).stdout)
        assert found["weighted"] is True


@pytest.mark.parametrize("how", [(), ("--stream",)])
def test_one_class_only_is_refused(cli, tmp_path, how):
    file = tmp_path / "scores.csv"
    file.write_text("label,prob\n" + "1,0.5\n1,0.75\n" * 10)
    result = cli("evaluate", file, *how)
    assert result.exit_code == 2
    assert_mentions(result.stderr, "all 20 labels", "'1'", "two classes")


def test_positive_is_noted(cli, tmp_path):
    file = tmp_path / "scores.csv"
    file.write_text("label,prob_yes,prob_no\n" + "yes,0.75,0.25\nno,0.5,0.5\n" * 10)
    second = strict(cli("evaluate", file, "--json").stdout)
    first = strict(cli("evaluate", file, "--json", "--positive", "yes").stdout)
    assert second["classes"] == ["yes", "no"]
    assert first["classes"] == ["no", "yes"]
    assert "'no'" in second["notes"][0]
    assert "'yes'" in first["notes"][0]


def test_settings_come_from_flags_then_from_the_environment(cli, scores):
    env = {"CALIBRANT_BINS": "7", "CALIBRANT_JSON": "1"}
    found = strict(cli("evaluate", scores, env=env).stdout)
    assert "7 bins" in found["metrics"]["ece_ew"]["definition"]
    found = strict(cli("evaluate", scores, "--bins", 9, env=env).stdout)
    assert "9 bins" in found["metrics"]["ece_ew"]["definition"]
    failed = cli("evaluate", "nope.csv", env=env)
    assert "error" in strict(failed.stdout)


def test_class_names_that_look_like_markup_are_printed_as_they_are(cli, tmp_path):
    file = tmp_path / "scores.csv"
    file.write_text("label,prob_[bold]x,prob_<b>\n" + "[bold]x,0.75,0.25\n<b>,0.5,0.5\n" * 10)
    result = cli("evaluate", file)
    assert result.exit_code == 0
    assert "[bold]x" in result.stdout


def test_same_seed_same_bytes(cli, scores):
    assert cli("evaluate", scores, "--json").stdout == cli("evaluate", scores, "--json").stdout


@pytest.mark.parametrize("how", [(), ("--stream",)])
def test_a_positive_class_that_never_occurs_is_refused(cli, tmp_path, how):
    (tmp_path / "s.csv").write_text("label,prob\n" + "yes,0.3\n" * 9)
    result = cli("evaluate", tmp_path / "s.csv", "--positive", "yess", *how)
    assert result.exit_code == 2
    assert "all 9 labels are 'yes'" in result.stderr
