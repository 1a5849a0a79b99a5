"""Traffic of the Overview page: which hours are looked at, and what was decided in them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from calibrant.formatting import format_count, percent
from calibrant.store import HourCount

__all__ = ["DECIDED", "WINDOWS", "Bar", "Live", "Share", "Traffic", "Window", "traffic_of"]

HOUR, DAY = timedelta(hours=1), timedelta(days=1)

WINDOWS: Mapping[str, tuple[str, int, timedelta]] = {
    "24h": ("24 hours", 24, HOUR),
    "7d": ("7 days", 7 * 24, HOUR),
    "30d": ("30 days", 30, DAY),
}
"""What can be looked at: its words, how many bars, and how long each of them is."""

DECIDED: Mapping[str, str] = {
    "act": "acted on",
    "clear": "cleared",
    "abstain": "left to a person",
    "out_of_scope": "out of scope",
    "none": "without a decision",
}
"""Every decision in words, in the order in which bars are stacked; `none` where no point is."""


@dataclass(frozen=True)
class Window:
    """The hours that are looked at.

    Parameters
    ----------
    name : a key of `WINDOWS`
    words : its length in words
    since, now : from the beginning of an hour or a day until now
    step : length of a bar

    Examples
    --------
    >>> window = Window.of("24h", datetime(2026, 3, 2, 10, 45, tzinfo=UTC))
    >>> str(window.since), len(window.steps), str(window.steps[-1])
    ('2026-03-01 11:00:00+00:00', 24, '2026-03-02 10:00:00+00:00')
    """

    name: str
    words: str
    since: datetime
    now: datetime
    step: timedelta

    @classmethod
    def of(cls, name: str, now: datetime) -> Window:
        """Return the window of that name that ends now: its last bar is not over yet."""
        words, bars, step = WINDOWS[name]
        now = now.astimezone(UTC)
        last = now.replace(minute=0, second=0, microsecond=0)
        if step == DAY:
            last = last.replace(hour=0)
        return cls(name, words, last - (bars - 1) * step, now, step)

    @property
    def unit(self) -> str:
        """What a bar stands for."""
        return "day" if self.step == DAY else "hour"

    @property
    def steps(self) -> list[datetime]:
        """When each bar begins."""
        _, bars, step = WINDOWS[self.name]
        return [self.since + i * step for i in range(bars)]


@dataclass(frozen=True)
class Share:
    """How often one decision was made.

    Parameters
    ----------
    decision : a key of `DECIDED`
    n, share : how often, and as a share of all predictions
    """

    decision: str
    n: int
    share: float

    @property
    def words(self) -> str:
        """The decision in words."""
        return DECIDED[self.decision]


@dataclass(frozen=True)
class Bar:
    """The decisions of one hour or day, in the order of `Traffic.decisions`."""

    at: datetime
    counts: tuple[int, ...]

    @property
    def total(self) -> int:
        """All predictions of that time."""
        return sum(self.counts)


@dataclass(frozen=True)
class Traffic:
    """What was decided in a window.

    Parameters
    ----------
    total : predictions
    decisions : those that were made, in the order of `DECIDED`
    bars : one for each hour or day of the window, empty ones among them
    """

    total: int
    decisions: tuple[Share, ...]
    bars: tuple[Bar, ...]

    def count(self, decision: str) -> int:
        """Return how often a decision was made."""
        return sum(share.n for share in self.decisions if share.decision == decision)

    @property
    def sentence(self) -> str:
        """All of it as one sentence."""
        if self.total == 0:
            return "No predictions."
        if len(self.decisions) == 1:
            (only,) = self.decisions
            many = "" if self.total == 1 else "all "
            return f"{format_count(self.total, 'prediction')}, {many}{only.words}."
        parts = [f"{each.n:,} {each.words} ({percent(each.share)})" for each in self.decisions]
        return f"{format_count(self.total, 'prediction')}: {', '.join(parts)}."

    def chart(self) -> dict[str, Any]:
        """Return what the page's script draws."""
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


def traffic_of(window: Window, hours: Sequence[HourCount]) -> Traffic:
    """Add up the counts of hours.

    Examples
    --------
    >>> window = Window.of("24h", datetime(2026, 3, 2, 10, 45, tzinfo=UTC))
    >>> ten = datetime(2026, 3, 2, 10, tzinfo=UTC)
    >>> found = traffic_of(window, [HourCount(ten, "act", 3), HourCount(ten, "abstain", 1)])
    >>> print(found.sentence)
    4 predictions: 3 acted on (75.0 %), 1 left to a person (25.0 %).
    >>> found.bars[-1].counts
    (3, 1)
    """
    steps = window.steps
    cells: dict[tuple[int, str], int] = {}
    for each in hours:
        place = (each.hour - window.since) // window.step
        if 0 <= place < len(steps):
            cell = place, each.decision or "none"
            cells[cell] = cells.get(cell, 0) + each.n
    sums = {name: sum(n for (_, made), n in cells.items() if made == name) for name in DECIDED}
    made = [name for name, n in sums.items() if n > 0]
    total = sum(sums.values())
    return Traffic(
        total,
        tuple(Share(name, sums[name], sums[name] / total) for name in made),
        tuple(
            Bar(at, tuple(cells.get((i, name), 0) for name in made)) for i, at in enumerate(steps)
        ),
    )


@dataclass(frozen=True)
class Live:
    """What comes in just now.

    Parameters
    ----------
    now : when this was found
    minute : predictions of the last minute
    latest : when the last prediction was made; None where there is none
    total : all predictions, of all bundles

    Examples
    --------
    >>> at = datetime(2026, 3, 2, 10, 45, tzinfo=UTC)
    >>> Live(at, 3, at - timedelta(seconds=5), 1200).sentence
    '3 predictions in the last minute. The last one came 5 seconds ago.'
    """

    now: datetime
    minute: int
    latest: datetime | None
    total: int

    @property
    def sentence(self) -> str:
        """What comes in, as a sentence or two."""
        if self.latest is None:
            return "No prediction yet."
        many = "No prediction" if self.minute == 0 else format_count(self.minute, "prediction")
        ago = ago_words(self.now - self.latest)
        return f"{many} in the last minute. The last one came {ago}."

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return {
            "now": self.now.isoformat(),
            "minute": self.minute,
            "latest": None if self.latest is None else self.latest.isoformat(),
            "total": self.total,
            "sentence": self.sentence,
        }


def ago_words(past: timedelta) -> str:
    """Say how long ago something was, in its largest unit.

    Examples
    --------
    >>> ago_words(timedelta(seconds=1)), ago_words(timedelta(minutes=119)), ago_words(-HOUR)
    ('1 second ago', '1 hour ago', 'just now')
    """
    seconds = int(past.total_seconds())
    for size, unit in ((86_400, "day"), (3_600, "hour"), (60, "minute"), (1, "second")):
        if seconds >= size:
            return f"{format_count(seconds // size, unit)} ago"
    return "just now"
