"""What a threshold is asked for on the command line: targets, objective, costs and confidence."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING

from calibrant.errors import InputError

if TYPE_CHECKING:
    from calibrant.thresholds.rates import Cost, Rate, Target

__all__ = ["Asked", "asked_of", "band_of", "confidence_of", "cost_of", "target_of"]

_COSTS = {
    "fp": "false_positive",
    "fn": "false_negative",
    "tp": "true_positive",
    "tn": "true_negative",
}
_COST_TARGET = re.compile(r"\s*(?:(?P<of>.*\S)\s*:)?\s*cost\s*(?P<sense>>=|<=)\s*(?P<value>\S+)\s*")
_EXAMPLE = '--hold "precision>=0.85"'


@dataclass(frozen=True)
class Asked:
    """What the user wants kept, and what is to be made as large or small as possible.

    `hold` has the targets of each class; those that name none stand under None. For a band these
    are two: of the rows acted on, and of the rows cleared.
    """

    hold: Mapping[str | None, Sequence[Target]]
    maximise: Rate | None
    minimise: Rate | Cost | None
    confidence: float | None
    band: bool = False

    @property
    def named(self) -> list[str]:
        """The classes that targets name, in the order of the command line."""
        return [of for of in self.hold if of is not None]

    @property
    def targets(self) -> list[Target]:
        """All targets, whatever their class."""
        return [target for targets in self.hold.values() for target in targets]

    @property
    def cost(self) -> Cost | None:
        """What decisions cost, where that was asked about."""
        from calibrant.thresholds.rates import Cost

        rates = [self.minimise, *(target.rate for target in self.targets)]
        return next((rate for rate in rates if isinstance(rate, Cost)), None)


def asked_of(
    hold: Sequence[str],
    *,
    maximise: str | None,
    minimise: str | None,
    cost: str | None,
    confidence: str,
) -> Asked:
    """Read what was asked for; nothing is settled yet about the classes.

    Examples
    --------
    >>> asked = asked_of(["spam: precision>=0.9"], maximise="recall", minimise=None, cost=None,
    ...     confidence="0.95")
    >>> asked.named, asked.hold["spam"], asked.maximise.name
    (['spam'], [Target('precision>=0.9')], 'recall')
    """
    costs = None if cost is None else cost_of(cost)
    targets: dict[str | None, list[Target]] = {}
    for text in hold:
        of, target = target_of(text, costs)
        targets.setdefault(of, []).append(target)
    if not hold and costs is None and minimise is None:
        raise InputError(f"--hold is missing: say what the threshold must keep, like {_EXAMPLE}.")
    most, least = _objective(maximise, minimise, costs)
    asked = Asked(targets, most, least, confidence_of(confidence))
    if costs is not None and asked.cost is None:
        raise InputError(
            f"--cost {cost} is not used: add --minimise cost, or hold it, like --hold 'cost<=0.3'."
        )
    if None in targets and asked.named:
        raise InputError(
            f"--hold '{targets[None][0]}' names no class, but another one is about "
            f"'{asked.named[0]}': write the class before each of them, like "
            f"'{asked.named[0]}: {targets[None][0]}'."
        )
    return asked


def band_of(act: str | None, clear: str | None, *, confidence: str) -> Asked:
    """Read the two targets of a band.

    Examples
    --------
    >>> band_of("precision>=0.9", "npv>=0.99", confidence="0.95").targets
    [Target('precision>=0.9'), Target('npv>=0.99')]
    """
    if act is None or clear is None:
        lacking, like = ("--act", "precision>=0.9") if act is None else ("--clear", "npv>=0.99")
        raise InputError(
            f"a band has two sides, but {lacking} is missing: add it, like {lacking} '{like}'."
        )
    (of, first), (other, second) = (
        target_of(text, flag=flag) for text, flag in ((act, "--act"), (clear, "--clear"))
    )
    if of is not None and other is not None and of != other:
        raise InputError(
            f"--act is about class '{of}' and --clear about '{other}': a band is about one class."
        )
    return Asked({of or other: [first, second]}, None, None, confidence_of(confidence), band=True)


def target_of(
    text: str, cost: Cost | None = None, *, flag: str = "--hold"
) -> tuple[str | None, Target]:
    """Read one target; a limit of the expected cost needs to know what decisions cost.

    Examples
    --------
    >>> target_of("cost<=0.3", cost_of("fp=1,fn=5"))
    (None, Target('cost<=0.3'))
    """
    from calibrant.thresholds.rates import RATES, parse_target

    found = _COST_TARGET.fullmatch(text)
    if found is not None:
        return _cost_target(text, found, cost)
    if text.rpartition(":")[2].strip().lower() in {*RATES, "cost"}:
        raise InputError(
            f"{flag} '{text}' has no limit: write one, in quotes, for a shell takes >= for itself: "
            f'{flag} "{text}>=0.85".'
        )
    return parse_target(text)


def cost_of(text: str) -> Cost:
    """Read `fp=1,fn=5`, and `tp` and `tn` where right decisions cost something too.

    Examples
    --------
    >>> cost_of("fp=1, fn=5").matrix
    (1.0, 5.0, 0.0, 0.0)
    """
    from calibrant.thresholds.rates import Cost

    found: dict[str, float] = {}
    for part in text.split(","):
        key, _, value = (piece.strip() for piece in part.partition("="))
        try:
            found[_COSTS[key.lower()]] = float(value)
        except (KeyError, ValueError):
            raise InputError(
                f"--cost '{text}': '{part.strip()}' is no cost of a decision: write "
                "--cost fp=1,fn=5, and tp=... or tn=... where right decisions cost something."
            ) from None
    lacking = [key for key in ("fp", "fn") if _COSTS[key] not in found]
    if lacking:
        what = {"fp": "acting on a negative row", "fn": "passing over a positive row"}[lacking[0]]
        raise InputError(
            f"--cost '{text}' does not say what {what} costs: add {lacking[0]}=..., like "
            "--cost fp=1,fn=5."
        )
    if len(found) < len(text.split(",")):
        raise InputError(f"--cost '{text}' names a cost twice: write each of them once.")
    return Cost(**found)


def confidence_of(text: str) -> float | None:
    """Read `--confidence`: a share, or none for a choice that promises nothing.

    Examples
    --------
    >>> confidence_of("0.9"), confidence_of("none")
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


