"""`calibrant predict`: what the bundle says in memory, for a file of any size."""

import json
import shutil
import signal

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest
from tests.sentences import assert_mentions
from tests.unit.bundle.model_parts import CLASSES, TEXTS, table_scorer, text_scorer
from tests.unit.bundle.parts import band, point, points_of, rows, temperature

from calibrant.bundle import BundlePoint, pack
from calibrant.bundle.manifest import seal_manifest
from calibrant.files.write_table import write_tables
from calibrant.ood import OodRule
from calibrant.workflows import bundle_rows

NEW = [
    "predicted",
    *(f"prob_{name}" for name in CLASSES),
    *("decision", "acted_as", "action"),
    *("decision_rule", "decision_score", "decision_threshold"),
]


def messages(n=300, seed=0):
    """Return texts of words that the model knows and some that it does not."""
    rng = np.random.default_rng(seed)
    words = " ".join([*TEXTS, "hello"]).split()
    return [" ".join(rng.choice(words, rng.integers(1, 12))) for _ in range(n)]


def shelves(n=300, seed=0):
    rng = np.random.default_rng(seed)
    return {
        "id": [f"{i:05d}" for i in range(n)],
        "shelf": rng.choice(["top", "low"], n),
        "price": rng.uniform(0.0, 9.0, n).round(3),
    }


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    """A bundle that reads messages, with a calibrator, points and a rule."""
    scorer = text_scorer()
    logits = scorer.predict_logits(messages(500, seed=1))
    return pack(
        tmp_path_factory.mktemp("texts") / "bundle",
        scorer=scorer,
        calibrator=temperature(0.5),
        points=[BundlePoint(points_of(point(), point("other", 0.6)), "calibrated")],
        ood=OodRule.fit(logits, quantile=0.8),
        actions={"defect": "refund"},
    )


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    """A bundle that reads tables."""
    folder = tmp_path_factory.mktemp("tables") / "bundle"
    return pack(folder, scorer=table_scorer(), points=[point(threshold=0.5)])


@pytest.fixture(scope="module")
def bare(tmp_path_factory):
    """A bundle without a model."""
    chosen = [BundlePoint(point(), "raw"), BundlePoint(point(threshold=0.4), "calibrated")]
    folder = tmp_path_factory.mktemp("bare") / "bundle"
    actions = {"defect": "refund"}
    return pack(folder, calibrator=temperature(), points=chosen, actions=actions)


def written(path, columns):
    write_tables(path, [pa.table(columns)])
    return path


def read(path):
    """Read a file of any format as a dictionary of lists."""
    if path.suffix == ".parquet":
        return pq.read_table(path).to_pydict()
    if path.suffix == ".csv":
        text = pacsv.ConvertOptions(column_types={"id": pa.string()}, strings_can_be_null=True)
        return pacsv.read_csv(path, convert_options=text).to_pydict()
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    return {name: [line[name] for line in lines] for name in lines[0]}


def same(found, decided):
    """Hold the columns of a file against decisions made in memory."""
    assert found["predicted"] == decided.label.tolist()
    probs = np.column_stack([found[f"prob_{name}"] for name in decided.classes])
    assert probs == pytest.approx(decided.probabilities, abs=1e-6)
    for name in ("decision", "acted_as", "action"):
        assert found[name] == getattr(decided, name).tolist()
    assert found["decision_rule"] == decided.decision_rule.tolist()
    for name in ("decision_score", "decision_threshold"):
        numbers = np.array(found[name], dtype=float)
        assert numbers == pytest.approx(getattr(decided, name), abs=1e-6, nan_ok=True)
    # Whoever reads the file decides the same: a score from its threshold on is acted on.
    reached = [
        score is not None and score >= least
        for score, least in zip(found["decision_score"], found["decision_threshold"], strict=True)
    ]
    assert [word == "act" for word in found["decision"]] == reached


