"""Runs and their records: every experiment at toy size, going on, and what is refused."""

import io
import json
from dataclasses import replace

import numpy as np
import pytest
from reproductions.figures import FIGURES, WAYS
from reproductions.record import read_losses, read_records
from reproductions.summary import summarise

from calibrant.errors import InputError
from calibrant.training import predict_logits
from reproductions import RunRequest, experiment_named, experiments, reproduce

pytestmark = pytest.mark.usefixtures("rough_intervals")

TOY = [one for one in experiments().values() if one.run and "toy" in one.sizes]


@pytest.mark.parametrize("one", TOY, ids=lambda one: one.name)
def test_it_runs_at_toy_size_without_any_data_file(one, tmp_path, monkeypatch):
    monkeypatch.delenv("CALIBRANT_DATA", raising=False)
    toy = one.at("toy")
    method = toy.methods[-1].name
    asked = RunRequest(size="toy", methods=[method], seeds=[0])
    [path] = reproduce(one, tmp_path, asked)
    record = json.loads(path.read_text(), parse_constant=_refuse)
    assert (record["experiment"], record["method"], record["seed"]) == (one.name, method, 0)
    assert set(record["figures"]) == set(WAYS)
    for figures in record["figures"].values():
        assert set(figures) == set(FIGURES)
        assert 0 <= figures["error"]["low"] <= figures["error"]["value"] <= figures["error"]["high"]
    assert set(record["extras"]) == set(one.extras)
    assert (record["choice"] is not None) == ("choice" in record["rows"]) == one.own_choice
    assert len(record["history"]) == record["epochs"] == len(record["test_history"])
    losses = read_losses(tmp_path, toy)[method, 0]
    assert len(losses["auto"]) == record["rows"]["test"]
    told = record["figures"]["auto"]["nll"]["value"]
    assert losses["auto"].mean() == pytest.approx(told, rel=1e-4)
    summary = summarise(toy, read_records(tmp_path, toy), read_losses(tmp_path, toy))
    assert summary.sentences
    if one.once:
        notes = json.loads((tmp_path / one.name / "notes.json").read_text())
        assert set(notes["notes"]) == set(one.once)


def _refuse(constant):
    raise AssertionError(f"{constant} is not JSON")


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """Two runs of the toy size."""
    out = tmp_path_factory.mktemp("done")
    reproduce(experiment_named("newsgroups-cnn"), out, RunRequest(size="toy", seeds=[0]))
    return out


def _copied(done, tmp_path):
    import shutil

    return shutil.copytree(done, tmp_path / "copy")


def test_what_is_there_is_not_run_again(done, tmp_path):
    out, one, told = _copied(done, tmp_path), experiment_named("newsgroups-cnn"), []
    before = {path.name: path.stat().st_mtime_ns for path in (out / one.name).iterdir()}
    reproduce(one, out, RunRequest(size="toy", seeds=[0]), progress=told.append)
    assert told == []
    assert before == {path.name: path.stat().st_mtime_ns for path in (out / one.name).iterdir()}
    (out / one.name / "ce-0.json").unlink()  # as after an interruption: only this one is run
    reproduce(one, out, RunRequest(size="toy", seeds=[0]), progress=told.append)
    assert told[:2] == ["newsgroups-cnn: reading", "newsgroups-cnn: CE, seed 0 (1 of 1)"]
    assert all("CE, seed 0: epoch" in line for line in told[2:])


def test_the_same_run_gives_the_same_figures(done, tmp_path):
    one = experiment_named("newsgroups-cnn")
    asked = RunRequest(size="toy", methods=["ce"], seeds=[0])
    [path] = reproduce(one, tmp_path, asked)
    again, first = (
        json.loads(path.read_text()),
        json.loads((done / one.name / "ce-0.json").read_text()),
    )
    for key in ("figures", "temperature", "chosen", "test_history", "bins"):
        assert again[key] == first[key]


def test_a_run_that_was_made_otherwise_is_not_mixed_in(done, tmp_path):
    out, one = _copied(done, tmp_path), experiment_named("newsgroups-cnn")
    with pytest.raises(InputError, match="is a run with epochs 1 instead of 2"):
        reproduce(
            one, out, RunRequest(size="toy", methods=["ce"], seeds=[0], overrides={"epochs": 2})
        )
    with pytest.raises(InputError, match="with size toy instead of small: choose another --out"):
        reproduce(one, out, RunRequest(size="small", methods=["ce"], seeds=[0]))
    asked = RunRequest(size="toy", seeds=[0], overrides={"epochs": 2}, again=True)
    path, _ = reproduce(one, out, asked)
    assert json.loads(path.read_text())["epochs"] == 2


