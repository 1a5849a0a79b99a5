"""`calibrant decide`: the same decisions as when the point was chosen, for any file."""

import json
import signal
import sys

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest
from tests.forks import COMMAND
from tests.sentences import assert_mentions

from calibrant.data import write_example
from calibrant.files.write_table import write_tables
from calibrant.scores import read_scores
from calibrant.scores import tables as score_tables
from calibrant.workflows.point_file import read_point

SCORES = ["decision_score", "decision_threshold"]
HOLD = ("--hold", "item_defective: precision>=0.85")


@pytest.fixture(scope="module")
def example(tmp_path_factory):
    return write_example(tmp_path_factory.mktemp("example") / "scores.csv", n=2000)


@pytest.fixture(scope="module")
def later(tmp_path_factory):
    return write_example(tmp_path_factory.mktemp("later") / "scores.csv", n=1000, seed=5)


@pytest.fixture
def point(cli, example, tmp_path):
    """Choose a point on the example with other words."""

    def chosen(*words, file=example, code=0):
        out = tmp_path / "point.json"
        result = cli("threshold", file, *words, "-o", out)
        assert result.exit_code == code, result.output
        return out

    return chosen


def column(path, name="decision"):
    """Read a column of a file of any format, as a list."""
    if path.suffix == ".parquet":
        return pq.read_table(path)[name].to_pylist()
    if path.suffix == ".csv":
        return pacsv.read_csv(path)[name].to_pylist()
    return [json.loads(line)[name] for line in path.read_text().splitlines()]


@pytest.mark.parametrize("ending", ["parquet", "csv", "jsonl"])
def test_decisions_are_those_of_the_point(cli, point, later, tmp_path, ending):
    path, out = point(*HOLD), tmp_path / f"d.{ending}"
    result = cli("decide", later, "--point", path, "-o", out)
    assert result.exit_code == 0, result.output
    scores = read_scores(later)
    acted = read_point(path).point.act(scores.probs)
    assert column(out) == np.where(acted, "act", "abstain").tolist()
    assert_mentions(result.stdout, f"Acted on: {acted.sum()} of 1,000")
    assert_mentions(result.stdout, f"in {out}")


def test_all_other_columns_stay(cli, point, later, tmp_path):
    out = tmp_path / "d.csv"
    cli("decide", later, "--point", point(*HOLD), "-o", out)
    before, after = pacsv.read_csv(later), pacsv.read_csv(out)
    assert after.column_names == [*before.column_names, "decision", *SCORES]
    for name in before.column_names:
        assert after[name].to_pylist() == before[name].to_pylist()


def read_numbers(path, *names):
    table = pacsv.read_csv(path)
    return [table[name].to_numpy() for name in names]


def test_scores_from_their_threshold_on_are_acted_on(cli, point, later, tmp_path):
    out, path = tmp_path / "d.csv", point(*HOLD)
    said = cli("decide", later, "--point", path, "-o", out).stdout
    decision, score, least = read_numbers(out, "decision", *SCORES)
    assert ((decision == "act") == (score >= least)).all()
    assert set(least) == {read_point(path).point.threshold}
    assert (score == read_numbers(out, "prob_item_defective")[0]).all()
    assert_mentions(said, "decision score", "P(item_defective)")


def test_both_sides_of_a_band_show_their_threshold(cli, point, later, tmp_path):
    out, ends = tmp_path / "d.csv", ("--act", "precision>=0.8", "--clear", "npv>=0.9")
    path = point("--positive", "item_defective", *ends)
    cli("decide", later, "--point", path, "-o", out)
    decision, score, limit = read_numbers(out, "decision", *SCORES)
    band = read_point(path).result
    assert set(limit[decision == "clear"]) == {band.lower.threshold}
    assert set(limit[decision != "clear"]) == {band.upper.threshold}
    assert ((decision == "act") == (score >= band.upper.threshold)).all()
    assert ((decision == "clear") == (score < band.lower.threshold)).all()


def test_each_of_several_classes_has_its_score(cli, point, later, tmp_path):
    out = tmp_path / "d.csv"
    path = point(*HOLD, "--hold", "others: precision>=0.85")
    cli("decide", later, "--point", path, "-o", out)
    for name in ("item_defective", "others"):
        columns = (f"flag_{name}", f"decision_score_{name}", f"decision_threshold_{name}")
        flag, score, least = read_numbers(out, *columns)
        assert (flag == (score >= least)).all()
        assert 0 < flag.sum() < len(flag)


