"""`calibrant calibrate`: what is fitted, how it is judged, and what is printed and saved."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest
from tests.sentences import assert_mentions

from calibrant.calibrators import TemperatureScaling, from_dict
from calibrant.cli.verbs.calibrate import parse_method, split_method
from calibrant.data import write_example
from calibrant.errors import InputError
from calibrant.scores import read_scores
from calibrant.workflows import judge_calibrator as judging

KEYS = {"chosen", "candidates", "before", "after", "out", "verdict", "differences", "calibrator"}


def strict(text):
    """Parse JSON that must not hold NaN or Infinity."""

    def refuse(word):
        raise AssertionError(f"{word} in JSON")

    return json.loads(text, parse_constant=refuse)


@pytest.fixture(scope="module")
def example(tmp_path_factory):
    return write_example(tmp_path_factory.mktemp("example") / "scores.csv", n=400)


@pytest.fixture
def fit(cli, tmp_path):
    """Fit on a file and return what --json prints."""

    def run(file, *words, method="temperature"):
        out = tmp_path / "calibrator.json"
        result = cli("calibrate", file, "-o", out, "--json", "--method", method, *words)
        assert result.exit_code == 0, result.output
        assert result.stderr == ""
        return strict(result.stdout)

    return run


def test_the_file_holds_what_the_library_fits(fit, example, tmp_path):
    found = fit(example)
    saved = strict((tmp_path / "calibrator.json").read_text(encoding="utf-8"))
    scores = read_scores(example, logits=True)
    direct = TemperatureScaling().fit(scores.logits, scores.labels)
    assert saved["params"] == {"temperature": direct.temperature_}
    assert saved["classes"] == list(scores.classes)
    assert (saved["format"], saved["method"]) == (1, "temperature")
    assert found["calibrator"] == saved
    assert found["out"] == str(tmp_path / "calibrator.json")
    assert from_dict(saved).predict_proba(scores.logits).shape == (400, 5)


def test_json_has_the_stable_shape(fit, example):
    found = fit(example)
    assert set(found) >= KEYS
    assert found["chosen"] == "temperature"
    assert [c["method"] for c in found["candidates"]] == ["identity", "temperature"]
    for side in ("before", "after"):
        assert {"nll", "brier", "ece_em", "ece_ew", "ece_debiased"} <= set(found[side])
        assert found[side]["metrics"]["nll"]["value"] == found[side]["nll"]
    assert found["after"]["nll"] < found["before"]["nll"]
    assert found["state"] == "better"
    assert found["judged"]["folds"] == 5


def test_before_is_what_evaluate_finds(cli, fit, example):
    whole = strict(cli("evaluate", example, "--json").stdout)
    assert fit(example)["before"]["metrics"] == whole["metrics"]


def test_the_verdict_comes_first_and_the_file_last(cli, example, tmp_path):
    out = tmp_path / "calibrator.json"
    result = cli("calibrate", example, "-o", out, "--method", "temperature")
    assert_mentions(result.stdout.splitlines()[0], "temperature", "better")
    assert_mentions(result.stdout, "cross-fitting", "5 folds")
    assert f"is in {out}" in result.stdout
    assert f"--apply {out} OTHER" in result.stdout
    assert sorted(p.name for p in tmp_path.iterdir()) == ["calibrator.json"]


def test_rows_are_judged_by_calibrators_that_did_not_see_them(fit, tmp_path):
    """Isotonic regression fits the noise of a calibrated model: only unseen rows show no gain."""
    rng = np.random.default_rng(0)
    probs = rng.uniform(0.3, 0.7, 300)
    labels = (rng.random(300) < probs).astype(int)
    pq.write_table(pa.table({"label": labels, "prob": probs}), tmp_path / "noise.parquet")
    found = fit(tmp_path / "noise.parquet", method="isotonic")
    own = from_dict(found["calibrator"]).predict_proba(np.log(probs / (1 - probs)))
    seen = -np.mean(np.log(np.where(labels, own, 1 - own)))
    assert seen < found["before"]["nll"]
    assert found["after"]["nll"] > seen
    assert found["state"] != "better"


def test_auto_chooses_and_shows_what_it_tried(fit, cli, example, tmp_path):
    found = fit(example, method="auto")
    assert found["asked"] == "auto"
    assert found["chosen"] == found["calibrator"]["method"] != "auto"
    names = [c["method"] for c in found["candidates"]]
    assert names[:2] == ["identity", "temperature"]
    assert all("nll" in c and "ece_em" in c for c in found["candidates"])
    plain = cli("calibrate", example, "-o", tmp_path / "c.json")
    assert_mentions(plain.stdout, "chosen", "fitted", "without it")
    for name in names:
        assert name in plain.stdout


def test_a_model_that_is_right_keeps_its_probabilities(fit, cli, tmp_path):
    ideal = write_example(tmp_path / "ideal.csv", n=400, ideal=True)
    found = fit(ideal, method="auto")
    assert (found["chosen"], found["state"]) == ("identity", "same")
    assert found["before"]["nll"] == found["after"]["nll"]
    said = cli("calibrate", ideal, "-o", tmp_path / "c.json").stdout
    assert_mentions(said, "no method", "clearly better")
    assert "holds the identity" in " ".join(said.split())


def test_other_rows_may_judge(fit, example, tmp_path):
    other = write_example(tmp_path / "other.csv", n=500, seed=7)
    found = fit(example, "--test", other)
    assert found["judged"]["n"] == 500
    assert "other.csv" in found["judged"]["how"]
    scores = read_scores(other, logits=True)
    own = from_dict(found["calibrator"]).predict_proba(scores.logits)
    nll = -np.mean(np.log(own[np.arange(500), scores.labels]))
    assert found["after"]["nll"] == pytest.approx(nll, rel=1e-12)


def test_other_rows_may_have_their_columns_in_another_order(fit, example, tmp_path):
    other = write_example(tmp_path / "other.csv", n=500, seed=7)
    table = pacsv.read_csv(other)
    pacsv.write_csv(table.select(table.column_names[::-1]), tmp_path / "turned.csv")
    turned = fit(example, "--test", tmp_path / "turned.csv")["after"]["nll"]
    assert turned == pytest.approx(fit(example, "--test", other)["after"]["nll"], rel=1e-12)


def test_the_score_that_decides_can_be_chosen(fit, example):
    assert "log loss" in fit(example)["verdict"]
    assert "Brier score" in fit(example, "--score", "brier")["verdict"]


def test_a_log_loss_that_was_infinite_leaves_the_verdict_to_brier(fit, tmp_path):
    (tmp_path / "s.csv").write_text("label,prob\n" + "1,0\n0,1\n1,0.8\n0,.3\n1,.9\n0,.2\n" * 20)
    found = fit(tmp_path / "s.csv")
    assert found["before"]["nll"] is None
    assert found["after"]["nll"] > 0
    assert "Brier score" in found["verdict"]
    assert any(note.startswith("40 probabilities are exactly 0 or 1") for note in found["notes"])


def test_logits_and_probabilities_give_the_same_calibrator(fit, example, tmp_path):
    table = pacsv.read_csv(example)
    names = [name for name in table.column_names if name.startswith("prob_")]
    new = {name.replace("prob_", "logit_"): np.log(table[name].to_numpy()) for name in names}
    pq.write_table(pa.table({"label": table["label"], **new}), tmp_path / "logits.parquet")
    one, two = (fit(f)["calibrator"]["params"] for f in (example, tmp_path / "logits.parquet"))
    assert one["temperature"] == pytest.approx(two["temperature"], rel=1e-6)


def test_two_named_classes(fit, tmp_path):
    rows = "yes,0.9\nno,0.8\nno,0.2\nyes,0.4\nno,0.1\n" * 20
    (tmp_path / "s.csv").write_text(f"label,prob\n{rows}")
    found = fit(tmp_path / "s.csv", "--positive", "yes")
    assert found["classes"] == ["no", "yes"]


def test_weights_count(fit, scores):
    plain = fit(scores)["calibrator"]["params"]
    lines = scores.read_text().splitlines()
    heavy = [f"{line},{'weight' if i == 0 else 1 + 5 * (i % 2)}" for i, line in enumerate(lines)]
    scores.write_text("\n".join(heavy))
    assert fit(scores)["calibrator"]["params"] != plain
    zero = [line.removesuffix("1") + "0" if line.endswith(",1") else line for line in heavy]
    scores.write_text("\n".join(zero))
    assert fit(scores)["n"] == 150


def test_same_seed_same_bytes(cli, scores, tmp_path):
    words = ("calibrate", scores, "-o", tmp_path / "c.json", "--json")
    assert cli(*words).stdout == cli(*words).stdout


def test_very_many_rows_hold_some_back(fit, scores, monkeypatch):
    monkeypatch.setattr(judging, "MOST_JUDGED", 200)
    found = fit(scores)
    assert found["n"] == 300
    assert 70 < found["judged"]["n"] < 130
    assert found["judged"]["folds"] is None


def test_very_many_other_rows_are_drawn_from(fit, scores, example, tmp_path, monkeypatch):
    monkeypatch.setattr(judging, "MOST_JUDGED", 200)
    other = write_example(tmp_path / "other.csv", n=500, seed=7)
    found = fit(example, "--test", other)
    assert 150 < found["judged"]["n"] < 250
    assert "drawn at random" in found["judged"]["how"]


def test_the_only_row_of_a_class_is_never_held_back(fit, tmp_path):
    rows = "a,0.6,0.3,0.1\nb,0.3,0.6,0.1\nb,.5,.4,.1\na,.4,.5,.1\n" * 20
    (tmp_path / "s.csv").write_text(f"label,prob_a,prob_b,prob_c\n{rows}c,.1,.1,.8\n")
    found = fit(tmp_path / "s.csv", method="vector")
    assert (found["n"], found["judged"]["n"]) == (81, 80)


def test_a_class_without_rows_is_noted(fit, tmp_path):
    rows = "a,0.6,0.3,0.1\nb,0.3,0.6,0.1\n" * 20
    (tmp_path / "s.csv").write_text(f"label,prob_a,prob_b,prob_c\n{rows}")
    assert_mentions(" ".join(fit(tmp_path / "s.csv")["notes"]), "no row", "label 'c'")


def test_too_few_rows_to_judge_are_said(fit, cli, tmp_path):
    (tmp_path / "s.csv").write_text("label,prob\n1,0.4\n0,0.6\n")
    found = fit(tmp_path / "s.csv")
    assert (found["before"], found["after"], found["state"]) == (None, None, "unknown")
    assert "too few rows" in found["verdict"]
    report = tmp_path / "report.html"
    words = ("-o", tmp_path / "c.json", "--method", "temperature", "--html", report)
    assert cli("calibrate", tmp_path / "s.csv", *words).exit_code == 0
    assert "Not judged" in report.read_text(encoding="utf-8")


def test_the_report_is_written_and_its_place_told(cli, scores, tmp_path):
    report = tmp_path / "report.html"
    words = ("calibrate", scores, "-o", tmp_path / "c.json", "--html", report)
    result = cli(*words)
    assert result.exit_code == 0
    assert result.stdout.rstrip().endswith(str(report))
    assert "What was tried" in report.read_text(encoding="utf-8")
    assert strict(cli(*words, "--json").stdout)["report"] == str(report)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["c.json", "in", "report.html"]


def test_settings_reach_the_method(fit, example):
    found = fit(example, method="temperature:objective=ece_mass,n_bins=10")
    assert found["calibrator"]["settings"] == {"objective": "ece_mass", "n_bins": 10}
    temperature = found["calibrator"]["params"]["temperature"]
    assert round(10 * temperature) == pytest.approx(10 * temperature)


@pytest.mark.parametrize(
    ("text", "settings"),
    [
        ("a", {}),
        ("a:x=1,y=1e-3,z=-2.5", {"x": 1, "y": 0.001, "z": -2.5}),
        ("a:x=true,y=False,z=none", {"x": True, "y": False, "z": None}),
        ("a: x = [1, b, 2.5] , y=some_word", {"x": [1, "b", 2.5], "y": "some_word"}),
        ("a:x=[]", {"x": []}),
        ("a:x=1_000", {"x": "1_000"}),
    ],
)
def test_one_syntax(text, settings):
    assert split_method(text) == ("a", settings)


@pytest.mark.parametrize("text", ["a:", "a:x", "a:=1", "a:x=", "a:x=1,x=2", "a:x=1,,y=2"])
def test_what_is_no_setting(text):
    with pytest.raises(InputError, match="write it like a:key=value,key=value"):
        split_method(text)


def test_score_and_seed_reach_the_automatic_choice():
    auto = parse_method("auto:folds=3", score="brier", seed=5)
    assert (auto.score, auto.seed, auto.folds) == ("brier", 5, 3)


HYGIENE = """
import sys
sys.modules["torch"] = None
from calibrant.cli.main import app
from typer.testing import CliRunner
result = CliRunner().invoke(app, ["calibrate", "--help"])
heavy = {"plotly", "matplotlib", "pandas", "sklearn", "scipy", "numpy", "pyarrow"}
print(result.exit_code, "Example" in result.stdout, sorted(heavy & set(sys.modules)))
"""


def test_help_shows_an_example_and_imports_nothing_heavy(spawn):
    out, err = spawn(code=HYGIENE).communicate(timeout=60)
    assert out == "0 True []\n"
    assert err == ""


BARE = """
import sys
class NoTorch:  # None in sys.modules would break scipy itself
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "torch":
            raise ImportError("there is no torch here")
sys.meta_path.insert(0, NoTorch())
from calibrant.cli.main import run
run()
"""


def test_it_runs_without_torch(spawn, scores, tmp_path):
    process = spawn("calibrate", scores, "-o", tmp_path / "c.json", "--json", code=BARE)
    out, _ = process.communicate(timeout=120)
    assert process.returncode == 0
    assert json.loads(out)["n"] == 300
