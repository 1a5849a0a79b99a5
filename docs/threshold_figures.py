"""The page of figures about thresholds: how many positives a guaranteed threshold keeps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from docs.tables import table

Cell = Mapping[str, Any]
Result = Mapping[str, Any]

OURS = "calibrant"

_INTRO = """A promise is easily kept by acting on almost nothing. So the question is how many of the
positive rows a guaranteed threshold still finds. Here that is measured in made-up worlds whose
truth is known ([worlds](testing.md)), beside MAPIE, the other library that gives thresholds with a
guarantee.

"""

_READING = """## How to read the tables

- **Recall**: the true share of the positives that are acted on, on average over all draws; a draw
  in which no threshold could be given counts as 0.
- **Target**: the precision that is promised with 95 % confidence.
- **Rows**: labelled rows that the threshold was chosen from.
- **Given**: draws in which a threshold was given at all.
- **Broken**: draws in which the true precision at the threshold was below the target. At 95 %
  confidence up to 5 % of all draws are allowed to; in a single cell of 400 draws, chance alone can
  show 8 %. [Guarantees](guarantees.md) checks this with more draws and in harder worlds.
- **MAPIE's settings** are the same in every world: grids of 100 or 20 thresholds from 0 to 0.99
  with Holm's correction, or 100 thresholds from the top down as a fixed sequence with 1 or with 8
  starts. They run MAPIE's own p-values and decisions, with two repairs in its favour. A threshold
  that no row reaches gets a p-value of 1: in the library it is not a number, and then Holm's
  procedure certifies nothing at all. And the sequence always runs downwards: the library guesses
  the direction from the labels. *As it comes* is without repairs.
- **Calibrant** has one setting and needs no grid.

"""


def figures_page(power: Result | None, speed: Result | None) -> str:
    """Show recall in every cell beside MAPIE's, lost cells, broken promises and speed."""
    head = "# Thresholds: figures\n\n"
    if power is None:
        return f"{head}{_INTRO}There are no results on this copy: `make bench` writes them.\n"
    details = power["goals"][0]["details"]
    cells: Sequence[Cell] = details["table"]
    parts = [head, _INTRO, _summary(cells, details), _READING, _methods(cells, details)]
    parts += [_worlds(details)]
    for target in sorted({cell["target"] for cell in cells}):
        same = [cell for cell in cells if cell["target"] == target]
        parts.append(f"## Recall at precision {target:.0%}\n\n{_recalls(same, details)}\n")
    parts += [_nobody(cells), _lost(cells), _speed(speed), _measured(power, details)]
    return "".join(parts)


def _summary(cells: Sequence[Cell], details: Mapping[str, Any]) -> str:
    means = details["mean_recall"]
    corrected = [name for name in details["settings"] if name != "MAPIE as it comes"]
    best = max(corrected, key=lambda name: means[name])
    open_cells = [cell for cell in cells if not cell["nobody"]]
    ahead = sum(cell["difference"] > 2 * cell["paired_error"] for cell in open_cells)
    lost = sum(not cell["holds"] for cell in cells)
    return (
        f"Over {len(cells)} cells (a world, a number of rows, a target; {details['repetitions']:,} "
        f"draws each) a threshold of Calibrant keeps {means[OURS]:.1%} of the positives, the best "
        f"of MAPIE's settings ({details['settings'][best]}) {means[best]:.1%}. Against whichever "
        f"of them is best in the cell, Calibrant is clearly ahead in {ahead} of the "
        f"{len(open_cells)} cells where anything can be promised, and behind by more than 0.02 and "
        f"two standard errors in {lost}.\n\n"
    )


def _methods(cells: Sequence[Cell], details: Mapping[str, Any]) -> str:
    draws = details["repetitions"]
    rows = []
    for name in details["mean_recall"]:
        issued = sum(cell["issued"][name] for cell in cells)
        broken = sum(cell["broken"][name] for cell in cells)
        worst = max(cell["broken"][name] for cell in cells) / draws
        rows.append(
            (_named(name, details), f"{details['mean_recall'][name]:.3f}",
             f"{issued / (draws * len(cells)):.0%}", f"{broken:,} of {issued:,}", f"{worst:.1%}")
        )  # fmt: skip
    head = ("method", "mean recall", "given", "broken, of those given", "broken, worst cell")
    return f"## All cells together\n\n{table(head, rows)}\n"


