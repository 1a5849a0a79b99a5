"""What a visitor filled in: fields of a form or of an address, checked one by one."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from http import HTTPStatus
from urllib.parse import parse_qsl

from starlette.requests import Request

from calibrant.serving.http.problems import Problem

__all__ = ["Form"]

_MOST_FIELDS = 200


class Form:
    """Fields by their names; each reads as what it should be, or is refused in one sentence.

    A field that is empty counts as one that is not there: browsers send those too.

    Parameters
    ----------
    fields : names and texts

    Examples
    --------
    >>> form = Form({"score": "0.5", "unit": " "})
    >>> form.number("score"), form.text("unit"), form.choice("decision", ["act", "clear"])
    (0.5, None, None)
    """

    def __init__(self, fields: Mapping[str, str]) -> None:
        self._fields = dict(fields)

    @classmethod
    def of_body(cls, body: bytes) -> Form:
        """Read the body of a form that was sent."""
        try:
            pairs = parse_qsl(
                body.decode("ascii"), keep_blank_values=True, errors="strict",
                max_num_fields=_MOST_FIELDS,
            )  # fmt: skip
        except ValueError:
            raise Problem(
                HTTPStatus.BAD_REQUEST, "the form cannot be read: load its page again."
            ) from None
        return cls(_once(pairs))

    @classmethod
    def of_query(cls, request: Request) -> Form:
        """Read the fields of an address."""
        return cls(_once(request.query_params.multi_items()))

    @property
    def fields(self) -> dict[str, str]:
        """All fields as they were typed, to show them again."""
        return dict(self._fields)

    def raw(self, name: str, *, most: int = 1_000_000) -> str:
        """Return a text as it was typed, with its spaces and lines; empty where it is not there."""
        found = self._fields.get(name, "").replace("\r\n", "\n")
        if len(found) > most:
            raise _wrong(
                name, f"{len(found):,} characters are too many, at most {most:,} are taken"
            )
        return found

    def text(self, name: str, *, most: int = 200) -> str | None:
        """Return a text without spaces around it; None where it is empty."""
        found = self.raw(name, most=most).strip()
        if any(char < " " and char not in "\n\t" for char in found):
            raise _wrong(name, "control characters are not allowed")
        return found or None

    def number(self, name: str, *, low: float = -math.inf, high: float = math.inf) -> float | None:
        """Return a number from `low` to `high`; None where the field is empty."""
        found = self.text(name)
        if found is None:
            return None
        try:
            value = float(found)
        except ValueError:
            raise _wrong(name, f"{found[:40]!r} is not a number") from None
        if not (math.isfinite(value) and low <= value <= high):
            raise _wrong(name, f"give a number from {low:g} to {high:g}, got {found[:40]}")
        return value

    def choice(self, name: str, options: Iterable[str]) -> str | None:
        """Return one of some texts; None where the field is empty."""
        found = self.text(name)
        known = list(options)
        if found is None or found in known:
            return found
        listed = ", ".join(repr(each) for each in known[:8])
        raise _wrong(name, f"{found[:40]!r} is not among {listed}")


def _once(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return fields by name; one that comes twice is refused, for either could be meant."""
    found: dict[str, str] = {}
    for name, value in pairs:
        if name in found:
            raise Problem(
                HTTPStatus.BAD_REQUEST, f"the field {name[:100]!r} comes twice: give it once."
            )
        found[name] = value
    return found


def _wrong(name: str, said: str) -> Problem:
    """Return the problem of a field; `errors` tells pages beside which field to say it."""
    errors = [{"where": name, "message": said}]
    return Problem(HTTPStatus.UNPROCESSABLE_ENTITY, f"{name}: {said}.", errors=errors)