def _objective(
    maximise: str | None, minimise: str | None, cost: Cost | None
) -> tuple[Rate | None, Rate | Cost | None]:
    """Return what is to be as large, and what is to be as small as possible."""
    if maximise is not None and minimise is not None:
        raise InputError(
            f"--maximise {maximise} and --minimise {minimise} may pull in different directions: "
            "give one of them, and hold the other with --hold."
        )
    if maximise is not None:
        return _rate(maximise, "--maximise", "--minimise"), None
    if minimise is None:
        return None, cost
    if minimise != "cost":
        return None, _rate(minimise, "--minimise", "--maximise")
    if cost is None:
        raise InputError(
            "--minimise cost needs to know what a wrong decision costs: add --cost fp=1,fn=5."
        )
    return None, cost


def _rate(name: str, flag: str, other: str) -> Rate:
    """Find a rate that it makes sense to push this way; `other` is the flag of the other way."""
    from calibrant.thresholds.rates import RATES

    wanted = name.strip().lower()
    if wanted not in RATES and wanted != "cost":
        near = get_close_matches(wanted, RATES, n=1)
        meant = f" (did you mean '{near[0]}'?)" if near else ""
        raise InputError(
            f"{flag} {name}: there is no such rate{meant}: choose among {', '.join(RATES)} and "
            "cost."
        )
    large = wanted in RATES and RATES[wanted].good_when_high
    if large != (flag == "--maximise"):
        size = "large" if large else "small"
        raise InputError(f"{flag} {name}: it should be {size}, so write {other} {name}.")
    return RATES[wanted]


def _cost_target(text: str, found: re.Match[str], cost: Cost | None) -> tuple[str | None, Target]:
    from calibrant.thresholds.rates import Target

    if cost is None:
        raise InputError(
            f"--hold '{text}' needs to know what a wrong decision costs: add --cost fp=1,fn=5."
        )
    try:
        value = float(found["value"])
    except ValueError:
        raise InputError(f"--hold '{text}': {found['value']!r} is no number.") from None
    return found["of"] or None, Target(cost, "<=" if found["sense"] == "<=" else ">=", value)