def test_a_config_that_has_changed_is_noticed_in_runs_and_in_summaries(done, tmp_path):
    out, one = _copied(done, tmp_path), experiment_named("newsgroups-cnn")
    changed = replace(one, training={**one.training, "learning_rate": 1.0})
    with pytest.raises(InputError, match=r"learning_rate 0\.001 instead of 1\.0"):
        reproduce(changed, out, RunRequest(size="toy", methods=["ce"], seeds=[0]))
    records = read_records(out, one.at("toy"))
    with pytest.raises(InputError, match=r"was made with learning_rate 0\.001 instead of 1\.0"):
        summarise(changed.at("toy"), records)
    records[1].update(given={"epochs": 3}, setting={**records[1]["setting"], "epochs": 3})
    with pytest.raises(InputError, match="keep runs of one kind in a folder"):
        summarise(one.at("toy"), records)


def test_notes_of_another_size_are_made_anew(tmp_path):
    one = experiment_named("bigmart")
    path = tmp_path / one.name / "notes.json"
    reproduce(one, tmp_path, RunRequest(size="toy", methods=["ce"], seeds=[0]))
    first = json.loads(path.read_text())
    assert first["size"] == "toy"
    assert set(first) == {"size", "rows", "notes", "machine", "date"}
    path.write_text(json.dumps({**first, "size": "full"}))
    reproduce(one, tmp_path, RunRequest(size="toy", methods=["ce"], seeds=[1]))
    assert json.loads(path.read_text())["size"] == "toy"


def test_the_test_rows_of_an_epoch_are_measured_as_the_kept_model_is(done):
    record = json.loads((done / "newsgroups-cnn" / "ce-0.json").read_text())
    last, raw = record["test_history"][record["best_epoch"]], record["figures"]["raw"]
    for name in ("error", "ece_em", "nll"):
        assert last[name] == pytest.approx(raw[name]["value"], rel=1e-4)


def test_test_rows_of_an_epoch_do_not_go_through_the_wrapper_that_may_be_compiled(monkeypatch):
    """A compiled wrapper would be compiled anew for their batches."""
    from reproductions.fitting import fit
    from reproductions.loaders import load

    from reproductions import epoch_history

    seen = []

    def noting(network, rows):
        seen.append(network)
        return predict_logits(network, rows)

    monkeypatch.setattr(epoch_history, "predict_logits", noting)
    toy = experiment_named("newsgroups-cnn").at("toy")
    fitted = fit(toy, toy.methods[0], 0, load(toy))
    assert [type(each) for each in seen] == [type(fitted.model.model_)]


def test_a_record_that_is_none_is_named(done, tmp_path):
    out, one = _copied(done, tmp_path), experiment_named("newsgroups-cnn").at("toy")
    (out / one.name / "ce-1.json").write_text("{")
    with pytest.raises(InputError, match=r"ce-1\.json is not the record of a run: delete it"):
        read_records(out, one)
    (out / one.name / "ce-1.json").write_text('{"schema": 9}')
    with pytest.raises(InputError, match="in format 1: delete it"):
        read_records(out, one)


@pytest.mark.parametrize("lost", ["gone", "empty", "text", "short"])
def test_a_run_without_its_losses_is_run_again(done, tmp_path, lost):
    out, one, told = _copied(done, tmp_path), experiment_named("newsgroups-cnn"), []
    path = out / one.name / "ce-0.npz"
    before = path.read_bytes()
    if lost == "short":
        np.savez_compressed(path, temperature=np.ones(3), auto=np.ones(3))
    else:
        path.write_bytes(b"" if lost == "empty" else b"hi")
    if lost == "gone":
        path.unlink()
    reproduce(one, out, RunRequest(size="toy", seeds=[0]), progress=told.append)
    assert told[1] == "newsgroups-cnn: CE, seed 0 (1 of 1)"
    with np.load(path) as again, np.load(io.BytesIO(before)) as first:
        assert np.array_equal(again["auto"], first["auto"])


