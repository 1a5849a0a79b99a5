"""`calibrant pack`: files in, a bundle out, and one sentence for everything that cannot be."""

import json
import signal
from pathlib import Path

import numpy as np
import pyarrow.csv as pacsv
import pytest
from tests.sentences import assert_mentions, refuses
from tests.unit.bundle.parts import CLASSES, band, point, points_of, temperature

from calibrant.bundle import load_bundle
from calibrant.cli.verbs.pack import parse_actions
from calibrant.data import write_example
from calibrant.errors import BundleError, InputError
from calibrant.scores import read_scores


def strict(text):
    """Parse JSON that must not hold NaN or Infinity."""

    def refuse(word):
        raise AssertionError(f"{word} in JSON")

    return json.loads(text, parse_constant=refuse)


@pytest.fixture
def files(tmp_path):
    """Write a calibrator, and points chosen with and without it."""
    folder = tmp_path / "in"
    folder.mkdir()
    own = {"calibrator": temperature().to_dict()}
    binary = ("no", "yes")
    contents = {
        "c": temperature().to_dict(),
        "c2": temperature(3.0).to_dict(),
        "c_xyz": temperature(classes=("x", "y", "z")).to_dict(),
        "raw": point().to_dict(),
        "loose": point(threshold=0.5).to_dict(),
        "calibrated": {**point().to_dict(), **own},
        "each": {**points_of(point("parts"), point("other")).to_dict(), **own},
        "band": band().to_dict(),
        "two": point("yes", classes=binary).to_dict(),
        "turned": point(classes=("other", "defect", "parts")).to_dict(),
        "newer": {**point().to_dict(), "format": 2},
        "unreached": {"reached": False, "best": 0.7, "labels_needed": 900, "why": "too few"},
    }
    for name, content in contents.items():
        (folder / f"{name}.json").write_text(json.dumps(content))
    return folder


@pytest.fixture
def run(cli, files, tmp_path):
    """Run pack with the names of files, into the folder `b`."""

    def call(*words, out="b"):
        paths = [files / f"{w}.json" if (files / f"{w}.json").exists() else w for w in words]
        return cli("pack", *paths, "-o", tmp_path / out)

    return call


@pytest.fixture
def refused(run, tmp_path):
    """Return the one sentence with which a command line is refused; nothing stays behind."""

    def call(*words, kept=("in",), **more):
        result = run(*words, **more)
        assert result.exit_code == 2, result.output
        assert result.stdout == ""
        assert result.stderr.startswith("error: ")
        assert result.stderr.count("\n") == 1
        assert sorted(p.name for p in tmp_path.iterdir()) == sorted(kept)
        return result.stderr

    return call


def test_a_calibrator_and_a_point_become_a_bundle(run, tmp_path):
    words = ["--calibrator", "c", "--point", "calibrated", "--action", "defect=refund", "--action"]
    result = run(*words, "parts=send again")
    assert result.exit_code == 0, result.output
    assert result.stderr == ""
    assert_mentions(result.stdout, "3 classes", "temperature", "0. On calibrated scores:")
    assert_mentions(result.stdout, f"in {tmp_path / 'b'}")
    assert_mentions(result.stdout, "Note:", "action for 'parts'", "not used")
    bundle = load_bundle(tmp_path / "b")
    assert bundle.points[0].decides_on == "calibrated"
    assert bundle.actions == {"defect": "refund", "parts": "send again"}
    sources = bundle.provenance["sources"]
    assert [(s["role"], s["name"]) for s in sources] == [
        ("calibrator", "c.json"),
        ("operating_point", "calibrated.json"),
    ]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["b", "in"]


def test_json_tells_the_same(run, tmp_path):
    result = run("--calibrator", "c", "--point", "raw", "--point", "each", "--json")
    found = strict(result.stdout)
    assert result.stderr == ""
    assert (found["schema"], found["format"]) == (1, 4)
    assert (found["out"], found["calibrator"]) == (str(tmp_path / "b"), "temperature")
    assert found["classes"] == list(CLASSES)
    assert [each["decides_on"] for each in found["operating_points"]] == ["raw", "calibrated"]
    assert found["operating_points"][0]["guarantee"] == point().guarantee
    assert len(found["operating_points"][1]["points"]) == 2
    assert found["files"] == ["manifest.json", "card.md"]
    assert found["notes"] == [
        "Point 0 decides on the raw scores of the model, as chosen: that is the decision score, "
        "and the calibrator only sets the probabilities."
    ]


