"""Write the pages that are generated from other files.

- cli/<verb>.md: the words of verbs/<verb>.md and the real --help of the verb and its sub-commands;
- guarantees.md from guarantees.json, which `make guarantees` writes;
- benchmarks.md, calibrator-figures.md and threshold-figures.md from benchmarks/results/*.json,
  which `make bench` writes;
- the table of methods within calibrators.md from the methods themselves;
- the tables of deep-models.md that were measured on a GPU, where benchmarks/results has them;
- reproductions/: an overview, a page for each experiment and its charts, from the records under
  reproductions/results, which `python -m reproductions` writes.

With --refresh, the code of hand-written pages is run again: the outputs they show are replaced, and
so are those pictures under images/ that the code of a page saves.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent
sys.path.insert(0, str(ROOT))

from docs.promise_tables import promises_part  # noqa: E402
from docs.serving_tables import serving_part  # noqa: E402
from docs.tables import table  # noqa: E402

from docs import (  # noqa: E402
    blocks,
    calibrator_figures,
    calibrator_pages,
    deep_figures,
    reproduction_pages,
    threshold_figures,
)

WHAT = {
    "coverage": "How often an interval held the true value; *nominal* is what it promises.",
    "rate": "How often the test spoke up. For a calibrated model that is a false alarm.",
}


def main() -> None:
    """Write every page."""
    if "--refresh" in sys.argv[1:]:
        refresh()
    (DOCS / "cli").mkdir(exist_ok=True)
    for verb in verbs():
        (DOCS / "cli" / f"{verb}.md").write_text(verb_page(verb), encoding="utf-8")
    (DOCS / "guarantees.md").write_text(
        guarantees_page(_read(DOCS / "guarantees.json")), encoding="utf-8"
    )
    folder = ROOT / "benchmarks/results"
    results = [_read(path) for path in sorted(folder.glob("*.json"))]
    (DOCS / "benchmarks.md").write_text(benchmarks_page(results), encoding="utf-8")
    figures = calibrator_figures.figures_page(
        _read(folder / "calibrator_table.json"), _read(folder / "auto_choice.json")
    )
    (DOCS / "calibrator-figures.md").write_text(figures, encoding="utf-8")
    thresholds = threshold_figures.figures_page(
        _read(folder / "threshold_power.json"), _read(folder / "threshold_speed.json")
    )
    (DOCS / "threshold-figures.md").write_text(thresholds, encoding="utf-8")
    guide = DOCS / "calibrators.md"
    guide_text = calibrator_pages.with_methods(guide.read_text(encoding="utf-8"))
    guide.write_text(guide_text, encoding="utf-8")
    deep = DOCS / "deep-models.md"
    on_gpu = [_read(folder / f"deep_{name}.json") for name in ("speed", "images", "texts")]
    filled = deep_figures.with_figures(deep.read_text(encoding="utf-8"), *on_gpu)
    deep.write_text(filled, encoding="utf-8")
    reproductions()


def reproductions() -> None:
    """Write the pages about reproductions with their charts."""
    from reproductions import experiments

    folder = DOCS / "reproductions"
    reproduction_pages.write_pages(folder, experiments().values(), folder / "results")


def verbs() -> list[str]:
    """Return the verbs of the real command line."""
    return list(_commands())


def _commands() -> dict[str, list[str]]:
    """Return the verbs, each with its sub-commands."""
    from typer.main import get_command

    from calibrant.cli.app import app

    commands = get_command(app).commands.items()
    return {name: list(getattr(command, "commands", ())) for name, command in commands}


def verb_page(verb: str) -> str:
    """Put a verb's --help under the words about it, and that of each of its sub-commands."""
    words = DOCS / "verbs" / f"{verb}.md"
    if not words.exists():
        raise SystemExit(f"docs/verbs/{verb}.md is missing: write what '{verb}' is for.")
    parts = [words.read_text(encoding="utf-8").rstrip(), "## All options", _help(verb)]
    for name in _commands()[verb]:
        parts += [f"### calibrant {verb} {name}", _help(verb, name)]
    return "\n\n".join(parts) + "\n"


