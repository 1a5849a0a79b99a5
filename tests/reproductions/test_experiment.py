"""Configs of experiments: what they hold, their sizes, and names that are not there."""

import pytest
from reproductions.data_sets import DATA_SETS
from reproductions.experiment import _read, experiment_named, experiments
from reproductions.extras import EXTRAS, ONCE
from reproductions.loaders import LOADERS

from calibrant.errors import InputError
from calibrant.losses.names import as_loss
from calibrant.training.image import ImageClassifier
from calibrant.training.tabular import TabularClassifier
from calibrant.training.text import TextClassifier

ROWS = """
title = "A"
paper = "B"
kind = "table"
data = "bigmart"
training = { epochs = 9, model_options = { width = 8 } }
methods = { ce = { label = "CE", loss = "ce" }, brier = { loss = "brier" } }

[parts.few.training]
epochs = 5
clip = 2.0
model_options.width = 4

[rows.a-short]
parts = ["few"]
use = ["brier", "ce"]
training = { epochs = 3, model_options = { depth = 1 } }

[rows.a-long]
methods.ce.loss = "ce:reduction=sum"
"""
KINDS = {"image": ImageClassifier, "table": TabularClassifier, "text": TextClassifier}


@pytest.mark.parametrize("one", experiments().values(), ids=lambda one: one.name)
def test_a_config_names_only_what_there_is(one):
    assert one.data in LOADERS
    assert set(one.needs) <= set(DATA_SETS)
    assert set(one.extras) <= set(EXTRAS)
    assert set(one.once) <= set(ONCE)
    assert set(one.published) <= {method.name for method in one.methods}
    known = KINDS[one.kind]().get_params()
    for size in ("full", *one.sizes):
        at = one.at(size)
        for method in at.methods:
            assert {*at.training, *method.options} <= set(known)
            as_loss(method.options.get("loss", "ce"), class_counts=[30] * 4)
    assert one.run or one.why


@pytest.mark.parametrize("one", experiments().values(), ids=lambda one: one.name)
def test_published_figures_are_percent_and_of_a_sane_size(one):
    for figures in one.published.values():
        for name, value in figures.items():
            assert 0 < value <= 100, (name, value)


def test_names_of_files_methods_and_labels_are_told_apart():
    assert len(experiments()) >= 20
    for one in experiments().values():
        names, labels = zip(*((m.name, m.label) for m in one.methods), strict=True)
        assert len(set(names)) == len(names)
        assert len(set(labels)) == len(labels)
        assert "ce" in names


def test_a_size_replaces_what_it_names_and_leaves_the_rest():
    full = experiment_named("newsgroups-cnn")
    toy = full.at("toy")
    assert toy.training["epochs"] == 1
    assert full.training["epochs"] == 50
    assert toy.training["learning_rate"] == full.training["learning_rate"]
    assert [method.name for method in toy.methods] == ["ce", "adafocal"]
    assert full.at("full") is full


def test_what_is_not_there_is_answered_with_the_nearest_name():
    with pytest.raises(InputError, match="did you mean 'newsgroups-cnn'"):
        experiment_named("newsgroup-cnn")
    with pytest.raises(InputError, match="did you mean 'bigmart'"):
        experiment_named("BIGMART")
    with pytest.raises(InputError, match="there is no method 'cee': did you mean 'ce'"):
        experiment_named("newsgroups-cnn").chosen(["cee"])
    with pytest.raises(InputError, match="size must be 'full', 'small' or 'toy', got 'big'"):
        experiment_named("newsgroups-cnn").at("big")
    unrun = next(one for one in experiments().values() if "small" not in one.sizes)
    with pytest.raises(InputError, match="has no size 'small'"):
        unrun.at("small")


def test_a_config_with_a_misspelt_key_is_refused_by_its_file():
    text = 'name="a"\nheadline="b"\n[methods.ce]\nloss="ce"\n'
    with pytest.raises(InputError, match=r"the config a\.toml is not an experiment: .*headline"):
        _read("a.toml", text)


def test_rows_of_a_file_are_its_head_their_parts_and_their_own_options_in_this_order():
    short, long = _read("a.toml", ROWS)
    assert [each.name for each in (short, long)] == ["a-short", "a-long"]
    assert short.training == {"epochs": 3, "clip": 2.0, "model_options": {"width": 4, "depth": 1}}
    assert long.training == {"epochs": 9, "model_options": {"width": 8}}
    assert [method.name for method in short.methods] == ["brier", "ce"]
    assert {method.label: dict(method.options) for method in long.methods} == {
        "CE": {"loss": "ce:reduction=sum"}, "brier": {"loss": "brier"}
    }  # fmt: skip
    assert dict(short.methods[1].options) == {"loss": "ce"}


@pytest.mark.parametrize(
    ("right", "wrong", "said"),
    [
        ('parts = ["few"]', 'parts = ["fee"]', "no part 'fee': did you mean 'few'"),
        ('"brier", "ce"', '"briar", "ce"', "no method 'briar': did you mean 'brier'"),
    ],
)
def test_a_row_that_names_what_its_file_lacks_is_refused(right, wrong, said):
    with pytest.raises(InputError, match=f"there is {said}.* the config a.toml has"):
        _read("a.toml", ROWS.replace(right, wrong))


def test_options_of_a_size_go_for_methods_with_options_of_their_own_too():
    one = experiment_named("long-tail-mammography").at("toy")
    given = {method.name: method.options.get("epochs") for method in one.methods}
    assert set(given.values()) == {None}
    assert one.training["epochs"] <= 2


def test_options_of_a_network_are_merged_one_by_one_unless_it_is_another_network():
    cifar = experiment_named("cifar10-resnet50")
    assert cifar.at("small").training["model_options"]["zero_init"]
    assert cifar.at("small").training["model_options"]["width"] < 64
    minilm = experiment_named("newsgroups-minilm").at("toy")
    assert set(minilm.training["model_options"]) == {"embedding", "filters"}


def test_a_size_may_read_other_data_with_its_own_options_alone():
    small = experiment_named("adafocal-ablations").at("small")
    assert small.data == "return_reasons"
    assert "vectors" not in small.reading
