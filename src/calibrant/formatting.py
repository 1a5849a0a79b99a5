"""Words and number formats that the terminal text, the page and the displays share."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from calibrant.results import Evaluation, Figure, Floor, Interval

__all__ = [
    "counted",
    "floor_words",
    "headline",
    "interval_words",
    "judged",
    "note_of",
    "number",
    "percent",
    "printable",
    "quoted",
    "rate_ends",
    "rows_and_classes",
    "sentence",
    "signed",
    "signed_interval",
]

MISSING = "–"


def number(value: float | None, digits: int = 4) -> str:
    """Write a number with four decimals; one too small for them with its power of ten.

    Examples
    --------
    >>> number(0.06262), number(0.0000123), number(None)
    ('0.0626', '1.2e-05', '–')
    """
    if value is None or not math.isfinite(value):
        return MISSING
    if 0 < abs(value) < 0.5 * 10.0**-digits:
        return f"{value:.1e}"
    return f"{value:.{digits}f}"


def rate_ends(rate: Mapping[str, Any]) -> tuple[str, str]:
    """Write the ends of a rate's interval; with three decimals where two would not hold its value.

    Examples
    --------
    >>> rate_ends({"value": 0.9, "low": 0.8123, "high": 0.9512})
    ('0.81', '0.95')
    >>> rate_ends({"value": 0.9986, "low": 0.9972, "high": 0.9994})
    ('0.997', '0.999')
    """
    low, high = (round(rate[name], 2) for name in ("low", "high"))
    digits = 2 if low <= rate["value"] <= high and low < high else 3
    return number(rate["low"], digits), number(rate["high"], digits)


def signed(value: float | None) -> str:
    """Write a difference with its sign.

    Examples
    --------
    >>> signed(0.0321), signed(None)
    ('+0.0321', '–')
    """
    return number(value) if value is None else f"{value + 0.0:+.4f}"  # no -0.0000


def percent(value: float | None) -> str:
    """Write a share in percent, so that only all is 100 % and only nothing is 0 %.

    Examples
    --------
    >>> percent(0.8478), percent(0.0004)
    ('84.8 %', '0.04 %')
    >>> percent(0.9995), percent(1), percent(0.00001), percent(0)
    ('> 99.9 %', '100.0 %', '< 0.01 %', '0.0 %')
    """
    if value is None or not math.isfinite(value):
        return MISSING
    digits = 2 if 0 < abs(value) < 0.0095 else 1
    shown = f"{100 * value:.{digits}f} %"
    if value < 1 and shown == "100.0 %":
        return "> 99.9 %"
    return "< 0.01 %" if value > 0 and shown == "0.00 %" else shown


def interval_words(interval: Interval | None) -> str:
    """Write an interval as `low to high`."""
    return "" if interval is None else f"{number(interval.low)} to {number(interval.high)}"


def signed_interval(interval: Interval | None) -> str:
    """Write the interval of a difference as `low to high`, with signs."""
    return "" if interval is None else f"{signed(interval.low)} to {signed(interval.high)}"


def floor_words(floor: Floor | None) -> str:
    """Write what a calibrated model would get by chance."""
    return "" if floor is None else f"{number(floor.mean)} (up to {number(floor.q95)})"


def note_of(figure: Figure) -> str:
    """Return the remark that a figure needs, or nothing."""
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
    """Begin with a capital and end with a full stop.

    Examples
    --------
    >>> sentence("over-confident (n=20)")
    'Over-confident (n=20).'
    """
    text = text.strip()
    return text[:1].upper() + text[1:] + ("" if text.endswith((".", "!", "?")) else ".")


def headline(evaluation: Evaluation) -> str:
    """Return the verdict as one sentence."""
    return sentence(evaluation.verdict.text)


def judged(evaluation: Evaluation) -> str:
    """Say which probability is judged."""
    if evaluation.target == "positive":
        return f"the probability of class {quoted(evaluation.classes[-1])}"
    return "the probability of the predicted class"


def rows_and_classes(evaluation: Evaluation) -> str:
    """Say how much data was judged."""
    weighted = ", weighted" if evaluation.weighted else ""
    rows, classes = counted(evaluation.n, "row"), counted(len(evaluation.classes), "class")
    return f"{rows}{weighted}, {classes}"


def counted(n: int, what: str) -> str:
    """Write a number with the thing it counts.

    Examples
    --------
    >>> counted(1, "row"), counted(2000, "row"), counted(2, "class")
    ('1 row', '2,000 rows', '2 classes')
    """
    plural = f"{what}es" if what.endswith("s") else f"{what}s"
    return f"{n:,} {what if n == 1 else plural}"


def quoted(name: Any) -> str:
    """Put a name in quotation marks.

    Examples
    --------
    >>> quoted("cat")
    '“cat”'
    """
    return f"“{printable(name)}”"


def printable(name: Any) -> str:
    r"""Return a name without characters that could steer a terminal.

    Examples
    --------
    >>> printable("red\x1b[31m")
    'red�[31m'
    """
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in str(name))
