"""Settings of a study: what is wrong is told in one sentence, before anything is read."""

from dataclasses import FrozenInstanceError, replace
from pathlib import Path

import numpy as np
import pytest

from calibrant.errors import InputError
from calibrant.study import StudyConfig
from calibrant.study.config import CANDIDATES
from calibrant.study.hold_text import parse_hold
from calibrant.study.setting_checks import flag_of, shares_of

TEXT = {"data": "tickets.csv", "label": "reason", "text": "message"}
TABLE = {"data": "shop.csv", "label": "sold"}


def text_study(**more):
    return StudyConfig(**{**TEXT, **more})


def table_study(**more):
    return StudyConfig(**{**TABLE, **more})


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


def test_kind_and_network_follow_from_the_text_column():
    assert (text_study().kind, text_study().network) == ("text", "bilstm")
    assert (table_study().kind, table_study().network) == ("table", "mlp")
    assert text_study(model="text_cnn").network == "text_cnn"


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
    "percent": ({"confidence": 95}, "confidence must lie between 0 and 1, got 95"),
    "certain": ({"confidence": 1.0}, "between 0 and 1"),
    "ood": ({"ood": "maxlogit"}, "did you mean 'max_logit'?"),
    "resample": ({"resample": "up"}, "one of over, under, smote"),
    "smote of texts": ({"resample": "smote"}, "texts are not: take 'over' or 'under'"),
    "hold without limit": ({"hold": ["a: precision"]}, "is not a target"),
    "hold of an unknown rate": ({"hold": ["a: precison>=0.8"]}, "did you mean precision?"),
    "hold in percent": ({"hold": ["a: precision>=85"]}, "85 percent is 0.85"),
    "hold of two classes": (
        {"hold": ["a: precision>=0.8 and b: recall>=0.3"]},
        "give 'b: recall>=0.3' to a --hold of its own",
    ),
    "hold twice": ({"hold": ["a: fpr<=0.1", "a: fpr<=0.1"]}, "hold names 'a: fpr<=0.1' twice"),
    "seed below 0": ({"seeds": (0, -1)}, "each of seeds must be a whole number of at least 0"),
    "seed twice": ({"seeds": (3, 3)}, "seeds must be distinct, got [3, 3]"),
    "no seed": ({"seeds": ()}, "seeds must be a list like [0, 1, 2]"),
    "jobs": ({"jobs": -1}, "jobs must be a whole number of at least 0, got -1"),
    "rows": ({"rows": 0}, "rows must be a whole number of at least 1, got 0"),
    "rows as text": ({"rows": "100"}, "rows must be a whole number"),
    "overlap": ({"overlap": "keep"}, "overlap must be one of refuse, drop, got 'keep'"),
    "network": ({"model": "bilstn"}, "did you mean 'bilstm'?"),
    "network of tables": ({"model": "mlp"}, "a network for texts, got 'mlp'"),
    "option of the network": ({"model_options": {"hiden": 8}}, "did you mean 'hidden'?"),
    "value of an option": ({"model_options": {"hidden": -8}}, "hidden must be a whole number"),
    "size that the data settle": ({"model_options": {"n_tokens": 8}}, "which the data settle"),
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
    "bytes": ({"label": "a\udcff"}, "no UTF-8 text"),
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
    "network of texts": ({"model": "bilstm"}, "a network for tables, got 'bilstm': choose mlp"),
    "one number for layers": ({"model_options": {"hidden": 8}}, "like [128,64], got 8"),
    "hidden below training": ({"training": {"hidden": [8]}}, "--model-option hidden="),
    "drop below training": ({"training": {"drop": ["a"]}}, "--drop"),
    "vocabulary": ({"training": {"vocabulary": 9}}, "which TabularClassifier lacks"),
    "label dropped": ({"drop": ["sold"]}, "which is the label column"),
    "time as category": ({"time": "day", "categories": ["day"]}, "which is the time column"),
}


@pytest.mark.parametrize("case", TABLE_WRONG)
def test_tables_have_rules_of_their_own(case):
    given, says = TABLE_WRONG[case]
    with pytest.raises(InputError) as error:
        table_study(**given)
    assert says in str(error.value)


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
    assert not {"tabular", "weight", "model"} & set(saved)
    assert StudyConfig.from_dict(saved) == config
    assert table_study().to_dict()["tabular"] is True
    assert StudyConfig.from_dict(table_study().to_dict()) == table_study()


@pytest.mark.parametrize(
    ("saved", "says"),
    [
        ({"data": "a.csv", "label": "b"}, "neither text nor table is given"),
        ({**TEXT, "tabular": True}, "both given"),
        ({**TABLE, "tabular": "yes"}, "tabular must be true or false"),
        ({"label": "b", "tabular": True}, "data is missing"),
        ({"data": "b", "tabular": True}, "label is missing"),
        ({**TEXT, "candidate": ["ce"]}, "did you mean 'candidates'?"),
        ({**TEXT, "out-of-scope": "x"}, "did you mean 'out_of_scope'?"),
        ({**TEXT, "qqqq": 1}, "known are data, label"),
        ({**TEXT, "epochs": 3}, "below the line [training]"),
    ],
)
def test_a_dict_that_is_no_study_is_refused(saved, says):
    with pytest.raises(InputError) as error:
        StudyConfig.from_dict(saved)
    assert says in str(error.value)


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
    assert shares_of("8:1:1") == shares_of([8, 1, 1]) == shares_of("8.0 : 1 : 1")
    assert flag_of("out_of_scope") == "--out-of-scope"
    assert flag_of("categories") == "--category"
