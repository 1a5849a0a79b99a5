"""Examples of cli.study_settings."""

from calibrant.cli.study_settings import (
    parse_actions,
    parse_options,
    parse_seeds,
    parse_training_options,
    parse_value,
)


def test_example_of_parse_seeds():
    assert parse_seeds("0, 1") == [0, 1]


def test_example_of_parse_options():
    assert parse_options(["hidden=[64,32]", "batch_norm=false"], flag="--model-option") == {
        "hidden": [64, 32],
        "batch_norm": False,
    }


def test_example_of_parse_training_options():
    assert parse_training_options(["clip=1"], {"epochs": 5, "patience": "none"}, ()) == {
        "clip": 1,
        "epochs": 5,
        "patience": None,
    }


def test_example_of_parse_value():
    assert [parse_value(text) for text in ("64", "1e-3", "[8,4]", "true", "None", "adamw")] == [
        64,
        0.001,
        [8, 4],
        True,
        None,
        "adamw",
    ]


def test_example_of_parse_actions():
    assert parse_actions(["item_defective=refund, priority=high"]) == {
        "item_defective": "refund, priority=high"
    }
