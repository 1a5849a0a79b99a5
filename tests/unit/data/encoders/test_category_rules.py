"""CategoryRules: which spellings mean one category, and which rules contradict themselves."""

import pytest

from calibrant.data.encoders.category_rules import CategoryRules, spelled
from calibrant.errors import InputError


def test_spaces_case_and_compatibility_forms_make_no_difference():
    rules = CategoryRules()
    spellings = ["low fat", " Low  Fat ", "LOW\tFAT", "Low\u00a0Fat", "\uff2c\uff4f\uff57 fat"]
    assert {rules.key(text) for text in spellings} == {"low fat"}
    assert spelled(" Low\u00a0 Fat\n") == "Low Fat"


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
    rules = CategoryRules.of({"LF": "Low Fat", "n/a": None, "-": " "}, column="fat")
    assert [rules.read(text) for text in ("lf", " LF ", "Low fat")] == ["Low Fat"] * 2 + ["Low fat"]
    assert rules.key("lf") == rules.key("LOW FAT")
    assert rules.key("N/A") is None
    assert rules.key("-") is None


def test_rules_survive_json():
    rules = CategoryRules.of({"LF": "Low Fat", "?": None}, column="fat", fold_case=False)
    assert CategoryRules.from_dict(rules.to_dict()) == rules


@pytest.mark.parametrize(
    ("renames", "sentence"),
    [
        (["LF"], "must be a dict of spellings"),
        ({1: "Low Fat"}, "must map text to text or to None, got 1: 'Low Fat'"),
        ({"LF": 1}, "must map text to text"),
        ({"LF": "Low Fat", "lf": "Lean"}, "gives 'lf' two meanings, 'Low Fat' and 'Lean'"),
        ({"LF": "Low Fat", "low fat": "Lean"}, "itself turned into 'Lean'"),
        ({"LF": "Low Fat", "low fat": None}, "itself turned into None"),
    ],
)
def test_rules_that_cannot_be_followed_are_refused(renames, sentence):
    with pytest.raises(InputError, match=sentence):
        CategoryRules.of(renames, column="fat")


def test_a_category_may_be_named_as_its_own_spelling():
    rules = CategoryRules.of({"low fat": "Low Fat", "LF": "Low Fat"}, column="fat")
    assert rules.read("LOW FAT") == "Low Fat"
