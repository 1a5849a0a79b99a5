"""CategoryRules: which spellings mean one category, and which rules contradict themselves."""

import pytest
from tests.sentences import refuses

from calibrant.data.encoders.category_rules import CategoryRules, normalise_spelling
from calibrant.errors import InputError


def test_spaces_case_and_compatibility_forms_make_no_difference():
    rules = CategoryRules()
    spellings = ["low fat", " Low  Fat ", "LOW\tFAT", "Low\u00a0Fat", "\uff2c\uff4f\uff57 fat"]
    assert {rules.key(text) for text in spellings} == {"low fat"}
    assert normalise_spelling(" Low\u00a0 Fat\n") == "Low Fat"


def test_case_can_be_told_apart():
    rules = CategoryRules(fold_case=False)
    assert rules.key("A") != rules.key("a")
    assert rules.key(" A") == rules.key("A")


def test_folding_goes_beyond_lower_case():
    assert CategoryRules().key("STRASSE") == CategoryRules().key("Straße")


def test_an_empty_text_is_missing():
    assert CategoryRules().key("") is None
    assert CategoryRules().key(" \t") is None


def test_renames_apply_to_every_spelling_of_their_source():
    rules = CategoryRules.from_renames({"LF": "Low Fat", "n/a": None, "-": " "}, column="fat")
    assert [rules.clean(text) for text in ("lf", " LF ", "Low fat")] == ["Low Fat"] * 2 + [
        "Low fat"
    ]
    assert rules.key("lf") == rules.key("LOW FAT")
    assert rules.key("N/A") is None
    assert rules.key("-") is None


def test_rules_survive_json():
    rules = CategoryRules.from_renames({"LF": "Low Fat", "?": None}, column="fat", fold_case=False)
    assert CategoryRules.from_dict(rules.to_dict()) == rules


@pytest.mark.parametrize(
    ("renames", "sentence"),
    [
        (["LF"], ("dict of spellings",)),
        ({1: "Low Fat"}, ("map text", "None", "got 1", "'Low Fat'")),
        ({"LF": 1}, ("map text",)),
        ({"LF": "Low Fat", "lf": "Lean"}, ("'lf'", "'Low Fat'", "'Lean'")),
        ({"LF": "Low Fat", "low fat": "Lean"}, ("'Low Fat',", "'Lean'")),
        ({"LF": "Low Fat", "low fat": None}, ("'Low Fat',", "None")),
    ],
)
def test_rules_that_cannot_be_followed_are_refused(renames, sentence):
    with refuses(InputError, *sentence):
        CategoryRules.from_renames(renames, column="fat")


def test_a_category_may_be_named_as_its_own_spelling():
    rules = CategoryRules.from_renames({"low fat": "Low Fat", "LF": "Low Fat"}, column="fat")
    assert rules.clean("LOW FAT") == "Low Fat"