def test_json(cli, point, later, tmp_path):
    path, out = point(*HOLD), tmp_path / "d.parquet"
    found = json.loads(cli("decide", later, "--point", path, "-o", out, "--json").stdout)
    assert found["n"] == 1000
    assert found["decisions"]["act"] + found["decisions"]["abstain"] == 1000
    assert (found["point"], found["out"]) == (str(path), str(out))


def test_without_a_place_rows_are_only_counted(cli, point, later, tmp_path):
    path = point(*HOLD)
    result = cli("decide", later, "--point", path)
    assert result.exit_code == 0
    assert "Nothing was written" in result.stdout
    assert [p.name for p in tmp_path.iterdir()] == ["point.json"]


def test_labels_are_not_needed_and_columns_may_turn(cli, point, later, tmp_path):
    path = point(*HOLD)
    table = pacsv.read_csv(later)
    names = [n for n in table.column_names if n != "label"][::-1]
    pacsv.write_csv(table.select(names), tmp_path / "bare.csv")
    cli("decide", later, "--point", path, "-o", tmp_path / "a.csv")
    cli("decide", tmp_path / "bare.csv", "--point", path, "-o", tmp_path / "b.csv")
    assert column(tmp_path / "a.csv") == column(tmp_path / "b.csv")


@pytest.mark.parametrize("method", ["temperature", "vector", "isotonic"])
@pytest.mark.parametrize("batch", [1 << 21, 1024])
def test_raw_scores_are_calibrated_as_they_were(
    cli, point, example, tmp_path, method, batch, monkeypatch
):
    """The calibrator travels in the point file: the very rows of the choice are decided alike."""
    calibrator = tmp_path / "c.json"
    cli("calibrate", example, "-o", calibrator, "--method", method)
    path = point(*HOLD, "--calibrator", calibrator)
    calibrator.unlink()
    monkeypatch.setattr(score_tables, "_ENTRIES", batch)
    found = json.loads(cli("decide", example, "--point", path, "--json").stdout)
    chosen = read_point(path).point
    assert found["decisions"]["act"] == chosen["precision"].n
    assert found["decisions"]["abstain"] == 2000 - chosen["precision"].n


def test_the_calibrator_makes_a_difference(cli, point, example, later, tmp_path):
    cli("calibrate", example, "-o", tmp_path / "c.json", "--method", "vector")
    path = point(*HOLD, "--calibrator", tmp_path / "c.json")
    whole = json.loads(path.read_text())
    with_it = json.loads(cli("decide", later, "--point", path, "--json").stdout)
    del whole["calibrator"]
    path.write_text(json.dumps(whole))
    without = json.loads(cli("decide", later, "--point", path, "--json").stdout)
    assert with_it["decisions"] != without["decisions"]


def test_logits_and_many_classes_are_decided_as_when_chosen(cli, tmp_path, monkeypatch):
    """Sums over classes round alike, however the rows are cut and the columns lie."""
    rng = np.random.default_rng(0)
    logits = rng.normal(0, 3, (3000, 7))
    labels = (logits + rng.gumbel(size=logits.shape)).argmax(axis=1)
    columns = {f"logit_{k}": logits[:, k] for k in range(7)}
    pq.write_table(pa.table({"label": labels, **columns}), tmp_path / "s.parquet")
    turned = {name: columns[name] for name in reversed(columns)}
    pq.write_table(pa.table(turned), tmp_path / "t.parquet")
    for hold in ("3: precision>=0.8", "accuracy>=0.8"):
        cli("threshold", tmp_path / "s.parquet", "--hold", hold, "-o", tmp_path / "p.json")
        chosen = read_point(tmp_path / "p.json").point
        for file in ("s.parquet", "t.parquet"):
            for entries in (1 << 21, 7 * 1024):
                monkeypatch.setattr(score_tables, "_ENTRIES", entries)
                words = ("decide", tmp_path / file, "--point", tmp_path / "p.json", "--json")
                found = json.loads(cli(*words).stdout)
                assert found["decisions"]["act"] / 3000 == chosen["coverage"].value


