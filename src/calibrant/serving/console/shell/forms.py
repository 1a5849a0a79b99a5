"""Form and query fields, parsed and checked one by one."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from http import HTTPStatus
from urllib.parse import parse_qsl

from starlette.requests import Request

from calibrant.serving.http.problems import Problem

_MAX_FIELDS = 200


class Form:
    """Fields by name, each read as its type or refused with a `Problem`.

    An empty field counts as absent, because browsers send those too.
    """

    def __init__(self, fields: Mapping[str, str]) -> None:
        self._fields = dict(fields)

    @classmethod
    def from_body(cls, body: bytes) -> Form:
        """Parse a URL-encoded form body."""
        try:
            pairs = parse_qsl(
                body.decode("ascii"), keep_blank_values=True, errors="strict",
                max_num_fields=_MAX_FIELDS,
            )  # fmt: skip
        except ValueError:
            raise Problem(
                HTTPStatus.BAD_REQUEST, "the form cannot be read: reload its page."
            ) from None
        return cls(_unique_fields(pairs))

    @classmethod
    def from_query(cls, request: Request) -> Form:
        """Parse the query string of a request."""
        return cls(_unique_fields(request.query_params.multi_items()))

    @property
    def fields(self) -> dict[str, str]:
        """All fields as typed, to show them again."""
        return dict(self._fields)

    def raw(self, name: str, *, max_length: int = 1_000_000) -> str:
        """Return a field as typed, including white space; empty if it is absent."""
        value = self._fields.get(name, "").replace("\r\n", "\n")
        if len(value) > max_length:
            raise _field_problem(
                name, f"{len(value):,} characters are too many, the limit is {max_length:,}"
            )
        return value

    def text(self, name: str, *, max_length: int = 200) -> str | None:
        """Return a field stripped of surrounding white space, or None if it is empty."""
        value = self.raw(name, max_length=max_length).strip()
        if any(char < " " and char not in "\n\t" for char in value):
            raise _field_problem(name, "control characters are not allowed")
        return value or None

    def number(self, name: str, *, low: float = -math.inf, high: float = math.inf) -> float | None:
        """Return a number from `low` to `high`, or None if the field is empty."""
        text = self.text(name)
        if text is None:
            return None
        try:
            value = float(text)
        except ValueError:
            raise _field_problem(name, f"{text[:40]!r} is not a number") from None
        if not (math.isfinite(value) and low <= value <= high):
            raise _field_problem(
                name, f"expected a number from {low:g} to {high:g}, got {text[:40]}"
            )
        return value

    def choice(self, name: str, options: Iterable[str]) -> str | None:
        """Return one of `options`, or None if the field is empty."""
        value = self.text(name)
        known = list(options)
        if value is None or value in known:
            return value
        listed = ", ".join(repr(option) for option in known[:8])
        raise _field_problem(name, f"{value[:40]!r} is not among {listed}")


def _unique_fields(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return fields by name; a repeated field is refused as ambiguous."""
    fields: dict[str, str] = {}
    for name, value in pairs:
        if name in fields:
            raise Problem(
                HTTPStatus.BAD_REQUEST, f"the field {name[:100]!r} occurs twice: send it once."
            )
        fields[name] = value
    return fields


def _field_problem(name: str, message: str) -> Problem:
    """Return the problem of a field; `errors` names the field it belongs to."""
    errors = [{"where": name, "message": message}]
    return Problem(HTTPStatus.UNPROCESSABLE_ENTITY, f"{name}: {message}.", errors=errors)