@pytest.mark.parametrize("ending", ["parquet", "csv", "jsonl"])
def test_texts_are_decided_as_in_memory(cli, texts, tmp_path, ending):
    given = {"id": [f"{i:05d}" for i in range(300)], "message": messages()}
    file, out = written(tmp_path / f"in.{ending}", given), tmp_path / f"out.{ending}"
    result = cli("predict", texts.path, file, "-o", out)
    assert result.exit_code == 0, result.output
    found, decided = read(out), texts.decide(given["message"])
    assert list(found) == ["id", "message", *NEW, "out_of_scope"]
    assert (found["id"], found["message"]) == (given["id"], given["message"])
    same(found, decided)
    assert found["out_of_scope"] == decided.out_of_scope.tolist()
    assert {"act", "abstain"} == set(found["decision"])
    assert 0 < sum(found["out_of_scope"]) < 300
    assert_mentions(result.stdout, f"in {out}")


def test_tables_are_decided_as_in_memory(cli, tables, tmp_path):
    given = shelves()
    file, out = written(tmp_path / "in.csv", given), tmp_path / "out.csv"
    result = cli("predict", tables.path, file, "-o", out)
    assert result.exit_code == 0, result.output
    found = read(out)
    assert list(found) == [*given, *NEW]
    assert (found["id"], found["price"]) == (given["id"], given["price"].tolist())
    decided = tables.decide({"price": given["price"], "shelf": given["shelf"].tolist()})
    same(found, decided)
    assert set(found["decision"]) == {"act", "abstain"}


def test_missing_numbers_are_filled_as_in_training(cli, tables, tmp_path):
    (tmp_path / "in.csv").write_text("shelf,price\ntop,\n,3.5\nlow,NA\n")
    result = cli("predict", tables.path, tmp_path / "in.csv", "-o", tmp_path / "out.parquet")
    assert result.exit_code == 0, result.output
    decided = tables.decide({"shelf": ["top", None, "low"], "price": [None, 3.5, None]})
    same(read(tmp_path / "out.parquet"), decided)


@pytest.mark.parametrize("kind", ["logit", "prob"])
def test_scores_of_any_model_are_decided_as_in_memory(cli, bare, tmp_path, kind):
    array = rows()
    if kind == "prob":
        array = np.exp(array) / np.exp(array).sum(axis=1, keepdims=True)
    columns = {f"{kind}_{name}": array[:, k] for k, name in enumerate(CLASSES)}
    given = {"id": np.arange(200), **dict(reversed(columns.items()))}
    file, out = written(tmp_path / "in.parquet", given), tmp_path / "out.parquet"
    result = cli("predict", bare.path, file, "-o", out)
    assert result.exit_code == 0, result.output
    found = read(out)
    kept = [name for name in given if not name.startswith("prob_")]
    assert list(found) == [*kept, *NEW]  # probabilities give way to the bundle's
    same(found, bare.decide(**{f"{kind}s": array}))


def test_a_lone_column_and_a_band(cli, tmp_path):
    bundle = pack(tmp_path / "bundle", points=[band()])
    odds = np.linspace(-4, 4, 50)
    file, out = written(tmp_path / "in.csv", {"logit": odds}), tmp_path / "out.csv"
    result = cli("predict", bundle.path, file, "-o", out, "--positive", "yes")
    assert result.exit_code == 0, result.output
    found = read(out)
    same(found, bundle.decide(odds))
    assert set(found["decision"]) == {"act", "clear", "abstain"}
    unsure = cli("predict", bundle.path, file)
    assert unsure.exit_code == 2
    assert "--positive yes" in unsure.stderr


@pytest.mark.parametrize("batch", [1, 7, 100_000])
def test_the_size_of_batches_makes_no_difference(cli, texts, tmp_path, batch, monkeypatch):
    monkeypatch.setattr(bundle_rows, "_BATCH", batch)
    file = written(tmp_path / "in.parquet", {"message": messages(50)})
    assert cli("predict", texts.path, file, "-o", tmp_path / "out.parquet").exit_code == 0
    same(read(tmp_path / "out.parquet"), texts.decide(messages(50)))


def test_counts_are_those_of_the_rows(cli, texts, tmp_path):
    file, out = written(tmp_path / "in.csv", {"message": messages()}), tmp_path / "out.parquet"
    shown = cli("predict", texts.path, file, "--json", "-o", out)
    found, decided = json.loads(shown.stdout), texts.decide(messages())
    assert found == {
        "schema": 1,
        "n": 300,
        "decisions": decided.counts,
        "predicted": {name: int((decided.label == name).sum()) for name in CLASSES},
        "out_of_scope": int(decided.out_of_scope.sum()),
        "rules": [rule.to_dict() for rule in texts.decision_rules],
        "bundle": str(texts.path),
        "out": str(out),
    }


