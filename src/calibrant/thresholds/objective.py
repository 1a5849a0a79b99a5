"""Targets to hold, and the objective optimised among the thresholds that hold them."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations

from calibrant.errors import InputError
from calibrant.thresholds.proof.certify import as_share_claim
from calibrant.thresholds.rates import RATES, Cost, Rate, Target, parse_target


def as_targets(hold: Target | str | Iterable[Target | str]) -> tuple[Target, ...]:
    """Convert `hold` to targets that do not contradict each other, or raise `InputError`."""
    items = hold if isinstance(hold, Iterable) and not isinstance(hold, str) else (hold,)
    targets = tuple(_as_target(item) for item in items)
    for target, other in combinations(targets, 2):
        _check_pair(target, other)
    if sum(isinstance(target.rate, Cost) for target in targets) > 1:
        raise InputError("hold has several costs: give one.")
    return targets


def _as_target(item: object) -> Target:
    if isinstance(item, str):
        of, target = parse_target(item)
        if of is None:
            return target
        raise InputError(f"{item!r} names a class: give the class as positive, or use select_each.")
    if not isinstance(item, Target):
        raise InputError(f"hold must be targets such as precision >= 0.85, got {item!r}.")
    return item


def _check_pair(target: Target, other: Target) -> None:
    """Raise `InputError` if two targets are equivalent or contradict each other."""
    if isinstance(target.rate, Cost) or isinstance(other.rate, Cost):
        return
    if {target.rate.of, other.rate.of} == {"class", "top-label"}:
        return  # different scores: an error raised later
    first, second = as_share_claim(target), as_share_claim(other)
    if first.among == second.among and first.event == second.event:
        raise InputError(f"{target} and {other} are the same condition: give one of them.")
    if first.among == second.among and first.least + second.least > 1:
        raise InputError(f"{target} and {other} contradict each other: no threshold can meet both.")


def resolve_objective(
    targets: tuple[Target, ...],
    maximise: Rate | None,
    minimise: Rate | Cost | None,
    *,
    one_class: bool = True,
) -> tuple[Rate | Cost, int]:
    """Return the objective, and 1 to maximise it or -1 to minimise it.

    `one_class` says that a class was named, so that a held coverage applies to that class.
    """
    if maximise is not None and minimise is not None:
        raise InputError("give maximise or minimise, not both.")
    if maximise is not None and not isinstance(maximise, Rate):
        raise InputError(f"maximise must be a rate such as recall, got {maximise!r}.")
    if minimise is not None and not isinstance(minimise, Rate | Cost):
        raise InputError(f"minimise must be a cost or a rate, got {minimise!r}.")
    if not targets and not isinstance(minimise, Cost):
        raise InputError(
            "hold is empty: give a target, like hold=precision >= 0.85, or minimise a cost."
        )
    objective = maximise or minimise
    if objective is None:
        return _default_objective(targets, one_class)
    if isinstance(objective, Rate):
        _check_objective(objective, targets, "maximise" if maximise else "minimise")
    return objective, 1 if maximise is not None else -1


def _check_objective(objective: Rate, targets: tuple[Target, ...], verb: str) -> None:
    """Raise `InputError` for an objective that is already held, or with the wrong direction."""
    for target in targets:
        if isinstance(target.rate, Rate) and as_share_claim(target).matches_rate(objective):
            raise InputError(
                f"{target.rate.name} is held, so {objective.name} cannot be {verb}d as well: hold "
                "one rate and optimise another, such as holding precision and maximising recall."
            )
    if objective.of != "any" and objective.good_when_high != (verb == "maximise"):
        other = "minimise" if verb == "maximise" else "maximise"
        raise InputError(f"to {verb} {objective.name} makes decisions worse: {other} it.")


def _default_objective(targets: tuple[Target, ...], one_class: bool) -> tuple[Rate | Cost, int]:
    """Return the default objective for these targets, and its sign."""
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
