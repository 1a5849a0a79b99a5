"""A study from files to a bundle, and what it leaves behind."""

from __future__ import annotations

import errno
import json
import signal
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pytest
from tests.sentences import assert_mentions, refuses
from tests.unit.study.runs import table_config, text_config

import calibrant
from calibrant.calibrators import TemperatureScaling
from calibrant.convert import probs_from_logits
from calibrant.data import read_rows, return_reasons
from calibrant.data.splits import SplitPart, Splits
from calibrant.errors import CalibrantError, InputError, TargetUnreachable, TrainingError
from calibrant.metrics import nll
from calibrant.study import StudyConfig, run_study
from calibrant.study.candidates import train_all
from calibrant.study.candidates.candidate import StudyCandidate, list_candidates
from calibrant.study.candidates.trained import load_trained
from calibrant.study.report.headline import verdict_words
from calibrant.study.rows.read import read_study_rows
from calibrant.study.settings.config_file import read_config
from calibrant.study.study import choose_scope_score

pytestmark = pytest.mark.usefixtures("rough_intervals")


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    folder = tmp_path_factory.mktemp("study")
    config = text_config(folder, actions={"others": "hand over"})
    fresh = return_reasons.draw(2000, source="golden", seed=5, out_of_scope=0.1)
    return config, folder / "run", run_study(config, folder / "run", fresh=fresh)


def trained(config, folder):
    rows = read_study_rows(config)
    names = list_candidates(config, rows.files, rows.splits)
    return rows, [load_trained(folder / "candidates" / one.folder, one, rows) for one in names]


def test_everything_is_written(study):
    config, folder, result = study
    there = {path.name for path in folder.iterdir()}
    assert there == {
        "bundle", "candidates", "report.html", "result.json", "splits.json", "study.toml",
    }  # fmt: skip
    assert StudyConfig.from_dict(read_config(folder / "study.toml")) == config
    saved = Splits.from_dict(json.loads((folder / "splits.json").read_text()))
    texts = read_rows(config.golden)["message"].to_pylist()
    rows = read_study_rows(replace(config, redact=False))
    assert [texts[i] for i in saved.test.ids] == rows["test"].inputs
    saved = json.loads((folder / "result.json").read_text())
    assert saved["chosen"]["loss"] == result.best.loss
    assert {"loss", "seed", "metrics"} <= set(saved["candidates"][0])


def test_of_candidates_within_a_standard_error_cross_entropy_is_chosen(study):
    _, _, result = study
    best = min(result.candidates, key=lambda c: c.refinement)
    ce = result.candidates[0]
    assert best is not ce
    assert ce.behind == pytest.approx(ce.refinement - best.refinement)
    assert ce.behind < ce.behind_error
    assert result.best is ce
    assert_mentions(result.why, "choice rows", "ce", best.name, "cannot be distinguished")
    name, difference, _ = result.gain.hindsight or ("ce", 0.0, 0.0)
    assert result.gain.usual is None
    assert difference == 0.0 or name == best.name
    assert result.candidates[0].loss == "ce"
    assert result.candidates[0].failed is None


def test_candidates_are_compared_on_rows_that_nobody_followed(study):
    config, folder, result = study
    rows, found = trained(config, folder)
    codes = rows["choice"].codes
    for one, judged in zip(found, result.candidates, strict=True):
        logits = one.logits["choice"]
        scaling = TemperatureScaling(smooth=True).fit(logits, codes, classes=range(5))
        expected = nll(codes, scaling.predict_proba(logits), classes=range(5))
        assert judged.refinement == pytest.approx(expected, rel=1e-9)
        kept = judged.records[judged.best_epoch]["refinement"]  # that of the steer rows
        assert judged.refinement != pytest.approx(kept, rel=1e-6)


def test_one_candidate_has_nothing_to_choose_and_a_second_one_trains_both(tmp_path):
    config = text_config(tmp_path, candidates=("ce",))
    told = []
    alone = run_study(config, tmp_path / "run", progress=told.append)
    assert_mentions(alone.why, "ce", "only candidate")
    assert "choice" not in alone.splits
    kept = alone.best.records[alone.best.best_epoch]["refinement"]
    assert alone.best.refinement == pytest.approx(kept, rel=1e-4)
    assert sum("epoch" in message for message in told) == 2
    both = replace(config, candidates=("ce", "focal:gamma=3"))
    told.clear()
    result = run_study(both, tmp_path / "run", progress=told.append)
    assert result.splits["choice"]["rows"] > 20
    assert not any("trained before" in message for message in told)
    assert sum("epoch" in message for message in told) == 4