def _help(*words: str) -> str:
    command = [*blocks.CALIBRANT, *words, "--help"]
    shown = subprocess.run(
        command, capture_output=True, encoding="utf-8", check=True, env=blocks.environment()
    ).stdout
    lines = [line.rstrip() for line in shown.strip("\n").splitlines()]
    text = "\n".join(lines).strip("\n")
    return f"```text\n{text}\n```"


def guarantees_page(record: Mapping[str, Any] | None) -> str:
    """Show how often each promise held over repetitions."""
    head = (
        "# Guarantees\n\nAn interval that claims 95 % should hold the truth in at least 95 of 100 "
        "samples. This is checked on made-up worlds whose truth is known: draw a sample, make the "
        "interval, look whether it holds the truth, repeat. How the intervals are made is "
        "described in [Intervals and floors](intervals-and-floors.md).\n\n"
    )
    if record is None:
        return head + (
            "The table has not been made on this copy. `make guarantees` runs all cells and writes "
            "`docs/guarantees.json`; `make docs` then fills this page. A smaller version with 100 "
            "repetitions or more runs with every `make test` (`tests/guarantees`).\n"
        )
    cells, tests = record.get("cells", []), record.get("tests", [])
    parts = [head, f"{_measured(record)}\n"]
    if cells:
        worst = min(cells, key=lambda cell: cell["coverage"] - cell["nominal"])
        parts.append(
            f"\nLowest cell of {len(cells):,}: {worst['what']} ({worst['world']}, "
            f"n = {worst['n']:,}) with {worst['coverage']:.1%} of {worst['nominal']:.0%}.\n"
        )
        parts.append(f"\n## Intervals\n\n{WHAT['coverage']} A figure above it is caution.\n")
        parts += [_coverage_table(what, rows) for what, rows in _by(cells, "what")]
    if tests:
        parts.append(f"\n## Tests\n\n{WHAT['rate']}\n\n")
        rows = (
            (t["what"], t["world"], f"{t['n']:,}", f"{t['nominal']:.1%}", f"{t['rate']:.1%}")
            for t in tests
        )
        parts.append(table(("test", "world", "n", "nominal", "rate"), rows))
    return "".join(
        [*parts, promises_part(record.get("promises")), serving_part(record.get("serving"))]
    )


def _coverage_table(what: str, cells: list[Mapping[str, Any]]) -> str:
    """One table for each interval: a row per world and truth, a column per sample size."""
    sizes = sorted({cell["n"] for cell in cells})
    rows = []
    for _, same in _by(cells, "world", "truth"):
        of = {cell["n"]: f"{cell['coverage']:.1%}" for cell in same}
        truth = same[0].get("truth")
        shown = "" if truth is None else f"{truth:.4g}"
        nominal = f"{same[0]['nominal']:.0%}"
        rows.append((same[0]["world"], shown, nominal, *(of.get(n, "") for n in sizes)))
    head = ("world", "truth", "nominal", *(f"n = {n:,}" for n in sizes))
    return f"\n### {what[:1].upper()}{what[1:]}\n\n{table(head, rows)}"


def _measured(record: Mapping[str, Any]) -> str:
    machine = record.get("machine")
    if isinstance(machine, Mapping):
        machine = ", ".join(f"{k} {v}" for k, v in machine.items() if isinstance(v, str | int))
    times = record.get("repetitions")
    shown = f"{times:,}" if isinstance(times, int) else times
    return f"Measured {record.get('date')}, {shown} repetitions per cell, on {machine}."


