"""Formatting of metrics, seeds and recipes in sentences about a reproduction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from calibrant.formatting import format_count
from calibrant.study.report.wording import join_words, method_name

__all__ = [
    "MISSING",
    "calibrators_words",
    "called",
    "figure_name",
    "figure_words",
    "points",
    "points_apart",
    "seeds_words",
]

MISSING = "–"

_FIGURES = {"ece_em": "ECE_EM", "ece_ew": "ECE_EW"}


def called(label: str) -> str:
    """Write the name of a method in a sentence: in quotes where a comma would cut it in two.

    Examples
    --------
    >>> called("FL-3"), called("CE, best epoch")
    ('FL-3', '"CE, best epoch"')
    """
    return f'"{label}"' if "," in label else label


def points(value: float | None, digits: int = 2) -> str:
    """Write a fraction in percent with the two decimals of the papers, without the sign.

    Examples
    --------
    >>> points(0.01899), points(None)
    ('1.90', '–')
    """
    return MISSING if value is None else f"{100 * value + 0.0:.{digits}f}"


def points_apart(*values: float) -> tuple[str, ...]:
    """Write fractions in percent, with as many decimals as tell different ones apart (up to 4).

    Examples
    --------
    >>> points_apart(0.0213, 0.0262)
    ('2.13 %', '2.62 %')
    >>> points_apart(0.02131, 0.0213)
    ('2.131 %', '2.130 %')
    """
    written: tuple[str, ...] = ()
    different = len({round(each, 12) for each in values})  # not those that rounding moved
    for digits in (2, 3, 4):
        written = tuple(f"{points(each, digits)} %" for each in values)
        if len(set(written)) == different:
            break
    return written


def seeds_words(n: int) -> str:
    """Say over how many seeds a mean is.

    Examples
    --------
    >>> seeds_words(1), seeds_words(3)
    ('one seed', 'mean of 3 seeds')
    """
    return "one seed" if n == 1 else f"mean of {format_count(n, 'seed')}"


def calibrators_words(chosen: Mapping[int, str]) -> str:
    """Say which calibrators the automatic choice took.

    Examples
    --------
    >>> calibrators_words({0: "spline", 1: "spline"})
    'spline'
    >>> calibrators_words({0: "temperature", 1: "ets", 2: "temperature"})
    'automatic choice (temperature scaling with 2 seeds, ensemble temperature scaling with 1 seed)'
    """
    taken: list[str] = list(chosen.values())
    kinds: Sequence[str] = sorted(set(taken), key=lambda each: (-taken.count(each), each))
    if not kinds:
        return "automatic choice"
    if len(kinds) == 1:
        return method_name(kinds[0])
    parts = [
        f"{method_name(each)} with {format_count(taken.count(each), 'seed')}" for each in kinds
    ]
    return f"automatic choice ({join_words(parts) if len(parts) > 2 else ', '.join(parts)})"


def figure_name(name: str) -> str:
    """Return a calibration error as the papers write it.

    Examples
    --------
    >>> figure_name("ece_em")
    'ECE_EM'
    """
    return _FIGURES.get(name, name)


def figure_words(name: str, way: str) -> str:
    """Say which calibration error it is, before or after temperature scaling.

    Examples
    --------
    >>> figure_words("ece_em", "temperature")
    'ECE_EM after temperature scaling'
    """
    when = "before calibrating" if way == "raw" else "after temperature scaling"
    return f"{figure_name(name)} {when}"
