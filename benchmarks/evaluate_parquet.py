"""`calibrant evaluate` on a folder of 50,000,000 binary scores: peak memory and time.

The scores do not fit the evaluation's memory goal as float64, so they have to be streamed. The
time is held against merely reading the two columns with pyarrow, from the same warm cache.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
from pathlib import Path

import numpy as np

from benchmarks.child import Child, measured
from benchmarks.harness import Size, agree
from benchmarks.made_scores import binary_scores
from benchmarks.outcome import Outcome, within

__all__ = ["measure"]

ROWS = {"full": 50_000_000, "toy": 200_000}
FILES = {"full": 8, "toy": 2}
ROUNDS = {"full": 5, "toy": 1}
BINS = 15
GIB = 2.0**30

_READ = """
import sys, time
import pyarrow.parquet as pq
start = time.perf_counter()
table = pq.read_table(sys.argv[1], columns=["label", "prob"])
print(table.num_rows, time.perf_counter() - start)
"""


def measure(size: Size) -> list[Outcome]:
    """Write the folder, then read it and evaluate it in alternating turns."""
    with tempfile.TemporaryDirectory(prefix="calibrant-bench-") as name:
        expected = write_scores(Path(name), ROWS[size], FILES[size])
        _read_seconds(name)  # warms the cache
        turns = [(_read_seconds(name), _evaluate(name)) for _ in range(ROUNDS[size])]
    reads = [read for read, _ in turns]
    runs = [run for _, run in turns]
    _check(runs[0], ROWS[size], expected)
    read = statistics.median(reads)
    seconds = [run.seconds for run in runs]
    peak = max(run.peak_bytes for run in runs)
    details = {
        "rows": ROWS[size],
        "files": FILES[size],
        "read_s": [round(one, 4) for one in reads],
        "evaluate_s": [round(one, 4) for one in seconds],
        "peak_mib": round(peak / 2**20, 1),
        "ece": expected,
    }
    return [
        within("evaluate 50,000,000 rows in under 1 GiB", peak / GIB, 1.0, "GiB", details),
        within(
            "evaluate them in under 8 times the reading plus 3 s",
            statistics.median(seconds),
            8.0 * read + 3.0,
            "s",
            {**details, "times_reading": round(statistics.median(seconds) / read, 2)},
        ),
    ]


def write_scores(folder: Path, rows: int, files: int) -> float:
    """Write parquet files of label (int8) and prob (float32); return the ECE they hold."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    gap = np.zeros(BINS)
    bounds = np.linspace(0, rows, files + 1).astype(int)
    for place, n in enumerate(np.diff(bounds)):
        labels, scores = binary_scores(int(n), power=1.3, seed=place)
        table = pa.table({"label": labels, "prob": scores})
        pq.write_table(table, folder / f"part-{place}.parquet", compression="snappy")
        wide = scores.astype(np.float64)
        index = np.searchsorted(np.arange(1, BINS) / BINS, wide, side="right")
        gap += np.bincount(index, labels - wide, BINS)
    return float(np.abs(gap).sum() / rows)


def _read_seconds(folder: str) -> float:
    """Return the time of reading alone: neither the interpreter's start nor imports count."""
    return float(measured([sys.executable, "-c", _READ, folder]).output.split()[1])


def _evaluate(folder: str) -> Child:
    command = ["-m", "calibrant", "evaluate", folder, "--json", "--stream"]
    return measured([sys.executable, *command])


def _check(run: Child, rows: int, expected: float) -> None:
    """Hold what was printed against sums made while the files were written."""
    printed = json.loads(run.output)
    agree("rows", printed["n"], rows, 0)
    agree("ECE of the folder", printed["metrics"]["ece_ew"]["value"], expected, 1e-9)