def test_a_point_brings_its_calibrator_along(run, tmp_path):
    assert run("--point", "each").exit_code == 0
    assert load_bundle(tmp_path / "b").calibration.same_as(temperature())


@pytest.mark.parametrize("name", ["raw", "band", "two", "turned"])
def test_a_point_alone_is_enough(run, tmp_path, name):
    assert run("--point", name).exit_code == 0
    bundle = load_bundle(tmp_path / "b")
    assert bundle.calibration is None
    assert bundle.points[0].decides_on == "raw"


def test_a_calibrator_alone_gives_probabilities(run, tmp_path):
    assert run("--calibrator", "c").exit_code == 0
    assert load_bundle(tmp_path / "b").points == ()


def test_several_points_and_another_order_of_classes(run, tmp_path):
    words = ["--calibrator", "c", "--point", "turned", "--point", "loose", "--point", "each"]
    result = run(*words)
    assert result.exit_code == 0, result.output
    assert_mentions(result.stdout, "Points 0, 1", "raw scores")
    assert load_bundle(tmp_path / "b").classes == CLASSES
    assert_mentions((tmp_path / "b/card.md").read_text(encoding="utf-8"), "Point 1", "alternative")


def test_a_bundle_decides_like_decide(cli, tmp_path):
    """Calibrate, choose, decide and pack from one file: both ways lead to the same decisions."""
    scores = write_example(tmp_path / "scores.csv", n=2000)
    read = read_scores(scores)
    assert cli("calibrate", scores, "-o", tmp_path / "c.json", "--method", "vector").exit_code == 0
    for name, hold, own in (
        ("a", "item_defective: precision>=0.8", True),
        ("b", "accuracy>=0.9", True),
        ("c2", "item_defective: precision>=0.8", False),
        ("d", "accuracy>=0.9", False),
    ):
        place, table = tmp_path / f"{name}.json", tmp_path / f"{name}.csv"
        more = ["--calibrator", tmp_path / "c.json"] if own else []
        chosen = cli("threshold", scores, *more, "--hold", hold, "-o", place)
        assert chosen.exit_code == 0, chosen.output
        assert cli("decide", scores, "--point", place, "-o", table).exit_code == 0
        packed = cli("pack", "--calibrator", tmp_path / "c.json", "--point", place, "-o",
                     tmp_path / name)  # fmt: skip
        assert packed.exit_code == 0, packed.output
        found = load_bundle(tmp_path / name).decide(probs=read.probs)
        expected = pacsv.read_csv(table)
        assert found.decision.tolist() == expected["decision"].to_pylist()
        acted = found.decision == "act"
        assert 0 < acted.sum() < 2000
        if "accuracy" in hold:
            predicted = np.array(expected["predicted"].to_pylist())
            assert (found.acted_as[acted] == predicted[acted]).all()


@pytest.mark.parametrize(
    ("words", "mentions"),
    [
        ("", ("nothing to pack",)),
        ("--point nowhere.json", ("--point nowhere.json does not exist",)),
        ("--calibrator nowhere.json", ("--calibrator nowhere.json does not exist",)),
        ("--calibrator c --point newer", ("newer.json", "format 2", "upgrade")),
        ("--calibrator c --point unreached", ("contains no threshold",)),
        ("--calibrator c --point c2", ("c2.json", "calibrator, not a point")),
        ("--calibrator raw --point raw", ("raw.json", "point, not a calibrator")),
        (
            "--calibrator c2 --point calibrated",
            ("calibrated", "another calibrator"),
        ),
        ("--calibrator c_xyz --point raw", ("class 'defect', which",)),
        ("--calibrator c --point two", ("two.json", "2 classes")),
        ("--point raw --point two", ("two.json", "2 classes")),
        ("--point raw --action refund", ("--action refund", "not an action")),
        ("--point raw --action x=refund", ("--action x=refund", "'x'", "classes")),
        ("--point raw --action defect=", ("--action defect=", "not an action")),
        ("--point raw --action defect=a --action defect=b", ("names 'defect' twice",)),
    ],
)
def test_what_cannot_be_packed(refused, words, mentions):
    assert_mentions(refused(*words.split()), *mentions)


@pytest.mark.parametrize("content", ["", "{", "[]", "null", '{"format": NaN}', "[" * 90_000])
@pytest.mark.parametrize("flag", ["--point", "--calibrator"])
def test_files_that_are_damaged(refused, files, content, flag):
    (files / "bad.json").write_text(content)
    message = refused(flag, "bad")
    assert "bad.json is not a saved" in message or "this is not a saved" in message