def test_without_a_place_rows_are_only_counted(cli, texts, tmp_path):
    file = written(tmp_path / "in.csv", {"message": messages()})
    result = cli("predict", texts.path, file)
    assert result.exit_code == 0
    acted = texts.decide(messages()).counts["act"]
    assert result.stdout.startswith(f"300 rows.\nActed on: {acted} (")
    assert_mentions(result.stdout, "out of scope", "for a person: ")
    assert "Most probable: “" in result.stdout
    assert "Nothing was written" in result.stdout
    assert [p.name for p in tmp_path.iterdir()] == ["in.csv"]


def test_the_rule_is_told_on_both_scales_where_the_calibrator_keeps_the_order(cli, tmp_path):
    classes = ("no", "yes")
    odds = np.linspace(-4, 4, 50)
    file = written(tmp_path / "in.csv", {"logit_no": 0 * odds, "logit_yes": odds})
    chosen = BundlePoint(point("yes", classes=classes), "raw")
    two = pack(tmp_path / "two", calibrator=temperature(classes=classes), points=[chosen])
    said = cli("predict", two.path, file).stdout
    # Log-odds of 3/4, halved: sqrt(3) / (1 + sqrt(3)).
    assert_mentions(said, "'yes' from a decision score of 0.75 (calibrated probability 0.634)")
    assert_mentions(said, "model's own", "calibrated")
    (rule,) = json.loads(cli("predict", two.path, file, "--json").stdout)["rules"]
    assert rule["calibrated_threshold"] == pytest.approx(0.6339746)
    out = tmp_path / "out.csv"
    assert cli("predict", two.path, file, "-o", out).exit_code == 0
    found = read(out)
    by_score = np.array(found["decision_score"]) >= np.array(found["decision_threshold"])
    assert (by_score == (np.array(found["prob_yes"]) >= rule["calibrated_threshold"])).all()
    assert 0 < by_score.sum() < 50


def test_the_rule_is_told_on_its_own_scale_where_the_order_is_lost(cli, bare, tmp_path):
    array = rows()
    columns = {f"logit_{name}": array[:, k] for k, name in enumerate(CLASSES)}
    file = written(tmp_path / "in.parquet", columns)
    said = cli("predict", bare.path, file).stdout
    assert_mentions(said, "'defect' from a decision score of 0.75.")
    assert "calibrated probability" not in said
    (rule,) = json.loads(cli("predict", bare.path, file, "--json").stdout)["rules"]
    assert rule["calibrated_threshold"] is None
    (alone,) = json.loads(cli("predict", bare.path, file, "--point", 1, "--json").stdout)["rules"]
    assert (alone["decides_on"], alone["calibrated_threshold"]) == ("calibrated", 0.4)


def test_one_point_may_decide_alone(cli, bare, tmp_path):
    array = rows()
    columns = {f"logit_{name}": array[:, k] for k, name in enumerate(CLASSES)}
    file, out = written(tmp_path / "in.parquet", columns), tmp_path / "out.parquet"
    for place in (0, 1):
        assert cli("predict", bare.path, file, "-o", out, "--point", place).exit_code == 0
        same(read(out), bare.decide(array, point=place))


def test_a_bundle_without_points_gives_probabilities_only(cli, tmp_path):
    scorer = text_scorer()
    rule = OodRule.fit(scorer.predict_logits(messages()), quantile=0.9)
    bundle = pack(tmp_path / "bundle", scorer=scorer, ood=rule)
    file, out = written(tmp_path / "in.csv", {"message": messages()}), tmp_path / "out.csv"
    result = cli("predict", bundle.path, file, "-o", out)
    assert_mentions(result.stdout, "no decisions", "operating point")
    found = read(out)
    assert list(found) == ["message", *NEW[:4], "out_of_scope"]
    assert sum(found["out_of_scope"]) == 30
    counted = json.loads(cli("predict", bundle.path, file, "--json").stdout)
    assert (counted["decisions"], counted["out_of_scope"], counted["out"]) == (None, 30, None)


