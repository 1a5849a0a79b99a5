"""What is to be held, and what is made best among the thresholds that hold it."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations

from calibrant.errors import InputError
from calibrant.thresholds.proof.certify import claim_of
from calibrant.thresholds.rates import RATES, Cost, Rate, Target, parse_target

__all__ = ["as_targets", "objective_of"]


def as_targets(hold: Target | str | Iterable[Target | str]) -> tuple[Target, ...]:
    """Check what is to be held: targets, or their text, that do not contradict each other."""
    given = hold if isinstance(hold, Iterable) and not isinstance(hold, str) else (hold,)
    targets = tuple(_as_target(target) for target in given)
    for one, other in combinations(targets, 2):
        _check_pair(one, other)
    if sum(isinstance(target.rate, Cost) for target in targets) > 1:
        raise InputError("hold has several costs: give one.")
    return targets


def _as_target(given: object) -> Target:
    if isinstance(given, str):
        of, target = parse_target(given)
        if of is None:
            return target
        raise InputError(f"{given!r} names a class: give it as positive, or take select_each.")
    if not isinstance(given, Target):
        raise InputError(f"hold must be targets such as precision >= 0.85, got {given!r}.")
    return given


def _check_pair(one: Target, other: Target) -> None:
    """Refuse two targets that say the same, or that no threshold can meet together."""
    if isinstance(one.rate, Cost) or isinstance(other.rate, Cost):
        return
    if {one.rate.of, other.rate.of} == {"class", "top-label"}:
        return  # not about the same scores, which is refused later
    first, second = claim_of(one), claim_of(other)
    if first.among == second.among and first.event == second.event:
        raise InputError(f"{one} and {other} say the same thing twice: give one of them.")
    if first.among == second.among and first.least + second.least > 1:
        raise InputError(f"{one} and {other} contradict each other: no threshold has both.")


def objective_of(
    targets: tuple[Target, ...],
    maximise: Rate | None,
    minimise: Rate | Cost | None,
    *,
    one_class: bool = True,
) -> tuple[Rate | Cost, int]:
    """Return what to make best, and 1 for large or -1 for small.

    `one_class` says that a class was named, so that a held coverage is about acting on it.
    """
    if maximise is not None and minimise is not None:
        raise InputError("give maximise or minimise, not both.")
    if maximise is not None and not isinstance(maximise, Rate):
        raise InputError(f"maximise must be a rate such as recall, got {maximise!r}.")
    if minimise is not None and not isinstance(minimise, Rate | Cost):
        raise InputError(f"minimise must be a cost or a rate, got {minimise!r}.")
    if not targets and not isinstance(minimise, Cost):
        raise InputError(
            "hold is empty: say what to promise, like hold=precision >= 0.85, or minimise a cost."
        )
    given = maximise or minimise
    if given is None:
        return _usual_objective(targets, one_class)
    if isinstance(given, Rate):
        _check_objective(given, targets, "maximise" if maximise else "minimise")
    return given, 1 if maximise is not None else -1


def _check_objective(given: Rate, targets: tuple[Target, ...], verb: str) -> None:
    """Refuse to make best what is held already, or an error large."""
    for target in targets:
        if isinstance(target.rate, Rate) and claim_of(target).says_the_same_as(given):
            raise InputError(
                f"{target.rate.name} is held, so {given.name} is both held and {verb}d: hold one "
                "rate and make another one best, such as holding precision and maximising recall."
            )
    if given.of != "any" and given.good_when_high != (verb == "maximise"):
        other = "minimise" if verb == "maximise" else "maximise"
        raise InputError(f"to {verb} {given.name} makes decisions worse: {other} it.")


def _usual_objective(targets: tuple[Target, ...], one_class: bool) -> tuple[Rate | Cost, int]:
    """Return what people want most when these are held, and whether large or small."""
    cost = next((target.rate for target in targets if isinstance(target.rate, Cost)), None)
    if cost is not None:
        return cost, -1
    held = {target.rate.name for target in targets}
    if "accuracy" in held:
        return RATES["coverage"], 1
    if held <= {"coverage", "abstention"} and not one_class:
        return RATES["accuracy"], 1
    if held & {"precision", "false_discovery", "specificity", "fpr"} and "recall" not in held:
        return RATES["recall"], 1
    return RATES["specificity" if held == {"npv"} else "precision"], 1
