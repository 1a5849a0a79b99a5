"""`calibrant calibrate --apply`: the same rows with new probabilities, whatever the format."""

import json
import signal
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.forks import COMMAND
from tests.sentences import assert_mentions

from calibrant.calibrators import TemperatureScaling
from calibrant.data import write_example
from calibrant.files.write_table import write_tables
from calibrant.scores import read_scores

CLASSES = ["cat", "dog", "elk"]


def saved(folder, classes=CLASSES, temperature=2.0, name="c.json"):
    content = {"format": 1, "method": "temperature", "classes": classes,
               "params": {"temperature": temperature}}  # fmt: skip
    (folder / name).write_text(json.dumps(content))
    return folder / name


@pytest.fixture
def world(tmp_path):
    rng = np.random.default_rng(0)
    logits = rng.normal(0, 3, (50, 3))
    columns = {
        "id": [f"{i:03d}" for i in range(50)],
        **{f"logit_{c}": logits[:, k] for k, c in enumerate(CLASSES)},
        "label": np.array(CLASSES)[np.arange(50) % 3],
        "weight": rng.uniform(1, 2, 50),
        "place": ["north", "south"] * 25,
    }
    table = pa.table(columns)
    expected = TemperatureScaling().fit(logits, np.arange(50) % 3)
    expected.temperature_ = 2.0
    return table, expected.predict_proba(logits)


def write(table, path):
    if path.suffix != ".npz":
        write_tables(path, [table])
        return path
    logits = np.column_stack([table[f"logit_{c}"].to_numpy() for c in CLASSES])
    names = {"labels": "label", "weights": "weight", "groups": "place", "ids": "id"}
    others = {key: np.array(table[name].to_pylist()) for key, name in names.items()}
    np.savez(path, logits=logits, classes=CLASSES, **others)
    return path


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet", "npz"])
@pytest.mark.parametrize("out", ["parquet", "csv", "jsonl", "csv.gz"])
def test_every_format_into_every_format(cli, world, tmp_path, ending, out):
    table, expected = world
    file, new = write(table, tmp_path / f"s.{ending}"), tmp_path / f"new.{out}"
    result = cli("calibrate", "--apply", saved(tmp_path), file, "-o", new)
    assert result.exit_code == 0, result.output
    assert_mentions(result.stdout, "50 rows", "temperature")
    group = "group" if ending == "npz" else "place"
    found = read_scores(new, group=group, ids="id")
    np.testing.assert_allclose(found.probs, expected, rtol=1e-15)
    assert found.classes == tuple(CLASSES)
    assert found.ids.tolist() == table["id"].to_pylist()
    assert found.groups.tolist() == table["place"].to_pylist()
    np.testing.assert_array_equal(found.weights, table["weight"].to_numpy())
    assert [found.classes[k] for k in found.labels] == table["label"].to_pylist()


def test_what_comes_out_can_be_evaluated(cli, world, tmp_path):
    file = write(world[0], tmp_path / "s.parquet")
    cli("calibrate", "--apply", saved(tmp_path), file, "-o", tmp_path / "new.parquet")
    result = cli("evaluate", tmp_path / "new.parquet", "--json", "--group", "place")
    assert result.exit_code == 0
    assert json.loads(result.stdout)["weighted"] is True


def test_columns_are_matched_by_name_and_keep_their_places(cli, world, tmp_path):
    table, expected = world
    turned = table.select(["logit_elk", "id", "logit_cat", "logit_dog"])
    file, new = write(turned, tmp_path / "s.csv"), tmp_path / "new.parquet"
    assert cli("calibrate", "--apply", saved(tmp_path), file, "-o", new).exit_code == 0
    found = pq.read_table(new)
    assert found.column_names == ["prob_elk", "id", "prob_cat", "prob_dog"]
    for k, name in enumerate(CLASSES):
        np.testing.assert_allclose(found[f"prob_{name}"].to_numpy(), expected[:, k], rtol=1e-15)


def test_a_folder_of_parts(cli, world, tmp_path):
    folder, new = tmp_path / "parts", tmp_path / "new.parquet"
    folder.mkdir()
    for i in range(5):
        write(world[0].slice(10 * i, 10), folder / f"{i}.parquet")
    for path in (folder, f"{folder}/*.parquet"):
        assert cli("calibrate", "--apply", saved(tmp_path), path, "-o", new).exit_code == 0
        assert pq.read_table(new)["id"].to_pylist() == world[0]["id"].to_pylist()


