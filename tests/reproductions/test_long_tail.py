"""A rare class: what training moves, what correcting takes back, and a world that knows both."""

from dataclasses import replace
from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from reproductions.experiment import experiments
from reproductions.long_tail import long_tail, made_rare, rare_class
from tests.data_sets import data_file

from calibrant import TabularClassifier
from calibrant.errors import InputError
from calibrant.losses import class_balanced_weights
from calibrant.metrics import ece
from reproductions import long_tail as module

METHODS = {
    "over": {"resample": "over"},
    "under": {"resample": "under"},
    "balanced": {"loss": "ce:weight=balanced"},
    "effective": {"loss": "ce:weight=class_balanced"},
    "adjusted": {"loss": "logit_adjustment"},
    "softmax": {"loss": "balanced_softmax"},
}
ROWS = 24_000
REAL = {"mammography": (0.0232, 11183), "credit_default": (0.2212, 30000)}


def parts_of(n):
    return module._split(made_rare(n), ("common", "rare"), "")


@cache
def fitted(name):
    """A model of the made world, with rows enough to come near its truth."""
    parts = parts_of(ROWS)
    model = TabularClassifier(
        hidden=[16], dropout=[0.0], batch_norm=False, epochs=8, batch_size=256,
        learning_rate=0.01, device="cpu", **METHODS.get(name, {}),
    )  # fmt: skip
    steer = (parts.steer.inputs, parts.steer.labels)
    return model.fit(parts.train.inputs, parts.train.labels, steer=steer), parts


def log_odds(logits):
    return logits[:, 1] - logits[:, 0]


def both(name):
    """Log-odds of the test rows, corrected and left as trained."""
    model, parts = fitted(name)
    found = []
    for corrected in (True, False):
        model.correct_prior = corrected
        found.append(log_odds(model.predict_logits(parts.test.inputs)))
    model.correct_prior = True
    return *found, parts


def moved_by(name, labels):
    """By how much a method moves log-odds, worked out from the counts of the train rows."""
    common, rare = np.bincount(labels)
    if name == "effective":
        weight = class_balanced_weights([common, rare])
        return float((weight[1] / weight[0]).log())
    return float(np.log(common / rare))


@pytest.mark.parametrize("name", METHODS)
def test_correcting_takes_off_the_log_of_the_ratio(name):
    corrected, left, parts = both(name)
    expected = moved_by(name, parts.train.labels)
    assert expected > 1 or name == "effective"
    assert np.allclose(left - corrected, expected, atol=1e-5)


@pytest.mark.parametrize("name", METHODS)
def test_without_correction_the_logits_are_those_of_the_network(name):
    model, parts = fitted(name)
    _, left, _ = both(name)
    features = torch.from_numpy(model.encoder_.transform(parts.test.inputs))
    with torch.no_grad():
        own = model.model_.eval()(features).double().numpy()
    assert np.allclose(left, log_odds(own), atol=1e-4)


def test_correcting_is_nothing_that_training_knows_of():
    model, parts = fitted("over")
    again = TabularClassifier(**{**model.get_params(), "correct_prior": False})
    again.fit(
        parts.train.inputs, parts.train.labels, steer=(parts.steer.inputs, parts.steer.labels)
    )
    assert again.log_shift_ is None
    assert again.best_epoch_ == model.best_epoch_
    assert np.allclose(log_odds(again.predict_logits(parts.test.inputs)), both("over")[1])


@pytest.mark.parametrize("name", METHODS)
def test_corrected_probabilities_are_near_the_truth_and_others_off_by_the_shift(name):
    corrected, left, parts = both(name)
    rare = parts.test.posterior[:, 1]
    truth = np.log(rare / (1 - rare))
    shift = moved_by(name, parts.train.labels)
    near = np.abs(truth) < 4  # where the train rows can teach
    assert np.median((corrected - truth)[near]) == pytest.approx(0, abs=0.25)
    assert np.median((left - truth)[near]) == pytest.approx(shift, abs=0.25)
    p, q = (1 / (1 + np.exp(-odds)) for odds in (corrected, left))
    assert np.abs(p - rare).mean() < 0.015
    if name != "effective":  # hardly any shift among thousands of rows
        assert np.abs(q - rare).mean() > 0.1
    # Left alone it answers another question: what if the class were as frequent as it was taught?
    other = 1 / (1 + np.exp(-(truth + shift)))
    assert np.abs(q - other).mean() < 0.04