def test_the_largest_weight_goes_with_the_promise_and_into_the_bundle(tmp_path):
    config = text_config(tmp_path, candidates=("ce",), training={"epochs": 1, "max_length": 32})
    golden = pacsv.read_csv(config.golden)
    weights = pa.array(np.where(np.arange(len(golden)) % 2, 1.0, 1.5))
    pacsv.write_csv(golden.append_column("w", weights), config.golden)
    weighed = replace(config, weight="w", largest_weight=2.0, hold=("others: recall>=0.1",))
    result = run_study(weighed, tmp_path / "run")
    assert_mentions(result.points[0].result.guarantee, "weigh more than 2.")
    bundle = calibrant.load_bundle(tmp_path / "run/bundle")
    assert bundle.calib.largest_weight == 2.0
    assert_mentions((bundle.path / "card.md").read_text("utf-8"), "weigh more than 2.")
    page = (tmp_path / "run/report.html").read_text("utf-8")
    assert_mentions(page, "weigh more than 2")
    told = []
    with refuses(InputError, "no smaller", "got 1.2", "row weighs"):
        run_study(replace(weighed, largest_weight=1.2), tmp_path / "run", progress=told.append)
    run_study(replace(weighed, largest_weight=3.0), tmp_path / "run", progress=told.append)
    assert_mentions(told[0], "ce:", "reused")


def test_the_log_loss_is_plain_for_every_loss(study):
    config, folder, result = study
    rows, found = trained(config, folder)
    inside = rows["test"].inside
    for one, judged in zip(found, result.candidates, strict=True):
        probs = probs_from_logits(one.logits["test"][inside])
        expected = nll(rows["test"].codes[inside], probs)
        assert judged.test["nll"].value == pytest.approx(expected, abs=1e-12)


def test_the_temperature_is_that_of_the_calibrate_rows(study):
    config, folder, result = study
    rows, found = trained(config, folder)
    inside = rows["calibrate"].inside
    fitted = TemperatureScaling().fit(
        found[0].logits["calibrate"][inside], rows["calibrate"].codes[inside]
    )
    assert result.candidates[0].temperature == pytest.approx(fitted.temperature_)


def test_the_bundle_says_what_the_study_measured(study):
    config, folder, result = study
    rows, found = trained(config, folder)
    bundle = calibrant.load_bundle(folder / "bundle")
    test = rows["test"]
    logits = bundle.predict_logits(test.inputs)
    np.testing.assert_allclose(logits, found[result.chosen].logits["test"], atol=1e-5)
    probs = bundle.predict_proba(test.inputs)[test.inside]
    assert nll(test.codes[test.inside], probs) == pytest.approx(
        result.calibrated["nll"].value, abs=1e-5
    )
    decided = bundle.decide(test.inputs)
    acted = decided.decision == "act"
    assert not (acted & decided.out_of_scope).any()
    checked = result.points[0].check.checks[0]
    assert int(acted.sum()) == checked.n
    assert set(decided.action[acted]) == {"hand over"}
    assert "report.html" in bundle.manifest["files"]
    assert bundle.provenance["config"]["data"] == "logs.csv"
    assert bundle.provenance["splits"]["test"] == {"source": "golden", "rows": 200}


def test_the_bundle_carries_the_calibrate_rows_and_not_their_texts(study):
    config, folder, result = study
    rows, found = trained(config, folder)
    bundle = calibrant.load_bundle(folder / "bundle")
    part = rows["calibrate"]
    assert (bundle.calib.logits == found[result.chosen].logits["calibrate"]).all()
    assert (bundle.calib.codes == part.codes).all()
    assert (bundle.calib.codes == -1).any()  # rows of no class are among them
    assert bundle.calib.weights is None
    data = (folder / "bundle/calib.npz").read_bytes()
    assert not any(text.encode() in data for text in part.inputs if len(text) > 10)
    point = bundle.points[0].result
    acted = point.act(logits=bundle.calib.logits) & ~bundle.ood.flags(bundle.calib.logits)
    assert int(acted.sum()) == point.rates["precision"].n  # the rows that the promise is about


