"""`make guarantees`: the full cells, written to docs/guarantees.json."""

from __future__ import annotations

import json
import os
import platform
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

REPETITIONS = int(os.environ.get("REPETITIONS", "1000"))
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


def main() -> None:
    with ProcessPoolExecutor(max_workers=os.cpu_count()) as pool:
        cells = [
            *pool.map(intervals, [(f, g, n) for f in FAMILIES for g in GAPS for n in SIZES]),
            *pool.map(
                smooth, [(w, n) for w in ("binary", "multiclass", "tied") for n in (300, 1000)]
            ),
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
        result = {
            "date": date.today().isoformat(),
            "repetitions": REPETITIONS,
            "machine": f"{os.cpu_count()} cores, Python {platform.python_version()}",
            "cells": [cell for part in cells for cell in part],
            "tests": [test for part in tests for test in part],
        }
    OUT.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    worst = min(result["cells"], key=lambda cell: cell["coverage"])
    print(f"{len(result['cells'])} cells; the lowest coverage is {worst['coverage']:.3f}: {worst}")
    print(f"Written to {OUT}")


if __name__ == "__main__":
    main()