def test_fit_then_apply_gives_what_the_library_gives(cli, tmp_path):
    train = write_example(tmp_path / "a.csv", n=400)
    other = write_example(tmp_path / "b.csv", n=300, seed=4)
    for method in ("auto", "isotonic", "vector"):
        cli("calibrate", train, "-o", tmp_path / "c.json", "--method", method)
        new = tmp_path / "new.parquet"
        done = cli("calibrate", "--apply", tmp_path / "c.json", other, "-o", new, "--json")
        found = json.loads(done.stdout)
        assert (found["n"], found["out"]) == (300, str(new))
        from calibrant.calibrators import from_dict

        calibrator = from_dict(json.loads((tmp_path / "c.json").read_text()))
        direct = calibrator.predict_proba(read_scores(other, logits=True).logits)
        np.testing.assert_allclose(read_scores(new).probs, direct, rtol=1e-12)


def test_a_lone_column_of_class_1(cli, scores, tmp_path):
    cli("calibrate", scores, "-o", tmp_path / "c.json", "--method", "temperature:lowest=1.5")
    new = tmp_path / "new.csv"
    assert cli("calibrate", "--apply", tmp_path / "c.json", scores, "-o", new).exit_code == 0
    assert new.read_text().splitlines()[0] == '"label","prob","place"'
    before, after = read_scores(scores).probs, read_scores(new).probs
    assert ((after - 0.5) * (before - 0.5) >= 0).all()
    assert cli("evaluate", new).exit_code == 0


@pytest.mark.parametrize("positive", ["spam", "ham"])
def test_a_lone_column_of_a_named_class(cli, tmp_path, positive):
    file, new = tmp_path / "s.csv", tmp_path / "new.csv"
    file.write_text("label,logit\nspam,2.0\nham,-4.0\n")
    calibrator = saved(tmp_path, ["ham", "spam"])
    words = ("calibrate", "--apply", calibrator, file, "-o", new, "--positive", positive)
    assert cli(*words).exit_code == 0
    found = read_scores(new, positive=positive)
    np.testing.assert_allclose(found.probs, 1 / (1 + np.exp([-1.0, 2.0])))


def test_probabilities_of_exactly_zero_are_said(cli, tmp_path):
    (tmp_path / "s.csv").write_text("prob\n0\n1\n0.5\n")
    calibrator = saved(tmp_path, ["0", "1"], 1.0)
    words = ("calibrate", "--apply", calibrator, tmp_path / "s.csv", "-o", tmp_path / "n.csv")
    assert_mentions(cli(*words).stdout, "2 probabilities", "exactly 0 or 1")
    assert json.loads(cli(*words, "--json").stdout)["notes"]
    np.testing.assert_allclose(
        np.loadtxt(tmp_path / "n.csv", skiprows=1), [1e-12, 1, 0.5], rtol=1e-3
    )


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


@pytest.mark.parametrize("ending", ["parquet", "csv", "jsonl"])
@pytest.mark.parametrize(
    ("sign", "code", "says"), [(signal.SIGINT, 130, "interrupted\n"), (signal.SIGTERM, 143, "")]
)
def test_an_interruption_leaves_nothing(forked, scores, tmp_path, ending, sign, code, says):
    calibrator, new = saved(tmp_path, ["0", "1"]), tmp_path / f"new.{ending}"
    new.write_text("old")
    process = forked("calibrate", "--apply", calibrator, scores, "-o", new, code=SLOW)
    assert process.stderr.readline() == "one batch\n"
    process.send_signal(sign)
    out, err = process.communicate(timeout=30)
    assert (process.returncode, out, err) == (code, "", says)
    assert new.read_text() == "old"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["c.json", "in", new.name]


def test_a_process_that_is_shot_leaves_the_old_file(forked, scores, tmp_path):
    calibrator, new = saved(tmp_path, ["0", "1"]), tmp_path / "new.csv"
    new.write_text("old")
    process = forked("calibrate", "--apply", calibrator, scores, "-o", new, code=SLOW)
    process.stderr.readline()
    process.kill()
    process.communicate(timeout=30)
    assert new.read_text() == "old"