def test_runs_that_cannot_stand_beside_others_are_refused_before_they_are_trained(done, tmp_path):
    out, one, told = _copied(done, tmp_path), experiment_named("newsgroups-cnn"), []
    asked = RunRequest(size="toy", seeds=[7], overrides={"epochs": 2})
    with pytest.raises(InputError, match="which cannot be combined with these"):
        reproduce(one, out, asked, progress=told.append)
    assert told == []


@pytest.mark.parametrize(
    "change", [{"method": ["ce"]}, {"seed": "0"}, {"rows": None}, {"figures": []}, {"size": 3}]
)
def test_a_record_with_a_wrong_value_is_named(done, tmp_path, change):
    out, one = _copied(done, tmp_path), experiment_named("newsgroups-cnn").at("toy")
    path = out / one.name / "ce-0.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(InputError, match=rf"ce-0\.json .* without a proper {next(iter(change))}"):
        read_records(out, one)


def test_missing_data_leave_no_folder_behind(tmp_path, monkeypatch):
    monkeypatch.setenv("CALIBRANT_DATA", str(tmp_path / "nothing"))
    with pytest.raises(InputError, match="bigmart"):
        reproduce(experiment_named("bigmart"), tmp_path / "out", RunRequest(size="small"))
    assert list(tmp_path.iterdir()) == []


def test_a_folder_below_a_file_is_told_before_anything_is_read(tmp_path, monkeypatch):
    monkeypatch.setenv("CALIBRANT_DATA", str(tmp_path / "nothing"))
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=r"cannot be made a folder: .*file is a file"):
        reproduce(experiment_named("bigmart"), tmp_path / "file/out", RunRequest(size="small"))


def test_a_folder_that_cannot_be_made_is_told_before_anything_is_read(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot be made a folder"):
        reproduce(experiment_named("newsgroups-cnn"), tmp_path / "file", RunRequest(size="toy"))


def test_bins_and_gammas_are_those_of_the_first_seed(done):
    ce, ada = (
        json.loads((done / "newsgroups-cnn" / f"{name}-0.json").read_text())
        for name in ("ce", "adafocal")
    )
    assert np.shape(ada["gammas"]) == (1, 15)
    assert ce["gammas"] is None
    assert np.shape(ce["bins"]["confidence"]) == (1, 15)


@pytest.mark.parametrize("held", ["[1]", '{"schema": 2}', "", '{"schema": 1, "size": "to'])
def test_a_damaged_record_is_replaced_when_it_is_run_again(done, tmp_path, held):
    one, out = experiment_named("newsgroups-cnn"), _copied(done, tmp_path)
    path = out / one.name / "ce-0.json"
    path.write_text(held)
    asked = RunRequest(size="toy", methods=["ce"], seeds=[0])
    if held in ("[1]", '{"schema": 2}'):  # whole, but not ours: nothing is replaced unasked
        with pytest.raises(InputError, match=r"ce-0\.json is not the record .* --again"):
            reproduce(one, out, asked)
    reproduce(one, out, replace(asked, again=True))
    assert len(read_records(out, one.at("toy"))) == 2


def test_a_folder_in_the_place_of_a_record_is_named(done, tmp_path):
    one, out = experiment_named("newsgroups-cnn"), _copied(done, tmp_path)
    path = out / one.name / "ce-0.json"
    path.unlink()
    path.mkdir()
    with pytest.raises(InputError, match=r"ce-0\.json cannot be read \(Is a directory\): move"):
        reproduce(one, out, RunRequest(size="toy", methods=["ce"], seeds=[0]))


def test_a_device_that_is_not_here_is_refused_before_anything_is_read(tmp_path):
    asked = RunRequest(size="toy", overrides={"device": "cuda:99"})
    with pytest.raises(InputError, match="device 'cuda:99' is not available"):
        reproduce(experiment_named("bigmart"), tmp_path / "out", asked)
    assert not (tmp_path / "out").exists()


def test_steer_rows_judge_a_method_by_the_logits_that_it_gives_out(tmp_path):
    one = experiment_named("long-tail-mammography")
    reproduce(one, tmp_path, RunRequest(size="toy", methods=["over", "over_left"], seeds=[0]))
    first, second = read_records(tmp_path, one.at("toy"))
    assert first["history"][-1]["refinement"] == second["history"][-1]["refinement"]
    assert first["steer"]["nll"] != second["steer"]["nll"]  # one of them is not put right
