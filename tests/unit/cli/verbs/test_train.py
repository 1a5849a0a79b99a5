"""`calibrant train`: how settings are gathered, what is printed, and how a no looks."""

import json
import signal
from types import SimpleNamespace

import pytest
from tests.sentences import assert_mentions

from calibrant.cli.progress import status
from calibrant.cli.study_settings import split_candidates
from calibrant.errors import InputError, TargetUnreachable
from calibrant.study import StudyConfig
from calibrant.study.settings.config_file import write_config

DATA = ("tickets.csv", "--text", "message", "--label", "reason", "--model", "bilstm")


@pytest.fixture
def study(monkeypatch, tmp_path):
    """Stand in for the study, which takes minutes; return what it was asked for."""
    monkeypatch.chdir(tmp_path)
    asked = SimpleNamespace(points=(), packed=True, messages=("reading",))

    def run(config, out, *, progress=None):
        asked.config, asked.out = config, out
        out.mkdir(parents=True, exist_ok=True)
        (out / "report.html").touch()
        for message in asked.messages:
            progress(message)
        return SimpleNamespace(
            points=asked.points, packed=asked.packed, to_dict=lambda: {"schema": 1}
        )

    monkeypatch.setattr("calibrant.study.run_study", run)
    monkeypatch.setattr(
        "calibrant.study.report.text.render_study", lambda result, **layout: "what was found"
    )
    return asked


def point(*, reached=True, verdict="kept", guarantee="it holds"):
    unreachable = TargetUnreachable(hold="precision>=0.8", n=10, positives=2)
    result = SimpleNamespace(guarantee=guarantee) if reached else unreachable
    return SimpleNamespace(result=result, check=SimpleNamespace(verdict=verdict))


def test_every_flag_reaches_its_setting(cli, study):
    words = (
        *DATA, "--golden", "golden.csv", "--weight", "w", "--out-of-scope", "other",
        "--largest-weight", 20,
        "--group", "customer", "--time", "day", "--shares", "7:1:2", "--rows", 500, "--no-redact",
        "--overlap", "drop", "--candidates", "ce,focal:gamma=1", "--candidates", "adafocal",
        "--seeds", "0,1", "--model", "text_cnn", "--model-option", "embedding=8", "--epochs", 3,
        "--batch-size", 32, "--learning-rate", 0.01, "--patience", "none",
        "--training", "optimizer=adamw", "--training", "vocabulary=500", "--resample", "over",
        "--calibrator", "temperature", "--confidence", 0.9, "--ood", "entropy",
        "--hold", "a: precision>=0.8", "--hold", "b: recall>=0.2",
        "--action", "a=refund", "--seed", 7, "--jobs", 1, "--title", "Tickets", "-o", "here",
    )  # fmt: skip
    result = cli("train", *words)
    assert result.exit_code == 0, result.output
    assert str(study.out) == "here"
    expected = StudyConfig(
        "tickets.csv", "reason", text="message", golden="golden.csv", weight="w",
        out_of_scope="other", group="customer", time="day", shares=(7, 1, 2), rows=500,
        redact=False, overlap="drop", candidates=("ce", "focal:gamma=1", "adafocal"),
        seeds=(0, 1), model="text_cnn", model_options={"embedding": 8},
        training={
            "optimizer": "adamw", "vocabulary": 500, "epochs": 3, "batch_size": 32,
            "learning_rate": 0.01, "patience": None,
        },
        resample="over", calibrator="temperature", confidence=0.9, ood="entropy",
        hold=("a: precision>=0.8", "b: recall>=0.2"), actions={"a": "refund"}, seed=7, jobs=1,
        title="Tickets", largest_weight=20.0,
    )  # fmt: skip
    assert study.config == expected


