"""Parsing of saved operating points."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from calibrant.errors import InputError
from calibrant.thresholds.rates import Cost, RateValue, Target, parse_target

FORMAT = 1
"""Version of the JSON that `to_dict` writes; newer ones are rejected, older ones always load."""

_DEFAULT_CONFIDENCE = 0.95
_DAMAGE = (AttributeError, IndexError, KeyError, OverflowError, TypeError, ValueError)


def parse_saved_point(saved: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of an `OperatingPoint` from its JSON, or raise `InputError`."""
    if not isinstance(saved, Mapping) or "format" not in saved or "threshold" not in saved:
        raise InputError("this is not a saved operating point: it has no format or no threshold.")
    if saved["format"] != FORMAT:
        raise InputError(
            f"the operating point has format {saved['format']!r}, but this version reads "
            f"{FORMAT}: update calibrant."
        )
    try:
        fields = _fields(saved)
    except InputError:
        raise
    except _DAMAGE as error:
        raise InputError(f"the saved operating point is damaged: {_first_line(error)}.") from None
    _check(fields)
    return fields


def _fields(saved: Mapping[str, Any]) -> dict[str, Any]:
    threshold, confidence = float(saved["threshold"]), saved["confidence"]
    costs = saved.get("costs")
    logit = saved["logit"]
    endpoint = math.inf if threshold >= 1 else -math.inf
    return {
        "threshold": threshold,
        "logit": endpoint if logit is None else float(logit),
        "on": saved["on"],
        "of": saved["class"],
        "classes": tuple(saved["classes"]),
        "hold": tuple(_target(text, costs) for text in saved["hold"]),
        "objective": str(saved["objective"]),
        "confidence": None if confidence is None else float(confidence),
        "guarantee": saved["guarantee"],
        "why": saved["why"],
        "rates": {
            name: RateValue.from_dict(rate, _interval_confidence(saved))
            for name, rate in saved["rates"].items()
        },
        "n": int(saved["n"]),
        "positives": int(saved["positives"]),
        "method": str(saved["method"]),
        "weighted": bool(saved["weighted"]),
        "candidates": int(saved["candidates"]),
        "cost": None if costs is None else Cost(*costs),
        "baseline": saved["baseline"],
        "both_kinds": bool(saved.get("both_kinds", True)),
        "condition": saved.get("condition"),  # absent from early files
        "notes": tuple(saved["notes"]),
    }


def _interval_confidence(saved: Mapping[str, Any]) -> float:
    return float(saved.get("interval_confidence") or saved["confidence"] or _DEFAULT_CONFIDENCE)


def _target(text: str, costs: list[float] | None) -> Target:
    if costs is not None and text.startswith("cost<="):
        return Cost(*costs) <= float(text.removeprefix("cost<="))
    of, target = parse_target(text)
    if of is not None:
        raise InputError(f"the saved operating point is damaged: {text!r} is not a target.")
    return target


def _check(fields: Mapping[str, Any]) -> None:
    """Raise `InputError` for values that no operating point can have."""
    wrong = None
    if not 0 <= fields["threshold"] <= 1:
        wrong = f"its threshold is {fields['threshold']}"
    elif fields["on"] not in ("probs", "logits"):
        wrong = f"it was chosen on {fields['on']!r}"
    elif len(fields["classes"]) < 2 or len(set(fields["classes"])) != len(fields["classes"]):
        wrong = f"its classes are {fields['classes']}"
    elif fields["of"] is not None and fields["of"] not in fields["classes"]:
        wrong = f"its class {fields['of']!r} is not among its classes"
    elif fields["confidence"] is not None and not 0 < fields["confidence"] < 1:
        wrong = f"its confidence is {fields['confidence']}"
    elif math.isnan(fields["logit"]):
        wrong = "its logit is not a number"
    if wrong is not None:
        raise InputError(f"the saved operating point is damaged: {wrong}.")


def _first_line(error: Exception) -> str:
    line = str(error).splitlines()[0] if str(error) else type(error).__name__
    return f"{line} is missing" if isinstance(error, KeyError) else line
