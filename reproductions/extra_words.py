"""What is special about an experiment, in sentences: claims, settings, thresholds, a tutorial."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from reproductions.adafocal_settings import setting_words
from reproductions.experiment import Experiment
from reproductions.focal_words import focal_words
from reproductions.rare_class_words import rare_class_words
from reproductions.seed_figures import spread_of
from reproductions.summary import Summary

__all__ = ["extra_words"]

Records = Sequence[Mapping[str, Any]]


def extra_words(
    experiment: Experiment, summary: Summary, records: Records, notes: Mapping[str, Any]
) -> tuple[str, ...]:
    """Return what only this kind of experiment has to tell; () where there is no such thing.

    Parameters
    ----------
    experiment : at the size of the records
    summary : of its records
    records : of all runs
    notes : what was computed once for all runs, by name
    """
    runs: dict[str, list[Mapping[str, Any]]] = {}
    for one in records:
        runs.setdefault(one["method"], []).append(one)
    return (
        *setting_words(experiment, summary, runs),
        *focal_words(experiment, summary, runs),
        *_thresholds(summary, runs),
        *rare_class_words(records),
        *_outside(summary, runs),
        *(str(note["told"]) for note in notes.values() if note.get("told")),
    )


def _thresholds(summary: Summary, runs: Mapping[str, Records]) -> Iterator[str]:
    """Name the thresholds of a first promise, by hand and certified, over seeds."""
    told = []
    for each in summary.methods:
        found = [one["extras"].get("promise") for one in runs[each.name]]
        first = [one["promises"][0] for one in found if one and len(one["promises"]) == 1]
        ways = [_ends([one[way] for one in first]) for way in ("naive", "certified")]
        if first:
            told.append(f"{each.label} {ways[0]} ({ways[1]})")
    if told:
        yield f"Thresholds put by hand (certified ones): {', '.join(told)}."


def _ends(found: Records) -> str:
    given = spread_of(one["threshold"] for one in found if one["reached"])
    if given is None:
        return "none"
    ends = dict.fromkeys(f"{end:.3g}" for end in (given.least, given.most))
    return " to ".join(ends)


def _outside(summary: Summary, runs: Mapping[str, Records]) -> Iterator[str]:
    """Tell how well entropy knows rows of other data sets, method by method."""
    told: dict[str, list[str]] = {}
    for each in summary.methods:
        found = [one["extras"]["ood"] for one in runs[each.name] if one["extras"].get("ood")]
        for name in found[0] if found else ():
            ends = [
                spread_of(one[name]["entropy"][way] for one in found)
                for way in ("raw", "temperature")
            ]
            shown = " → ".join("–" if one is None else f"{100 * one.mean:.1f}" for one in ends)
            told.setdefault(name, []).append(f"{each.label} {shown}")
    for name, methods in told.items():
        yield (
            f"AUROC of the entropy against {name.replace('_', ' ')}, in %, as trained → with "
            f"temperature: {', '.join(methods)}."
        )