@pytest.mark.parametrize("name", ["ce", *METHODS])
def test_the_mean_of_corrected_probabilities_is_the_rate(name):
    corrected, left, parts = both(name)
    rate = parts.test.labels.mean()
    assert (1 / (1 + np.exp(-corrected))).mean() == pytest.approx(rate, rel=0.15)
    if name not in ("ce", "effective"):
        assert (1 / (1 + np.exp(-left))).mean() > 2.5 * rate


def test_made_rows_need_no_file(monkeypatch):
    def refuse(*_):
        raise AssertionError("a file was asked for")

    monkeypatch.setattr(module, "find", refuse)
    parts = long_tail({"made": True, "rows": 600, "table": "mammography"})
    assert parts.sizes() == {"train": 300, "steer": 60, "calib": 90, "test": 150}
    assert all(getattr(parts, name).labels.any() for name in parts.sizes())
    assert parts.test.posterior.shape == (150, 2)


def test_posterior_goes_with_its_rows():
    parts = parts_of(4000)
    test = parts.test
    new = np.array(test.inputs["shop"].to_pylist()) == "new"
    first, second = (test.inputs[name].to_numpy() for name in ("first", "second"))
    odds = -3.7 + 1.5 * first - second + new
    assert np.allclose(test.posterior[:, 1], 1 / (1 + np.exp(-odds)))


def test_unknown_table():
    with pytest.raises(InputError, match="mammography, credit_default"):
        long_tail({"table": "mamography"})


@pytest.mark.data
@pytest.mark.parametrize("table", REAL)
def test_real_rows(table):
    rate, n = REAL[table]
    data_file(table, f"{table}.csv.gz")
    parts = long_tail({"table": table})
    assert sum(parts.sizes().values()) == n
    for name in parts.sizes():
        assert getattr(parts, name).labels.mean() == pytest.approx(rate, abs=0.001)
    assert not {"label", "ID", "default payment next month"} & set(parts.test.inputs.column_names)
    few = long_tail({"table": table, "rows": 1000})
    assert sum(few.sizes().values()) == 1000
    assert few.train.labels.mean() == pytest.approx(rate, abs=0.002)


def run_of(name, corrected=True):
    model, parts = fitted(name)
    model.correct_prior = corrected
    few = replace(parts, test=module._taken(parts.test, np.arange(3000)))
    logits = {part: model.predict_logits(getattr(few, part).inputs) for part in ("calib", "test")}
    found = rare_class(SimpleNamespace(model=model, parts=few, logits=logits))
    model.correct_prior = True
    return found, logits["test"], few.test.labels


def test_figures_of_the_rare_class():
    found, logits, labels = run_of("over", corrected=False)
    p = 1 / (1 + np.exp(-log_odds(logits)))
    raw = found["raw"]
    assert found["class"] == "rare"
    assert not found["corrected"]
    found_of = [(p <= 0.5)[labels == 0].mean(), (p > 0.5)[labels == 1].mean()]
    assert raw["recall"] == pytest.approx(found_of)
    assert raw["ece_em"]["value"] == pytest.approx(ece(labels, p, scheme="mass", target="positive"))
    assert raw["mean_score"] == pytest.approx(p.mean())
    assert raw["event_rate"] == pytest.approx(labels.mean())
    assert found["log_shift"][1] - found["log_shift"][0] == pytest.approx(
        moved_by("over", parts_of(ROWS).train.labels)
    )


def test_an_offset_mends_what_a_temperature_cannot():
    found, _, _ = run_of("adjusted", corrected=False)
    right, _, _ = run_of("adjusted")
    value = {way: found[way]["ece_em"]["value"] for way in ("raw", "temperature", "platt")}
    assert value["raw"] > 0.1
    assert value["temperature"] > 0.05
    assert value["platt"] < 0.02
    assert right["raw"]["ece_em"]["value"] < 0.02
    assert right["raw"]["auroc"] == found["raw"]["auroc"]  # ranks do not care


@pytest.mark.parametrize("name", ["long-tail-mammography", "long-tail-credit"])
def test_every_method_is_there_with_and_without_correction(name):
    methods = {method.name: dict(method.options) for method in experiments()[name].methods}
    pairs = [one for one in methods if one.endswith("_left")]
    assert len(methods) == 11
    assert len(pairs) == 5
    for left in pairs:
        assert methods[left] == {**methods[left.removesuffix("_left")], "correct_prior": False}