def test_the_bundle_tells_of_every_candidate_and_of_what_the_test_rows_say(study):
    _, folder, result = study
    metrics = calibrant.load_bundle(folder / "bundle").metrics
    assert [each["name"] for each in metrics["candidates"]] == [c.name for c in result.candidates]
    assert [i for i, c in enumerate(metrics["candidates"]) if c["chosen"]] == [result.chosen]
    assert [c["refinement"] for c in metrics["candidates"]] == [
        c.refinement for c in result.candidates
    ]
    first = metrics["candidates"][0]
    assert first["test"]["nll"] == result.candidates[0].test["nll"].value
    assert set(first["test"]) == {"accuracy", "nll", "ece_em"}
    assert (first["seed"], first["failed"], metrics["why"]) == (0, None, result.why)
    for told, one in zip(metrics["points"], result.points, strict=True):
        assert (told["hold"], told["class"]) == (one.hold, one.result.of)
        reached = not isinstance(one.result, TargetUnreachable)
        assert told["reached"] is reached
        assert told["threshold"] == (one.result.threshold if reached else None)
        assert told["check"] == (one.check.to_dict() if reached else None)
        assert (told["why"] is None) == reached
    assert any(told["reached"] for told in metrics["points"])


def test_rows_have_one_job_each(study):
    config, folder, _ = study
    rows, _ = trained(config, folder)
    parts = rows.splits.parts()
    logs = np.concatenate([p.ids for p in parts.values() if p.source == "logs"])
    golden = np.concatenate([p.ids for p in parts.values() if p.source == "golden"])
    assert len(np.unique(logs)) == len(logs)
    assert len(np.unique(golden)) == len(golden) == 400
    sizes = rows.sizes()
    both = sizes["steer"]["rows"] + sizes["choice"]["rows"]
    assert sizes["train"]["rows"] == pytest.approx(8 * both, rel=0.05)
    assert sizes["test"]["out_of_scope"] == pytest.approx(sizes["calibrate"]["out_of_scope"], abs=1)


def test_known_truth_is_told(study):
    _, _, result = study
    truth = result.truth
    assert truth.rows == 2000
    assert 0.8 <= truth.bayes_accuracy <= 0.92
    assert truth.accuracy <= truth.bayes_accuracy + 1e-9
    assert set(truth.true_ce) == {"ce", "focal:gamma=3"}
    assert result.points[0].fresh.n == 2000


def test_a_second_run_trains_nothing_again(study):
    config, folder, result = study
    told = []
    again = run_study(config, folder, progress=told.append)
    assert sum("trained before" in message for message in told) == 2
    assert not any("epoch" in message for message in told)
    assert again.to_dict()["candidates"] == result.to_dict()["candidates"]


def test_another_promise_needs_no_training_and_another_seed_does(study):
    config, folder, _ = study
    told = []
    asked = replace(config, hold=("customer_preference: recall>=0.2", "others: precision>=0.99"))
    result = run_study(asked, folder, progress=told.append)
    assert not any("epoch" in message for message in told)
    assert [p.hold for p in result.points] == list(asked.hold)
    assert isinstance(result.points[1].result, TargetUnreachable)
    assert result.points[1].check is None
    splits = read_study_rows(config).splits
    changed = (config, replace(config, seed=1), replace(config, redact=False))
    assert len({list_candidates(c, {"data": "x"}, splits)[0].folder for c in changed}) == 3
    other = replace(splits, train=SplitPart("logs", splits.train.ids[1:]))
    names = [list_candidates(config, {"data": "x"}, each)[0].folder for each in (splits, other)]
    assert names[0] != names[1]
    moved = replace(config, data=f"./{config.data}", training={**config.training, "accumulate": 2})
    assert list_candidates(moved, {"data": "x"}, splits)[0].folder == names[0]


def test_a_candidate_that_fails_is_reported_and_does_not_stop_the_others(tmp_path):
    config = text_config(tmp_path, candidates=("ce", "tests.unit.study.losses:Exploding"))
    result = run_study(config, tmp_path / "run")
    failed = result.candidates[1]
    assert "diverged" in failed.failed
    assert failed.test is None
    assert result.chosen == 0
    assert_mentions(result.why, "ce", "only candidate", "trained")
    assert result.to_dict()["candidates"][1]["failed"] == failed.failed


