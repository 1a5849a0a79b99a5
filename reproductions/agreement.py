"""Number of published figures within our confidence intervals."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from calibrant.formatting import format_count
from calibrant.study.report.wording import join_words
from reproductions.seed_figures import PRINTED, MethodSummary
from reproductions.summary_words import called, figure_words, points

__all__ = ["agreement_sentence"]

_MOST = 3  # figures outside that a sentence names


@dataclass(frozen=True)
class _Held:
    """A published figure and ours, as fractions."""

    label: str
    figure: str
    paper: float
    ours: float
    within: bool


def agreement_sentence(methods: Sequence[MethodSummary]) -> str | None:
    """Describe how many published figures are within our intervals, and which are not.

    An interval is that of one run: chance in the test rows, not in seeds. Where the paper had other
    test rows, or rows that were cut otherwise, its own chance comes on top. So this tells whether
    the same training was reached; it is not a test. None if no figure has both.

    Parameters
    ----------
    methods : trained as in the paper, with the paper's figures
    """
    held = [each for method in methods for each in _held(method)]
    if not held:
        return None
    outside = [each for each in held if not each.within]
    kinds = join_words(list(dict.fromkeys(each.figure for each in held)))
    of = called(methods[0].label) if len(methods) == 1 else "these methods"
    opening = f"Of the {format_count(len(held), 'figure')} that were printed of {of} ({kinds}), "
    if not outside:
        return f"{opening}{'all lie' if len(held) > 1 else 'it lies'} within the intervals of ours."
    near = len(held) - len(outside)
    lie = f"{near or 'none'} {'lies' if near == 1 else 'lie'}"
    return f"{opening}{lie} within the intervals of ours; {_far(outside)}."


def _held(method: MethodSummary) -> Iterator[_Held]:
    for printed, name, way in PRINTED:
        paper, ours = method.published.get(printed), method.figure(way, name)
        if paper is None or ours is None or ours.low is None or ours.high is None:
            continue
        words = name if name == "error" else figure_words(name, way)
        paper = paper / 100
        within = ours.low <= paper <= ours.high
        yield _Held(called(method.label), words, paper, ours.value.mean, within)


def _far(outside: Sequence[_Held]) -> str:
    ranked = sorted(outside, key=lambda each: -abs(each.ours - each.paper))
    shown = [
        f"{each.label}, {each.figure}: {points(each.ours)} %, printed {points(each.paper)} %"
        for each in ranked[:_MOST]
    ]
    return f"{'furthest off' if len(outside) > _MOST else 'outside'}: {'; '.join(shown)}"
