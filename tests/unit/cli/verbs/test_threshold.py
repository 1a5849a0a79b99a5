"""`calibrant threshold`: what is chosen, what is printed and saved, and how a no looks."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest
from tests.sentences import assert_mentions

from calibrant.cli.targets import parse_band, parse_cost, parse_hold, parse_targets
from calibrant.data import write_example
from calibrant.errors import InputError
from calibrant.scores import read_scores
from calibrant.thresholds import OperatingPoint, precision, recall, select
from calibrant.workflows.point_file import read_point

HOLD = ("--hold", "item_defective: precision>=0.85")


def strict(text):
    """Parse JSON that must not hold NaN or Infinity."""

    def refuse(word):
        raise AssertionError(f"{word} in JSON")

    return json.loads(text, parse_constant=refuse)


@pytest.fixture(scope="module")
def example(tmp_path_factory):
    return write_example(tmp_path_factory.mktemp("example") / "scores.csv", n=2000)


@pytest.fixture
def run(cli, tmp_path):
    """Choose a point, and return what --json prints."""

    def chosen(file, *words, code=0):
        result = cli("threshold", file, *words, "-o", tmp_path / "point.json", "--json")
        assert result.exit_code == code, result.output
        assert result.stderr == ""
        return strict(result.stdout)

    return chosen


@pytest.fixture
def two(tmp_path):
    """Scores of two named classes, well separated."""
    rng = np.random.default_rng(1)
    labels = rng.random(1500) < 0.3
    logits = rng.normal(3.0 * labels - 1.5, 1.5)
    table = pa.table({
        "label": np.where(labels, "spam", "ham"),
        "logit_ham": np.zeros(1500),
        "logit_spam": logits,
    })  # fmt: skip
    (tmp_path / "in").mkdir()
    pq.write_table(table, tmp_path / "in" / "two.parquet")
    return tmp_path / "in" / "two.parquet"


def test_the_point_is_what_the_library_chooses(run, example, tmp_path):
    found = run(example, *HOLD)
    scores = read_scores(example)
    names = np.array(scores.classes)[scores.labels]
    direct = select(
        names, scores.probs, hold=precision >= 0.85, classes=scores.classes,
        positive="item_defective",
    )  # fmt: skip
    assert found["threshold"] == direct.threshold
    assert found["rates"]["recall"]["value"] == direct["recall"].value
    saved = strict((tmp_path / "point.json").read_text(encoding="utf-8"))
    assert OperatingPoint.from_dict(saved) == direct


def test_json_has_the_stable_shape(run, example, tmp_path):
    found = run(example, *HOLD, "--maximise", "recall", "--confidence", "0.9")
    assert found["reached"] is True
    assert (found["class"], found["confidence"]) == ("item_defective", 0.9)
    assert found["hold"] == ["precision>=0.85"]
    assert 0 < found["threshold"] < 1
    for rate in ("precision", "recall", "npv", "coverage"):
        assert set(found["rates"][rate]) >= {"value", "low", "high", "n"}
    assert found["out"] == str(tmp_path / "point.json")


def test_the_promise_comes_first_and_the_next_step_last(cli, example, tmp_path):
    out = tmp_path / "point.json"
    result = cli("threshold", example, *HOLD, "-o", out)
    assert result.exit_code == 0
    assert_mentions(result.stdout, "precision", "at least 85 %", "class 'item_defective'")
    assert "95 % confidence" in result.stdout
    for word in ("recall", "npv", ">= 85 %", "2,000 labelled rows"):
        assert word in result.stdout
    last = result.stdout.splitlines()[-1]
    assert_mentions(last, f"calibrant decide OTHER --point {out} -o decisions.parquet")
    assert [p.name for p in tmp_path.iterdir()] == ["point.json"]


def test_a_target_that_is_out_of_reach_ends_with_1_and_writes_nothing(cli, run, example, tmp_path):
    hold = ("--hold", "item_defective: precision>=0.999")
    found = run(example, *hold, code=1)
    assert found["reached"] is False
    assert set(found) >= {"best", "labels_needed", "why", "hold", "n", "positives"}
    assert found["out"] is None
    assert 0.5 < found["best"] < 0.999
    result = cli("threshold", example, *hold, "-o", tmp_path / "point.json")
    assert result.exit_code == 1
    assert_mentions(result.stdout, "no threshold", "precision>=0.999")
    assert "What helps:" in result.stdout
    assert_mentions(result.stdout, "no point", "written")
    assert not (tmp_path / "point.json").exists()


def test_a_point_that_stood_there_before_still_stands(cli, example, tmp_path):
    out = tmp_path / "point.json"
    out.write_text("old")
    result = cli("threshold", example, "--hold", "others: precision>=0.9999", "-o", out)
    assert result.exit_code == 1
    assert out.read_text() == "old"
    assert "is unchanged" in " ".join(result.stdout.split())


def test_no_confidence_promises_nothing_and_says_so(cli, run, example, tmp_path):
    found = run(example, *HOLD, "--confidence", "none")
    assert (found["confidence"], found["guarantee"]) == (None, None)
    assert found["rates"]["precision"]["value"] >= 0.85
    assert found["threshold"] < run(example, *HOLD)["threshold"]
    words = ("-o", tmp_path / "p.json", "--confidence", "none")
    said = cli("threshold", example, *HOLD, *words).stdout
    assert said.startswith("No promise: ")
    assert "promises nothing" in " ".join(said.split())


def test_more_candidates_cost_recall(run, example):
    one, many = run(example, *HOLD), run(example, *HOLD, "--candidates", "50")
    assert many["candidates"] == 50
    assert many["rates"]["recall"]["value"] < one["rates"]["recall"]["value"]
    assert "50" in many["guarantee"]


def test_recall_can_be_held(run, example):
    found = run(example, "--hold", "others: recall>=0.9")
    assert found["objective"] == "maximise precision"
    assert found["rates"]["recall"]["value"] > 0.9


def test_accuracy_is_about_predictions_of_any_class(cli, run, example, tmp_path):
    found = run(example, "--hold", "accuracy>=0.9")
    assert found["class"] is None
    assert set(found["rates"]) >= {"accuracy", "coverage"}
    said = cli("threshold", example, "--hold", "accuracy>=0.9", "-o", tmp_path / "p.json").stdout
    assert_mentions(said, "accept", "highest probability")


def test_costs(run, example, cli, tmp_path):
    words = ("--positive", "item_defective", "--cost", "fp=1,fn=5")
    found = run(example, *words)
    assert found["objective"] == "minimise cost"
    assert found["costs"] == [1, 5, 0, 0]
    assert found["rates"]["cost"]["value"] < 0.5
    assert found["baseline"]["threshold"] == pytest.approx(1 / 6)
    assert run(example, *words, "--minimise", "cost")["threshold"] == found["threshold"]
    held = run(example, *words, "--hold", "cost<=0.5", "--maximise", "recall")
    assert held["hold"] == ["cost<=0.5"]
    said = cli("threshold", example, *words, "-o", tmp_path / "p.json").stdout
    assert_mentions(said, "acting from", "0.166667 on")


def test_both_spellings_of_maximise(run, example):
    hold = ("--hold", "others: recall>=0.8")
    one = run(example, *hold, "--maximise", "specificity")
    assert run(example, *hold, "--maximize", "specificity")["threshold"] == one["threshold"]
    assert run(example, *hold, "--minimize", "fpr")["threshold"] == one["threshold"]


def test_two_classes_have_a_positive_one(run, two):
    plain = run(two, "--hold", "precision>=0.8")
    assert plain["class"] == "spam"
    assert_mentions(" ".join(plain["notes"]), "positive class", "'spam'")
    named = run(two, "--hold", "spam: precision>=0.8")
    assert named["threshold"] == plain["threshold"]
    ham = run(two, "--hold", "ham: precision>=0.8")
    assert ham["class"] == "ham"
    assert run(two, "--hold", "precision>=0.8", "--positive", "ham")["threshold"] == pytest.approx(
        ham["threshold"]
    )


def test_a_lone_column_of_a_named_class(cli, tmp_path):
    rng = np.random.default_rng(0)
    yes = rng.random(900) < 0.4
    probs = np.clip(rng.normal(0.25 + 0.5 * yes, 0.15), 0, 1).round(4)
    rows = (f"{'churn' if y else 'stay'},{p}" for y, p in zip(yes, probs, strict=True))
    file, out = tmp_path / "s.csv", tmp_path / "p.json"
    file.write_text("\n".join(["label,prob", *rows]))
    result = cli("threshold", file, "--hold", "precision>=0.8", "--positive", "churn", "-o", out)
    assert result.exit_code == 0
    assert result.stdout.splitlines()[-1].endswith("--positive churn")
    other = cli(
        "threshold", file, "--hold", "stay: precision>=0.8", "--positive", "churn", "-o", out
    )
    assert "for class 'stay'" in other.stdout


def test_saturated_logits_lose_nothing(run, tmp_path):
    """Probabilities of these rows are all 1 in float64; their logits still rank them."""
    rng = np.random.default_rng(0)
    labels = (rng.random(2000) < 0.5).astype(int)
    table = pa.table({"label": labels, "logit": rng.normal(60 + 10 * labels, 3)})
    (tmp_path / "in").mkdir()
    pq.write_table(table, tmp_path / "in" / "s.parquet")
    found = run(tmp_path / "in" / "s.parquet", "--hold", "precision>=0.9")
    assert found["on"] == "logits"
    assert (found["threshold"], 60 < found["logit"] < 70) == (1.0, True)
    assert found["rates"]["recall"]["value"] > 0.9


def test_saturated_logits_are_told_as_log_odds(cli, tmp_path):
    rng = np.random.default_rng(0)
    labels = (rng.random(900) < 0.5).astype(int)
    table = pa.table({"label": labels, "logit": rng.normal(60 + 10 * labels, 3)})
    pq.write_table(table, tmp_path / "s.parquet")
    words = ("--hold", "precision>=0.9", "-o", tmp_path / "p.json")
    assert "log-odds 6" in cli("threshold", tmp_path / "s.parquet", *words).stdout


def test_coverage_alone_is_of_predictions_of_any_class_unless_one_is_named(run, two):
    assert run(two, "--hold", "coverage>=0.4")["class"] is None
    named = run(two, "--hold", "ham: coverage>=0.4")
    assert named["class"] == "ham"
    told = run(two, "--hold", "coverage>=0.4", "--positive", "ham")
    assert (told["class"], told["threshold"]) == ("ham", named["threshold"])
    assert run(two, "--hold", "accuracy>=0.7", "--positive", "ham")["class"] is None
    assert run(two, "--hold", "coverage>=0.4", "--hold", "precision>=0.5")["class"] == "spam"


def test_weights_count(run, two, tmp_path):
    table = pq.read_table(two)
    heavy = np.where(np.arange(1500) % 2, 4.0, 1.0)
    pq.write_table(table.append_column("weight", pa.array(heavy)), two)
    found = run(two, "--hold", "precision>=0.8")
    assert found["weighted"] is True
    assert found["method"] == "bets on weighted rows"
    assert_mentions(found["guarantee"], "more than 4", "largest seen")
    assert "give --largest-weight if" in found["notes"][0]
    known = run(two, "--hold", "precision>=0.8", "--largest-weight", "6")
    assert_mentions(known["guarantee"], "more than 6.")
    assert not any("largest" in note for note in known["notes"])
    assert known["threshold"] != found["threshold"]


def test_notes_of_bands_and_of_several_classes_name_the_flag(run, two, example):
    table = pq.read_table(two)
    heavy = pa.array(np.where(np.arange(1500) % 2, 4.0, 1.0))
    pq.write_table(table.append_column("weight", heavy), two)
    band = run(two, "--act", "precision>=0.7", "--clear", "npv>=0.6")
    assert_mentions(band["guarantee"], "more than 4", "largest seen")
    assert all("give --largest-weight" in band[side]["notes"][0] for side in ("upper", "lower"))
    named = pacsv.read_csv(example)
    heavy = pa.array(np.where(np.arange(len(named)) % 2, 2.0, 1.0))
    pq.write_table(named.append_column("weight", heavy), two)
    found = run(two, *HOLD, "--hold", "others: precision>=0.8")
    assert found["points"]
    assert all("give --largest-weight" in point["notes"][0] for point in found["points"])


def test_several_classes_are_held_together(cli, run, example, tmp_path):
    holds = (*HOLD, "--hold", "others: precision>=0.9")
    found = run(example, *holds)
    assert found["reached"] is True
    assert [point["class"] for point in found["points"]] == ["item_defective", "others"]
    alone = run(example, *HOLD)
    assert found["points"][0]["rates"]["recall"]["value"] < alone["rates"]["recall"]["value"]
    said = cli("threshold", example, *holds, "-o", tmp_path / "p.json").stdout
    assert_mentions(said, "All 2 promises", "together", "95 % confidence")


def test_a_class_out_of_reach_is_told_and_the_others_are_kept(cli, run, example, tmp_path):
    holds = (*HOLD, "--hold", "others: precision>=0.9999")
    found = run(example, *holds, code=1)
    assert found["reached"] is False
    assert [e["class"] for e in found["unreachable"]] == ["others"]
    assert found["out"] == str(tmp_path / "point.json")
    assert list(read_point(tmp_path / "point.json").result.points) == ["item_defective"]
    said = cli("threshold", example, *holds, "-o", tmp_path / "p.json").stdout
    assert_mentions(said, "no threshold", "precision>=0.9999", "class 'others'")


def test_all_classes_out_of_reach_write_nothing(cli, run, example, tmp_path):
    holds = ("--hold", "others: precision>=0.9999", "--hold", "missing_parts: npv>=0.99999")
    assert run(example, *holds, code=1)["out"] is None
    assert not (tmp_path / "point.json").exists()


def test_a_band(cli, run, two, tmp_path):
    words = ("--act", "precision>=0.8", "--clear", "spam: npv>=0.9")
    found = run(two, *words)
    assert found["upper"]["logit"] > found["lower"]["logit"]
    assert 0 < found["automated"] < 1
    said = " ".join(cli("threshold", two, *words, "-o", tmp_path / "p.json").stdout.split())
    assert "need no person" in said
    assert_mentions(said, "rows between", "person")
    assert run(two, "--act", "precision>=0.9999", "--clear", "npv>=0.9", code=1)["reached"] is False


@pytest.mark.parametrize("kind", ["point", "each", "band", "no", "cost"])
def test_the_report_is_written_and_its_place_told(cli, example, tmp_path, kind):
    words = {
        "point": HOLD,
        "each": (*HOLD, "--hold", "others: precision>=0.9999"),
        "band": ("--act", "others: precision>=0.8", "--clear", "npv>=0.8"),
        "no": ("--hold", "others: precision>=0.9999"),
        "cost": ("--positive", "others", "--cost", "fp=1,fn=2"),
    }[kind]
    report, out = tmp_path / "report.html", tmp_path / "p.json"
    result = cli("threshold", example, *words, "-o", out, "--html", report)
    assert result.exit_code == (1 if kind in ("no", "each") else 0), result.output
    assert_mentions(result.stdout, f"in {report}")
    page = report.read_text(encoding="utf-8")
    assert ("calibrant decide OTHER" in page) == (kind != "no")
    assert strict(cli("threshold", example, *words, "-o", out, "--html", report, "--json").stdout)


def test_a_calibrator_goes_first_and_travels_along(cli, run, example, tmp_path):
    calibrator = tmp_path / "c.json"
    cli("calibrate", example, "-o", calibrator, "--method", "temperature")
    plain = run(example, *HOLD)
    found = run(example, *HOLD, "--calibrator", calibrator)
    assert found["on"] == "logits"
    assert found["threshold"] < plain["threshold"]  # the model is over-confident
    saved = strict((tmp_path / "point.json").read_text(encoding="utf-8"))
    assert saved["calibrator"] == strict(calibrator.read_text(encoding="utf-8"))
    assert "calibrator" not in found


def test_a_calibrator_that_was_fitted_here(cli, run, example, two, tmp_path):
    """Two classes keep their order under temperature, so the promise stays; five need not."""
    calibrator = tmp_path / "c.json"
    cli("calibrate", two, "-o", calibrator, "--method", "temperature")
    words = ("--calibrator", calibrator, "--fitted-here")
    kept = run(two, "--hold", "precision>=0.8", *words)
    assert kept["guarantee"] is not None
    assert kept["rates"]["recall"] == run(two, "--hold", "precision>=0.8")["rates"]["recall"]
    cli("calibrate", example, "-o", calibrator, "--method", "vector")
    withheld = run(example, *HOLD, *words)
    assert withheld["guarantee"] is None
    assert_mentions(withheld["why"], "calibrator vector", "fitted on these", "other rows")
    assert not any("was fitted on these rows" in note for note in withheld["notes"])  # it was said


def in_other_files(example, folder):
    """Return files with these rows: shuffled, turned, a part, among others, in single precision."""
    table = pacsv.read_csv(example)
    order = np.random.default_rng(0).permutation(len(table))
    shuffled = table.take(order)
    names = table.column_names
    short = {name: pa.float32() for name in names if name.startswith("prob_")}
    kinds = [pa.field(f.name, short.get(f.name, f.type)) for f in table.schema]
    (folder / "in").mkdir(exist_ok=True)
    made = {
        "shuffled.csv": shuffled,
        "turned.csv": table.select(names[::-1]),
        "part.csv": shuffled.slice(0, 700),
        "with_others.csv": pa.concat_tables([
            table, pacsv.read_csv(write_example(folder / "in" / "more.csv", n=2000, seed=5))
        ]),
        "short.parquet": shuffled.cast(pa.schema(kinds), safe=False),
    }  # fmt: skip
    for name, rows in made.items():
        write = pq.write_table if name.endswith("parquet") else pacsv.write_csv
        write(rows, folder / "in" / name)
    return [folder / "in" / name for name in made]


@pytest.mark.parametrize("method", ["histogram", "vector", "auto", "temperature"])
def test_a_calibrator_knows_the_rows_it_was_fitted_on(cli, run, example, tmp_path, method):
    calibrator = tmp_path / "c.json"
    cli("calibrate", example, "-o", calibrator, "--method", method)
    words = ("--hold", "item_defective: precision>=0.7", "--calibrator", calibrator)
    for file in (example, *in_other_files(example, tmp_path)):
        found = run(file, *words)
        assert found["guarantee"] is None, file
        assert_mentions(found["why"], f"{strict(calibrator.read_text())['method']}", "fitted on")
        assert any(
            f"the calibrator of {calibrator} was fitted on these" in n for n in found["notes"]
        )
    others = write_example(tmp_path / "in" / "others.csv", n=2000, seed=6)
    found = run(others, *words)
    assert found["guarantee"] is not None
    assert not any("was fitted on these rows" in note for note in found["notes"])


def test_a_calibrator_that_keeps_the_order_may_know_its_rows(cli, run, two, tmp_path):
    calibrator = tmp_path / "c.json"
    words = ("--hold", "spam: precision>=0.8", "--calibrator", calibrator)
    for method, kept in (("temperature", True), ("histogram", False), ("identity", True)):
        cli("calibrate", two, "-o", calibrator, "--method", method)
        found = run(two, *words)
        assert (found["guarantee"] is not None) == kept, method
        noted = any("was fitted on these rows" in note for note in found["notes"])
        assert noted == (method != "identity")  # which has learned nothing


def test_a_calibrator_of_an_older_version_knows_nothing(cli, run, example, tmp_path):
    calibrator = tmp_path / "c.json"
    cli("calibrate", example, "-o", calibrator, "--method", "vector")
    saved = strict(calibrator.read_text(encoding="utf-8"))
    del saved["fitted_on"]
    calibrator.write_text(json.dumps(saved), encoding="utf-8")
    assert run(example, *HOLD, "--calibrator", calibrator)["guarantee"] is not None
    fitted_here = run(example, *HOLD, "--calibrator", calibrator, "--fitted-here")
    assert fitted_here["guarantee"] is None


def test_a_calibrator_finds_its_classes_by_name(cli, run, example, tmp_path):
    calibrator = tmp_path / "c.json"
    cli("calibrate", example, "-o", calibrator, "--method", "vector")
    table = pacsv.read_csv(example)
    (tmp_path / "in").mkdir()
    pacsv.write_csv(table.select(table.column_names[::-1]), tmp_path / "in" / "turned.csv")
    words = (*HOLD, "--calibrator", calibrator)
    straight, turned = run(example, *words), run(tmp_path / "in" / "turned.csv", *words)
    assert turned["threshold"] == pytest.approx(straight["threshold"], rel=1e-12)
    assert turned["rates"]["recall"] == straight["rates"]["recall"]


def test_same_seed_same_bytes(cli, example, tmp_path):
    words = ("threshold", example, *HOLD, "-o", tmp_path / "p.json")
    cli(*words)
    once = (tmp_path / "p.json").read_bytes()
    cli(*words)
    assert (tmp_path / "p.json").read_bytes() == once


def test_a_folder_of_parts_is_one_sample(run, example, tmp_path):
    table = pacsv.read_csv(example)
    folder = tmp_path / "parts"
    folder.mkdir()
    for i in range(4):
        pacsv.write_csv(table.slice(500 * i, 500), folder / f"{i}.csv")
    assert run(folder, *HOLD)["threshold"] == run(example, *HOLD)["threshold"]


@pytest.mark.parametrize(
    ("text", "matrix"),
    [
        ("fp=1,fn=5", (1, 5, 0, 0)),
        (" FN = 5 , fp=0.5,tp=0.1,tn=0 ", (0.5, 5, 0.1, 0)),
    ],
)
def test_the_syntax_of_costs(text, matrix):
    assert parse_cost(text).matrix == matrix


@pytest.mark.parametrize("text", ["fp=1", "fn=2", "1,5", "fp=1,fn=x", "fp=1,fn=2,fp=3", "xx=1", ""])
def test_what_is_no_cost(text):
    with pytest.raises(InputError, match="--cost"):
        parse_cost(text)


def test_the_syntax_of_targets():
    assert parse_hold("a: b: precision >= 0.85") == ("a: b", precision >= 0.85)
    assert parse_hold("cost<=0.3", parse_cost("fp=1,fn=5"))[1].rate.false_negative == 5
    asked = parse_targets(
        ["a: recall>=0.5"], maximise=None, minimise="cost", cost="fp=1,fn=2", confidence="none"
    )
    assert asked.targets == [recall >= 0.5]
    assert (asked.cost.matrix[:2], asked.confidence) == ((1, 2), None)
    assert parse_band("a: precision>=0.9", "npv>=0.9", confidence="0.9").classes == ["a"]


HYGIENE = """
import sys
sys.modules["torch"] = None
from calibrant.cli.main import app
from typer.testing import CliRunner
result = CliRunner().invoke(app, sys.argv[1:])
heavy = {"plotly", "matplotlib", "pandas", "sklearn", "scipy", "numpy", "pyarrow"}
print(result.exit_code, "Example" in result.stdout, sorted(heavy & set(sys.modules)))
"""


@pytest.mark.parametrize("verb", ["threshold", "decide"])
def test_help_shows_an_example_and_imports_nothing_heavy(spawn, verb):
    out, err = spawn(verb, "--help", code=HYGIENE).communicate(timeout=60)
    assert out == "0 True []\n"
    assert err == ""


LIGHT = """
import sys
from calibrant.cli.main import app
from typer.testing import CliRunner
result = CliRunner().invoke(app, sys.argv[1:])
assert result.exit_code == 0, result.output
print(sorted({"torch", "plotly", "matplotlib", "sklearn"} & set(sys.modules)))
"""


def test_a_choice_without_a_calibrator_needs_no_scikit_learn(spawn, example, tmp_path):
    words = ("threshold", example, *HOLD, "-o", tmp_path / "p.json")
    out, err = spawn(*words, code=LIGHT).communicate(timeout=60)
    assert (out, err) == ("[]\n", "")
