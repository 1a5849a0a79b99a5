"""Settings of a study: what is wrong is told in one sentence, before anything is read."""

from dataclasses import FrozenInstanceError, replace
from pathlib import Path

import numpy as np
import pytest
from tests.sentences import assert_mentions, refuses

from calibrant.errors import InputError, MissingExtra
from calibrant.study import StudyConfig
from calibrant.study.settings import models
from calibrant.study.settings.checks import flag_name, parse_shares
from calibrant.study.settings.config import CANDIDATES
from calibrant.thresholds.rates import parse_hold

TEXT = {"data": "tickets.csv", "label": "reason", "text": "message", "model": "bilstm"}
TABLE = {"data": "shop.csv", "label": "sold", "model": "mlp"}
IMAGES = {"data": "photos", "images": True, "model": "resnet50"}


def text_study(**more):
    return StudyConfig(**{**TEXT, **more})


def table_study(**more):
    return StudyConfig(**{**TABLE, **more})


def image_study(**more):
    return StudyConfig(**{**IMAGES, **more})


def test_cross_entropy_stands_in_front_where_it_is_missing():
    assert text_study().candidates == CANDIDATES
    assert text_study(candidates=["adafocal"]).candidates == ("ce", "adafocal")
    assert text_study(candidates=["adafocal", "ce"]).candidates == ("adafocal", "ce")


def test_lists_become_tuples_and_a_path_text():
    config = text_study(
        data=Path("a") / "b.csv", seeds=[1, 0], shares=[8, 1, 1], hold=["a: fpr<=0.1"]
    )
    assert (config.data, config.seeds, config.shares) == ("a/b.csv", (1, 0), (8.0, 1.0, 1.0))
    assert config.hold == ("a: fpr<=0.1",)
    with pytest.raises(FrozenInstanceError):
        config.rows = 3


def test_kind_and_models_follow_from_what_the_rows_are():
    assert [study().kind for study in (text_study, table_study, image_study)] == [
        "text", "table", "image",
    ]  # fmt: skip
    assert text_study(model=None).models == text_study(model="auto").models == ("ngrams",)
    assert table_study(model=None).models == ("boosting", "linear", "mlp")
    assert "linear" in image_study(model=None).models
    assert text_study(model="text_cnn").models == ("text_cnn",)
    assert text_study(model="auto, bilstm,ngrams").models == ("ngrams", "bilstm")
    with refuses(InputError, "model", "empty", "ngrams,bilstm"):
        text_study(model="ngrams,,bilstm")


def test_a_family_without_its_package_is_left_out_of_the_race_and_refused_by_name(monkeypatch):
    monkeypatch.setattr(models, "find_spec", lambda name: None)
    assert table_study(model=None).models == ("linear", "mlp")
    notes = models.note_left_out(table_study(model=None))
    assert_mentions(notes[0], "'boosting'", "calibrant[boosting]")
    assert models.note_left_out(table_study(model="mlp")) == []
    with pytest.raises(MissingExtra, match="boosting"):
        table_study(model="boosting,mlp")


def test_in_a_race_each_model_takes_the_options_that_it_knows():
    raced = table_study(
        model=None, training={"epochs": 5}, model_options={"hidden": (8,), "dropout": (0.0,)}
    )
    assert models.training_of(raced, "mlp") == {"epochs": 5}
    assert models.training_of(raced, "boosting") == {}
    assert models.network_options_of(raced, "linear") == {}
    with refuses(InputError, "'hidden'", "boosting, linear", "--model"):
        table_study(model="boosting,linear", model_options={"hidden": (8,)})
    with refuses(InputError, "'epochs'", "only networks", "--model mlp"):
        table_study(model="boosting", training={"epochs": 5})


def test_only_transformers_are_frozen():
    with refuses(InputError, "freeze", "--freeze"):
        text_study(freeze=True)
    assert not text_study(freeze=False).is_frozen("bilstm")