def test_accepted_predictions_come_with_their_class(cli, point, later, tmp_path):
    out = tmp_path / "d.parquet"
    result = cli("decide", later, "--point", point("--hold", "accuracy>=0.9"), "-o", out)
    assert result.stdout.startswith("Accepted: ")
    scores = read_scores(later)
    assert column(out, "predicted") == np.array(scores.classes)[scores.probs.argmax(1)].tolist()


def test_several_classes_get_a_flag_each(cli, point, later, tmp_path):
    out = tmp_path / "d.parquet"
    path = point(*HOLD, "--hold", "others: precision>=0.9")
    result = cli("decide", later, "--point", path, "-o", out)
    assert "Flagged as “others”" in result.stdout
    acted = read_point(path).result.act(read_scores(later).probs)
    assert column(out, "flag_others") == acted["others"].tolist()
    assert column(out, "flag_item_defective") == acted["item_defective"].tolist()
    found = json.loads(cli("decide", later, "--point", path, "--json").stdout)
    assert found["decisions"] == {name: int(flag.sum()) for name, flag in acted.items()}


def test_a_band_knows_three_decisions(cli, point, later, tmp_path):
    out = tmp_path / "d.parquet"
    path = point("--act", "others: precision>=0.95", "--clear", "npv>=0.95")
    result = cli("decide", later, "--point", path, "-o", out)
    assert "For a person:" in result.stdout
    assert set(column(out)) == {"act", "person", "clear"}
    found = json.loads(cli("decide", later, "--point", path, "--json").stdout)
    assert found["decisions"] == {w: column(out).count(w) for w in ("act", "person", "clear")}


@pytest.mark.parametrize("positive", ["churn", "stay"])
def test_a_lone_column_of_a_named_class(cli, tmp_path, positive):
    rng = np.random.default_rng(0)
    yes = rng.random(900) < 0.4
    probs = np.clip(rng.normal(0.25 + 0.5 * yes, 0.15), 0, 1).round(4)
    file, out = tmp_path / "s.csv", tmp_path / "p.json"
    rows = [f"{'churn' if y else 'stay'},{p}" for y, p in zip(yes, probs, strict=True)]
    file.write_text("\n".join(["label,prob", *rows]))
    words = ("--positive", "churn")
    cli("threshold", file, "--hold", f"{positive}: precision>=0.8", *words, "-o", out)
    result = cli("decide", file, "--point", out, "-o", tmp_path / "d.csv", *words)
    assert result.exit_code == 0
    chosen = read_point(out).point
    assert column(tmp_path / "d.csv").count("act") == chosen["precision"].n
    alone = cli("decide", file, "--point", out)
    assert alone.exit_code == 2
    assert "--positive churn" in alone.stderr


def test_probabilities_that_cannot_tell_the_threshold_are_refused(cli, tmp_path):
    rng = np.random.default_rng(0)
    labels = (rng.random(900) < 0.5).astype(int)
    pq.write_table(
        pa.table({"label": labels, "logit": rng.normal(60 + 10 * labels, 3)}),
        tmp_path / "s.parquet",
    )
    cli("threshold", tmp_path / "s.parquet", "--hold", "precision>=0.9", "-o", tmp_path / "p.json")
    (tmp_path / "probs.csv").write_text("prob\n1\n0.5\n")
    result = cli("decide", tmp_path / "probs.csv", "--point", tmp_path / "p.json")
    assert result.exit_code == 2
    assert "give logits" in result.stderr
    assert cli("decide", tmp_path / "s.parquet", "--point", tmp_path / "p.json").exit_code == 0


def test_a_check_on_later_rows(cli, point, later, tmp_path):
    path = point(*HOLD)
    kept = cli("decide", later, "--point", path, "--check")
    assert kept.exit_code == 0
    table = pacsv.read_csv(later)
    wrong = [
        "others" if label == "item_defective" else label for label in table["label"].to_pylist()
    ]
    pacsv.write_csv(
        table.set_column(table.column_names.index("label"), "label", pa.array(wrong)),
        tmp_path / "wrong.csv",
    )
    out = tmp_path / "d.csv"
    broken = cli("decide", tmp_path / "wrong.csv", "--point", path, "--check", "-o", out)
    assert broken.exit_code == 1
    assert "Broken (confidence 95 %)" in broken.stdout
    assert len(column(out)) == 1000  # the decisions are there all the same
    words = ("decide", tmp_path / "wrong.csv", "--point", path, "--check", "--json")
    result = cli(*words)
    assert result.exit_code == 1
    assert json.loads(result.stdout)["check"]["verdict"] == "broken"


