"""Data of the Overview page: promises, traffic, decisions and shift."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from calibrant.bundle import Bundle
from calibrant.bundle.versions.rule_marks import RulePosition
from calibrant.errors import BundleError
from calibrant.formatting import format_count
from calibrant.serving.console.pages.overview.audit import (
    ActedSummary,
    combine_acted,
    describe_assumption,
    summarise_acted,
)
from calibrant.serving.console.pages.overview.point_audit import PointAudit, audit_points
from calibrant.serving.console.pages.overview.promises import Promise, check_promises, may_overlap
from calibrant.serving.console.pages.overview.shift import (
    CalibrationProfile,
    ScopeShift,
    ScoreShift,
    compare_scope,
    profile_calibration,
)
from calibrant.serving.console.pages.overview.traffic import Live, Traffic, Window, count_traffic
from calibrant.store import ActedCount, AuditedCount, HourCount, Store

MAX_AUDITED = 2_000  # Largest number of labelled decisions considered, newest first

_MINUTE = timedelta(minutes=1)
_STATES = {
    "bad": "A promise is not kept",
    "good": "Kept, as far as audited",
    "unknown": "Undecided",
}


@dataclass(frozen=True)
class WindowCounts:
    """Counts of a time window, as read from the store."""

    hours: Sequence[HourCount]  # tallies of the predictions
    acted: Sequence[ActedCount]
    scores: Sequence[int]
    audited: Sequence[AuditedCount]  # labelled decisions to act
    # audit of each rule of the bundle, over all labels and not only those of the window
    points: Mapping[RulePosition, PointAudit] = field(default_factory=dict)


def read_counts(store: Store, window: Window, bundle: Bundle | None) -> WindowCounts:
    """Read the counts of a window from the store."""
    since, tallies = window.since, store.tallies
    hash = None if bundle is None else str(bundle.manifest["sha256"])
    return WindowCounts(
        tallies.hours(since, bundle=hash),
        tallies.acted(since, bundle=hash),
        tallies.scores(since, bundle=hash),
        store.outcomes.audited(since, bundle=hash, most=MAX_AUDITED),
        {} if bundle is None else audit_points(store, bundle),
    )


def read_live(store: Store, now: datetime) -> Live:
    """Read current traffic from the store."""
    latest = store.predictions.latest()
    return Live(now, store.predictions.recent(now - _MINUTE), latest, store.tallies.total())


def load_profile(bundle: Bundle) -> tuple[CalibrationProfile | None, str]:
    """Return the profile of a bundle's calibrate rows, or the reason there is none."""
    try:
        profile = profile_calibration(bundle)
    except BundleError as error:
        return None, f"The calibrate rows cannot be read: {error}"
    if profile is None:
        return None, (
            "This bundle was packed without calibrate rows, so there is nothing to compare with: "
            "train it again, or pack it with calibrant pack --calib."
        )
    return profile, ""


@dataclass(frozen=True)
class Overview:
    """Data of the Overview page."""

    window: Window
    classes: int  # number of classes of the bundle
    traffic: Traffic
    promises: tuple[Promise, ...]
    overall: ActedSummary  # decisions to act, overall and by class, excluding `requested`
    acted: tuple[ActedSummary, ...]
    requested: int  # decisions to act at a point that the request named
    assumption: str  # assumption behind the expected precision
    overlaps: bool  # whether points of the bundle may act on the same row
    scores: ScoreShift
    scope: ScopeShift | None  # shift of the out-of-scope share; None if nothing is counted

    @property
    def deciding(self) -> tuple[Promise, ...]:
        """Promises of the points that decide by default."""
        return tuple(each for each in self.promises if not each.on_request)

    @property
    def on_request(self) -> tuple[Promise, ...]:
        """Promises of the points that decide only when a request names them."""
        return tuple(each for each in self.promises if each.on_request)

    @property
    def state(self) -> str:
        """`bad` if a promise is broken, `good` if all are kept, else `unknown`."""
        states = {each.state for each in self.deciding if each.promised}
        if "bad" in states:
            return "bad"
        return "good" if states == {"good"} else "unknown"

    @property
    def badge(self) -> str:
        """The state in words; empty if nothing can be checked."""
        checks = [check for each in self.deciding for check in each.checks]
        if not checks:
            return ""
        if all(check.verdict is None for check in checks):
            return "Not audited yet"
        return _STATES[self.state]

    @property
    def audited(self) -> bool:
        """Whether there are labels about a promise."""
        return any(check.interval is not None for each in self.deciding for check in each.checks)

    @property
    def headline(self) -> str:
        """The promise if there is exactly one, else how many there are."""
        promised = [each for each in self.deciding if each.promised]
        if not self.promises:
            return "This bundle makes no decisions: it has no operating point."
        if not promised:
            return "This bundle makes no promise about its decisions."
        if len(promised) == 1:
            return promised[0].sentence
        return f"{format_count(len(promised), 'promise')}{_tally_states(promised)}."

    def charts(self) -> dict[str, Any]:
        """Return the data that the page's script draws."""
        return {
            "unit": self.window.unit,
            "traffic": self.traffic.chart(),
            "scores": self.scores.chart() if self.traffic.total else None,
            "least": 1 / self.classes,
        }


def _tally_states(promised: Sequence[Promise]) -> str:
    """Describe how many promises are kept; empty if no verdict is known."""
    states = [each.state for each in promised]
    titles = {"good": "kept", "bad": "not kept", "unknown": "undecided"}
    parts = [f"{states.count(s):,} {title}" for s, title in titles.items() if s in states]
    return "" if set(states) == {"unknown"} else f": {', '.join(parts)}"


def build_overview(
    counts: WindowCounts,
    bundle: Bundle,
    window: Window,
    profile: CalibrationProfile | None,
    *,
    this_version: bool = True,
) -> Overview:
    """Compute the data of the page."""
    traffic = count_traffic(window, counts.hours)
    acted = summarise_acted(counts.acted, counts.audited, traffic.total)
    overall = combine_acted(acted, traffic.total)
    profile = profile if this_version else None
    flagged = traffic.count("out_of_scope")
    return Overview(
        window=window,
        classes=len(bundle.classes),
        traffic=traffic,
        promises=check_promises(
            bundle, counts.points, acted, traffic.total, comparable=this_version
        ),
        overall=overall,
        acted=acted,
        requested=max(0, traffic.count("act") - overall.n),
        assumption=describe_assumption(bundle),
        overlaps=may_overlap(bundle),
        scores=ScoreShift.compare(counts.scores, profile),
        scope=compare_scope(flagged, traffic.total, bundle, profile),
    )
