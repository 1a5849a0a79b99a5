"""The part of the page of guarantees that is about promises of thresholds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from docs.tables import table

__all__ = ["promises_part"]

Row = Mapping[str, Any]

_INTRO = """
## Promises of thresholds

A threshold that promises a precision of 85 % with 95 % confidence may break that promise in at most
5 % of all samples (*delta*), whatever the world is like. A promise is broken where the true rate at
the chosen threshold misses the target. Samples in which no promise could be made count as kept.
[Proof of the promise](threshold-proof.md) explains how a promise is proved.

The worlds are those of [Testing your own](testing.md#worlds-for-thresholds). Ordinary worlds tell
little: whatever a method does wrong, it is seldom caught there. Least-favourable worlds are built
to catch it: in *constant_rate* every promise that is made is broken, so that the share of broken
ones is the share of promises made.

Each figure is *broken / issued*, in percent of all samples. A cell passes when the first is at most
delta and 3.1 standard errors.

"""

_WRONG = """
### Ways that do not keep their promise

The same worlds, with methods that are wrong on purpose: a test that cannot fail proves nothing.

"""


def promises_part(record: Row | None) -> str:
    """Show how many promises were broken in each world, and by wrong methods."""
    if not record:
        return ""
    cells: Sequence[Row] = record["cells"]
    missed = [cell for cell in cells if not cell["kept"]]
    worst = max(cells, key=lambda cell: (cell["broken"] / cell["runs"]) / cell["delta"])
    parts = [
        _INTRO,
        f"Measured {record['date']}, {record['repetitions']:,} samples a cell, on "
        f"{record['machine']}. {len(cells):,} cells, {len(cells) - len(missed):,} passed, "
        f"{len(missed):,} failed. Nearest to its delta of {worst['delta']:.0%}, or beyond: "
        f"{worst['what']} ({worst['world']}, n = {worst['n']:,}) with {_share(worst)} broken.\n",
    ]
    for what, rows in _by(cells, "what"):
        parts.append(f"\n### {what[:1].upper()}{what[1:]}\n\n{_table(rows)}")
    parts.append(_WRONG)
    parts.append(
        table(
            ("method", "world", "n", "delta", "broken"),
            (
                (w["what"], w["world"], f"{w['n']:,}", f"{w['delta']:.0%}", _share(w))
                for w in record["wrong_ways"]
            ),
        )
    )
    return "".join(parts)


def _table(cells: Sequence[Row]) -> str:
    """One row for each world and delta, one column for each number of rows."""
    sizes = sorted({cell["n"] for cell in cells})
    rows = []
    for (world, delta), same in _by(cells, "world", "delta"):
        of = {cell["n"]: _shown(cell) for cell in same}
        rows.append((world, f"{delta:.0%}", *(of.get(n, "") for n in sizes)))
    return table(("world", "delta", *(f"n = {n:,}" for n in sizes)), rows)


def _shown(cell: Row) -> str:
    both = f"{_share(cell)} / {cell['issued'] / cell['runs']:.1%}"
    return both if cell["kept"] else f"**{both}**"


def _share(cell: Row) -> str:
    return f"{cell['broken'] / cell['runs']:.2%}"


def _by(cells: Iterable[Row], *keys: str) -> list[tuple[Any, list[Row]]]:
    groups: dict[Any, list[Row]] = {}
    for cell in cells:
        key = cell[keys[0]] if len(keys) == 1 else tuple(cell[key] for key in keys)
        groups.setdefault(key, []).append(cell)
    return list(groups.items())
