"""Warning about a column that should perhaps be left out of a table."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from shlex import quote


class ColumnWarning(UserWarning):
    """A column that a model probably should not be trained on.

    Its text names the remedy in Python, and `command_text` the one on the command line.

    Parameters
    ----------
    problem : the problem and a condition, without a full stop
    column : name of the column

    Examples
    --------
    >>> warning = ColumnWarning("'row id' looks like a row number: if it is one", "row id")
    >>> print(warning)
    'row id' looks like a row number: if it is one, leave it out with drop=['row id'].
    >>> print(warning.command_text)
    'row id' looks like a row number: if it is one, leave it out with --drop 'row id'.
    """

    def __init__(self, problem: str, column: str) -> None:
        super().__init__(problem, column)
        self.problem = problem
        self.column = column

    def __str__(self) -> str:
        return f"{self.problem}, leave it out with drop=[{self.column!r}]."

    @property
    def command_text(self) -> str:
        """The text with the remedy on the command line."""
        return f"{self.problem}, leave it out with --drop {quote(self.column)}."


@contextmanager
def ignore_column_warnings() -> Iterator[None]:
    """Ignore warnings about columns, for an encoder that is fitted to the same rows again."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ColumnWarning)
        yield
