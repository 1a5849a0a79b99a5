"""Matching of classes by name, independent of column order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from calibrant.errors import InputError
from calibrant.scores.labels import BOOLEAN_CODES
from calibrant.scores.read import Scores


def class_order(
    available: Sequence[str], wanted: Sequence[str], *, files: tuple[str, str]
) -> list[int]:
    """Return the position in `available` of each class in `wanted`, or raise `InputError`.

    0 and 1 match false and true. `files` names the origins of both, for messages.
    """
    if len(available) != len(wanted):
        raise InputError(
            f"{files[0]} has scores for {len(available)} classes, but {files[1]} has "
            f"{len(wanted)}: use the same classes for both."
        )
    if set(available) != set(wanted) and are_boolean(available) and are_boolean(wanted):
        available, wanted = (
            [str(BOOLEAN_CODES[name.lower()]) for name in names] for names in (available, wanted)
        )
    if set(available) != set(wanted):
        missing = next(name for name in wanted if name not in available)
        extra = next(name for name in available if name not in wanted)
        raise InputError(
            f"{files[0]} has scores for the class '{extra}' where {files[1]} has '{missing}': "
            "use the same classes for both."
        )
    return [list(available).index(name) for name in wanted]


def are_boolean(classes: Sequence[str]) -> bool:
    """Return whether the classes are 0 and 1, or false and true."""
    return sorted(BOOLEAN_CODES.get(name.lower(), -1) for name in classes) == [0, 1]


def reorder_classes(scores: Scores, classes: tuple[str, ...], *, files: tuple[str, str]) -> Scores:
    """Return scores, which must have logits, with their classes in another order."""
    order = class_order(scores.classes, classes, files=files)
    labels = np.argsort(order)[scores.labels]
    assert scores.logits is not None
    if scores.probs.ndim == 2:
        probs, logits = scores.probs[:, order], scores.logits[:, order]
    elif order == [0, 1]:
        probs, logits = scores.probs, scores.logits
    else:
        probs, logits = 1.0 - scores.probs, -scores.logits
    return replace(scores, labels=labels, probs=probs, logits=logits, classes=classes)
