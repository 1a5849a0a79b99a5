"""Traffic of the Overview page: time windows and the decisions in them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from calibrant.formatting import format_count, percent
from calibrant.store import HourCount

HOUR, DAY = timedelta(hours=1), timedelta(days=1)

WINDOWS: Mapping[str, tuple[str, int, timedelta]] = {
    "24h": ("24 hours", 24, HOUR),
    "7d": ("7 days", 7 * 24, HOUR),
    "30d": ("30 days", 30, DAY),
}
"""Time windows: title, number of bars, and length of each bar."""

DECISION_TITLES: Mapping[str, str] = {
    "act": "acted on",
    "clear": "cleared",
    "abstain": "left to a person",
    "out_of_scope": "out of scope",
    "none": "without a decision",
}
"""Every decision in words, in stacking order; `none` for bundles without a point."""


@dataclass(frozen=True)
class Window:
    """A time window."""

    name: str  # a key of `WINDOWS`
    words: str
    since: datetime  # the start of an hour or day
    now: datetime
    step: timedelta

    @classmethod
    def from_name(cls, name: str, now: datetime) -> Window:
        """Return the window of that name that ends now; its last bar is incomplete."""
        words, bars, step = WINDOWS[name]
        now = now.astimezone(UTC)
        last = now.replace(minute=0, second=0, microsecond=0)
        if step == DAY:
            last = last.replace(hour=0)
        return cls(name, words, last - (bars - 1) * step, now, step)

    @property
    def unit(self) -> str:
        """Unit of a bar."""
        return "day" if self.step == DAY else "hour"

    @property
    def steps(self) -> list[datetime]:
        """Start of each bar."""
        _, bars, step = WINDOWS[self.name]
        return [self.since + i * step for i in range(bars)]


@dataclass(frozen=True)
class DecisionShare:
    """How often one decision was made."""

    decision: str  # a key of `DECISION_TITLES`
    n: int
    share: float  # of all predictions

    @property
    def words(self) -> str:
        """The decision in words."""
        return DECISION_TITLES[self.decision]


@dataclass(frozen=True)
class Bar:
    """Decisions of one hour or day, in the order of `Traffic.decisions`."""

    at: datetime
    counts: tuple[int, ...]

    @property
    def total(self) -> int:
        """All predictions of that hour or day."""
        return sum(self.counts)


@dataclass(frozen=True)
class Traffic:
    """Decisions in a window."""

    total: int
    decisions: tuple[DecisionShare, ...]  # decisions that occur, in the order of `DECISION_TITLES`
    bars: tuple[Bar, ...]  # one for each hour or day of the window, including empty ones

    def count(self, decision: str) -> int:
        """Return how often a decision was made."""
        return sum(share.n for share in self.decisions if share.decision == decision)

    @property
    def sentence(self) -> str:
        """The traffic as one sentence."""
        if self.total == 0:
            return "No predictions."
        if len(self.decisions) == 1:
            (only,) = self.decisions
            many = "" if self.total == 1 else "all "
            return f"{format_count(self.total, 'prediction')}, {many}{only.words}."
        parts = [f"{each.n:,} {each.words} ({percent(each.share)})" for each in self.decisions]
        return f"{format_count(self.total, 'prediction')}: {', '.join(parts)}."

    def chart(self) -> dict[str, Any]:
        """Return the data that the page's script draws."""
        return {
            "at": [bar.at.strftime("%Y-%m-%d %H:%M") for bar in self.bars],
            "decisions": [
                {
                    "name": each.decision,
                    "words": each.words,
                    "counts": [bar.counts[i] for bar in self.bars],
                }
                for i, each in enumerate(self.decisions)
            ],
        }


def count_traffic(window: Window, hours: Sequence[HourCount]) -> Traffic:
    """Add up hourly counts into bars."""
    steps = window.steps
    cells: dict[tuple[int, str], int] = {}
    for each in hours:
        place = (each.hour - window.since) // window.step
        if 0 <= place < len(steps):
            cell = place, each.decision or "none"
            cells[cell] = cells.get(cell, 0) + each.n
    sums = {
        name: sum(n for (_, decision), n in cells.items() if decision == name)
        for name in DECISION_TITLES
    }
    names = [name for name, n in sums.items() if n > 0]
    total = sum(sums.values())
    return Traffic(
        total,
        tuple(DecisionShare(name, sums[name], sums[name] / total) for name in names),
        tuple(
            Bar(at, tuple(cells.get((i, name), 0) for name in names)) for i, at in enumerate(steps)
        ),
    )


@dataclass(frozen=True)
class Live:
    """Current traffic."""

    now: datetime
    minute: int  # predictions in the last minute
    latest: datetime | None  # time of the last prediction; None if there is none
    total: int  # all predictions of all bundles

    @property
    def sentence(self) -> str:
        """Current traffic as a sentence or two."""
        if self.latest is None:
            return "No predictions yet."
        many = "No predictions" if self.minute == 0 else format_count(self.minute, "prediction")
        ago = ago_words(self.now - self.latest)
        return f"{many} in the last minute. Last one: {ago}."

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values."""
        return {
            "now": self.now.isoformat(),
            "minute": self.minute,
            "latest": None if self.latest is None else self.latest.isoformat(),
            "total": self.total,
            "sentence": self.sentence,
        }


def ago_words(past: timedelta) -> str:
    """Describe how long ago something was, in its largest unit."""
    seconds = int(past.total_seconds())
    for size, unit in ((86_400, "day"), (3_600, "hour"), (60, "minute"), (1, "second")):
        if seconds >= size:
            return f"{format_count(seconds // size, unit)} ago"
    return "just now"
