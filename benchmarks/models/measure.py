"""The order of work: peers, the command, what stands beside, and then the figures."""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from benchmarks.harness import Size
from benchmarks.models import automl, sets
from benchmarks.models.command import run_command
from benchmarks.models.figures import SetFigures, read_run
from benchmarks.models.goals import SECONDS, figures_table, outcomes
from benchmarks.models.peers import fit_peers
from benchmarks.models.rows import PeerRows, read_peer_rows
from benchmarks.models.sets import DataSet
from benchmarks.models.speed import measure_speed
from benchmarks.models.store import CACHE, RunFolder
from benchmarks.outcome import Outcome

__all__ = ["main", "measure"]

SEEDS = {"full": (0, 1, 2), "toy": (0,)}


def measure(size: Size) -> list[Outcome]:
    """Run what was not yet run of every data set and seed, and hold all of it to the goals."""
    if size == "full" and not automl.is_there():
        place = automl.ENVIRONMENT.name
        raise FileNotFoundError(f"{place} is not there: make {place}/.flaml makes it.")
    if size == "toy":  # it is there to see that all of it still runs
        shutil.rmtree(CACHE / size, ignore_errors=True)
    figures = [_measure_set(data_set, SEEDS[size], size) for data_set in _sets(size)]
    print(figures_table([one.to_dict() for one in figures]))
    return [*outcomes(figures), *measure_speed(size)]


def _measure_set(
    data_set: DataSet, seeds: Iterable[int], size: Size, sides: Iterable[str] | None = None
) -> SetFigures:
    runs = []
    for seed in seeds:
        folder = run(data_set, seed, size, sides)
        runs.append(read_run(data_set, folder))
        print(_line(SetFigures(data_set, (runs[-1],)), seed), flush=True)
    return SetFigures(data_set, tuple(runs))


def run(data_set: DataSet, seed: int, size: Size, sides: Iterable[str] | None = None) -> RunFolder:
    """Run the sides of one data set and seed that are not saved yet, on the study's splits."""
    folder = RunFolder.of(size, data_set.name, seed)
    rows = read_peer_rows(data_set.config(folder.path.parent, seed))
    if not folder.has("rows", rows.digest):
        codes = {f"codes_{name}": codes for name, codes in rows.codes.items()}
        places = {f"positions_{name}": ids for name, ids in rows.positions.items()}
        record = {"digest": rows.digest, "classes": list(rows.classes)}
        folder.save("rows", record, {**codes, **places})
    everything = size == "full" and automl.is_there()
    for side in sides or (SIDES if everything else ("peers", "command")):
        if not folder.has(side, rows.digest):
            record, arrays = _SIDES[side](data_set, seed, rows, folder)
            folder.save(side, {"digest": rows.digest, **record}, arrays)
    return folder


Side = tuple[dict[str, Any], dict[str, Any]]


def _run_peers(data_set: DataSet, seed: int, rows: PeerRows, folder: RunFolder) -> Side:
    peers = fit_peers(rows, data_set.kind, seed)
    record = {peer.name: {"seconds": round(peer.seconds, 3), **peer.facts} for peer in peers}
    arrays = {
        f"{peer.name}/{split}": logits for peer in peers for split, logits in peer.logits.items()
    }
    return {"peers": record}, arrays


def _run_command(data_set: DataSet, seed: int, rows: PeerRows, folder: RunFolder) -> Side:
    return run_command(data_set, seed, rows, folder.path)


def _run_automl(data_set: DataSet, seed: int, rows: PeerRows, folder: RunFolder) -> Side:
    seconds = folder.record("command").get("seconds", SECONDS[data_set.kind])
    return automl.run_automl(rows, data_set.kind, seconds, seed)


_SIDES: Mapping[str, Callable[[DataSet, int, PeerRows, RunFolder], Side]] = {
    "peers": _run_peers,
    "command": _run_command,
    "automl": _run_automl,
}
SIDES = tuple(_SIDES)


def _line(figures: SetFigures, seed: int) -> str:
    """Return what one run gave, on one line."""
    row = figures.to_dict()
    peers = ", ".join(f"{name} {loss:.4f}" for name, loss in row["peers"].items())
    out = f"{row['set']} seed {seed}: peers {peers} (chosen: {row['chosen_peer'][0]})"
    if "ratio" in row:
        out += (
            f"; ours {row['temperature']:.4f}, packed {row['packed']:.4f} ({row['chosen'][0]}), "
            f"ratio {row['ratio']:.3f}, recall {row['recall']:.3f} against "
            f"{row['peer_recall']:.3f}, {row['seconds'][0]:.0f} s"
        )
    beside = ", ".join(f"{name} {loss:.4f}" for name, loss in row["beside"].items())
    return out + (f"; beside {beside}" if beside else "")


def _sets(size: Size) -> tuple[DataSet, ...]:
    return sets.FULL if size == "full" else sets.TOY


def main(arguments: Sequence[str] | None = None) -> int:
    """Run some data sets and seeds alone, and print their figures."""
    options = _parser().parse_args(arguments)
    wanted = [each for each in _sets(options.size) if each.name in (options.sets or (each.name,))]
    figures = [
        _measure_set(each, options.seeds or SEEDS[options.size], options.size, options.sides)
        for each in wanted
    ]
    if len(figures) > 1:
        print("\n" + figures_table([one.to_dict() for one in figures]))
    return 0


def _parser() -> argparse.ArgumentParser:
    names = [each.name for each in (*sets.FULL, *sets.TOY)]
    parser = argparse.ArgumentParser(prog="python -m benchmarks.models", description=__doc__)
    parser.add_argument("--size", choices=("full", "toy"), default="full")
    parser.add_argument("--sets", nargs="+", choices=names, help="all by default")
    parser.add_argument("--seeds", nargs="+", type=int, help="0 1 2 by default")
    parser.add_argument("--sides", nargs="+", choices=SIDES, help="all by default")
    return parser


if __name__ == "__main__":
    sys.exit(main())