def test_classes_that_are_numbers_stay_numbers(cli, tmp_path):
    classes = (0, 1)
    chosen = point(1, classes=classes)
    bundle = pack(tmp_path / "bundle", points=[chosen])
    file, out = written(tmp_path / "in.csv", {"logit": [-1.0, 4.0]}), tmp_path / "out.parquet"
    assert cli("predict", bundle.path, file, "-o", out).exit_code == 0
    found = read(out)
    assert (found["predicted"], found["acted_as"]) == ([0, 1], [None, 1])
    assert json.loads(cli("predict", bundle.path, file, "--json").stdout)["predicted"] == {
        "0": 1,
        "1": 1,
    }


def test_the_column_of_texts_may_have_another_name(cli, texts, tmp_path):
    file, out = written(tmp_path / "in.csv", {"words": messages()}), tmp_path / "out.csv"
    lacking = cli("predict", texts.path, file)
    assert lacking.exit_code == 2
    assert "has no column 'message'" in lacking.stderr
    assert cli("predict", texts.path, file, "--text", "words", "-o", out).exit_code == 0
    same(read(out), texts.decide(messages()))


def test_rows_without_a_text_count_as_empty_and_are_told(cli, texts, tmp_path):
    (tmp_path / "in.csv").write_text("id,message\n1,it came broken\n2,\n")
    result = cli("predict", texts.path, tmp_path / "in.csv", "-o", tmp_path / "out.parquet")
    assert_mentions(result.stdout, "1 row", "no text", "empty")
    same(read(tmp_path / "out.parquet"), texts.decide(["it came broken", ""]))


def test_a_folder_of_parts_and_packed_files(cli, texts, tmp_path):
    folder, given = tmp_path / "parts", messages()
    folder.mkdir()
    for i in range(3):
        written(folder / f"{i}.csv.gz", {"message": given[100 * i : 100 * (i + 1)]})
    out = tmp_path / "out.parquet"
    assert cli("predict", texts.path, folder, "-o", out).exit_code == 0
    assert read(out)["message"] == given


def test_the_output_may_be_judged(cli, texts, tmp_path):
    labels = np.array(CLASSES)[np.arange(300) % 3]
    file = written(tmp_path / "in.csv", {"message": messages(), "label": labels})
    assert cli("predict", texts.path, file, "-o", tmp_path / "out.csv").exit_code == 0
    judged = cli("evaluate", tmp_path / "out.csv", "--json")
    assert json.loads(judged.stdout)["classes"] == list(CLASSES)


# --- misuse: one sentence, exit code 2, and nothing written ---


@pytest.fixture
def refused(cli, tmp_path):
    """Run a command that must be refused, and return its sentence."""

    def run(*words, out="out.parquet"):
        place = tmp_path / out
        before = place.read_bytes() if place.is_file() else None
        result = cli("predict", *words, "-o", place)
        assert result.exit_code == 2, result.output
        assert result.stdout == ""
        assert result.stderr.startswith("error: ")
        assert result.stderr.count("\n") == 1
        assert (place.read_bytes() if place.is_file() else None) == before
        assert not [p for p in tmp_path.iterdir() if p.name.startswith(".")]
        return result.stderr

    return run


def test_what_is_no_bundle(refused, texts, tmp_path):
    file = written(tmp_path / "in.csv", {"message": messages(3)})
    assert "does not exist" in refused(tmp_path / "nowhere", file)
    assert_mentions(refused(tmp_path, file), tmp_path, "not a bundle")


def changed(bundle, tmp_path, **new):
    """Copy a bundle with another manifest, sealed again."""
    folder = tmp_path / "copy"
    shutil.copytree(bundle.path, folder)
    file = folder / "manifest.json"
    file.write_text(json.dumps(seal_manifest({**json.loads(file.read_text()), **new})))
    return folder


def test_a_bundle_of_a_newer_format(refused, texts, tmp_path):
    file = written(tmp_path / "in.csv", {"message": messages(3)})
    assert "upgrade calibrant" in refused(changed(texts, tmp_path, format=99), file)


