"""ascii_words: columns are cut as a regular expression cuts each text."""

import re

import pyarrow as pa
from hypothesis import example, given
from hypothesis import strategies as st

from calibrant.data.encoders.text_encoder import ascii_words


def column(texts):
    return pa.array(texts, pa.large_string())


def test_words_by_hand():
    words, counts = ascii_words(column(["It  broke,AGAIN!", " \t", "", "a_1?!ok"]))
    assert words.to_pylist() == ["it", "broke", ",", "again", "!", "a_1", "?!", "ok"]
    assert counts.tolist() == [5, 0, 0, 3]


def test_words_of_neighbours_do_not_grow_together():
    words, counts = ascii_words(column(["ab", "cd", "", "!", "!"]))
    assert words.to_pylist() == ["ab", "cd", "!", "!"]
    assert counts.tolist() == [1, 1, 0, 1, 1]


def test_texts_without_any_sign_have_no_words():
    for texts in (["", ""], [" "]):
        words, counts = ascii_words(column(texts))
        assert len(words) == 0
        assert counts.tolist() == [0] * len(texts)


@given(st.lists(st.text(st.characters(max_codepoint=127), max_size=20), min_size=1), st.data())
@example(["a\x0bb\x1cc\x00", "A\x7fB"], None)
def test_a_column_is_cut_as_each_text_alone_also_where_it_is_a_slice(texts, data):
    first = 0 if data is None else data.draw(st.integers(0, len(texts) - 1))
    words, counts = ascii_words(column(texts)[first:])
    due = [re.findall(r"\w+|[^\w\s]+", text.lower(), re.ASCII) for text in texts[first:]]
    assert words.to_pylist() == [word for found in due for word in found]
    assert counts.tolist() == [len(found) for found in due]
