"""Markdown tables for generated pages."""

from __future__ import annotations

from collections.abc import Iterable


def table(head: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    """Return a markdown table; a bar within a cell is written as an entity."""
    names = list(head)
    lines = [names, ["---"] * len(names), *(list(map(str, row)) for row in rows)]
    return "".join(
        f"| {' | '.join(cell.replace('|', '&#124;') for cell in line)} |\n" for line in lines
    )


def dense(content: str) -> str:
    """Give a table of many columns narrow cells."""
    return f'<div class="dense" markdown>\n\n{content}\n</div>\n'