def _worlds(details: Mapping[str, Any]) -> str:
    rows = [(_breakable(name), words) for name, words in details["worlds"].items()]
    return f"## The worlds\n\n{table(('world', 'what it is'), rows)}\n"


def _recalls(cells: Sequence[Cell], details: Mapping[str, Any]) -> str:
    """One row for each world and number of rows in which anything can be promised."""
    order = list(details["worlds"])
    names = [name for name in details["settings"] if name != "MAPIE as it comes"]
    shown = sorted(
        (cell for cell in cells if not cell["nobody"]),
        key=lambda cell: (order.index(cell["world"]), cell["n"]),
    )
    rows = [
        (_breakable(cell["world"]), f"{cell['n']:,}", _best_in_bold(cell, OURS, names),
         *(_best_in_bold(cell, name, names) for name in names), _difference(cell))
        for cell in shown
    ]  # fmt: skip
    head = ("world", "rows", "Calibrant", *names, "ahead of the best by")
    return (
        "The best of each row in bold. Last column: the difference to the best of MAPIE's, with "
        f"two standard errors.\n\n{table(head, rows)}"
    )


def _best_in_bold(cell: Cell, name: str, names: Sequence[str]) -> str:
    recall = cell["recall"][name]
    best = max(cell["recall"][one] for one in (OURS, *names))
    return f"**{recall:.3f}**" if round(recall, 3) == round(best, 3) else f"{recall:.3f}"


def _difference(cell: Cell) -> str:
    shown = f"{cell['difference']:+.3f} ± {2 * cell['paired_error']:.3f}".replace("-", "−")
    return shown.replace(" ", "\N{NO-BREAK SPACE}")


def _nobody(cells: Sequence[Cell]) -> str:
    by_world: dict[str, list[str]] = {}
    for cell in cells:
        if cell["nobody"]:
            where = by_world.setdefault(cell["world"], [])
            where.append(f"{cell['target']:.0%} from {cell['n']:,} rows")
    if not by_world:
        return ""
    rows = [(_breakable(world), ", ".join(where)) for world, where in by_world.items()]
    return (
        "## Where nobody can promise anything\n\nCells that are left out above: no method gives a "
        "threshold in more than 1 % of draws, because the rows are too few or the scores do not "
        f"part the classes well enough.\n\n{table(('world', 'precision'), rows)}\n"
    )


def _lost(cells: Sequence[Cell]) -> str:
    lost = [cell for cell in cells if not cell["holds"]]
    if not lost:
        return ""
    rows = [
        (_breakable(cell["world"]), f"{cell['n']:,}", f"{cell['target']:.0%}",
         f"{cell['recall'][OURS]:.3f}", f"{cell['recall'][cell['best_of_mapie']]:.3f}",
         cell["best_of_mapie"], _difference(cell))
        for cell in lost
    ]  # fmt: skip
    head = ("world", "rows", "target", "Calibrant", "MAPIE", "with", "difference")
    return f"## Lost cells\n\n{table(head, rows)}\n"


def _speed(speed: Result | None) -> str:
    if speed is None:
        return ""
    rows = [
        (goal["goal"], f"{goal['measured']:.3g} {goal['unit']}",
         "met" if goal["met"] else "**MISSED**")
        for goal in speed["goals"]
    ]  # fmt: skip
    timed = [
        (name, f"{one.get('median_s', one.get('seconds')):.3f} s")
        for name, one in speed["goals"][0]["details"].items()
    ]
    return (
        f"## Speed\n\n{table(('goal', 'measured', ''), rows)}\n"
        f"{table(('1,000,000 scores', 'median time'), timed)}\n"
    )


def _named(name: str, details: Mapping[str, Any]) -> str:
    if name == OURS:
        return "Calibrant"
    return f"{name} ({details['settings'][name]})"


def _breakable(name: str) -> str:
    """Let a long name go on in the next line after an underscore."""
    return name.replace("_", "_<wbr>")


def _measured(power: Result, details: Mapping[str, Any]) -> str:
    machine = power.get("machine", {})
    packages = ", ".join(f"{name} {version}" for name, version in details["versions"].items())
    return (
        f"Measured {machine.get('date')} on {machine.get('cpu')}, with {packages}, by "
        "`python -m benchmarks --only threshold_power` and `--only threshold_speed`.\n"
    )
