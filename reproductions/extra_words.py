"""Sentences about the special results of an experiment: claims, settings, thresholds."""

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
    """Return the sentences specific to this kind of experiment, or ().

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
    parts = []
    for each in summary.methods:
        promises = [one["extras"].get("promise") for one in runs[each.name]]
        first = [one["promises"][0] for one in promises if one and len(one["promises"]) == 1]
        ways = [_ends([one[way] for one in first]) for way in ("naive", "certified")]
        if first:
            parts.append(f"{each.label} {ways[0]} ({ways[1]})")
    if parts:
        yield f"Thresholds put by hand (certified ones): {', '.join(parts)}."


def _ends(promises: Records) -> str:
    thresholds = spread_of(one["threshold"] for one in promises if one["reached"])
    if thresholds is None:
        return "none"
    ends = dict.fromkeys(f"{end:.3g}" for end in (thresholds.least, thresholds.most))
    return " to ".join(ends)


def _outside(summary: Summary, runs: Mapping[str, Records]) -> Iterator[str]:
    """Describe how well entropy detects rows of other data sets, by method."""
    by_method: dict[str, list[str]] = {}
    for each in summary.methods:
        outside = [one["extras"]["ood"] for one in runs[each.name] if one["extras"].get("ood")]
        for name in outside[0] if outside else ():
            ends = [
                spread_of(one[name]["entropy"][way] for one in outside)
                for way in ("raw", "temperature")
            ]
            shown = " → ".join("–" if one is None else f"{100 * one.mean:.1f}" for one in ends)
            by_method.setdefault(name, []).append(f"{each.label} {shown}")
    for name, methods in by_method.items():
        yield (
            f"AUROC of the entropy against {name.replace('_', ' ')}, in %, as trained → with "
            f"temperature: {', '.join(methods)}."
        )
