"""Sentences about the effect of changed class frequencies on a rare class."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

__all__ = ["rare_class_words"]

Extra = Mapping[str, Any]


def rare_class_words(runs: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """Return sentences about the methods in the extra `rare_class`.

    Figures are means over the seeds of a method, given as the least and the most of the methods of
    a kind. Without runs of methods that move the class frequencies there is nothing to tell.

    Parameters
    ----------
    runs : records of one experiment
    """
    by_method: dict[str, list[Extra]] = {}
    for run in runs:
        if "rare_class" in run.get("extras", {}):
            by_method.setdefault(run["method"], []).append(run["extras"]["rare_class"])
    kinds: dict[str, list[list[Extra]]] = {"plain": [], "corrected": [], "left": []}
    for each in by_method.values():
        kinds[_kind(each[0])].append(each)
    if not kinds["left"] or not kinds["corrected"]:
        return ()
    return tuple(_sentences(kinds, next(iter(by_method.values()))[0]))


def _kind(one: Extra) -> str:
    if one["log_shift"] is None:
        return "plain"
    return "corrected" if one["corrected"] else "left"


def _sentences(kinds: Mapping[str, list[list[Extra]]], first: Extra) -> Iterable[str]:
    left, corrected, plain = kinds["left"], kinds["corrected"], kinds["plain"]
    name, rate = first["class"], first["raw"]["event_rate"]
    yield (
        f"{name.capitalize()} is the class of {_percent(rate)} of the test rows. Methods that move "
        f"class frequencies give it {_range(left, 'raw', 'mean_score')} on average where nothing "
        f"is put right, and {_range(corrected, 'raw', 'mean_score')} where the log of the moved "
        f"odds is taken off{_beside(plain, 'mean_score')}."
    )
    yield (
        f"Its ECE_EM is {_range(left, 'raw', 'ece_em')} uncorrected and "
        f"{_range(corrected, 'raw', 'ece_em')} corrected{_beside(plain, 'ece_em')}. A temperature "
        f"has no offset and leaves the uncorrected at {_range(left, 'temperature', 'ece_em')}; "
        f"Platt scaling brings them to {_range(left, 'platt', 'ece_em')}."
    )
    recalls = [_spread([_place_recall(each) for each in kind]) for kind in (left, corrected)]
    own = _spread([_place_recall(each) for each in plain]) if plain else ""
    own = f" (plain cross-entropy: {own})" if plain else ""
    yield (
        f"What looks like a gain is a lower threshold: {recalls[0]} of the class is found "
        f"uncorrected and {recalls[1]} corrected{own}, and a threshold chosen afterwards can be "
        f"put anywhere. Correcting changes no rank: the AUPRC is {_range(left, 'raw', 'auprc')} "
        f"uncorrected and {_range(corrected, 'raw', 'auprc')} corrected{_beside(plain, 'auprc')}."
    )


def _beside(plain: list[list[Extra]], figure: str) -> str:
    return f" (plain cross-entropy: {_range(plain, 'raw', figure)})" if plain else ""


def _range(kind: list[list[Extra]], way: str, figure: str) -> str:
    """Return the least and the most of the methods' means over seeds, in percent."""
    means = [float(np.mean([_value(one[way][figure]) for one in each])) for each in kind]
    return _spread(means)


def _place_recall(each: list[Extra]) -> float:
    """Return the mean recall of the rare class."""
    return float(np.mean([one["raw"]["recall"][one["place"]] for one in each]))


def _spread(values: Sequence[float]) -> str:
    low, high = (_percent(end) for end in (min(values), max(values)))
    return low if low == high else f"{low.removesuffix(' %')} to {high}"


def _value(value: Any) -> float:
    return float(value["value"] if isinstance(value, Mapping) else value)


def _percent(value: float) -> str:
    return f"{100 * value:.1f} %"