def test_a_full_disk_names_the_remedy(tmp_path, monkeypatch):
    def fail(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(train_all, "fit_and_save_candidate", fail)
    config = table_config(tmp_path, candidates=("ce",))
    with refuses(CalibrantError, "No space left", "free some space", "--out") as caught:
        run_study(config, tmp_path / "run")
    assert "Errno" not in str(caught.value)


def test_a_study_whose_candidates_all_fail_says_why(tmp_path):
    config = text_config(tmp_path, training={"epochs": 2, "learning_rate": 1e30})
    with refuses(TrainingError, "no candidate", "trained"):
        run_study(config, tmp_path / "run")


def test_a_model_that_learned_nothing_is_said_to_and_not_packed(tmp_path):
    still = {"epochs": 1, "learning_rate": 1e-9}
    config = text_config(tmp_path, candidates=("ce",), training=still, pack_anyway=False)
    result = run_study(config, tmp_path / "run")
    assert not result.skill.learned
    assert (result.packed, result.points) == (False, ())
    assert not (tmp_path / "run" / "bundle").exists()
    assert_mentions(verdict_words(result), "learned nothing", "--pack-anyway")
    saved = json.loads((tmp_path / "run" / "result.json").read_text())
    assert saved["packed"] is saved["skill"]["learned"] is False


def test_an_empty_file_of_logits_is_no_trained_candidate(study):
    config, folder, _ = study
    rows, found = trained(config, folder)
    kept = (found[0].folder / "logits.npz").read_bytes()
    (found[0].folder / "logits.npz").write_bytes(b"")
    assert load_trained(found[0].folder, found[0].candidate, rows) is None
    (found[0].folder / "logits.npz").write_bytes(kept)


def test_a_worker_whose_parent_died_before_it_began_leaves():
    code = "from calibrant.training.ranks import exit_with_parent; exit_with_parent(2**22 + 1)"
    assert subprocess.run([sys.executable, "-c", code], timeout=120, check=False).returncode == 1


@pytest.mark.parametrize("file", ["done.json", "logits.npz", "model.safetensors"])
def test_a_damaged_candidate_is_trained_again(study, file):
    config, folder, _ = study
    rows, found = trained(config, folder)
    (found[0].folder / file).write_bytes(b"damaged")
    assert load_trained(found[0].folder, found[0].candidate, rows) is None
    told = []
    run_study(config, folder, progress=told.append)
    assert sum("trained before" in message for message in told) == 1
    assert any(message.startswith("ce: epoch 2") for message in told)
    np.testing.assert_array_equal(
        trained(config, folder)[1][0].logits["test"], found[0].logits["test"]
    )


@pytest.mark.verify
def test_candidates_side_by_side_end_with_the_same_bits(study, tmp_path):
    config, folder, _ = study
    told = []
    run_study(replace(config, jobs=2), tmp_path / "run", progress=told.append)
    _, one = trained(config, folder)
    _, two = trained(config, tmp_path / "run")
    for a, b in zip(one, two, strict=True):
        np.testing.assert_array_equal(a.logits["test"], b.logits["test"])
    assert sum("epoch" in message for message in told) == 4


@pytest.mark.verify
def test_a_killed_study_goes_on_and_ends_with_the_same_bits(study, tmp_path):
    config, _, _ = study
    config = replace(config, training={**config.training, "epochs": 12, "patience": None})
    code = (
        "import sys, json\n"
        "from calibrant.study import StudyConfig, run_study\n"
        "config = StudyConfig.from_dict(json.loads(sys.argv[1]))\n"
        "run_study(config, sys.argv[2], progress=lambda m: print(m, flush=True))\n"
    )
    command = [sys.executable, "-c", code, json.dumps(config.to_dict()), str(tmp_path / "killed")]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    for line in process.stdout:
        if "focal:gamma=3: epoch 3" in line:
            process.send_signal(signal.SIGKILL)
            break
    process.wait(timeout=60)
    told = []
    run_study(config, tmp_path / "killed", progress=told.append)
    assert "ce: trained before, reused" in told
    assert "focal:gamma=3: epoch 1 of 12" not in " ".join(told)
    run_study(config, tmp_path / "whole")
    _, killed = trained(config, tmp_path / "killed")
    _, whole = trained(config, tmp_path / "whole")
    for a, b in zip(killed, whole, strict=True):
        np.testing.assert_array_equal(a.logits["test"], b.logits["test"])


def test_an_interrupted_study_keeps_the_report_of_the_one_before(study, monkeypatch):
    config, folder, _ = study
    before = (folder / "report.html").read_bytes()
    monkeypatch.setattr("calibrant.study.study.pack", _interrupted)
    with pytest.raises(KeyboardInterrupt):
        run_study(replace(config, confidence=0.9), folder)
    assert (folder / "report.html").read_bytes() == before
    calibrant.load_bundle(folder / "bundle")


def _interrupted(*args, **options):
    raise KeyboardInterrupt


@pytest.mark.verify
def test_workers_leave_when_the_study_is_killed(study, tmp_path):
    config, _, _ = study
    config = replace(config, jobs=2, training={"epochs": 500, "patience": None})
    code = (
        "import sys, json\n"
        "from calibrant.study import StudyConfig, run_study\n"
        "if __name__ == '__main__':\n"
        "    config = StudyConfig.from_dict(json.loads(sys.argv[1]))\n"
        "    run_study(config, sys.argv[2], progress=lambda m: print(m, flush=True))\n"
    )
    script = tmp_path / "script.py"
    script.write_text(code)
    command = [sys.executable, str(script), json.dumps(config.to_dict()), str(tmp_path / "run")]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    process.stdout.readline()
    process.kill()
    process.wait(timeout=60)
    before = None  # the workers look for their parent twice a second
    deadline = time.monotonic() + 60
    while before != (now := checkpoints(tmp_path / "run")) and time.monotonic() < deadline:
        before = now
        time.sleep(3)
    assert before == now


def checkpoints(folder):
    return {str(path): path.stat().st_mtime_ns for path in folder.rglob("epoch-*.safetensors")}


def test_an_action_for_a_class_that_is_not_there_is_refused(tmp_path):
    config = text_config(tmp_path, actions={"spam": "junk"})
    with refuses(InputError, "action", "'spam'"):
        run_study(config, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_table_is_judged_beside_gradient_boosting(tmp_path):
    result = run_study(table_config(tmp_path), tmp_path / "run")
    reference = result.candidates[-1]
    assert reference.reference
    assert reference.loss == "HistGradientBoosting"
    assert result.chosen == 0
    assert result.focus == "yes"
    assert not {"log_test", "choice"} & set(result.splits)
    assert reference.refinement is None  # the steer rows steered only the other
    bundle = calibrant.load_bundle(tmp_path / "run" / "bundle")
    rows = read_study_rows(table_config(tmp_path))
    assert len(bundle.decide(rows["test"].inputs)) == len(rows["test"])


def test_a_continuous_label_is_cut_at_the_train_median(tmp_path):
    config = table_config(
        tmp_path, label="amount", cut=True, drop=("customer", "day", "fraud"), hold=()
    )
    result = run_study(config, tmp_path / "run")
    assert result.classes == ("high", "low")
    train = result.splits["train"]["classes"]
    assert abs(train["high"] - train["low"]) <= 1


@pytest.mark.parametrize(
    ("models", "way", "named", "n_classes", "score"),
    [
        (["bilstm"], "one", None, 5, "energy"),
        (["bilstm"], "one", "oos", 5, "energy"),
        (["bilstm", "text_cnn"], "weighted", None, 5, "entropy"),
        (["ngrams"], "one", None, 5, "unreadable"),
        (["ngrams"], "one", "oos", 5, "entropy"),
        (["ngrams"], "one", "oos", 2, "unreadable"),
        (["ngrams", "bilstm"], "weighted", "oos", 5, "entropy"),
        (["boosting", "mlp"], "weighted", None, 2, "unreadable"),
    ],
)
def test_the_score_of_the_rule_follows_the_model(tmp_path, models, way, named, n_classes, score):
    members = tuple(StudyCandidate("ce", 0, "01234567", model=each) for each in models)
    whole = replace(members[0], way=way, members=members if way == "weighted" else ())
    config = replace(text_config(tmp_path), out_of_scope=named, ood="auto")
    assert choose_scope_score(config, whole, n_classes) == score
    asked = replace(config, ood="max_logit")
    assert choose_scope_score(asked, whole, n_classes) == "max_logit"