SMALL_DISK = f"""
import resource, signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
{COMMAND}
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs a limit on the size of files")
@pytest.mark.parametrize("ending", ["parquet", "csv", "jsonl"])
def test_a_disk_that_fills_up_leaves_the_old_file(forked, tmp_path, ending):
    rng = np.random.default_rng(0)
    folder = tmp_path / "in"
    folder.mkdir()
    file = folder / "s.parquet"
    pq.write_table(pa.table({"logit": rng.normal(size=20_000)}), file)
    calibrator, new = saved(tmp_path, ["0", "1"]), tmp_path / f"new.{ending}"
    new.write_text("old")
    words = ("calibrate", "--apply", calibrator, file, "-o", new)
    process = forked(*words, code=SMALL_DISK)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 2, err
    assert out == ""
    assert err.count("\n") == 1
    assert "cannot be written" in err
    assert new.read_text() == "old"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["c.json", "in", new.name]


def test_a_bad_row_far_into_the_file_leaves_nothing(cli, tmp_path):
    logits = np.zeros(900_000)
    logits[899_998] = np.nan
    (tmp_path / "in").mkdir()
    pq.write_table(pa.table({"logit": logits}), tmp_path / "in" / "s.parquet")
    calibrator = saved(tmp_path, ["0", "1"])
    words = ("calibrate", "--apply", calibrator, tmp_path / "in", "-o", tmp_path / "new.parquet")
    result = cli(*words)
    assert result.exit_code == 2
    assert "data row 899,999, column 'logit'" in result.stderr
    assert sorted(p.name for p in tmp_path.iterdir()) == ["c.json", "in"]


PEAK = """
import resource, sys
from calibrant.cli.main import app
from typer.testing import CliRunner
result = CliRunner().invoke(app, sys.argv[1:])
assert result.exit_code == 0, result.output
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


@pytest.mark.verify
def test_memory_does_not_grow_with_the_file(spawn, tmp_path):
    """Six million rows more, which would need 150 MB if they were kept."""
    rng = np.random.default_rng(0)
    calibrator, peaks = saved(tmp_path, ["0", "1"]), []
    block = pa.table({"id": np.arange(100_000), "logit": rng.normal(size=100_000)})
    for n in (20, 80):
        file = tmp_path / f"{n}.parquet"
        with pq.ParquetWriter(file, block.schema) as writer:
            for _ in range(n):
                writer.write_table(block)
        words = ("calibrate", "--apply", calibrator, file, "-o", tmp_path / "new.parquet")
        printed, err = spawn(*words, code=PEAK).communicate(timeout=120)
        peaks.append(int(printed or err) / 1024)
    assert peaks[1] - peaks[0] < 60


def test_zero_means_the_same_when_it_is_applied(cli, tmp_path):
    rng = np.random.default_rng(0)
    votes = rng.binomial(20, rng.beta(1, 1, 400)) / 20
    labels = (rng.random(400) < votes * 0.9).astype(int)
    table = pa.table({"label": labels, "prob": votes})
    file = write(table, tmp_path / "forest.csv")
    c = tmp_path / "c.json"
    assert cli("calibrate", file, "--method", "platt", "-o", c).exit_code == 0
    assert json.loads(c.read_text())["zero_as"] == 0.025
    # The same rows without the smallest vote: by themselves their zero would mean something else.
    few = write(table.filter(pa.array((votes == 0) | (votes > 0.3))), tmp_path / "few.csv")
    new = tmp_path / "new.csv"
    assert cli("calibrate", "--apply", c, few, "-o", new).exit_code == 0
    learned = json.loads(c.read_text())["params"]["maps"][0]
    at_zero = 1 / (1 + np.exp(-(learned["slope"] * np.log(0.025 / 0.975) + learned["intercept"])))
    scores = read_scores(new).probs
    assert scores.min() == pytest.approx(at_zero, rel=1e-9)


@pytest.mark.parametrize("value", [0, -1, 0.7, True, "small", None])
def test_a_zero_that_makes_no_sense_is_refused(cli, world, tmp_path, value):
    file = write(world[0], tmp_path / "s.csv")
    path = saved(tmp_path)
    path.write_text(json.dumps({**json.loads(path.read_text()), "zero_as": value}))
    result = cli("calibrate", "--apply", path, file, "-o", tmp_path / "new.csv")
    assert result.exit_code == 2
    assert_mentions(result.output + result.stderr, "'zero_as'", "small probability")
