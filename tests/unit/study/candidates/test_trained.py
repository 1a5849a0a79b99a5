"""What training warned of is kept, once each, and what is about its machinery is not."""

import warnings

import pytest

from calibrant.data.encoders.column_warning import ColumnWarning
from calibrant.study.candidates.trained import training_warnings


def test_each_warning_is_told_once_in_order():
    with training_warnings() as told:
        for words in ("second", "first", "second"):
            warnings.warn(words, UserWarning, stacklevel=1)
        assert told == []  # not before the block has ended
    assert told == ["first", "second"]


@pytest.mark.parametrize("library", ["torch", "lightning_fabric", "triton"])
def test_libraries_that_train_are_not_told(library):
    with training_warnings() as told:
        place = f"lib/site-packages/{library}/nn/module.py"
        warnings.warn_explicit("compiled anew", UserWarning, place, 3)
        warnings.warn_explicit("a loss of my own", UserWarning, "my/torch_losses/loss.py", 3)
        warnings.warn_explicit("old name", DeprecationWarning, "mine.py", 3)
    assert told == ["a loss of my own"]


def test_nothing_of_it_reaches_the_terminal(recwarn):
    with training_warnings():
        warnings.warn("quiet", UserWarning, stacklevel=1)
    assert not recwarn.list


def test_a_column_to_leave_out_is_named_with_the_flag():
    warning = ColumnWarning("'sold on' leaks: if it was derived from the labels", "sold on")
    with training_warnings() as messages:
        warnings.warn(warning, stacklevel=1)
    assert messages == [
        "'sold on' leaks: if it was derived from the labels, leave it out with --drop 'sold on'."
    ]
    assert "drop=['sold on']" in str(warning)