def test_a_check_with_weights_says_what_it_rests_on(cli, point, later, tmp_path):
    path, file = point(*HOLD), tmp_path / "weighed.csv"
    table = pacsv.read_csv(later)
    weights = pa.array(np.where(np.arange(len(table)) % 2, 2.0, 1.0))
    pacsv.write_csv(table.append_column("weight", weights), file)
    words = ("decide", file, "--point", path, "--check")
    seen = " ".join(cli(*words).stdout.split())
    assert_mentions(seen, "more than 2", "largest seen")
    known = " ".join(cli(*words, "--largest-weight", "5").stdout.split())
    assert_mentions(known, "more than 5)")
    wrong = cli(*words, "--largest-weight", "1.5")
    assert wrong.exit_code == 2
    assert_mentions(wrong.stderr, "--largest-weight", "finite", "no smaller")
    alone = cli("decide", file, "--point", path, "--largest-weight", "5")
    assert (alone.exit_code, "requires --check" in alone.stderr) == (2, True)


@pytest.mark.parametrize(
    "words",
    [
        (*HOLD, "--hold", "others: precision>=0.9"),
        ("--act", "others: precision>=0.85", "--clear", "npv>=0.85"),
    ],
)
def test_a_check_of_several_promises(cli, point, later, words):
    path = point(*words)
    found = json.loads(cli("decide", later, "--point", path, "--check", "--json").stdout)
    points = found["check"]["points"]
    assert len(points) == 2
    assert all(each["confidence"] == pytest.approx(0.975) for each in points)
    assert found["check"]["verdict"] in ("kept", "undecidable")


def test_the_rows_that_chose_the_point_may_not_check_it(cli, point, example):
    result = cli("decide", example, "--point", point(*HOLD), "--check")
    assert result.exit_code == 2
    assert_mentions(result.stderr, "chosen on", "very rows")
    as_json = cli("decide", example, "--point", point(*HOLD), "--check", "--json")
    assert json.loads(as_json.stdout)["error"]["kind"] == "split_misuse"


def test_the_rows_of_the_calibrator_may_not_check_the_point(cli, point, later, tmp_path):
    calibrator = tmp_path / "c.json"
    cli("calibrate", later, "-o", calibrator, "--method", "vector")
    path = point(*HOLD, "--calibrator", calibrator)
    assert json.loads(path.read_text(encoding="utf-8"))["guarantee"] is not None
    assert cli("decide", later, "--point", path).exit_code == 0
    result = cli("decide", later, "--point", path, "--check")
    assert result.exit_code == 2
    assert_mentions(result.stderr, "--check", "calibrator", "fitted on")


def test_a_check_needs_labels(cli, point, later, tmp_path):
    table = pacsv.read_csv(later)
    bare = table.drop_columns(["label"])
    pacsv.write_csv(bare, tmp_path / "bare.csv")
    result = cli("decide", tmp_path / "bare.csv", "--point", point(*HOLD), "--check")
    assert result.exit_code == 2
    assert "no label column" in result.stderr


SLOW = """
import sys, time
import calibrant.scores.tables as tables
real = tables.ScoreTable.batches
def slow(self):
    for batch in real(self):
        yield batch
        print("one batch", file=sys.stderr, flush=True)
        for _ in range(1200): time.sleep(0.05)  # a signal just before one long sleep would be lost
tables.ScoreTable.batches = slow
from calibrant.cli.main import run
sys.argv = ["calibrant", *sys.argv[1:]]
run()
"""


@pytest.mark.parametrize(
    ("sign", "code", "says"), [(signal.SIGINT, 130, "interrupted\n"), (signal.SIGTERM, 143, "")]
)
def test_an_interruption_leaves_nothing(forked, point, later, tmp_path, sign, code, says):
    path, new = point(*HOLD), tmp_path / "new.parquet"
    new.write_text("old")
    process = forked("decide", later, "--point", path, "-o", new, code=SLOW)
    assert process.stderr.readline() == "one batch\n"
    process.send_signal(sign)
    out, err = process.communicate(timeout=30)
    assert (process.returncode, out, err) == (code, "", says)
    assert new.read_text() == "old"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["new.parquet", "point.json"]


SMALL_DISK = f"""
import resource, signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
{COMMAND}
"""


