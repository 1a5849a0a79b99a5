"""`python -m benchmarks`: measure every goal, print the table, save the results.

A missed goal is printed and saved; it does not change the exit code. The exit code is 1 if a
benchmark crashes or if its contenders disagree about the value.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
import traceback
from collections.abc import Sequence
from importlib import import_module
from typing import cast

from benchmarks.harness import Size
from benchmarks.machine import machine
from benchmarks.outcome import Outcome
from benchmarks.results import save, table, write_readme

# In the order of the table; each is a module with `measure(size)`, which returns an empty list
# where the machine lacks what it needs.
BENCHMARKS = (
    "top_label_ece",
    "metric_set",
    "smooth_ece",
    "sweep_ece",
    "bootstrap",
    "evaluate_parquet",
    "temperature",
    "auto_choice",
    "calibrator_table",
    "threshold_power",
    "threshold_speed",
    "models",
    "training",
    "losses",
    "predict",
    "serving",
    "console",
    "start_up",
    "small_reproductions",
    "deep_speed",
    "deep_images",
    "deep_texts",
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the selected benchmarks and return the exit code."""
    options = _parser().parse_args(arguments)
    size = cast(Size, options.size)
    if not os.environ.get("OMP_NUM_THREADS"):
        os.environ.pop("OMP_NUM_THREADS", None)  # set but empty, it makes OpenMP complain
    here = machine()
    results: dict[str, list[Outcome]] = {}
    for name in BENCHMARKS if options.only is None else (options.only,):
        outcomes = _run(name, size)
        if outcomes is None:
            continue
        results[name] = outcomes
        if not outcomes:
            print("  not measured: it needs a GPU; what was saved stays.", flush=True)
        elif size == "full":
            save(name, outcomes, here, size)
            write_readme(BENCHMARKS)
    print("\n" + table(results))
    if size == "toy":
        print("\nGoals are set for the full size; at toy size nothing is saved.")
    return 0 if options.only in results or len(results) == len(BENCHMARKS) else 1


def _run(name: str, size: Size) -> list[Outcome] | None:
    """Run one benchmark, or print why it could not be run."""
    start = time.perf_counter()
    try:
        outcomes: list[Outcome] = import_module(f"benchmarks.{name}").measure(size)
    except Exception:
        print(f"{name}: FAILED", flush=True)
        traceback.print_exc()
        return None
    print(f"{name} ({time.perf_counter() - start:.1f} s)", flush=True)
    for outcome in outcomes:
        print(f"  {outcome.goal}: {outcome.shown}: {outcome.verdict}", flush=True)
    return outcomes


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--size", choices=("full", "toy"), default="full")
    parser.add_argument("--only", choices=BENCHMARKS, help="run this one alone")
    return parser


if __name__ == "__main__":
    sys.exit(main())
