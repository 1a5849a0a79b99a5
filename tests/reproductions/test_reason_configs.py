"""Configs of the return-reason paper: its network, its tables, and a run of each at toy size."""

from __future__ import annotations

import json

import pytest
from reproductions.data_sets import DATA_SETS
from reproductions.experiment import experiment_named
from reproductions.extras import EXTRAS, extra_figures
from reproductions.fitting import classifier_of, fit
from reproductions.loaders import LOADERS, load

from calibrant.training.options import TrainingOptions

NAMES = (
    "return-reasons-binary", "return-reasons-multi", "it-tickets", "womens-clothing", "clinc150",
)  # fmt: skip
LOSSES = {
    "ce": "ce", "fl1": "focal:gamma=1", "fl3": "focal:gamma=3", "fl5": "focal:gamma=5",
    "fl10": "focal:gamma=10", "adafocal": "adafocal",
}  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_every_experiment_has_the_papers_network_and_losses(name):
    one = experiment_named(name)
    assert one.data in LOADERS
    assert set(one.needs) <= set(DATA_SETS)
    assert set(one.extras) <= set(EXTRAS)
    assert one.seeds == (0, 1, 2)
    network = one.training["model_options"]
    assert (network["embedding"], network["layers"]) == (1024, 2)
    assert network["hidden"] == (128 if one.name.endswith(("binary", "clothing")) else 512)
    assert (network["embedding_dropout"], network["dense_dropout"]) == (0.1, 0.2)
    assert one.training["choose_by"] == "last"
    losses = {method.name: method.options["loss"] for method in one.methods}
    assert losses == {**LOSSES, "ce_best_epoch": "ce", "adafocal_best_epoch": "adafocal"}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("size", ["full", "small", "toy"])
def test_options_of_every_size_are_those_of_the_classifier(name, size):
    one = experiment_named(name).at(size)
    parts = load(experiment_named(name).at("toy"))
    known = TrainingOptions().to_dict()
    for method in one.methods:
        made = classifier_of(one, method, 0, parts)
        TrainingOptions(
            **{n: v for n, v in made.get_params().items() if n in known and v != "auto"}
        )


def test_published_figures_are_those_of_the_tables():
    """F1 is a mean over classes: it differs from the harmonic mean of the printed columns."""
    binary = experiment_named("return-reasons-binary").published
    assert list(binary) == ["ce", "fl1", "fl3", "fl5", "fl10"]
    assert [each["nll"] for each in binary.values()] == [2.159, 1.438, 0.608, 0.258, 0.178]
    assert [each["ece"] for each in binary.values()] == [16.8, 16.6, 13.9, 8.0, 7.8]
    multi = experiment_named("return-reasons-multi").published
    same = [n for n in multi["ce"] if multi["ce"][n] == multi["fl5"][n]]
    assert same == ["accuracy", "error", "precision", "recall", "f1", "ece"]
    for table in (binary, multi):
        for each in table.values():
            harmonic = 2 * each["precision"] * each["recall"] / (each["precision"] + each["recall"])
            assert each["f1"] <= harmonic + 0.1


@pytest.mark.parametrize("name", NAMES)
def test_a_toy_run_needs_no_files_and_leaves_its_figures(name, monkeypatch):
    monkeypatch.delenv("CALIBRANT_DATA", raising=False)
    one = experiment_named(name).at("toy")
    assert one.needs == ()
    fitted = fit(one, one.methods[-1], 0, load(one))
    found = extra_figures(fitted)
    assert list(found) == list(one.extras)
    json.dumps(found, allow_nan=False)
    columns = found["paper_columns"]["test"]["raw"]
    assert set(columns) >= {"accuracy", "precision", "recall", "f1", "nll", "ece", "mce"}
    assert found["promise"]["promises"]