def test_a_folder_that_is_there_is_not_touched(run, refused, tmp_path):
    (tmp_path / "b").mkdir()
    (tmp_path / "b/mine.txt").write_text("mine")
    kept = ("b", "in")
    assert "not a bundle" in refused("--point", "raw", kept=kept)
    assert "not a bundle" in refused("--point", "raw", "--force", kept=kept)
    (tmp_path / "b/mine.txt").unlink()
    assert run("--point", "raw").exit_code == 0
    assert_mentions(refused("--point", "loose", kept=kept), "--force", "replace")
    assert load_bundle(tmp_path / "b").points[0].result.threshold == 0.75
    assert run("--point", "loose", "--force").exit_code == 0
    assert load_bundle(tmp_path / "b").points[0].result.threshold == 0.5
    assert_mentions(refused("--point", "raw", out="x/b", kept=kept), "does not exist", "create")


def test_a_missing_folder_name_and_json_errors(cli, files):
    result = cli("pack", "--point", files / "raw.json")
    assert result.exit_code == 2
    assert "-o is missing" in result.stderr
    result = cli("pack", "--point", files / "newer.json", "-o", files / "b", "--json")
    assert result.exit_code == 2
    assert strict(result.stdout)["error"]["kind"] == "input"


def test_a_disk_that_fills_up_leaves_the_old_bundle(run, refused, tmp_path, monkeypatch):
    def full(path, text, **options):
        path.write_bytes(b"half")
        raise OSError(28, "No space left on device")

    assert run("--point", "raw").exit_code == 0
    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_text", full)
        assert "No space left" in refused("--point", "loose", "--force", kept=("b", "in"))
        assert "No space left" in refused("--point", "loose", out="new", kept=("b", "in"))
    assert load_bundle(tmp_path / "b").points[0].result.threshold == 0.75


def test_an_edited_bundle_is_refused(run, tmp_path):
    assert run("--point", "raw").exit_code == 0
    file = tmp_path / "b/manifest.json"
    file.write_text(file.read_text(encoding="utf-8").replace("0.75", "0.25"), encoding="utf-8")
    with refuses(BundleError, "was changed", "packed"):
        load_bundle(tmp_path / "b")


def scores_of(path, header, *lines):
    path.write_text("\n".join([header, *lines]) + "\n")
    return path


def test_labelled_scores_go_along(run, tmp_path):
    """Columns may come in any order; rows keep theirs."""
    header = "id,weight,label,logit_other,logit_defect,logit_parts"
    scores = scores_of(tmp_path / "in/s.csv", header, "1,2,defect,0.5,3,-1", "2,1,other,2,0,0.25")
    result = run("--calibrator", "c", "--point", "raw", "--calib", scores, "--json")
    assert result.exit_code == 0, result.output
    assert strict(result.stdout)["files"] == ["manifest.json", "calib.npz", "card.md"]
    bundle = load_bundle(tmp_path / "b")
    assert bundle.calib.logits.tolist() == [[3.0, -1.0, 0.5], [0.0, 0.25, 2.0]]
    assert bundle.calib.codes.tolist() == [0, 2]
    assert bundle.calib.weights.tolist() == [2.0, 1.0]
    assert bundle.provenance["sources"][-1]["role"] == "calibrate_file"
    assert_mentions(
        (tmp_path / "b/card.md").read_text(encoding="utf-8"), "calibrate file", "`s.csv`"
    )


@pytest.mark.parametrize(
    ("header", "lines"),
    [
        ("truth,logit_no,logit_yes", ["yes,-1,1", "no,0.25,-0.25"]),
        ("truth,logit_yes,logit_no", ["yes,1,-1", "no,-0.25,0.25"]),
        ("truth,logit", ["yes,2", "no,-0.5"]),
    ],
)
def test_two_classes_go_along_in_every_form(run, tmp_path, header, lines):
    scores = scores_of(tmp_path / "in/s.csv", header, *lines)
    result = run("--point", "two", "--calib", scores, "--label", "truth")
    assert result.exit_code == 0, result.output
    calib = load_bundle(tmp_path / "b").calib
    assert calib.codes.tolist() == [1, 0]
    np.testing.assert_allclose(calib.logits[:, 1] - calib.logits[:, 0], [2.0, -0.5])