def test_a_bundle_that_was_tampered_with(refused, texts, tmp_path):
    file = written(tmp_path / "in.csv", {"message": messages(3)})
    folder = changed(texts, tmp_path)
    weights = folder / "model.safetensors"
    content = bytearray(weights.read_bytes())
    content[-1] ^= 1
    weights.write_bytes(content)
    assert_mentions(refused(folder, file), "was changed", "packed")
    (folder / "manifest.json").write_text("{}")
    assert "damaged" in refused(folder, file)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", ("is empty",)),
        ("message\n", ("no rows",)),
        ("id,text\n1,broken\n", ("has no column 'message'",)),
        ("message,message\na,b\n", ("column 'message'", "twice")),
        ("message\nbroken,on,arrival\n", ("data row 1", "3 cells")),
    ],
)
def test_files_that_cannot_be_read(refused, texts, tmp_path, content, words):
    (tmp_path / "in.csv").write_text(content)
    assert_mentions(refused(texts.path, tmp_path / "in.csv"), *words)


def test_files_of_no_known_kind(refused, texts, bare, tmp_path):
    (tmp_path / "in.xlsx").write_text("message\nbroken\n")
    for bundle in (texts, bare):
        assert_mentions(refused(bundle.path, tmp_path / "in.xlsx"), "in.xlsx", ".csv")
        assert "does not exist" in refused(bundle.path, tmp_path / "nothing.csv")
    file = written(tmp_path / "in.csv", {"message": messages(3)})
    assert_mentions(refused(texts.path, file, out="out.txt"), "out.txt", ".parquet, .csv or .jsonl")


@pytest.mark.parametrize("name", ["predicted", "prob_defect", "decision", "action", "out_of_scope"])
def test_a_column_that_is_there_already(refused, texts, tmp_path, name):
    file = written(tmp_path / "in.csv", {"message": messages(3), name: ["a", "b", "c"]})
    assert_mentions(refused(texts.path, file), "already", f"column '{name}'")


def test_an_output_that_is_read(refused, texts, bare, tmp_path):
    file = written(tmp_path / "in.csv", {"message": messages(3)})
    assert_mentions(refused(texts.path, file, out="in.csv"), "in.csv", "input")
    folder = tmp_path / "folder"
    folder.mkdir()
    assert "is a folder" in refused(texts.path, file, out="folder")
    assert_mentions(
        refused(texts.path, file, out="no/out.csv"), tmp_path / "no", "does not exist", "create"
    )


def test_numbers_that_are_none(refused, tables, bare, tmp_path):
    good, odd = "shelf,price\ntop,1.5\n", tmp_path / "in.csv"
    odd.write_text(f"{good}low,cheap\n")
    said = refused(tables.path, odd)
    assert_mentions(said, "data row 2", "column 'price'", "'cheap'", "number")
    odd.write_text(f"{good}low,inf\n")
    said = refused(tables.path, odd)
    assert_mentions(said, "data row 2", "column 'price'", "'inf'")
    array = rows(5)
    array[3, 1] = np.nan
    columns = {f"logit_{name}": array[:, k] for k, name in enumerate(CLASSES)}
    scores = written(tmp_path / "in.parquet", columns)
    assert "data row 4, column 'logit_parts'" in refused(bare.path, scores)


def test_all_columns_that_a_table_lacks_are_named(refused, tables, tmp_path):
    odd = tmp_path / "in.csv"
    odd.write_text("Price,city\n1,Bonn\n")
    said = refused(tables.path, odd)
    assert_mentions(said, "in.csv", "2 columns", "bundle reads", "'price' (did you mean 'Price'?)")
    assert_mentions(said, "'shelf'", "'city'", "give all")
    assert "choose" not in said


def test_a_bad_row_far_into_the_file_leaves_nothing(refused, tables, tmp_path):
    given = shelves(20_000)
    given["price"][19_999] = np.inf
    file = written(tmp_path / "in.parquet", given)
    assert_mentions(refused(tables.path, file), "data rows 16,385 to 20,000")


def test_scores_of_other_classes(refused, bare, tmp_path):
    columns = {f"logit_{name}": [0.1, 0.2] for name in ("defect", "parts", "else")}
    assert "'other'" in refused(bare.path, written(tmp_path / "in.csv", columns))
    assert "no score columns" in refused(bare.path, written(tmp_path / "t.csv", {"message": ["a"]}))


