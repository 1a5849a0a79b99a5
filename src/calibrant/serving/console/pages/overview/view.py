"""The Overview page: the promise, what comes in, what is decided, and whether it still holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from calibrant.bundle import Bundle
from calibrant.bundle.versions.rule_marks import RulePosition
from calibrant.errors import BundleError
from calibrant.formatting import counted
from calibrant.serving.console.pages.overview.audit import Acted, acted_of, added, believed
from calibrant.serving.console.pages.overview.point_audit import PointAudit, point_audits
from calibrant.serving.console.pages.overview.promises import Promise, may_overlap, promises_of
from calibrant.serving.console.pages.overview.shift import (
    AtCalibration,
    Scope,
    Scores,
    at_calibration,
    scope_of,
)
from calibrant.serving.console.pages.overview.traffic import Live, Traffic, Window, traffic_of
from calibrant.store import ActedCount, AuditedCount, HourCount, Store

__all__ = ["MOST_AUDITED", "Counts", "Overview", "counts_of", "live_of", "overview", "past_of"]

MOST_AUDITED = 2_000
"""Labelled decisions that are looked at, the newest first."""

_MINUTE = timedelta(minutes=1)
_STATES = {
    "bad": "A promise is not kept",
    "good": "Kept, as far as it was audited",
    "unknown": "Cannot be told yet",
}


@dataclass(frozen=True)
class Counts:
    """What the store says about a window.

    Parameters
    ----------
    hours, acted, scores : tallies of the predictions
    audited : decisions to act that have a label
    points : what all labels say about each rule of the bundle, not only those of the window
    """

    hours: Sequence[HourCount]
    acted: Sequence[ActedCount]
    scores: Sequence[int]
    audited: Sequence[AuditedCount]
    points: Mapping[RulePosition, PointAudit] = field(default_factory=dict)


def counts_of(store: Store, window: Window, bundle: Bundle | None) -> Counts:
    """Ask the store about a window."""
    since, tallies = window.since, store.tallies
    hash = None if bundle is None else str(bundle.manifest["sha256"])
    return Counts(
        tallies.hours(since, bundle=hash),
        tallies.acted(since, bundle=hash),
        tallies.scores(since, bundle=hash),
        store.outcomes.audited(since, bundle=hash, most=MOST_AUDITED),
        {} if bundle is None else point_audits(store, bundle),
    )


def live_of(store: Store, now: datetime) -> Live:
    """Ask the store what comes in just now."""
    latest = store.predictions.latest()
    return Live(now, store.predictions.recent(now - _MINUTE), latest, store.tallies.total())


def past_of(bundle: Bundle) -> tuple[AtCalibration | None, str]:
    """Return the calibrate rows of a bundle, or why there are none to compare with."""
    try:
        found = at_calibration(bundle)
    except BundleError as error:
        return None, f"The calibrate rows cannot be read: {error}"
    if found is None:
        return None, (
            "This bundle came without its calibrate rows, so there is nothing to compare with: "
            "train it again, or pack it with calibrant pack --calib."
        )
    return found, ""


@dataclass(frozen=True)
class Overview:
    """All that the page shows.

    Parameters
    ----------
    window : the hours that are looked at
    classes : how many the bundle tells apart
    traffic : predictions and decisions
    promises : of the bundle
    together, acted : decisions to act, all of them and by class; without those of `asked`
    asked : decisions to act at a point that a request asked for
    believed : what must be true for what is expected of them to be
    overlaps : whether points of the bundle may want to act on the same row
    scores, scope : what comes in against the calibrate rows; `scope` is None where nothing is
        counted
    """

    window: Window
    classes: int
    traffic: Traffic
    promises: tuple[Promise, ...]
    together: Acted
    acted: tuple[Acted, ...]
    asked: int
    believed: str
    overlaps: bool
    scores: Scores
    scope: Scope | None

    @property
    def heard(self) -> tuple[Promise, ...]:
        """What the points say that decide without being asked for."""
        return tuple(each for each in self.promises if not each.on_request)

    @property
    def on_request(self) -> tuple[Promise, ...]:
        """What the other points say."""
        return tuple(each for each in self.promises if each.on_request)

    @property
    def state(self) -> str:
        """`bad` where a promise is not kept, `good` where all are, else `unknown`."""
        states = {each.state for each in self.heard if each.promised}
        if "bad" in states:
            return "bad"
        return "good" if states == {"good"} else "unknown"

    @property
    def badge(self) -> str:
        """The state in words; empty where nothing can be checked."""
        checks = [check for each in self.heard for check in each.checks]
        if not checks:
            return ""
        if all(check.verdict is None for check in checks):
            return "Not audited yet"
        return _STATES[self.state]

    @property
    def audited(self) -> bool:
        """Whether labels came in about a promise."""
        return any(check.interval is not None for each in self.heard for check in each.checks)

    @property
    def headline(self) -> str:
        """The promise, where there is one; else how many there are."""
        promised = [each for each in self.heard if each.promised]
        if not self.promises:
            return "This bundle decides nothing: it has no operating point."
        if not promised:
            return "This bundle promises nothing about its decisions."
        if len(promised) == 1:
            return promised[0].sentence
        return f"{counted(len(promised), 'promise')}{_tallied(promised)}."

    def charts(self) -> dict[str, Any]:
        """Return what the page's script draws."""
        return {
            "unit": self.window.unit,
            "traffic": self.traffic.chart(),
            "scores": self.scores.chart() if self.traffic.total else None,
            "least": 1 / self.classes,
        }


def _tallied(promised: Sequence[Promise]) -> str:
    """Say how many promises are kept; nothing where that is not known of any."""
    states = [each.state for each in promised]
    words = {"good": "kept", "bad": "not kept", "unknown": "cannot be told yet"}
    parts = [f"{states.count(s):,} {said}" for s, said in words.items() if s in states]
    return "" if set(states) == {"unknown"} else f": {', '.join(parts)}"


def overview(
    counts: Counts, bundle: Bundle, window: Window, past: AtCalibration | None, *, own: bool = True
) -> Overview:
    """Work out what the page shows."""
    traffic = traffic_of(window, counts.hours)
    acted = acted_of(counts.acted, counts.audited, traffic.total)
    together = added(acted, traffic.total)
    past = past if own else None
    outside = traffic.count("out_of_scope")
    return Overview(
        window=window,
        classes=len(bundle.classes),
        traffic=traffic,
        promises=promises_of(bundle, counts.points, acted, traffic.total, comparable=own),
        together=together,
        acted=acted,
        asked=max(0, traffic.count("act") - together.n),
        believed=believed(bundle),
        overlaps=may_overlap(bundle),
        scores=Scores.of(counts.scores, past),
        scope=scope_of(outside, traffic.total, bundle, past),
    )
