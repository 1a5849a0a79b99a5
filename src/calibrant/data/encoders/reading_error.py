"""Error about a column of texts that cannot be read with certainty."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from shlex import quote

from calibrant.errors import InputError

_SHOWN = 5


@dataclass(frozen=True)
class Spot:
    """A value of a column, and the rows that have it."""

    value: str
    rows: tuple[int, ...]  # positions of the first rows
    n: int  # number of rows


@dataclass(frozen=True)
class Remedy:
    """An option that settles how a column is read."""

    what: str  # what it does, like "read it as missing"
    option: str
    values: tuple[str, ...]

    def in_python(self) -> str:
        """Return the remedy as an argument."""
        value = repr(list(self.values)) if self.option in _FLAGS else repr(self.values[0])
        return f"{self.what} with {self.option}={value}"

    def on_command_line(self) -> str:
        """Return the remedy as flags."""
        flag = _FLAGS.get(self.option, f"--{self.option}")
        quoted = (f"'{value}'" if value in (".", ",") else quote(value) for value in self.values)
        return f"{self.what} with {' '.join(f'{flag} {value}' for value in quoted)}"


_FLAGS = {"missing": "--missing", "categories": "--category", "drop": "--drop"}
"""Options that take a list, and their flags."""


def name_rows(rows: Sequence[int], n: int) -> str:
    """Name rows by their positions, like "rows 3, 8 and 38 more"."""
    return list_rows("row", [str(row) for row in rows], n)


def list_rows(word: str, names: Sequence[str], n: int) -> str:
    """Return a list of row names, of which only the first are shown."""
    shown = names[:_SHOWN]
    more = f" and {n - len(shown):,} more" if n > len(shown) else ""
    return f"{word}{'' if n == 1 else 's'} {', '.join(shown)}{more}"


class ReadingError(InputError):
    """A column of texts that is not certain to be numbers, dates or categories.

    `describe` names the rows as in a file, and the remedies as flags of the command line.

    Examples
    --------
    >>> spot = Spot("oops", (17, 40), 8)
    >>> fix = Remedy("read it as missing", "missing", ("oops",))
    >>> error = ReadingError("price", ["holds numbers, but", spot], [fix], "correct those cells")
    >>> print(error)
    column 'price' holds numbers, but 'oops' (rows 17, 40 and 6 more): correct those cells, or read
    it as missing with missing=['oops'].
    """

    def __init__(
        self, column: str, parts: Sequence[str | Spot], remedies: Sequence[Remedy], else_: str = ""
    ) -> None:
        self.column = column
        self.parts = tuple(parts)  # together they say what is wrong
        self.remedies = tuple(remedies)
        self.else_ = else_  # what else can be done, like "correct those cells"
        self.others: tuple[str, ...] = ()  # columns of the same table with such an error
        super().__init__(self.describe())

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.column, self.parts, self.remedies, self.else_)

    def with_others(self, columns: Sequence[str]) -> ReadingError:
        """Return the error with the names of further columns that need a decision."""
        error = type(self)(self.column, self.parts, self.remedies, self.else_)
        error.others = tuple(columns)
        error.args = (error.describe(),)
        return error

    def describe(
        self,
        subject: str = "",
        *,
        name: Callable[[Sequence[int], int], str] = name_rows,
        command: bool = False,
    ) -> str:
        """Return the error as a sentence; `name` names rows, `command` names flags as remedies."""
        problem = " ".join(
            part if isinstance(part, str) else f"{part.value[:60]!r} ({name(part.rows, part.n)})"
            for part in self.parts
            if part
        )
        fixes = [each.on_command_line() if command else each.in_python() for each in self.remedies]
        fixes = [self.else_, *fixes] if self.else_ else fixes
        listed = fixes[0] if len(fixes) == 1 else f"{', '.join(fixes[:-1])}, or {fixes[-1]}"
        return f"{subject or f'column {self.column!r}'} {problem}: {listed}{self._also()}."

    def _also(self) -> str:
        if not self.others:
            return ""
        shown = ", ".join(repr(name) for name in self.others[:_SHOWN])
        more = f" and {len(self.others) - _SHOWN:,} more" if len(self.others) > _SHOWN else ""
        are = "column needs a decision too" if len(self.others) == 1 else "columns need one too"
        return f" (the {are}: {shown}{more})"
