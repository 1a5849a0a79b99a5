"""The same classes by name, whatever the order of their columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from calibrant.errors import InputError
from calibrant.scores.labels import TRUTH
from calibrant.scores.read import Scores

__all__ = ["are_truths", "class_order", "in_order_of"]


def class_order(have: Sequence[str], want: Sequence[str], *, files: tuple[str, str]) -> list[int]:
    """Return where each class of `want` stands among `have`, or say what differs first.

    0 and 1 are the same classes as false and true. `files` names what `have` and `want` come from.

    Examples
    --------
    >>> class_order(["b", "a"], ["a", "b"], files=("one.csv", "two.csv"))
    [1, 0]
    >>> class_order(["0", "1"], ["False", "True"], files=("one.csv", "two.csv"))
    [0, 1]
    """
    if len(have) != len(want):
        raise InputError(
            f"{files[0]} has scores of {len(have)} classes, but {files[1]} is about {len(want)}: "
            "both must be about the same classes."
        )
    if set(have) != set(want) and are_truths(have) and are_truths(want):
        have, want = ([str(TRUTH[name.lower()]) for name in names] for names in (have, want))
    if set(have) != set(want):
        lacking = next(name for name in want if name not in have)
        extra = next(name for name in have if name not in want)
        raise InputError(
            f"{files[0]} has no scores of the class '{lacking}', which {files[1]} is about, but of "
            f"'{extra}': both must be about the same classes."
        )
    return [list(have).index(name) for name in want]


def are_truths(classes: Sequence[str]) -> bool:
    """Whether the classes are 0 and 1, or false and true, which mean the same."""
    return sorted(TRUTH.get(name.lower(), -1) for name in classes) == [0, 1]


def in_order_of(scores: Scores, classes: tuple[str, ...], *, files: tuple[str, str]) -> Scores:
    """Return scores that were read with their logits with the classes in another order.

    Examples
    --------
    >>> scores = Scores(np.array([0]), np.array([0.8]), ("b", "a"), logits=np.array([1.5]))
    >>> turned = in_order_of(scores, ("a", "b"), files=("one.csv", "two.csv"))
    >>> turned.labels, turned.logits
    (array([1]), array([-1.5]))
    """
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