def test_tables_have_their_flags(cli, study):
    result = cli(
        "train", "shop.csv.gz", "--tabular", "--label", "sold", "--drop", "id", "--drop", "day",
        "--category", "shop", "--cut", "--model", "mlp", "--model-option", "hidden=[8,4]",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    config = study.config
    assert (config.kind, config.drop, config.categories) == ("table", ("id", "day"), ("shop",))
    assert config.cut is True
    assert config.model_options == {"hidden": [8, 4]}
    assert str(study.out) == "runs/shop"


def test_images_have_their_flags(cli, study):
    result = cli(
        "train", "photos/", "--images", "--image-size", 64, "--golden", "audited", "--seeds", "0,1",
        "--ensemble", "--mc-dropout", 20, "--devices", 2, "--model", "wrn_26_10",
        "--model-option", "dropout=0.3", "--model-option", "widen=1", "--training", "flip=false",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    assert study.config == StudyConfig(
        "photos/", images=True, image_size=64, golden="audited", seeds=(0, 1), ensemble=True,
        mc_dropout=20, devices=2, model="wrn_26_10", training={"flip": False},
        model_options={"dropout": 0.3, "widen": 1},
    )  # fmt: skip
    assert str(study.out) == "runs/photos"


def test_flags_with_one_value_can_be_variables(cli, study):
    variables = {
        "CALIBRANT_IMAGES": "1", "CALIBRANT_IMAGE_SIZE": "32", "CALIBRANT_ENSEMBLE": "1",
        "CALIBRANT_SEEDS": "0,1", "CALIBRANT_DEVICES": "2", "CALIBRANT_MODEL": "resnet50",
    }  # fmt: skip
    result = cli("train", "images.npz", "--no-ensemble", env=variables)
    assert result.exit_code == 0, result.output
    config = study.config
    assert (config.kind, config.image_size, config.ensemble) == ("image", 32, False)
    assert (config.devices, str(study.out)) == (2, "runs/images")
    assert cli("train", *DATA, env={"CALIBRANT_MC_DROPOUT": "5"}).exit_code == 0
    assert study.config.mc_dropout == 5


def test_a_model_that_learned_nothing_ends_with_1_and_names_no_bundle(cli, study):
    study.packed = False
    result = cli("train", *DATA, "--out", "here", "--json")
    assert result.exit_code == 1, result.output
    assert json.loads(result.stdout)["bundle"] is None
    assert "no bundle was packed" in cli("train", *DATA).stdout
    assert cli("train", *DATA, "--pack-anyway").exit_code == 1
    assert study.config.pack_anyway is True


def test_models_are_raced_by_their_names(cli, study):
    assert cli("train", *DATA[:5], "--model", "ngrams,bilstm").exit_code == 0
    assert study.config.models == ("ngrams", "bilstm")
    assert cli("train", *DATA[:5]).exit_code == 0
    assert study.config.models == ("ngrams",)


def test_a_flag_of_training_goes_before_a_variable(cli, study):
    variables = {"CALIBRANT_EPOCHS": "5", "CALIBRANT_BATCH_SIZE": "8"}
    result = cli("train", *DATA, "--training", "epochs=3", env=variables)
    assert result.exit_code == 0, result.output
    assert study.config.training == {"epochs": 3, "batch_size": 8}


def test_the_label_column_is_called_label_where_nothing_is_said(cli, study):
    assert cli("train", "a.csv", "--tabular").exit_code == 0
    assert study.config.label == "label"


def test_flags_go_before_variables_and_these_before_the_file(cli, study, tmp_path):
    saved = StudyConfig(
        "tickets.csv", "reason", text="message", seed=1, rows=10, jobs=1, model="bilstm",
        training={"epochs": 1, "clip": 2.0}, hold=("a: precision>=0.8",), actions={"a": "b"},
    )  # fmt: skip
    file = write_config(saved, tmp_path / "study.toml")
    variables = {"CALIBRANT_SEED": "2", "CALIBRANT_ROWS": "20", "CALIBRANT_EPOCHS": "2"}
    words = ("--config", file, "--seed", 3, "--learning-rate", 0.1, "--action", "c=d")
    result = cli("train", *words, env=variables)
    assert result.exit_code == 0, result.output
    config = study.config
    assert (config.seed, config.rows, config.jobs) == (3, 20, 1)
    assert config.training == {"epochs": 2, "clip": 2.0, "learning_rate": 0.1}
    assert config.hold == ("a: precision>=0.8",)
    assert config.actions == {"a": "b", "c": "d"}
    assert str(study.out) == "runs/tickets"


def test_a_file_about_texts_can_be_run_as_a_table_and_the_reverse(cli, study, tmp_path):
    texts = write_config(StudyConfig("a.csv", "b", text="c"), tmp_path / "texts.toml")
    assert cli("train", "--config", texts, "--tabular").exit_code == 0
    assert study.config.kind == "table"
    table = write_config(StudyConfig("a.csv", "b"), tmp_path / "table.toml")
    assert cli("train", "--config", table).exit_code == 0
    assert study.config.kind == "table"
    assert cli("train", "--config", table, "--text", "c").exit_code == 0
    assert study.config.text == "c"
    assert cli("train", "photos", "--config", texts, "--images").exit_code == 0
    assert (study.config.kind, study.config.label) == ("image", None)
    images = write_config(StudyConfig("photos", images=True), tmp_path / "images.toml")
    assert cli("train", "--config", images).exit_code == 0
    assert study.config.kind == "image"
    assert cli("train", "a.csv", "--config", images, "--tabular").exit_code == 0
    assert (study.config.kind, study.config.label) == ("table", "label")


@pytest.mark.parametrize(
    ("given", "found"),
    [
        (["ce,adafocal"], ["ce", "adafocal"]),
        (["ce", "adafocal , focal"], ["ce", "adafocal", "focal"]),
        (["adafocal:n_bins=10,switch=0.1,ce"], ["adafocal:n_bins=10,switch=0.1", "ce"]),
        (["flsd:gammas=[5,3],edges=[0.2],ce"], ["flsd:gammas=[5,3],edges=[0.2]", "ce"]),
        (["flsd:gammas=5,3"], ["flsd:gammas=5,3"]),
        (["0.5*ce + 0.5*soft_f1,mine.losses:Mine:a=1,b=2"],
         ["0.5*ce + 0.5*soft_f1", "mine.losses:Mine:a=1,b=2"]),
        (["ce,focl:gamma=3"], ["ce", "focl:gamma=3"]),
        (["ce,"], ["ce"]),
        (["cost_sensitive:costs=[[0,1],[5,0]],brier"],
         ["cost_sensitive:costs=[[0,1],[5,0]]", "brier"]),
    ],
)  # fmt: skip
def test_commas_part_losses_but_not_their_options(given, found):
    assert split_candidates(given) == found


def test_what_was_found_comes_first_and_the_next_step_last(cli, study):
    study.points = (point(),)
    result = cli("train", *DATA, "--out", "runs/my tickets")
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[0] == "what was found"
    assert "runs/my tickets/report.html" in result.stdout
    assert "--config 'runs/my tickets/study.toml' --out 'runs/my tickets'" in result.stdout
    assert lines[-1].endswith("calibrant predict 'runs/my tickets/bundle' FILE")
    assert result.stderr == ""


def test_json_is_one_object_and_nothing_else(cli, study):
    result = cli("train", *DATA, "--out", "here", "--json")
    assert result.exit_code == 0
    found = json.loads(result.stdout)
    assert (found["schema"], found["out"], found["bundle"]) == (1, "here", "here/bundle")
    assert result.stderr == ""


@pytest.mark.parametrize(
    "broken", [{"reached": False}, {"verdict": "broken"}, {"guarantee": None}], ids=str
)
def test_a_promise_that_is_not_kept_ends_with_1_and_everything_is_shown(cli, study, broken):
    study.points = (point(), point(**broken))
    result = cli("train", *DATA)
    assert result.exit_code == 1
    assert result.stdout.startswith("what was found")
    assert "study.toml" in result.stdout
    assert cli("train", *DATA, "--json").exit_code == 1


def test_rows_too_few_to_tell_are_no_broken_promise(cli, study):
    study.points = (point(verdict="undecidable"),)
    assert cli("train", *DATA).exit_code == 0


WRONG = {
    "no data": ((), "DATA is missing"),
    "no kind": (("a.csv",), "none of text, tabular and images"),
    "both": ((*DATA, "--tabular"), "exclude each other"),
    "texts and images": ((*DATA, "--images"), "--text message and --images exclude each other"),
    "tables and images": (("a", "--tabular", "--images"), "--tabular and --images exclude"),
    "label of images": (("a", "--images", "--label", "b"), "leave --label out"),
    "weight of images": (("a", "--images", "--weight", "w"), "leave --weight out"),
    "group of images": (("a", "--images", "--group", "g"), "leave --group out"),
    "time of images": (("a", "--images", "--time", "t"), "leave --time out"),
    "drop of images": (("a", "--images", "--drop", "d"), "leave --drop out"),
    "category of images": (("a", "--images", "--category", "c"), "leave --category out"),
    "cut of images": (("a", "--images", "--cut"), "leave --cut out"),
    "redact of images": (("a", "--images", "--redact"), "--redact applies to texts"),
    "no redact of images": (("a", "--images", "--no-redact"), "leave --no-redact out"),
    "size of texts": ((*DATA, "--image-size", "32"), "leave --image-size out"),
    "size of images": (("a", "--images", "--image-size", "0"), "image_size must be a whole"),
    "ensemble of one": ((*DATA, "--ensemble"), "like --seeds 0,1,2"),
    "one pass": ((*DATA, "--mc-dropout", "1"), "mc_dropout must be 0, or a whole number"),
    "nothing to thin": (
        ("a", "--images", "--model", "resnet50", "--mc-dropout", "5"),
        "resnet50 has no dropout",
    ),
    "no device": ((*DATA, "--devices", "0"), "devices must be a whole number of at least 1"),
    "unknown loss": ((*DATA, "--candidates", "ce,focl"), "did you mean 'focal'?"),
    "typo in the options": ((*DATA, "--candidates", "focal:gama=3"), "did you mean 'gamma'?"),
    "list without brackets": ((*DATA, "--candidates", "flsd:gammas=5,3"), "option=value"),
    "seeds": ((*DATA, "--seeds", "0 1"), "whole numbers like 0,1,2"),
    "shares": ((*DATA, "--shares", "80/10/10"), "three positive numbers like 8:1:1"),
    "hold without limit": ((*DATA, "--hold", "a: precision"), "is not a target"),
    "hold in percent": ((*DATA, "--hold", "a: precision>=85"), "85 percent is 0.85"),
    "no key": ((*DATA, "--model-option", "64"), "must read key=value"),
    "key twice": ((*DATA, "--training", "clip=1", "--training", "clip=2"), "sets 'clip' twice"),
    "action": ((*DATA, "--action", "refund"), "is not an action"),
    "action twice": ((*DATA, "--action", "a=b", "--action", "a=c"), "names 'a' twice"),
    "loss as training": ((*DATA, "--training", "loss=ce"), "--candidates"),
    "epochs": ((*DATA, "--epochs", "0"), "epochs must be a whole number"),
    "epochs as word": ((*DATA, "--epochs", "many"), "--epochs"),
    "patience": ((*DATA, "--patience", "long"), "patience must be a whole number"),
    "confidence": ((*DATA, "--confidence", "95"), "between 0 and 1"),
    "epochs twice": ((*DATA, "--epochs", "1", "--training", "epochs=3"), "both set 'epochs'"),
    "patience twice": (
        (*DATA, "--patience", "none", "--training", "patience=3"),
        "--patience and --training patience=... both set 'patience': set it once.",
    ),
    "rate twice": (
        (*DATA, "--training", "learning_rate=1", "--learning-rate", "0.1"),
        "--learning-rate and",
    ),
    "seed": ((*DATA, "--seed", str(2**32)), "seed must be a whole number of at most 4294967295"),
    "a long seed": ((*DATA, "--seeds", "9" * 23), "at most 4294967295, got 999999"),
    "out is empty": ((*DATA, "--out", ""), "--out is empty: name a folder"),
    "no config": (("--config", "nowhere.toml"), "nowhere.toml does not exist"),
    "column dropped from texts": ((*DATA, "--drop", "id"), "--drop"),
    "out is a file": ((*DATA, "--out", "taken"), "is a file"),
    "out is in a file": ((*DATA, "--out", "taken/x/y"), "is a file"),
}


@pytest.mark.parametrize("case", WRONG)
@pytest.mark.parametrize("as_json", [False, True])
def test_bad_usage_is_one_sentence_before_any_work(cli, study, tmp_path, case, as_json):
    (tmp_path / "taken").touch()
    words, says = WRONG[case]
    result = cli("train", *words, *(["--json"] if as_json else []))
    assert result.exit_code == 2, result.output
    told = json.loads(result.stdout)["error"]["message"] if as_json else result.stderr
    assert says in told
    assert told.strip().count("\n") == 0
    assert "Traceback" not in result.output
    assert not hasattr(study, "config")
    assert [p.name for p in tmp_path.iterdir()] == ["taken"]


def test_an_error_of_the_study_is_told_as_it_is(cli, study, monkeypatch):
    def refuse(config, out, *, progress=None):
        raise InputError("tickets.csv has no column 'reason': name one of its columns.")

    monkeypatch.setattr("calibrant.study.run_study", refuse)
    result = cli("train", *DATA)
    assert result.exit_code == 2
    assert_mentions(result.stderr, "error:", "tickets.csv", "column 'reason'", "name one")


STUDY = """
import sys, time
import calibrant.study
def slow(config, out, *, progress=None):
    print("training", file=sys.stderr, flush=True)
    for _ in range(1200): time.sleep(0.05)  # a signal just before one long sleep would be lost
calibrant.study.run_study = slow
from calibrant.cli.main import run
sys.argv = ["calibrant", *sys.argv[1:]]
run()
"""


def test_an_interruption_says_how_to_go_on(forked, tmp_path):
    process = forked("train", *DATA, "--out", "here", code=STUDY, cwd=tmp_path)
    assert process.stderr.readline() == "training\n"
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (130, "")
    assert_mentions(err, "here:", "resume")
    assert err.endswith("interrupted\n")


BARE = """
import sys
class NoTorch:  # None in sys.modules would break scipy itself
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "torch":
            raise ModuleNotFoundError("there is no torch here", name="torch")
sys.meta_path.insert(0, NoTorch())
from calibrant.cli.main import run
run()
"""


COLUMNS = {
    "text": (("--text", "mesage", "--label", "reason"), "'mesage' (did you mean 'message'?)"),
    "label": (("--text", "message", "--label", "REASONS"), "'REASONS' (did you mean 'reason'?)"),
    "no label": (("--text", "message"), "'label': choose one of its columns with --label"),
    "drop": (("--tabular", "--label", "reason", "--drop", "ids"), "'ids' (did you mean 'id'?)"),
    "weight": (
        ("--text", "message", "--label", "reason", "--golden", "tickets.csv", "--weight", "size"),
        "'size': choose one of its columns with --weight",
    ),
}


@pytest.mark.parametrize("case", COLUMNS)
def test_a_wrong_column_is_refused_before_torch_is_imported(spawn, tmp_path, case):
    words, says = COLUMNS[case]
    (tmp_path / "tickets.csv").write_text("id,message,reason\n1,it broke,defect\n")
    process = spawn("train", "tickets.csv", *words, code=BARE, cwd=tmp_path)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (2, "")
    assert err.startswith(f"error: tickets.csv has no column {says}")
    assert err.endswith(": 'id', 'message', 'reason'.\n")


def test_without_torch_the_extra_is_named(spawn, tmp_path):
    process = spawn("train", *DATA, code=BARE, cwd=tmp_path)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (2, "")
    assert "pip install 'calibrant[torch]'" in err
    assert err.count("\n") == 1


def test_messages_are_shown_as_they_are_and_in_a_log_now_and_then(capsys, monkeypatch):
    clock = iter([0.0, 29.0, 31.0, 31.0, 40.0, 61.0, 61.0])
    monkeypatch.setattr("calibrant.cli.progress.time.monotonic", lambda: next(clock))
    with status("reading") as tell:
        for line in ("epoch 1", "epoch 2", "epoch 3", "epoch 4"):
            tell(line)
    assert capsys.readouterr() == ("", "epoch 2\nepoch 4\n")
    monkeypatch.undo()
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    with status("reading") as tell:
        tell("ce: epoch 1 of 2 [bold]")
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "[bold]" in shown.err


HYGIENE = """
import sys
from calibrant.cli.main import app
from typer.testing import CliRunner
result = CliRunner().invoke(app, ["train", "--help"])
heavy = {"torch", "plotly", "matplotlib", "pandas", "sklearn", "scipy", "numpy", "pyarrow"}
print(result.exit_code, "Example" in result.stdout, sorted(heavy & set(sys.modules)))
"""


def test_help_imports_nothing_heavy(spawn):
    out, err = spawn(code=HYGIENE).communicate(timeout=60)
    assert (out, err) == ("0 True []\n", "")


def test_help_shows_an_example_and_every_setting(cli):
    import dataclasses

    from calibrant.study.settings.checks import flag_name

    result = cli("train", "--help", env={"COLUMNS": "200"})
    assert result.exit_code == 0
    assert "Example: calibrant" in result.stdout
    for field in dataclasses.fields(StudyConfig):
        assert flag_name(field.name) in result.stdout, field.name


def test_help_is_readable_at_80_columns(cli):
    lines = cli("train", "--help", env={"COLUMNS": "80"}).stdout.splitlines()
    assert max(map(len, lines)) <= 80
    assert [line for line in lines if line and not line.startswith(" ")][1:] == [
        "Arguments:", "Options:", "Data:", "Candidates and training:", "Promises:"
    ]  # fmt: skip
    (entry,) = (line for line in lines if line.startswith("  --learning-rate"))
    assert "Peak learning rate." in entry
