"""Results: one JSON file per benchmark, and a table made from all of them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.outcome import Outcome

__all__ = ["FOLDER", "save", "table", "write_readme"]

FOLDER = Path(__file__).parent / "results"

_INTRO = """# Benchmark results

Written by `make bench`; do not edit. Ratios to a peer were measured in one process, in
alternating turns on the same cores; times are medians. A missed goal stays in the table.

"""


def save(name: str, outcomes: Sequence[Outcome], machine: Mapping[str, Any], size: str) -> None:
    """Write one benchmark's outcomes."""
    FOLDER.mkdir(exist_ok=True)
    content = {
        "name": name,
        "size": size,
        "machine": dict(machine),
        "goals": [outcome.to_dict() for outcome in outcomes],
    }
    text = json.dumps(content, indent=2) + "\n"
    (FOLDER / f"{name}.json").write_text(text, encoding="utf-8")


def write_readme(order: Sequence[str]) -> None:
    """Write the table of every benchmark that has a result, in this order."""
    names = [name for name in order if (FOLDER / f"{name}.json").exists()]
    saved = [json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8")) for name in names]
    rows = {one["name"]: [Outcome.from_dict(goal) for goal in one["goals"]] for one in saved}
    notes = dict.fromkeys(f"- {_machine_line(one['machine'])}" for one in saved)
    text = _INTRO + table(rows) + _set_by_set(rows)
    text += "\n\nMeasured on:\n\n" + "\n".join(notes) + "\n"
    (FOLDER / "README.md").write_text(text, encoding="utf-8")


def _set_by_set(outcomes: Mapping[str, Sequence[Outcome]]) -> str:
    """Return the table of the models, where it was measured."""
    from benchmarks.models.goals import INTRO, figures_table

    rows = [goal.details.get("set_by_set") for goal in outcomes.get("models", ())]
    return "".join(f"\n\n{INTRO}\n\n{figures_table(each)}" for each in rows if each)


def table(outcomes: Mapping[str, Sequence[Outcome]]) -> str:
    """Return a markdown table of goals and measurements."""
    lines = ["| Benchmark | Goal | Measured | |", "|---|---|---|---|"]
    for name, goals in outcomes.items():
        for outcome in goals:
            verdict = outcome.verdict if outcome.met else f"**{outcome.verdict}**"
            lines.append(f"| {name} | {outcome.goal} | {outcome.shown} | {verdict} |")
    return "\n".join(lines)


def _machine_line(machine: Mapping[str, Any]) -> str:
    packages = ", ".join(f"{name} {v}" for name, v in machine["packages"].items() if v)
    gpu = f", one {machine['gpu']}" if machine.get("gpu") else ""
    return (
        f"{machine['date']}: {machine['cpu']}, {machine['cores']} cores{gpu}, {machine['system']}; "
        f"Python {machine['python']}, {packages}"
    )
