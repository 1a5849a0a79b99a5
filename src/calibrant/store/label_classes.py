"""Check that labels are classes of the bundle that made the prediction."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from difflib import get_close_matches

from sqlalchemy import Connection, select

from calibrant.errors import UnknownClass
from calibrant.store.records import Label
from calibrant.store.schema import bundles, predictions

__all__ = ["check_classes", "describe_unknown_class"]

_PIECE = 1_000  # ids per query
_SHOWN = 8
"""Classes listed in an error."""


def check_classes(
    connection: Connection, labels: Sequence[Label], other: Collection[str] = ()
) -> None:
    """Raise `UnknownClass` for the first label that is not a class of its bundle."""
    checked = [label for label in labels if label.id not in other]
    bundle_of = _bundles_of(connection, list(dict.fromkeys(label.prediction for label in checked)))
    known = {
        hash: dict.fromkeys(str(name) for name in classes)
        for hash, classes in connection.execute(
            select(bundles.c.hash, bundles.c.classes).where(
                bundles.c.hash.in_(set(bundle_of.values()))
            )
        )
    }
    for label in checked:
        classes = known[bundle_of[label.prediction]]
        if label.label not in classes:
            raise UnknownClass(describe_unknown_class(label.label, list(classes)), label.id)


def describe_unknown_class(label: str, classes: Sequence[str]) -> str:
    """Describe an unknown label, with the closest class and the list of classes.

    Examples
    --------
    >>> print(describe_unknown_class("Defect ", ["defect", "size"]))
    'Defect ' is not a class of the bundle that made the prediction (closest: 'defect'; its
    classes are 'defect', 'size')
    """
    normalised = {name.strip().casefold(): name for name in reversed(classes)}
    near = get_close_matches(label.strip().casefold(), normalised, n=1)
    nearest = f"closest: {normalised[near[0]]!r}; " if near else ""
    listed = ", ".join(repr(name) for name in classes[:_SHOWN])
    more = f" and {len(classes) - _SHOWN:,} more" if len(classes) > _SHOWN else ""
    return (
        f"{label!r} is not a class of the bundle that made the prediction "
        f"({nearest}its classes are {listed}{more})"
    )


def _bundles_of(connection: Connection, ids: Sequence[str]) -> dict[str, str]:
    """Return the hash of the bundle that made each prediction."""
    bundle_of: dict[str, str] = {}
    for start in range(0, len(ids), _PIECE):
        query = select(predictions.c.id, predictions.c.bundle).where(
            predictions.c.id.in_(ids[start : start + _PIECE])
        )
        bundle_of |= dict(connection.execute(query).all())
    return bundle_of
