"""The report of an automatic choice: what it says, in text and in JSON."""

import json

import pytest

from calibrant.calibrators import Candidate, Choice

IDENTITY = Candidate("identity", 0.5, 0.0, 0.0, nll=0.5, brier=0.2, ece_em=0.05)
PLATT = Candidate("platt", 0.45, 0.05, 0.01, nll=0.45, brier=0.19, ece_em=0.01)
VECTOR = Candidate("vector", why_not="it needs rows of every class")


@pytest.fixture
def choice():
    return Choice(
        chosen="platt",
        why="platt has the best score, and no simpler method comes close enough.",
        score="nll",
        n=1234,
        folds=5,
        repeats=2,
        candidates=(IDENTITY, PLATT, VECTOR),
    )


def test_the_text_has_a_line_for_each_candidate_and_marks_the_chosen_one(choice):
    head, identity, platt, vector, why = str(choice).splitlines()
    assert head.split()[:3] == ["method", "nll", "gain"]
    assert identity.split() == ["identity", "0.50000", "+0.00000", "0.00000", "0.2000", "0.0500"]
    assert platt.split()[:4] == ["platt", "0.45000", "+0.05000", "0.01000"]
    assert platt.endswith("<- chosen")
    assert "chosen" not in identity + vector
    assert vector == "vector             left out: it needs rows of every class"
    assert why.startswith("platt has the best score")
    assert why.endswith("(1,234 rows, 5 folds, repeated 2 times.)")


def test_columns_stand_under_their_heads(choice):
    head, identity, platt, *_ = str(choice).splitlines()
    for name, cell in (("nll", "0.50000"), ("gain", "+0.00000"), ("brier", "0.2000")):
        assert head.index(name) + len(name) == identity.index(cell) + len(cell)
    assert identity.index("+") == platt.index("+")


def test_the_dictionary_is_strict_json_and_complete(choice):
    saved = json.loads(json.dumps(choice.to_dict(), allow_nan=False))
    assert saved["chosen"] == "platt"
    assert saved["n"] == 1234
    assert [c["method"] for c in saved["candidates"]] == ["identity", "platt", "vector"]
    assert saved["candidates"][2]["score"] is None
    assert saved["candidates"][2]["why_not"] == "it needs rows of every class"
    rebuilt = Choice(**{**saved, "candidates": tuple(Candidate(**c) for c in saved["candidates"])})
    assert rebuilt == choice


def test_the_page_form_is_escaped():
    odd = Choice("identity", "a < b & c", "nll", 20, 5, 5, (IDENTITY,))
    assert "a &lt; b &amp; c" in odd._repr_html_()
    assert odd._repr_html_().startswith("<pre>")


def test_a_missing_figure_leaves_its_cell_empty():
    part = Candidate("isotonic", 0.1, 0.01, 0.002, nll=None, brier=0.1, ece_em=None)
    row = str(Choice("isotonic", "Why.", "brier", 99, 5, 5, (IDENTITY, part))).splitlines()[2]
    assert row.split() == ["isotonic", "0.10000", "+0.01000", "0.00200", "0.1000", "<-", "chosen"]


def test_neither_can_be_changed(choice):
    with pytest.raises(AttributeError):
        choice.chosen = "identity"
    with pytest.raises(AttributeError):
        IDENTITY.score = 0.1
