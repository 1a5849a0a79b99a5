"""Text and number formats shared by the terminal text, the pages and the displays."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from calibrant.results import Evaluation, Figure, Floor, Interval

MISSING = "–"


def number(value: float | None, digits: int = 4) -> str:
    """Format a number with four decimals; a very small one in scientific notation."""
    if value is None or not math.isfinite(value):
        return MISSING
    if 0 < abs(value) < 0.5 * 10.0**-digits:
        return f"{value:.1e}"
    return f"{value:.{digits}f}"


def rate_ends(rate: Mapping[str, Any]) -> tuple[str, str]:
    """Format the ends of a rate's interval; with three decimals if two would exclude its value."""
    low, high = (round(rate[name], 2) for name in ("low", "high"))
    digits = 2 if low <= rate["value"] <= high and low < high else 3
    return number(rate["low"], digits), number(rate["high"], digits)


def format_signed(value: float | None) -> str:
    """Format a difference with its sign."""
    return number(value) if value is None else f"{value + 0.0:+.4f}"  # no -0.0000


def percent(value: float | None) -> str:
    """Format a share in percent; only 1 is shown as 100 % and only 0 as 0 %."""
    if value is None or not math.isfinite(value):
        return MISSING
    digits = 2 if 0 < abs(value) < 0.0095 else 1
    shown = f"{100 * value:.{digits}f} %"
    if value < 1 and shown == "100.0 %":
        return "> 99.9 %"
    return "< 0.01 %" if value > 0 and shown == "0.00 %" else shown


def interval_words(interval: Interval | None) -> str:
    """Format an interval as `low to high`."""
    return "" if interval is None else f"{number(interval.low)} to {number(interval.high)}"


def signed_interval(interval: Interval | None) -> str:
    """Format the interval of a difference as `low to high`, with signs."""
    return (
        ""
        if interval is None
        else f"{format_signed(interval.low)} to {format_signed(interval.high)}"
    )


def floor_words(floor: Floor | None) -> str:
    """Format the floor: what a calibrated model gets by chance."""
    return "" if floor is None else f"{number(floor.mean)} (up to {number(floor.q95)})"


def note_of(figure: Figure) -> str:
    """Return a remark on a metric, or an empty text."""
    if figure.value is None:
        return f"not given: {figure.why}" if figure.why else "not given"
    parts = []
    if figure.interval is None and figure.why:
        parts.append(f"no interval: {figure.why}")
    if figure.error_bound is not None:
        parts.append(f"exact to ± {number(figure.error_bound)}")
    if figure.floor is not None and figure.value <= figure.floor.q95:
        parts.append("no more than chance gives")
    if figure.name == "auroc" and figure.interval is not None and figure.interval.high < 0.5:
        parts.append(
            "rows of a class rank below the others: are these the scores of another class?"
        )
    return "; ".join(parts)


def sentence(text: str) -> str:
    """Capitalise a text and end it with a full stop."""
    text = text.strip()
    return text[:1].upper() + text[1:] + ("" if text.endswith((".", "!", "?")) else ".")


def headline(evaluation: Evaluation) -> str:
    """Return the verdict as one sentence."""
    return sentence(evaluation.verdict.text)


def describe_target(evaluation: Evaluation) -> str:
    """Describe the probability that was evaluated."""
    if evaluation.target == "positive":
        return f"the probability of class {quote_name(evaluation.classes[-1])}"
    return "the probability of the predicted class"


def rows_and_classes(evaluation: Evaluation) -> str:
    """Return the numbers of rows and classes."""
    weighted = ", weighted" if evaluation.weighted else ""
    rows, classes = (
        format_count(evaluation.n, "row"),
        format_count(len(evaluation.classes), "class"),
    )
    return f"{rows}{weighted}, {classes}"


def format_count(n: int, what: str) -> str:
    """Format a count with its noun."""
    plural = f"{what}es" if what.endswith("s") else f"{what}s"
    return f"{n:,} {what if n == 1 else plural}"


def quote_name(name: Any) -> str:
    """Put a name in quotation marks."""
    return f"“{printable(name)}”"


def printable(name: Any) -> str:
    r"""Replace the control characters of a name."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in str(name))
