"""Terminal tables and their layout."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from io import StringIO
from typing import TYPE_CHECKING, Any

from calibrant.formatting import printable

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType
    from rich.measure import Measurement
    from rich.table import Table
    from rich.text import Text


# A part ends after a space or a mark, but not inside a number such as 7.2, -0.5 or 1e-05.
_DOT = r"\.(?!\d)|(?<=[^\W\d_])\."
_DASH = r"-(?!\d)|(?<!\de)(?<=\w)-"
_MARK = rf"(?:[\s_/]|{_DOT}|{_DASH})"
_PARTS = re.compile(rf"(?:(?!{_MARK}).)*{_MARK}+|(?:(?!{_MARK}).)+", re.DOTALL)


@dataclass(frozen=True)
class Words:
    """Text that is laid out by `broken` in the width that its column gets."""

    text: str

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        from rich.cells import cell_len
        from rich.measure import Measurement

        widest = max(
            (cell_len(line) for line in break_text(self.text, options.max_width)), default=0
        )
        return Measurement(min(widest, 1), widest)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Text]:
        from rich.text import Text

        yield Text("\n".join(break_text(self.text, options.max_width)))


def break_text(text: str, width: int) -> list[str]:
    """Break text into lines of at most `width` columns, after spaces and the marks in names.

    The middle of a part that is too long for a line is elided.
    """
    from rich.cells import cell_len

    lines = [""]
    for part in _PARTS.findall(text):
        if lines[-1] and cell_len((lines[-1] + part).rstrip()) > width:
            lines.append("")
        lines[-1] += part
    return [shorten(line.rstrip(), width) for line in lines]


def shorten(text: Any, width: int) -> str:
    """Elide the middle of a text that is wider than `width` columns."""
    from rich.cells import cell_len, set_cell_size

    whole = str(text)
    if cell_len(whole) <= width:
        return whole
    tail = max(0, width - 1) // 2
    head = max(0, width - 1 - tail)
    start = str(set_cell_size(whole, head)).rstrip()
    end = str(set_cell_size(whole[::-1], tail)).rstrip()[::-1]
    return f"{start}…{end}"


def to_text(parts: Iterable[RenderableType], width: int, color: bool) -> str:
    """Lay out texts and tables in `width` columns, with an empty line above each table."""
    from rich.console import Console
    from rich.text import Text

    out = StringIO()
    console = Console(
        file=out,
        width=width,
        color_system="standard" if color else None,
        force_terminal=color,
        legacy_windows=False,
    )
    for part in parts:
        if not isinstance(part, Text):
            console.print()
        console.print(part)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()).rstrip()


def table_of(*names: str, words: tuple[int, ...] = (0,)) -> Table:
    """Return an empty table; the columns `words` hold text, the others numbers."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, show_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    for i, name in enumerate(names):
        justify: Any = "left" if i in words else "right"
        lines = (printable(line) for line in name.splitlines())
        header = Text("\n".join(lines), justify=justify)
        table.add_column(header, justify=justify, overflow="fold", no_wrap=i not in words)
    return table


def add_row(table: Table, *cells: Any) -> None:
    """Add a row, with control characters replaced."""
    from rich.text import Text

    pairs = zip(table.columns, (printable(cell) for cell in cells), strict=True)
    table.add_row(*(Text(cell) if column.no_wrap else Words(cell) for column, cell in pairs))
