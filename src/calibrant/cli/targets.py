"""Parser of targets, objective, costs and confidence of `calibrant threshold`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING

from calibrant.errors import InputError
from calibrant.workflows.target_request import TargetRequest

if TYPE_CHECKING:
    from calibrant.thresholds.rates import Cost, Rate, Target

__all__ = [
    "TargetRequest",
    "parse_band",
    "parse_confidence",
    "parse_cost",
    "parse_hold",
    "parse_targets",
]

_COSTS = {
    "fp": "false_positive",
    "fn": "false_negative",
    "tp": "true_positive",
    "tn": "true_negative",
}
_COST_TARGET = re.compile(r"\s*(?:(?P<of>.*\S)\s*:)?\s*cost\s*(?P<sense>>=|<=)\s*(?P<value>\S+)\s*")
_EXAMPLE = '--hold "precision>=0.85"'


def parse_targets(
    hold: Sequence[str],
    *,
    maximise: str | None,
    minimise: str | None,
    cost: str | None,
    confidence: str,
) -> TargetRequest:
    """Parse the options; class names are checked later."""
    costs = None if cost is None else parse_cost(cost)
    targets: dict[str | None, list[Target]] = {}
    for text in hold:
        class_name, target = parse_hold(text, costs)
        targets.setdefault(class_name, []).append(target)
    if not hold and costs is None and minimise is None:
        raise InputError(f"--hold is missing: give a target, like {_EXAMPLE}.")
    to_maximise, to_minimise = _parse_objective(maximise, minimise, costs)
    request = TargetRequest(targets, to_maximise, to_minimise, parse_confidence(confidence))
    if costs is not None and request.cost is None:
        raise InputError(
            f"--cost {cost} is not used: add --minimise cost, or hold it, like --hold 'cost<=0.3'."
        )
    if None in targets and request.classes:
        raise InputError(
            f"--hold '{targets[None][0]}' names no class, but another one is about "
            f"'{request.classes[0]}': write the class before each of them, like "
            f"'{request.classes[0]}: {targets[None][0]}'."
        )
    return request


def parse_band(act: str | None, clear: str | None, *, confidence: str) -> TargetRequest:
    """Parse the two targets of a band."""
    if act is None or clear is None:
        lacking, like = ("--act", "precision>=0.9") if act is None else ("--clear", "npv>=0.99")
        raise InputError(
            f"a band has two sides, but {lacking} is missing: add it, like {lacking} '{like}'."
        )
    (class_name, first), (other, second) = (
        parse_hold(text, flag=flag) for text, flag in ((act, "--act"), (clear, "--clear"))
    )
    if class_name is not None and other is not None and class_name != other:
        raise InputError(
            f"--act names class '{class_name}' and --clear '{other}': a band has one class."
        )
    return TargetRequest(
        {class_name or other: [first, second]}, None, None, parse_confidence(confidence), band=True
    )


def parse_hold(
    text: str, cost: Cost | None = None, *, flag: str = "--hold"
) -> tuple[str | None, Target]:
    """Parse one target; a limit on the expected cost needs `cost`."""
    from calibrant.thresholds.rates import RATES, parse_target

    match = _COST_TARGET.fullmatch(text)
    if match is not None:
        return _cost_target(text, match, cost)
    if text.rpartition(":")[2].strip().lower() in {*RATES, "cost"}:
        raise InputError(
            f"{flag} '{text}' has no limit: add one, in quotes, because the shell interprets >=: "
            f'{flag} "{text}>=0.85".'
        )
    return parse_target(text)


def parse_cost(text: str) -> Cost:
    """Parse `fp=1,fn=5`, optionally with `tp` and `tn`."""
    from calibrant.thresholds.rates import Cost

    costs: dict[str, float] = {}
    for part in text.split(","):
        key, _, value = (piece.strip() for piece in part.partition("="))
        try:
            costs[_COSTS[key.lower()]] = float(value)
        except (KeyError, ValueError):
            raise InputError(
                f"--cost '{text}': '{part.strip()}' is not a cost: write "
                "--cost fp=1,fn=5, with tp=... or tn=... if right decisions cost something."
            ) from None
    lacking = [key for key in ("fp", "fn") if _COSTS[key] not in costs]
    if lacking:
        what = {"fp": "acting on a negative row", "fn": "missing a positive row"}[lacking[0]]
        raise InputError(
            f"--cost '{text}' does not say what {what} costs: add {lacking[0]}=..., like "
            "--cost fp=1,fn=5."
        )
    if len(costs) < len(text.split(",")):
        raise InputError(f"--cost '{text}' names a cost twice: write each of them once.")
    return Cost(**costs)


def parse_confidence(text: str) -> float | None:
    """Parse `--confidence`: a share, or none for no promise.

    Examples
    --------
    >>> parse_confidence("0.9"), parse_confidence("none")
    (0.9, None)
    """
    if text.strip().lower() == "none":
        return None
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not 0 < value < 1:
        raise InputError(
            f"--confidence must lie between 0 and 1, or be none, got {text}: 0.95 is usual."
        )
    return value


def _parse_objective(
    maximise: str | None, minimise: str | None, cost: Cost | None
) -> tuple[Rate | None, Rate | Cost | None]:
    """Return the rate to maximise and the one to minimise."""
    if maximise is not None and minimise is not None:
        raise InputError(
            f"--maximise {maximise} and --minimise {minimise} exclude each other: "
            "give one of them, and hold the other with --hold."
        )
    if maximise is not None:
        return _parse_rate(maximise, "--maximise", "--minimise"), None
    if minimise is None:
        return None, cost
    if minimise != "cost":
        return None, _parse_rate(minimise, "--minimise", "--maximise")
    if cost is None:
        raise InputError(
            "--minimise cost needs the costs of wrong decisions: add --cost fp=1,fn=5."
        )
    return None, cost


def _parse_rate(name: str, flag: str, other: str) -> Rate:
    """Return a rate that `flag` applies to; `other` is the opposite flag."""
    from calibrant.thresholds.rates import RATES

    wanted = name.strip().lower()
    if wanted not in RATES and wanted != "cost":
        near = get_close_matches(wanted, RATES, n=1)
        meant = f" (did you mean '{near[0]}'?)" if near else ""
        raise InputError(
            f"{flag} {name}: unknown rate{meant}: choose among {', '.join(RATES)} and cost."
        )
    large = wanted in RATES and RATES[wanted].good_when_high
    if large != (flag == "--maximise"):
        size = "large" if large else "small"
        raise InputError(f"{flag} {name}: it should be {size}, so write {other} {name}.")
    return RATES[wanted]


def _cost_target(text: str, match: re.Match[str], cost: Cost | None) -> tuple[str | None, Target]:
    from calibrant.thresholds.rates import Target

    if cost is None:
        raise InputError(
            f"--hold '{text}' needs the costs of wrong decisions: add --cost fp=1,fn=5."
        )
    try:
        value = float(match["value"])
    except ValueError:
        raise InputError(f"--hold '{text}': {match['value']!r} is not a number.") from None
    return match["of"] or None, Target(cost, "<=" if match["sense"] == "<=" else ">=", value)
