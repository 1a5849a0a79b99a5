"""What a bundle decides: for each row act or abstain, on which class, and by which point."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.inputs import FloatArray, IntArray

__all__ = ["Decisions", "Verdict", "decided"]

WORDS = ("act", "clear", "abstain")


@dataclass(frozen=True, eq=False)
class Decisions:
    """Decisions about n rows.

    Parameters
    ----------
    classes : names behind the columns of `probabilities`
    label : (n,) the most probable class
    probabilities : (n, K), calibrated where the bundle has a calibrator
    decision : (n,) `act`; `abstain`, for a person to decide; or, below a band, `clear`
    acted_as : (n,) the class that is acted on, None where the decision is not to act
    action : (n,) the name of that class's action, None where it has none
    operating_point : (n,) position of the operating point that decided, -1 where the bundle
        abstains
    rules : names of the thresholds that have a say
    acts : (n, rules) whether each of them is for the row to be acted on (or cleared); a promise is
        about all rows of its column, whichever rule decided
    out_of_scope : (n,) whether the row is unlike those the model knows; such a row is left to a
        person, and no rule is for it
    scope_checked : whether there is a rule that tells rows out of scope

    Examples
    --------
    >>> made = Decisions(("no", "yes"), np.array(["yes"]), np.array([[0.1, 0.9]]),
    ...     np.array(["act"]), np.array(["yes"]), np.array(["refund"]), np.array([0]),
    ...     ("act on 'yes'",), np.array([[True]]), np.array([False]))
    >>> print(made)
    1 row: 1 act, 0 clear, 0 abstain.
    >>> made.to_rows()[0]["probabilities"]
    {'no': 0.1, 'yes': 0.9}
    """

    classes: tuple[Any, ...]
    label: NDArray[Any]
    probabilities: FloatArray
    decision: NDArray[np.str_]
    acted_as: NDArray[Any]
    action: NDArray[Any]
    operating_point: IntArray
    rules: tuple[str, ...]
    acts: NDArray[np.bool_]
    out_of_scope: NDArray[np.bool_]
    scope_checked: bool = False

    def __len__(self) -> int:
        return len(self.label)

    @property
    def counts(self) -> dict[str, int]:
        """How many rows got each decision."""
        return {word: int(np.count_nonzero(self.decision == word)) for word in WORDS}

    def to_rows(self) -> list[dict[str, Any]]:
        """Return one plain dictionary for each row, ready for JSON."""
        names = [str(name) for name in self.classes]
        return [
            {
                "label": label,
                "probabilities": dict(zip(names, probs, strict=True)),
                "decision": decision,
                "acted_as": acted_as,
                "action": action,
                "operating_point": point if point >= 0 else None,
                "out_of_scope": outside,
            }
            for label, probs, decision, acted_as, action, point, outside in zip(
                self.label.tolist(),
                self.probabilities.tolist(),
                self.decision.tolist(),
                self.acted_as.tolist(),
                self.action.tolist(),
                self.operating_point.tolist(),
                self.out_of_scope.tolist(),
                strict=True,
            )
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return the decisions as plain JSON values."""
        return {
            "n": len(self),
            "decisions": self.counts,
            "classes": list(self.classes),
            "rows": self.to_rows(),
        }

    def __str__(self) -> str:
        parts = ", ".join(f"{n:,} {word}" for word, n in self.counts.items())
        outside = int(np.count_nonzero(self.out_of_scope))
        scope = f" ({outside:,} out of scope)" if self.scope_checked else ""
        return f"{len(self):,} {'row' if len(self) == 1 else 'rows'}: {parts}{scope}."

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"


@dataclass(frozen=True)
class Verdict:
    """What one rule says about the rows.

    Parameters
    ----------
    entry : position of its operating point
    rule : its name
    acts : (n,) which rows it is about
    of : (n,) position of the class they are taken as, -1 where they are cleared
    clears : whether it clears rows
    """

    entry: int
    rule: str
    acts: NDArray[np.bool_]
    of: IntArray
    clears: bool


def decided(
    classes: Sequence[Any],
    probabilities: FloatArray,
    verdicts: Sequence[Verdict],
    *,
    actions: Sequence[str | None],
    out_of_scope: NDArray[np.bool_] | None = None,
) -> Decisions:
    """Choose for each row the rule that decides: of those that act, the most probable class's.

    A row is cleared only where no rule acts on it. A row out of scope is neither acted on nor
    cleared.
    """
    n, rows = len(probabilities), np.arange(len(probabilities))
    outside = np.zeros(n, dtype=bool) if out_of_scope is None else out_of_scope
    verdicts = [replace(each, acts=each.acts & ~outside) for each in verdicts]
    entry, column = np.full(n, -1), np.full(n, -1)
    best = np.full(n, -1.0)
    for verdict in (each for each in verdicts if not each.clears):
        prob = probabilities[rows, verdict.of]
        better = verdict.acts & (prob > best)
        entry[better], column[better], best[better] = (
            verdict.entry, verdict.of[better], prob[better],
        )  # fmt: skip
    for verdict in (each for each in verdicts if each.clears):
        entry[verdict.acts & (entry < 0)] = verdict.entry
    act, clear, abstain = WORDS
    return Decisions(
        classes=tuple(classes),
        label=_array(classes)[probabilities.argmax(axis=1)],
        probabilities=probabilities,
        decision=np.where(column >= 0, act, np.where(entry >= 0, clear, abstain)),
        acted_as=_objects([*classes, None])[column],
        action=_objects([*actions, None])[column],
        operating_point=entry,
        rules=tuple(verdict.rule for verdict in verdicts),
        acts=np.column_stack([verdict.acts for verdict in verdicts]),
        out_of_scope=outside,
        scope_checked=out_of_scope is not None,
    )


def _objects(values: Sequence[Any]) -> NDArray[Any]:
    out = np.empty(len(values), dtype=object)
    out[:] = values
    return out


def _array(names: Sequence[Any]) -> NDArray[Any]:
    """Return names as an array of their own type; mixed ones stay as they are."""
    same = len({type(name) for name in names}) == 1
    return np.asarray(list(names)) if same else _objects(names)
