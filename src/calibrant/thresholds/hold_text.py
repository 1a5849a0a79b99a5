"""Parsing of promises: a class and the targets that its threshold must keep."""

from __future__ import annotations

import re

from calibrant.errors import InputError
from calibrant.thresholds.rates import Target, parse_target


def parse_hold(text: str, *, flag: str | None = None) -> tuple[str | None, tuple[Target, ...]]:
    """Parse `class: rate>=value and rate>=value`; the class is None if it is not named."""
    (of, first), *rest = (parse_target(part) for part in _parts(text))
    for other, target in rest:
        if other not in (None, of):
            separate = f"{other}: {target}"
            remedy = (
                f"give {separate!r} separately"
                if flag is None
                else f"give {separate!r} to a separate {flag}"
            )
            raise InputError(
                f"hold {text!r} names {of!r} and {other!r}, but one threshold acts on one "
                f"class: {remedy}."
            )
    return of, (first, *(target for _, target in rest))


def _parts(text: str) -> list[str]:
    """Split at " and ", except inside the name of a class, where no target precedes it."""
    parts, joint = [""], ""
    for i, piece in enumerate(re.split(r"(\s+and\s+)", text, flags=re.IGNORECASE)):
        if i % 2:
            joint = piece
        elif re.search("[<>]=", parts[-1]):
            parts.append(piece)
        else:
            parts[-1] += joint + piece if i else piece
    return parts