@pytest.fixture
def lone(cli, scores, tmp_path):
    """A point for a lone column of class 1."""
    out = tmp_path / "point.json"
    assert cli("threshold", scores, "--hold", "precision>=0.7", "-o", out).exit_code == 0
    return out


@pytest.mark.skipif(sys.platform == "win32", reason="needs a limit on the size of files")
@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_a_disk_that_fills_up_leaves_the_old_file(forked, lone, tmp_path, ending):
    rng = np.random.default_rng(0)
    file, new = tmp_path / "in" / "s.parquet", tmp_path / f"new.{ending}"
    pq.write_table(pa.table({"logit": rng.normal(size=20_000)}), file)
    new.write_text("old")
    words = ("decide", file, "--point", lone, "-o", new)
    process = forked(*words, code=SMALL_DISK)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err.count("\n")) == (2, "", 1)
    assert "cannot be written" in err
    assert new.read_text() == "old"


def test_a_bad_row_far_into_the_file_leaves_nothing(cli, lone, tmp_path):
    probs = np.full(900_000, 0.5)
    probs[899_998] = np.nan
    file = tmp_path / "in" / "s.parquet"
    pq.write_table(pa.table({"prob": probs}), file)
    result = cli("decide", file, "--point", lone, "-o", tmp_path / "new.parquet")
    assert result.exit_code == 2
    assert "data row 899,999, column 'prob'" in result.stderr
    assert not (tmp_path / "new.parquet").exists()


PEAK = """
import resource, sys
from calibrant.cli.main import app
from typer.testing import CliRunner
result = CliRunner().invoke(app, sys.argv[1:])
assert result.exit_code == 0, result.output
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


@pytest.mark.verify
def test_memory_does_not_grow_with_the_file(spawn, lone, tmp_path):
    """Six million rows more, which would need 150 MB if they were kept."""
    rng = np.random.default_rng(0)
    block = pa.table({"id": np.arange(100_000), "prob": rng.random(100_000)})
    peaks = []
    for n in (20, 80):
        file = tmp_path / f"{n}.parquet"
        with pq.ParquetWriter(file, block.schema) as writer:
            for _ in range(n):
                writer.write_table(block)
        words = ("decide", file, "--point", lone, "-o", tmp_path / "new.parquet")
        printed, err = spawn(*words, code=PEAK).communicate(timeout=120)
        peaks.append(int(printed or err) / 1024)
    assert peaks[1] - peaks[0] < 60


def test_a_folder_of_parts_and_npz(cli, lone, tmp_path):
    rng = np.random.default_rng(1)
    probs = rng.random(400)
    folder = tmp_path / "parts"
    folder.mkdir()
    for i in range(4):
        write_tables(folder / f"{i}.csv", [pa.table({"prob": probs[100 * i : 100 * (i + 1)]})])
    np.savez(tmp_path / "whole.npz", probs=probs)
    acted = read_point(lone).point.act(probs)
    for file in (folder, tmp_path / "whole.npz"):
        out = tmp_path / "new.parquet"
        assert cli("decide", file, "--point", lone, "-o", out).exit_code == 0
        assert column(out) == np.where(acted, "act", "abstain").tolist()


@pytest.mark.parametrize("mixed", [False, True])
def test_some_of_the_rows_that_chose_the_point_may_not_check_it(
    cli, point, example, later, tmp_path, mixed
):
    table = pacsv.read_csv(example).slice(0, 500)
    if mixed:
        table = pa.concat_tables([pacsv.read_csv(later), table], promote_options="default")
    pacsv.write_csv(table, tmp_path / "some.csv")
    result = cli("decide", tmp_path / "some.csv", "--point", point(*HOLD), "--check")
    assert result.exit_code == 2
    assert_mentions(result.stderr, "contains", "that chose")


def test_a_point_file_of_an_older_version_checks_without_a_sketch(cli, point, later):
    path = point(*HOLD)
    saved = json.loads(path.read_text(encoding="utf-8"))
    del saved["chosen_on"]["sketch"]
    path.write_text(json.dumps(saved), encoding="utf-8")
    assert cli("decide", later, "--point", path, "--check").exit_code == 0
    saved["chosen_on"]["sketch"] = {"rows": 3}
    path.write_text(json.dumps(saved), encoding="utf-8")
    result = cli("decide", later, "--point", path, "--check")
    assert result.exit_code == 2
    assert_mentions(result.stderr, "damaged", "the sketch")
