"""Terminal tables and their layout."""

from __future__ import annotations

from collections.abc import Iterable
from io import StringIO
from typing import TYPE_CHECKING, Any

from calibrant.formatting import printable
from calibrant.reports.text_cells import Words

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table


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
