"""`calibrant predict` on 1,000,000 messages: speed against the bare network, and peak memory.

The bundle is as `calibrant demo` makes it: a BiLSTM (embedding 64, hidden 64, one layer) with
redaction, a calibrator, an operating point and an out-of-scope rule. The command reads a csv file,
redacts and encodes the messages, scores and decides them and writes parquet; its time is that of
the whole process. The bare network only computes: texts are encoded, sorted by length and padded
before its clock starts, and of several batch sizes the fastest counts. Both run in processes of
their own, in alternating turns, on the same cores.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.child import Child, measured
from benchmarks.harness import Size, agree, cores
from benchmarks.outcome import Outcome, within
from benchmarks.text_bundle import pack_texts

__all__ = ["measure"]

ROWS = {"full": (100_000, 1_000_000), "toy": (1_000, 3_000)}
BARE = {"full": 50_000, "toy": 1_000}  # rows that the bare network is timed on
TRAINED = {"full": 2_000, "toy": 300}  # rows; the words that the network knows are theirs
PIECE = 50_000
SHARE = 0.7
GROWTH = 1.1

_BARE = """
import json, sys, time
import numpy as np, torch
import calibrant
from calibrant.data.redaction.redactor import redact
from calibrant.data.row_files import scan_rows
from calibrant.models.text_batch import padded

folder, file, n = sys.argv[1], sys.argv[2], int(sys.argv[3])
scorer = calibrant.load_bundle(folder, device="cpu").scorer
texts = []
for table in scan_rows(file, texts=["message"]):
    texts += table["message"].to_pylist()
    if len(texts) >= n:
        break
tokens, offsets = (torch.from_numpy(each) for each in scorer.encoder.encode(redact(texts[:n])))
starts, lengths = offsets[:-1], offsets.diff()
order = lengths.argsort(stable=True)
best = 0.0
with torch.inference_mode():
    for size in (256, 512, 1024):
        batches = [
            (padded(tokens, starts[p], lengths[p], int(lengths[p][-1])), lengths[p])
            for p in order.split(size)
        ]
        for batch in batches[:: max(1, len(batches) // 8)]:
            scorer.model(*batch)  # warm
        begin = time.perf_counter()
        for batch in batches:
            scorer.model(*batch)
        best = max(best, n / (time.perf_counter() - begin))
print(json.dumps(best))
"""


def measure(size: Size) -> list[Outcome]:
    """Make the bundle and the files, then time the network and the command in turns."""
    with tempfile.TemporaryDirectory(prefix="calibrant-bench-") as name:
        folder = Path(name)
        pack_texts(folder / "bundle", TRAINED[size])
        few, many = ROWS[size]
        files = {n: _write(folder / f"{n}.csv", n) for n in (few, many)}
        bare = [_bare(folder, files[many], BARE[size])]
        small = _predict(folder, files[few])
        bare.append(_bare(folder, files[many], BARE[size]))
        large = _predict(folder, files[many])
        bare.append(_bare(folder, files[many], BARE[size]))
    agree("rows", json.loads(large.output)["n"], many, 0)
    own = statistics.median(bare)
    details = {
        "rows": many,
        "network_rows_per_s": [round(rate) for rate in bare],
        "predict_rows_per_s": round(many / large.seconds),
        "predict_s": round(large.seconds, 2),
        "peak_mib": {str(few): _mib(small), str(many): _mib(large)},
        "cores": cores(),
    }
    return [
        Outcome(
            f"predict {many:,} messages at {SHARE:.0%} of the network's own speed or faster",
            round(many / large.seconds / own, 4),
            SHARE,
            "times",
            "at least",
            details,
        ),
        within(
            f"predict {many:,} messages in less than {GROWTH:g} times the memory of {few:,}",
            large.peak_bytes / small.peak_bytes,
            GROWTH,
            "times",
            details,
        ),
    ]


def _write(file: Path, n: int) -> Path:
    from calibrant.data.return_reasons import draw
    from calibrant.files.write_table import write_tables

    def pieces() -> Iterator[Any]:
        for place, start in enumerate(range(0, n, PIECE)):
            yield draw(min(PIECE, n - start), source="golden", seed=place).to_table()

    write_tables(file, pieces())
    return file


def _bare(folder: Path, file: Path, n: int) -> float:
    """Return how many rows the network alone scores in a second."""
    words = [str(folder / "bundle"), str(file), str(n)]
    return float(measured([sys.executable, "-c", _BARE, *words]).output)


def _predict(folder: Path, file: Path) -> Child:
    words = ["predict", str(folder / "bundle"), str(file), "-o", str(folder / "out.parquet")]
    return measured([sys.executable, "-m", "calibrant", *words, "--json"])


def _mib(child: Child) -> float:
    return round(child.peak_bytes / 2**20, 1)