def test_probabilities_go_along_as_the_bundle_reads_them(run, tmp_path):
    header = "label,prob_defect,prob_parts,prob_other"
    scores = scores_of(tmp_path / "in/s.csv", header, "defect,0.7,0.2,0.1", "parts,0,0.5,0.5")
    saved = {**temperature().to_dict(), "zero_as": 1e-4}
    (tmp_path / "in/zero.json").write_text(json.dumps(saved))
    result = run("--calibrator", "zero", "--point", "raw", "--calib", scores)
    assert result.exit_code == 0, result.output
    assert_mentions(result.stdout, "1 probability", "exactly 0 or 1", "0.0001")
    bundle = load_bundle(tmp_path / "b")
    probs = np.array([[0.7, 0.2, 0.1], [0.0, 0.5, 0.5]])
    found = bundle.predict_proba(logits=bundle.calib.logits)
    np.testing.assert_allclose(found, bundle.predict_proba(probs=probs), atol=1e-12)


@pytest.mark.parametrize(
    ("header", "line", "mentions"),
    [
        (
            "label,logit_defect,logit_parts",
            "defect,1,2",
            ("2 classes", "the bundle"),
        ),
        ("label,logit_defect,logit_parts,logit_x", "x,1,2,3", ("'x'", "'other'")),
        ("id,logit_defect,logit_parts,logit_other", "1,1,2,3", ("label",)),
        ("label,logit_defect,logit_parts,logit_other", "hat,1,2,3", ("hat",)),
        ("label,logit_defect,logit_parts,logit_other", "parts,1,nan,3", ("finite",)),
    ],
)
def test_scores_that_cannot_go_along(refused, tmp_path, header, line, mentions):
    scores = scores_of(tmp_path / "in/s.csv", header, line)
    assert_mentions(refused("--point", "raw", "--calib", scores), *mentions)


def test_scores_that_are_not_there(refused):
    assert "nowhere.csv" in refused("--point", "raw", "--calib", "nowhere.csv")


SLOW = """
import sys, time
from pathlib import Path
def slow(path, text, **options):
    open(path, "w").write("half")
    print("writing", file=sys.stderr, flush=True)
    for _ in range(1200): time.sleep(0.05)  # a signal just before one long sleep would be lost
Path.write_text = slow
from calibrant.cli.main import run
sys.argv = ["calibrant", *sys.argv[1:]]
run()
"""


@pytest.mark.parametrize(("sign", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interruption_leaves_nothing(forked, files, tmp_path, sign, code):
    process = forked("pack", "--point", files / "raw.json", "-o", tmp_path / "b", code=SLOW)
    assert process.stderr.readline() == "writing\n"
    assert len(list(tmp_path.iterdir())) == 2
    process.send_signal(sign)
    process.communicate(timeout=30)
    assert process.returncode == code
    assert [p.name for p in tmp_path.iterdir()] == ["in"]


HYGIENE = """
import sys
sys.modules["torch"] = None
from calibrant.cli.main import app
from typer.testing import CliRunner
result = CliRunner().invoke(app, sys.argv[1:])
heavy = {"plotly", "matplotlib", "pandas", "sklearn", "scipy", "numpy", "pyarrow"}
print(result.exit_code, "Example" in result.stdout, sorted(heavy & set(sys.modules)))
"""


def test_help_shows_an_example_and_imports_nothing_heavy(spawn):
    out, err = spawn("pack", "--help", code=HYGIENE).communicate(timeout=60)
    assert (out, err) == ("0 True []\n", "")


NO_TORCH = """
import sys
class NoTorch:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "torch":
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, NoTorch())
from calibrant.cli.main import run
run()
"""


def test_it_runs_without_torch(spawn, files, tmp_path):
    words = ("--calibrator", files / "c.json", "--point", files / "raw.json", "-o", tmp_path / "b")
    process = spawn("pack", *words, code=NO_TORCH)
    _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (0, "")
    assert load_bundle(tmp_path / "b").classes == CLASSES


def test_names_with_an_equals_sign():
    assert parse_actions([" a = b "], ["a"]) == {"a": "b"}
    assert parse_actions(["a=b=c=d"], ["a", "a=b"]) == {"a=b": "c=d"}
    with refuses(InputError, "--action a ", "not an action"):
        parse_actions(["a"], ["a"])
    with refuses(InputError, "''", "classes 'a'"):
        parse_actions(["=x"], ["a"])


def test_control_characters_do_not_reach_the_terminal(cli, files, tmp_path):
    name = "red\x1b[31m"
    made = point(name, classes=(name, "b")).to_dict()
    (files / "red.json").write_text(json.dumps(made))
    result = cli("pack", "--point", files / "red.json", "-o", tmp_path / "b")
    assert result.exit_code == 0
    assert "\x1b" not in result.stdout
