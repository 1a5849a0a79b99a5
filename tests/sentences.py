"""Check a message by what it is about, not by its wording: kind, place, value and remedy."""

from contextlib import contextmanager

import pytest


def assert_mentions(message, *mentions):
    """Require that a message contains every one of `mentions`.

    Case and runs of white space do not matter. Mention the place (a column, a row, an option), the
    value, and a word of the remedy; never a whole sentence.
    """
    text = " ".join(str(message).split())
    assert text, "the message is empty"
    assert "Traceback" not in text, text
    missing = [word for word in map(str, mentions) if word.lower() not in text.lower()]
    assert not missing, f"{missing} not in the message: {text!r}"


@contextmanager
def refuses(kind, *mentions):
    """Require that the block raises an error of `kind` whose message contains every mention.

    Examples
    --------
    >>> from calibrant.errors import InputError
    >>> with refuses(InputError, "row 7", "prob_cat", "decimal point"):
    ...     raise InputError("row 7, prob_cat: '0,5' has a comma: write a decimal point.")
    """
    with pytest.raises(kind) as error:
        yield error
    assert_mentions(error.value, *mentions)
