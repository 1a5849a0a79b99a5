"""Exceptions raised by Calibrant; each message is one sentence that says how to fix the problem."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = [
    "BundleError",
    "CalibrantError",
    "InputError",
    "MissingExtra",
    "NotFitted",
    "ServiceError",
    "SplitMisuse",
    "StoreError",
    "StoreUnavailable",
    "StoreUnfit",
    "TargetUnreachable",
    "TrainingError",
    "UnknownBundle",
    "UnknownClass",
    "VersionConflict",
]


class CalibrantError(Exception):
    """Base class of all errors that a user can cause and fix."""

    kind = "error"


class InputError(CalibrantError, ValueError):
    """Invalid input: a value, a shape, a column or a file."""

    kind = "input"


class NotFitted(CalibrantError):
    """An estimator was used before it was fitted."""

    kind = "not_fitted"


class TargetUnreachable(CalibrantError):
    """No threshold meets the targets; reports the best reachable value and what is missing.

    Parameters
    ----------
    hold : the targets as text, like "precision>=0.85"
    n, positives : number of labelled rows, and of positive (or correctly predicted) ones among them
    confidence : of the promise; None if only estimates were requested
    of : the class to act on; None if predictions of any class are accepted
    best : the best value that these rows can prove; None if they prove nothing
    best_of : the rate that `best` refers to, when several are to be held
    threshold : the threshold at which `best` is reached
    labels_needed, positives_needed : labelled rows, and positives among them, with which the
        promise can be made 4 times in 5; None if no number of rows is expected to suffice
    why : the reason, without a full stop

    Examples
    --------
    >>> print(TargetUnreachable(hold="recall>=0.9", of="defect", n=40, positives=9,
    ...     labels_needed=129, positives_needed=29, why="9 positives cannot prove it"))
    no threshold can promise recall>=0.9 for class 'defect' with 95 % confidence on 40 labelled rows
    (9 positive): 9 positives cannot prove it; about 129 labelled rows with 29 positives would do 4
    times in 5.
    """

    kind = "target_unreachable"

    def __init__(
        self,
        *,
        hold: str | list[str] | tuple[str, ...],
        n: int,
        positives: int,
        confidence: float | None = 0.95,
        of: Any = None,
        best: float | None = None,
        best_of: str | None = None,
        threshold: float | None = None,
        labels_needed: int | None = None,
        positives_needed: int | None = None,
        why: str = "",
    ) -> None:
        self.hold = (hold,) if isinstance(hold, str) else tuple(hold)
        self.n, self.positives = n, positives
        self.confidence, self.of = confidence, of
        self.best, self.best_of, self.threshold = best, best_of, threshold
        self.labels_needed, self.positives_needed = labels_needed, positives_needed
        self.why = why
        super().__init__(self._sentence())

    @property
    def target(self) -> str:
        """The targets joined into one string."""
        return " and ".join(self.hold)

    def _sentence(self) -> str:
        what = f"for class {self.of!r} " if self.of is not None else ""
        sure = "" if self.confidence is None else f"with {self.confidence * 100:.6g} % confidence "
        verb = "meets" if self.confidence is None else "can promise"
        text = (
            f"no threshold {verb} {self.target} {what}{sure}on {self.n:,} labelled rows "
            f"({self.positives:,} {'predicted correctly' if self.of is None else 'positive'})"
        )
        parts = [self.why] if self.why else []
        if self.best is not None:
            where = "" if self.threshold is None else f" at threshold {self.threshold:.6g}"
            rate = f"{self.best_of} " if self.best_of is not None and len(self.hold) > 1 else ""
            parts.append(f"the best {rate}that these rows prove is {self.best:.4g}{where}")
        if self.labels_needed is not None:
            of_them = self.positives_needed
            among = "" if of_them is None else f" with {of_them:,} positives"
            parts.append(f"about {self.labels_needed:,} labelled rows{among} would do 4 times in 5")
        return text + (": " + "; ".join(parts) if parts else "") + "."

    def __reduce__(self) -> tuple[Any, ...]:
        """Support copying and pickling, since the constructor takes keywords only."""
        names = ["hold", "n", "positives", "confidence", "of", "best", "best_of", "threshold"]
        names += ["labels_needed", "positives_needed", "why"]
        return _rebuild_unreachable, ({name: getattr(self, name) for name in names},)

    def to_dict(self) -> dict[str, Any]:
        """Return the stable JSON shape: keys may be added, never renamed."""
        return {
            "reached": False,
            "best": self.best,
            "best_of": self.best_of,
            "threshold": self.threshold,
            "labels_needed": self.labels_needed,
            "positives_needed": self.positives_needed,
            "why": self.why or str(self),
            "hold": list(self.hold),
            "class": self.of,
            "confidence": self.confidence,
            "n": self.n,
            "positives": self.positives,
        }

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any]) -> TargetUnreachable:
        """Rebuild from `to_dict`."""
        same = ("hold", "n", "positives", "confidence", "best", "threshold", "why")
        state = {name: saved[name] for name in (*same, "labels_needed", "positives_needed")}
        return cls(of=saved["class"], best_of=saved.get("best_of"), **state)


def _rebuild_unreachable(state: dict[str, Any]) -> TargetUnreachable:
    return TargetUnreachable(**state)


class SplitMisuse(CalibrantError):
    """Rows meant for one job (train, steer, choice, calibrate, test) were used for another."""

    kind = "split_misuse"


class TrainingError(CalibrantError, RuntimeError):
    """A training run cannot continue: it diverged, ran out of memory, or has a bad checkpoint."""

    kind = "training"


class MissingExtra(CalibrantError, ImportError):
    """An optional dependency is not installed."""

    kind = "missing_extra"

    def __init__(self, what: str, extra: str) -> None:
        self.what, self.extra = what, extra
        super().__init__(
            f"{what} needs the optional extra '{extra}': pip install 'calibrant[{extra}]'."
        )

    def __reduce__(self) -> tuple[Any, ...]:
        """Support copying and pickling: the error may be raised in another process."""
        return type(self), (self.what, self.extra)


class BundleError(CalibrantError):
    """A bundle is damaged, too new, or refers to something that is not installed."""

    kind = "bundle"


class VersionConflict(InputError):
    """A bundle was changed by someone else in the meantime: reload it, then change it."""

    kind = "version_conflict"


class StoreError(CalibrantError):
    """The prediction store could not be read or written."""

    kind = "store"


class StoreUnavailable(StoreError):
    """The store is unreachable, locked or full; a retry may succeed."""

    kind = "store_unavailable"


class StoreUnfit(StoreError):
    """The database is not a Calibrant store, or is damaged: it must be repaired first.

    The request is not at fault, so a service asks clients to retry later.
    """

    kind = "store_unfit"


class UnknownBundle(StoreError):
    """A prediction refers to a bundle that is not recorded: record the bundle, then retry."""

    kind = "store_unknown_bundle"


class UnknownClass(InputError):
    """A label is not a class of the bundle that made its prediction.

    Parameters
    ----------
    finding : the problem with the label, without the remedy and without a full stop
    id : identifier of the label

    Examples
    --------
    >>> print(UnknownClass("'yess' is not a class", "label-1"))
    'yess' is not a class: correct it, or list the id of the label in `other`.
    """

    kind = "unknown_class"

    def __init__(self, finding: str, id: str) -> None:
        self.finding, self.id = finding, id
        super().__init__(f"{finding}: correct it, or list the id of the label in `other`.")

    def __reduce__(self) -> tuple[Any, ...]:
        """Support copying and pickling."""
        return type(self), (self.finding, self.id)


class ServiceError(CalibrantError):
    """A service did not respond, or its response is not valid."""

    kind = "service"