def test_options_that_do_not_fit_the_bundle(refused, texts, tables, bare, tmp_path):
    file = written(tmp_path / "in.csv", {"message": messages(3)})
    assert_mentions(refused(texts.path, file, "--point", 3), "--point", "from 0 to 0", "got 3")
    assert "leave --positive out" in refused(texts.path, file, "--positive", "defect")
    assert "leave --text out" in refused(tables.path, file, "--text", "message")
    assert "leave --text out" in refused(bare.path, file, "--text", "message")
    without = pack(tmp_path / "bundle", calibrator=temperature())
    assert_mentions(
        refused(without.path, file, "--point", 0), "no operating point", "leave --point out"
    )


def test_errors_as_json(cli, texts, tmp_path):
    result = cli("predict", tmp_path / "nowhere", tmp_path / "in.csv", "--json")
    assert result.exit_code == 2
    assert json.loads(result.stdout)["error"]["kind"] == "bundle"


WITHOUT_TORCH = """
import sys
class NoTorch:
    def find_spec(self, name, *rest):
        if name.partition(".")[0] == "torch":
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, NoTorch())
from calibrant.cli.main import run
sys.argv = ["calibrant", *sys.argv[1:]]
run()
"""


def test_models_need_torch(spawn, texts, tmp_path):
    file = written(tmp_path / "in.csv", {"message": messages(3)})
    process = spawn("predict", texts.path, file, code=WITHOUT_TORCH)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err.count("\n")) == (2, "", 1)
    assert "pip install 'calibrant[torch]'" in err


def test_scores_need_no_torch(spawn, bare, tmp_path):
    array = rows(5)
    columns = {f"logit_{name}": array[:, k] for k, name in enumerate(CLASSES)}
    file = written(tmp_path / "in.csv", columns)
    process = spawn("predict", bare.path, file, "--json", code=WITHOUT_TORCH)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (0, "")
    assert json.loads(out)["n"] == 5


SLOW = """
import sys, time
import calibrant.models.scorer as scorer
real = scorer.Scorer.predict_logits
def slow(self, inputs):
    found = real(self, inputs)
    print("one batch", file=sys.stderr, flush=True)
    time.sleep(1)
    return found
scorer.Scorer.predict_logits = slow
import calibrant.workflows.bundle_rows as rows
rows._BATCH = 1
from calibrant.cli.main import run
sys.argv = ["calibrant", *sys.argv[1:]]
run()
"""


@pytest.mark.parametrize(
    ("sign", "code", "says"), [(signal.SIGINT, 130, "interrupted"), (signal.SIGTERM, 143, "")]
)
def test_an_interruption_leaves_nothing(forked, texts, tmp_path, sign, code, says):
    file, new = written(tmp_path / "in.csv", {"message": messages()}), tmp_path / "new.parquet"
    new.write_text("old")
    process = forked("predict", texts.path, file, "-o", new, code=SLOW)
    assert process.stderr.readline() == "one batch\n"
    process.send_signal(sign)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (code, "")
    assert err.replace("one batch\n", "").strip() == says
    assert new.read_text() == "old"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["in.csv", "new.parquet"]


PEAK = """
import resource, sys
from calibrant.cli.main import app
from typer.testing import CliRunner
result = CliRunner().invoke(app, sys.argv[1:])
assert result.exit_code == 0, result.output
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


@pytest.mark.verify
def test_memory_does_not_grow_with_the_file(spawn, tables, tmp_path):
    """200,000 rows more, which would need 90 MB if they were kept."""
    block = pa.table({**shelves(20_000), "more": ["x" * 400] * 20_000})
    peaks = []
    for n in (2, 12):
        file = tmp_path / f"{n}.parquet"
        with pq.ParquetWriter(file, block.schema) as writer:
            for _ in range(n):
                writer.write_table(block)
        words = ("predict", tables.path, file, "-o", tmp_path / "new.csv")
        printed, err = spawn(*words, code=PEAK).communicate(timeout=300)
        peaks.append(int(printed or err) / 1024)
    assert peaks[1] - peaks[0] < 60
