"""Whether labels are classes of the bundle that made their prediction, or slips."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from difflib import get_close_matches

from sqlalchemy import Connection, select

from calibrant.errors import UnknownClass
from calibrant.store.records import Label
from calibrant.store.schema import bundles, predictions

__all__ = ["check_classes", "unknown_class"]

_PIECE = 1_000  # ids a query
_SHOWN = 8
"""Classes that an error lists."""


def check_classes(
    connection: Connection, labels: Sequence[Label], other: Collection[str] = ()
) -> None:
    """Raise UnknownClass for the first label that is no class of its prediction's bundle."""
    strict = [told for told in labels if told.id not in other]
    made_by = _bundles_of(connection, list(dict.fromkeys(told.prediction for told in strict)))
    known = {
        hash: dict.fromkeys(str(name) for name in classes)
        for hash, classes in connection.execute(
            select(bundles.c.hash, bundles.c.classes).where(
                bundles.c.hash.in_(set(made_by.values()))
            )
        )
    }
    for told in strict:
        classes = known[made_by[told.prediction]]
        if told.label not in classes:
            raise UnknownClass(unknown_class(told.label, list(classes)), told.id)


def unknown_class(label: str, classes: Sequence[str]) -> str:
    """Say that a label is no class, which class is the nearest, and which ones there are.

    Examples
    --------
    >>> print(unknown_class("Defect ", ["defect", "size"]))
    'Defect ' is no class of the bundle that made the prediction (the nearest is 'defect'; its
    classes are 'defect', 'size')
    """
    plain = {name.strip().casefold(): name for name in reversed(classes)}
    near = get_close_matches(label.strip().casefold(), plain, n=1)
    nearest = f"the nearest is {plain[near[0]]!r}; " if near else ""
    listed = ", ".join(repr(name) for name in classes[:_SHOWN])
    more = f" and {len(classes) - _SHOWN:,} more" if len(classes) > _SHOWN else ""
    return (
        f"{label!r} is no class of the bundle that made the prediction "
        f"({nearest}its classes are {listed}{more})"
    )


def _bundles_of(connection: Connection, ids: Sequence[str]) -> dict[str, str]:
    """Return the hash of the bundle that made each prediction."""
    found: dict[str, str] = {}
    for start in range(0, len(ids), _PIECE):
        asked = select(predictions.c.id, predictions.c.bundle).where(
            predictions.c.id.in_(ids[start : start + _PIECE])
        )
        found |= dict(connection.execute(asked).all())
    return found
