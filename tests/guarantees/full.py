"""`make guarantees`: the full cells, written to docs/guarantees.json.

`python -m tests.guarantees.full intervals`, `... promises` or `... serving` runs one part and keeps
the others.
"""

from __future__ import annotations

import json
import os
import platform
import sys
from concurrent.futures import ProcessPoolExecutor
from datetime import date
from pathlib import Path

from tests.guarantees.coverage import (
    FAMILIES,
    GAPS,
    SIZES,
    classwise_coverage,
    comparison_coverage,
    coverage,
    rejections,
    smooth_coverage,
)
from tests.guarantees.promise_cells import (
    ROWS,
    cells,
    every_threshold_cells,
    very_rare_cells,
    wrong_ways,
)
from tests.guarantees.promises import Count, count, count_all, count_each
from tests.guarantees.serving_full import KILLS, is_kept, serving

REPETITIONS = int(os.environ.get("REPETITIONS", "1000"))
PROMISES = int(os.environ.get("REPETITIONS", "2000"))
OUT = Path(__file__).parents[2] / "docs" / "guarantees.json"


def intervals(job):
    family, gap, n = job
    found = coverage(family, gap, n, REPETITIONS, seed=1)
    return [
        {"what": f"interval of {name}", "world": family, "truth": gap, "n": n, "nominal": 0.95,
         "coverage": rate}
        for name, rate in found.items()
    ]  # fmt: skip


def smooth(job):
    world, n = job
    found = smooth_coverage(world, n, REPETITIONS, seed=1)
    return [
        {"what": f"interval of {name}", "world": world, "truth": None, "n": n, "nominal": 0.95,
         "coverage": rate}
        for name, rate in found.items()
        if not (world == "tied" and name == "nll")  # infinite there: some scores are exactly 0 or 1
    ]  # fmt: skip


def classwise(job):
    world, n = job
    found = classwise_coverage(world, n, REPETITIONS, seed=1)
    return [
        {"what": f"interval of {name}", "world": world, "truth": None, "n": n, "nominal": 0.95,
         "coverage": rate}
        for name, rate in found.items()
    ]  # fmt: skip


def paired(job):
    gap, n = job
    found = comparison_coverage(gap, n, REPETITIONS, seed=1)
    return [
        {"what": f"paired difference of {name}", "world": "even", "truth": gap, "n": n,
         "nominal": 0.95, "coverage": rate}
        for name, rate in found.items()
    ]  # fmt: skip


def alarms(job):
    world, n = job
    rate = rejections(world, n, 2 * REPETITIONS, seed=1)
    return [
        {"what": "calibration test, false alarms", "world": world, "n": n, "nominal": 0.05,
         "rate": rate}
    ]  # fmt: skip


def promise(job):
    """One cell of promises: how many were broken, issued and asked for."""
    how, cell = job
    found = {"chosen": count, "every": count_all}[how](cell, PROMISES, seed=1)
    what = cell.what if how == "chosen" else f"{cell.what} at every certified threshold"
    return _row(what, cell.world.name, cell.n, cell.delta, found)


def each_class(n):
    found = count_each(n, 3, 0.2, PROMISES, seed=1)
    return _row("precision of each of 3 classes", "scores know nothing", n, 0.2, found)


def wrong_way(job):
    way, n = job
    cell, allowed = wrong_ways(n)[way]
    return _row(way, cell.world.name, n, allowed, count(cell, PROMISES, seed=1))


def _row(what: str, world: str, n: int, delta: float, found: Count) -> dict[str, object]:
    verdict = "kept" if found.keeps(delta) else "BROKEN"
    print(f"{verdict:<7} {what} ({world}, n = {n:,}, delta = {delta:g}): {found}", flush=True)
    return {
        "what": what, "world": world, "n": n, "delta": delta, "broken": found.broken,
        "issued": found.issued, "runs": found.runs, "kept": found.keeps(delta),
    }  # fmt: skip


def promises(pool: ProcessPoolExecutor) -> dict[str, object]:
    """Every promise at every number of rows, the slowest first, and the wrong ways."""
    jobs = [("chosen", cell) for cell in very_rare_cells()[::-1]]
    for n in ROWS[::-1]:
        jobs += [("chosen", cell) for cell in cells(n)]
        jobs += [("every", cell) for cell in every_threshold_cells(n)]
    found = [*pool.map(promise, jobs), *pool.map(each_class, ROWS[:3])]
    ways = [(way, n) for way in wrong_ways(1_000) for n in (1_000, 5_000)]
    return {
        **_when(PROMISES),
        "cells": sorted(found, key=lambda row: row["n"]),
        "wrong_ways": [*pool.map(wrong_way, ways)],
    }


def coverages(pool: ProcessPoolExecutor) -> dict[str, object]:
    """Every interval and test of the metrics."""
    found = [
        *pool.map(intervals, [(f, g, n) for f in FAMILIES for g in GAPS for n in SIZES]),
        *pool.map(smooth, [(w, n) for w in ("binary", "multiclass", "tied") for n in (300, 1000)]),
        *pool.map(
            classwise,
            [(w, n) for w in ("calibrated_multiclass", "multiclass") for n in (300, 1000)],
        ),
        *pool.map(paired, [(g, n) for g in (0.0, 0.03, 0.08) for n in (1000, 5000)]),
    ]
    tests = pool.map(
        alarms,
        [(w, n) for w in ("calibrated", "calibrated_multiclass") for n in (50, 500, 5000)],
    )
    return {
        **_when(REPETITIONS),
        "cells": [cell for part in found for cell in part],
        "tests": [test for part in tests for test in part],
    }


def _when(repetitions: int) -> dict[str, object]:
    return {
        "date": date.today().isoformat(),
        "repetitions": repetitions,
        "machine": f"{os.cpu_count()} cores, Python {platform.python_version()}",
    }


def main(parts: list[str]) -> int:
    """Run the parts asked for, write them down, and return 1 where a promise was broken."""
    result = json.loads(OUT.read_text(encoding="utf-8")) if OUT.exists() else {}
    broken = []
    if "serving" in parts:
        result["serving"] = _when(KILLS) | serving()
        if not is_kept(result["serving"]):
            broken.append("serving")
    with ProcessPoolExecutor(max_workers=os.cpu_count()) as pool:
        if "promises" in parts:
            result["promises"] = promises(pool)
            missed = [row for row in result["promises"]["cells"] if not row["kept"]]
            print(f"{len(result['promises']['cells'])} promises; {len(missed)} broken: {missed}")
            broken += missed
        if "intervals" in parts:
            result |= coverages(pool)
            worst = min(result["cells"], key=lambda cell: cell["coverage"])
            print(f"{len(result['cells'])} cells; lowest coverage {worst['coverage']:.3f}: {worst}")
    OUT.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    print(f"Written to {OUT}")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] or ["intervals", "promises", "serving"]))
