"""The texts: length, variety, slips that can be undone, and nothing lost by redaction."""

import re
from collections import Counter

import numpy as np
import pytest
from tests.unit.data.return_reasons.reader import without_tail

from calibrant.data import redact, return_reasons
from calibrant.data.return_reasons.lexicon import GROUPS, claims, clauses, outside, products
from calibrant.data.return_reasons.rendering import add_typo, vocabulary, word_typos


@pytest.fixture(scope="module")
def drawn():
    return return_reasons.draw(20_000, seed=31, out_of_scope=0.1)


def test_no_text_is_empty_and_lengths_are_those_of_messages(drawn):
    lengths = np.array([len(text.split()) for text in drawn.texts])
    assert lengths.min() >= 2
    inside = lengths[drawn.in_scope]
    assert inside.min() >= 4
    assert 16 <= np.median(inside) <= 20
    assert (inside <= 40).mean() > 0.97
    assert lengths.max() < 80


def test_texts_are_clean_single_lines_without_gaps_left_open(drawn):
    for text in drawn.texts:
        assert text == text.strip()
        assert "  " not in text
        assert "\n" not in text
        assert "{" not in text


def test_hardly_any_message_comes_twice(drawn):
    inside = [t for t, here in zip(drawn.texts, drawn.in_scope, strict=True) if here]
    assert len(set(inside)) > 0.995 * len(inside)  # a short one may


def test_there_are_many_words_and_most_are_rare(drawn):
    counts = Counter(word for text in drawn.texts for word in re.findall("[a-z]+", text.lower()))
    assert len(counts) > 3500
    assert sum(count < 20 for count in counts.values()) > 2500


def test_a_slip_is_no_word_and_belongs_to_one_word():
    owner = {}
    for word, found in word_typos().items():
        for slip in found:
            assert slip not in vocabulary()
            assert owner.setdefault(slip, word) == word
            assert slip[0] == word[0]
    assert len(owner) > 10_000


def test_a_slip_keeps_capitals_and_marks():
    assert "ordered" in word_typos()
    first = word_typos()["ordered"][0]
    assert add_typo("Ordered, it", 0.0, 0.0) == first.capitalize() + ", it"
    assert add_typo("ORDERED!", 0.0, 0.0) == first.upper() + "!"
    assert add_typo("it 123", 0.9, 0.5) == "it 123"


def test_redaction_takes_away_nothing_but_numbers_and_addresses(drawn):
    changed = 0
    for text, redacted in zip(drawn.texts, redact(drawn.texts), strict=True):
        kept = without_tail(text)
        assert redacted.startswith(kept)
        changed += redacted != text
        assert not re.search(r"@example|\d{3}-\d{7}-\d{7}|\+49", redacted)
    assert changed > 0.12 * len(drawn)


def test_no_wording_has_two_meanings():
    for group in range(len(GROUPS)):
        said = [phrase for claim in claims() for phrase in claim.phrases[group]]
        assert len(said) == len(set(said))
    for slot in ("denials", "uses", "requests", "feelings"):
        said = [phrase for value in clauses()[slot].values() for phrase in value["phrases"]]
        assert len(said) == len(set(said))
        assert all(len(value["odds"]) == 5 for value in clauses()[slot].values())
    names = [product.name for product in products()]
    assert len(names) == len(set(names)) > 300


def test_leans_are_percentages_of_which_none_is_zero():
    for claim in claims():
        assert claim.lean.sum() == 100
        assert claim.lean.min() >= 1
        assert any(claim.phrases)


def test_some_messages_set_one_complaint_against_another(drawn):
    starts = [frame.replace("{a}", "{b}").split("{b}") for frame in clauses()["contrasts"]]
    marks = [max(pieces, key=len).strip(" ,") for pieces in starts]
    inside = [t for t, here in zip(drawn.texts, drawn.in_scope, strict=True) if here]
    plain = [re.sub("[.,!?]", "", text.lower()) for text in inside]
    found = [any(mark.lower().replace(",", "") in text for mark in marks) for text in plain]
    assert 0.10 < np.mean(found) < 0.15


def test_messages_about_something_else_are_many():
    assert len(set(outside())) == len(outside()) > 50