def benchmarks_page(results: Iterable[Mapping[str, Any] | None]) -> str:
    """Show every goal beside its measurement; a missed one stays."""
    saved = [one for one in results if one and one.get("goals")]
    head = (
        "# Benchmarks\n\nSpeed, memory and fit are measured against goals that were set "
        "beforehand. A ratio of times to another library comes from one process, in alternating "
        "turns on the same cores; times are medians. A missed goal stays in the table. What each "
        "calibrator gains stands on [a page of its own](calibrator-figures.md), and so does what "
        "[guaranteed thresholds](threshold-figures.md) keep; what deep networks reach on a GPU "
        "stands under [Deep models](deep-models.md#fast-on-one-gpu).\n\n"
    )
    if not saved:
        return head + "There are no results on this copy: `make bench` writes them.\n"
    rows = [
        (goal["goal"], f"{_number(goal['measured'])} {goal['unit']}", _limit(goal), _verdict(goal))
        for one in saved
        for goal in one["goals"]
    ]
    missed = sum(not goal["met"] for one in saved for goal in one["goals"])
    count = f"{len(rows)} goals, {len(rows) - missed} met, {missed} missed.\n\n"
    notes = dict.fromkeys(_machine(one) for one in saved)
    measured = "".join(f"- {note}\n" for note in notes)
    goals = table(("goal", "measured", "limit", ""), rows)
    return (
        f"{head}{count}{goals}\nMeasured on:\n\n{measured}\n"
        "Run them yourself with `make bench` (or `make bench SIZE=toy` for a quick look).\n"
    )


def _limit(goal: Mapping[str, Any]) -> str:
    return f"{goal['sense']} {_number(goal['limit'])} {goal['unit']}"


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def _verdict(goal: Mapping[str, Any]) -> str:
    return "met" if goal["met"] else f"**missed** ({goal['ratio']:.2f} of the limit)"


def _machine(one: Mapping[str, Any]) -> str:
    machine = one.get("machine", {})
    packages = ", ".join(f"{k} {v}" for k, v in machine.get("packages", {}).items() if v)
    size = "" if one.get("size") == "full" else f" (size {one.get('size')})"
    gpu = f", one {machine['gpu']}" if machine.get("gpu") else ""
    return (
        f"{machine.get('date')}{size}: {machine.get('cpu')}, {machine.get('cores')} cores{gpu}, "
        f"{machine.get('system')}; Python {machine.get('python')}, {packages}"
    )


def refresh() -> None:
    """Run the pages again and put in what they print; outputs with `...` are left alone."""
    os.environ.setdefault("MPLBACKEND", "Agg")
    for page in [*sorted(DOCS.glob("*.md")), *sorted((DOCS / "verbs").glob("*.md"))]:
        text = page.read_text(encoding="utf-8")
        if all(block.shown is None for block in blocks.blocks(text)):
            continue
        with tempfile.TemporaryDirectory() as folder:
            blocks.prepare(Path(folder))
            done = list(blocks.run_page(text, Path(folder)))
            for name in re.findall(r"\]\(images/([\w-]+\.png)\)", text):
                if (drawn := Path(folder) / name).exists():
                    shutil.copy(drawn, DOCS / "images" / name)
        for outcome in reversed(done):  # from the end, so that places above stay where they are
            text = _refreshed(text, outcome, page.name)
        page.write_text(text, encoding="utf-8")


def _refreshed(text: str, outcome: blocks.Outcome, page: str) -> str:
    block, output = outcome.block, outcome.output.strip("\n") + "\n"
    where = f"{page}, line {block.line}"
    if outcome.exit_code != block.exit_code:
        print(f"{where}: exit code {outcome.exit_code}\n{output}")
    elif block.place is not None:
        shown, (start, end) = block.shown or "", block.place
        new = blocks.renewed(shown, output)
        if new is None and "\n...\n" in f"\n{shown}":
            print(f"{where}: the shortened output is out of date")
            return text
        new = output if new is None else new
        if new != shown:
            print(f"{where}: output replaced")
        return text[:start] + new + text[end:]
    return text


def _read(path: Path) -> Mapping[str, Any] | None:
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None


def _by(rows: Iterable[Any], *keys: str) -> Iterable[tuple[Any, list[Any]]]:
    groups: dict[Any, list[Any]] = defaultdict(list)
    for row in rows:
        group = tuple(row.get(key) for key in keys)
        groups[group[0] if len(group) == 1 else group].append(row)
    return groups.items()


if __name__ == "__main__":
    main()