def test_losses_that_need_counts_of_classes_are_fine():
    losses = ("ce", "balanced_softmax", "ce:weight=balanced", "logit_adjustment")
    assert text_study(candidates=losses).candidates == losses


def test_promises_are_read_with_all_their_targets():
    config = text_study(hold=["a: precision>=0.8 and recall>=0.3", "accuracy>=0.9"])
    (first, second) = config.promises
    assert first[0] == "a"
    assert [str(target) for target in first[1]] == ["precision>=0.8", "recall>=0.3"]
    assert second[0] is None


WRONG = {
    "unknown loss": ({"candidates": ["focl"]}, "no loss 'focl' (did you mean 'focal'?)"),
    "bad gamma": ({"candidates": ["focal:gamma=900"]}, "gamma must be a number from -5 to 100"),
    "gamma is a word": ({"candidates": ["focal:gamma=big"]}, "got 'big'"),
    "loss twice": ({"candidates": ["ce", "adafocal", "ce"]}, "candidates names 'ce' twice"),
    "losses as text": ({"candidates": "ce,adafocal"}, 'a list like ["focal:gamma=3"]'),
    "two shares": ({"shares": "8:2"}, "three positive numbers like 8:1:1"),
    "share of nothing": ({"shares": (8, 2, 0)}, "three positive numbers"),
    "shares as words": ({"shares": "most:few:few"}, "three positive numbers"),
    "percent": ({"confidence": 95}, "confidence must be between 0 and 1, got 95"),
    "certain": ({"confidence": 1.0}, "between 0 and 1"),
    "ood": ({"ood": "maxlogit"}, "did you mean 'max_logit'?"),
    "resample": ({"resample": "up"}, "one of over, under, smote"),
    "smote of texts": ({"resample": "smote"}, "texts are not: use 'over' or 'under'"),
    "hold without limit": ({"hold": ["a: precision"]}, "is not a target"),
    "hold of an unknown rate": ({"hold": ["a: precison>=0.8"]}, "did you mean precision?"),
    "hold in percent": ({"hold": ["a: precision>=85"]}, "85 percent is 0.85"),
    "hold of two classes": (
        {"hold": ["a: precision>=0.8 and b: recall>=0.3"]},
        "give 'b: recall>=0.3' to a separate --hold",
    ),
    "hold twice": ({"hold": ["a: fpr<=0.1", "a: fpr<=0.1"]}, "hold names 'a: fpr<=0.1' twice"),
    "seed below 0": ({"seeds": (0, -1)}, "each of seeds must be a whole number of at least 0"),
    "seed too large": ({"seed": 2**32}, "seed must be a whole number of at most 4294967295"),
    "seeds too large": ({"seeds": (2**63,)}, "each of seeds must be a whole number of at most"),
    "seed twice": ({"seeds": (3, 3)}, "seeds must be distinct, got [3, 3]"),
    "no seed": ({"seeds": ()}, "seeds must be a list like [0, 1, 2]"),
    "jobs": ({"jobs": -1}, "jobs must be a whole number of at least 0, got -1"),
    "rows": ({"rows": 0}, "rows must be a whole number of at least 1, got 0"),
    "rows as text": ({"rows": "100"}, "rows must be a whole number"),
    "overlap": ({"overlap": "keep"}, "overlap must be one of refuse, drop, got 'keep'"),
    "network": ({"model": "bilstn"}, "did you mean 'bilstm'?"),
    "network of tables": ({"model": "mlp"}, "a model for texts, got 'mlp'"),
    "option of the network": ({"model_options": {"hiden": 8}}, "did you mean 'hidden'?"),
    "value of an option": ({"model_options": {"hidden": -8}}, "hidden must be a whole number"),
    "size that the data settle": ({"model_options": {"n_tokens": 8}}, "derived from the data"),
    "option of the training": ({"training": {"epoch": 8}}, "did you mean 'epochs'?"),
    "value of the training": ({"training": {"epochs": 0}}, "epochs must be a whole number"),
    "vocabulary": ({"training": {"vocabulary": 1}}, "vocabulary must be a whole number >= 3"),
    "setting below training": ({"training": {"hold": []}}, "above [training]"),
    "loss below training": ({"training": {"loss": "ce"}}, "--candidates"),
    "seed below training": ({"training": {"seed": 1}}, "--seeds"),
    "folder below training": ({"training": {"folder": "x"}}, "--out"),
    "network below training": ({"training": {"model": "bilstm"}}, "--model"),
    "its options below training": ({"training": {"model_options": {}}}, "--model-option"),
    "resample below training": ({"training": {"resample": "over"}}, "--resample"),
    "steer_share below training": ({"training": {"steer_share": 0.2}}, "--shares"),
    "hooks below training": ({"training": {"hooks": []}}, "leave it out"),
    "progress below training": ({"training": {"progress": True}}, "leave it out"),
    "calibrator": ({"calibrator": "temprature"}, "did you mean 'temperature'?"),
    "chain": ({"calibrator": "chain"}, "calibrator must be auto or a method, got 'chain'"),
    "empty action": ({"actions": {"a": " "}}, "the action for 'a' must be text"),
    "action as number": ({"actions": {"a": 3}}, "the action for 'a' must be text"),
    "empty label": ({"label": ""}, "label must be text like 'reason', got ''"),
    "no label": ({"label": None}, "label must be text"),
    "one column, two jobs": ({"group": "message"}, "group and text both name the column 'message'"),
    "truth as number": ({"redact": 1}, "redact must be true or false, got 1"),
    "drop of texts": ({"drop": ["id"]}, "leave --drop out, or use --tabular"),
    "bytes": ({"label": "a\udcff"}, "not UTF-8 text"),
    "size of no images": ({"image_size": 32}, "leave --image-size out, or add --images"),
    "texts and images": ({"images": True}, "text and images are both given"),
    "images as a word": ({"images": "yes"}, "images must be true or false, got 'yes'"),
    "ensemble of one": ({"ensemble": True}, "but there is only one: give more, like --seeds 0,1,2"),
    "ensemble as a number": ({"ensemble": 3}, "ensemble must be true or false, got 3"),
    "one pass": ({"mc_dropout": 1}, "0, or a whole number of at least 2, got 1"),
    "passes below 0": ({"mc_dropout": -1}, "mc_dropout must be a whole number of at least 0"),
    "half a pass": ({"mc_dropout": 2.5}, "mc_dropout must be a whole number"),
    "no device": ({"devices": 0}, "devices must be a whole number of at least 1, got 0"),
    "largest weight of none": ({"largest_weight": 9}, "add --golden and --weight"),
    "largest weight": ({"largest_weight": 0.5}, "a finite number of at least 1, got 0.5"),
    "largest weight as text": ({"largest_weight": "9"}, "largest_weight must be a finite number"),
    "devices as a word": ({"devices": "all"}, "devices must be a whole number"),
    "training as list": ({"training": ["epochs"]}, "training must map names to values"),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_is_told_in_one_sentence(case):
    given, says = WRONG[case]
    with pytest.raises(InputError) as error:
        text_study(**given)
    assert says in str(error.value)
    assert "\n" not in str(error.value)
    assert str(error.value).rstrip("?").endswith((".", "'", "precision"))


TABLE_WRONG = {
    "network of texts": (
        {"model": "bilstm"},
        "for tables, got 'bilstm': choose boosting or linear or mlp",
    ),
    "one number for layers": ({"model_options": {"hidden": 8}}, "like [128,64], got 8"),
    "hidden below training": ({"training": {"hidden": [8]}}, "--model-option hidden="),
    "drop below training": ({"training": {"drop": ["a"]}}, "--drop"),
    "vocabulary": ({"training": {"vocabulary": 9}}, "not an option of TabularClassifier"),
    "label dropped": ({"drop": ["sold"]}, "which is the label column"),
    "time as category": ({"time": "day", "categories": ["day"]}, "which is the time column"),
}


@pytest.mark.parametrize("case", TABLE_WRONG)
def test_tables_have_rules_of_their_own(case):
    given, says = TABLE_WRONG[case]
    with pytest.raises(InputError) as error:
        table_study(**given)
    assert says in str(error.value)


IMAGES_WRONG = {
    "label": ({"label": "reason"}, "label names a column, but images have none: their labels are"),
    "weight": ({"weight": "w", "golden": "g"}, "taken from 'weights' of the golden npz file"),
    "group": ({"group": "customer"}, "equal images stay in one split by themselves"),
    "time": ({"time": "day"}, "images are divided at random"),
    "drop": ({"drop": ["id"]}, "drop is about columns of a table, but the rows are images"),
    "categories": ({"categories": ["shop"]}, "about columns of a table, but the rows are images"),
    "cut": ({"cut": True}, "cut is about a column of numbers, but images have none"),
    "redact": ({"redact": False}, "redact is about texts, but the rows are images"),
    "smote": ({"resample": "smote"}, "which images are not: use 'over' or 'under'"),
    "no size": ({"image_size": 0}, "image_size must be a whole number of at least 1, got 0"),
    "size as text": ({"image_size": "32x32"}, "image_size must be a whole number"),
    "network of texts": ({"model": "bilstm"}, "a model for images, got 'bilstm'"),
    "network of tables": ({"model": "mlp"}, "a model for images, got 'mlp'"),
    "spelling": ({"model": "resnet5"}, "did you mean 'resnet50'?"),
    "channels": ({"model_options": {"n_channels": 3}}, "which is derived from the data"),
    "vocabulary": ({"training": {"vocabulary": 9}}, "which is not an option of ImageClassifier"),
    "epochs": ({"training": {"epochs": 0}}, "epochs must be a whole number"),
}


@pytest.mark.parametrize("case", IMAGES_WRONG)
def test_images_have_rules_of_their_own(case):
    given, says = IMAGES_WRONG[case]
    with pytest.raises(InputError) as error:
        image_study(**given)
    assert says in str(error.value)
    assert "\n" not in str(error.value)


def test_what_says_nothing_about_images_names_its_flag():
    flags = {
        "label": "--label", "weight": "--weight", "group": "--group", "time": "--time",
        "drop": "--drop", "categories": "--category", "cut": "--cut", "redact": "--no-redact",
    }  # fmt: skip
    for name, flag in flags.items():
        with pytest.raises(InputError, match=f": leave {flag} out.$"):
            image_study(**IMAGES_WRONG[name][0])


def test_images_take_training_of_their_own():
    made = image_study(image_size=64, resample="over", training={"flip": False, "crop": 2})
    assert (made.image_size, made.training) == (64, {"flip": False, "crop": 2})


def test_averages_are_asked_for_with_seeds_and_passes():
    made = text_study(seeds=(0, 1), ensemble=True, mc_dropout=np.int64(20), devices=2)
    assert (made.ensemble, made.mc_dropout, made.devices) == (True, 20, 2)
    assert type(made.mc_dropout) is int
    plain = text_study()
    assert (plain.ensemble, plain.mc_dropout, plain.devices) == (False, 0, 1)


@pytest.mark.parametrize(
    ("made", "given"),
    [
        (image_study, {}),
        (image_study, {"model": "densenet121"}),
        (text_study, {"model_options": {"embedding_dropout": 0.0, "dense_dropout": 0.0}}),
        (table_study, {"model_options": {"hidden": [8], "dropout": [0.0]}}),
    ],
)
def test_mc_dropout_of_a_network_that_drops_nothing_is_told_before_training(made, given):
    with refuses(InputError, "no dropout") as error:
        made(mc_dropout=20, **given)
    assert ("--model wrn_26_10 --model-option dropout=0.3" in str(error.value)) == (
        made is image_study
    )


def test_mc_dropout_takes_networks_that_drop_something():
    assert image_study(
        mc_dropout=3, model="wrn_26_10", model_options={"dropout": 0.3, "widen": 1}
    ).mc_dropout == 3  # fmt: skip
    assert text_study(mc_dropout=3).mc_dropout == table_study(mc_dropout=3).mc_dropout == 3


def test_tables_take_what_texts_do_not():
    made = table_study(drop=["id"], categories=["shop"], resample="smote", cut=True)
    assert (made.drop, made.categories, made.resample) == (("id",), ("shop",), "smote")


def test_a_dict_gives_the_settings_back():
    config = text_study(
        golden="golden.csv", shares="7:1:2", rows=500, seeds=(0, 4), hold=("a: precision>=0.8",),
        training={"patience": None, "epochs": np.int64(3)}, actions={"a": "refund"},
        model_options={"hidden": 8},
    )  # fmt: skip
    saved = config.to_dict()
    assert saved["training"] == {"patience": "none", "epochs": 3}
    assert type(saved["training"]["epochs"]) is int
    assert not {"tabular", "weight", "freeze"} & set(saved)
    assert StudyConfig.from_dict(saved) == config
    assert table_study().to_dict()["tabular"] is True
    assert StudyConfig.from_dict(table_study().to_dict()) == table_study()


def test_settings_of_images_leave_out_what_is_about_columns():
    config = image_study(image_size=32, seeds=(0, 1), ensemble=True, devices=2)
    saved = config.to_dict()
    assert saved["images"] is True
    assert saved["image_size"] == 32
    assert not {"label", "text", "tabular", "redact", "drop", "categories", "cut"} & set(saved)
    assert StudyConfig.from_dict(saved) == config


@pytest.mark.parametrize(
    ("saved", "mentions"),
    [
        ({"data": "a.csv", "label": "b"}, ("none of", "text, tabular and images")),
        ({**TEXT, "tabular": True}, ("text and tabular", "both")),
        ({**TEXT, "images": True}, ("text and images", "both")),
        ({**IMAGES, "tabular": True}, ("tabular and images", "both")),
        ({**IMAGES, "images": False}, ("none of", "text, tabular and images")),
        ({**TABLE, "images": "yes"}, ("images", "true or false")),
        ({**IMAGES, "label": "a"}, ("label", "column")),
        ({"images": True}, ("data is missing",)),
        ({**TABLE, "tabular": "yes"}, ("tabular", "true or false")),
        ({"label": "b", "tabular": True}, ("data is missing",)),
        ({"data": "b", "tabular": True}, ("label is missing",)),
        ({**TEXT, "candidate": ["ce"]}, ("did you mean 'candidates'?",)),
        ({**TEXT, "out-of-scope": "x"}, ("did you mean 'out_of_scope'?",)),
        ({**TEXT, "qqqq": 1}, ("settings are", "data, label")),
        ({**TEXT, "epochs": 3}, ("below [training]",)),
    ],
)
def test_a_dict_that_is_no_study_is_refused(saved, mentions):
    with pytest.raises(InputError) as error:
        StudyConfig.from_dict(saved)
    assert_mentions(error.value, *mentions)


def test_a_changed_copy_is_checked_again():
    with pytest.raises(InputError, match="rows must be"):
        replace(text_study(), rows=-1)


@pytest.mark.parametrize(
    ("text", "of", "targets"),
    [
        ("terms and conditions: precision>=0.8", "terms and conditions", ["precision>=0.8"]),
        ("a and b: fpr<=0.1 and recall >= 0.2", "a and b", ["fpr<=0.1", "recall>=0.2"]),
        ("a: npv>=0.9 AND a: recall>=0.2", "a", ["npv>=0.9", "recall>=0.2"]),
        ("recall>=0.2", None, ["recall>=0.2"]),
    ],
)
def test_a_class_may_have_and_in_its_name(text, of, targets):
    found, held = parse_hold(text)
    assert (found, [str(target) for target in held]) == (of, targets)


def test_shares_and_flags_are_spelt_one_way():
    assert parse_shares("8:1:1") == parse_shares([8, 1, 1]) == parse_shares("8.0 : 1 : 1")
    assert flag_name("out_of_scope") == "--out-of-scope"
    assert flag_name("categories") == "--category"
