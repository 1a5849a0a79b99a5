"""Bodies of requests: their type, their size and what they say, checked in that order."""

from __future__ import annotations

import re
from collections.abc import Mapping
from http import HTTPStatus
from json import JSONDecoder
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from starlette.requests import ClientDisconnect
from starlette.types import Receive

from calibrant.serving.http.problems import Problem, of_validation

__all__ = ["idempotency_key", "read_body", "understood"]

Body = TypeVar("Body", bound=BaseModel)

_KEY = re.compile(r"[\x21-\x7e]{1,128}")


_KINDS = {"application/json": "JSON", "application/x-www-form-urlencoded": "a form"}


async def read_body(
    headers: Mapping[str, str], receive: Receive, limit: int, kind: str = "application/json"
) -> bytes:
    """Return the body of a request; refuse another type, and more than `limit` bytes.

    What a client announces is believed where it is too much; what it sends is counted as well.
    """
    _check_kind(headers, kind)
    announced = headers.get("content-length", "")
    if announced.isdecimal() and int(announced[:20]) > limit:
        raise _too_large(limit)
    body = bytearray()  # many small parts must not be copied again for each
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        part: bytes = message.get("body", b"")
        if len(body) + len(part) > limit:
            raise _too_large(limit)
        more = message.get("more_body", False)
        if not more and not body:
            return part
        body += part
        if not more:
            return bytes(body)


def understood(body: bytes, message: type[Body]) -> Body:
    """Return what a body says; a fault is told with its place."""
    try:
        found = message.model_validate_json(body)
    except ValidationError as error:
        raise of_validation(error) from None
    _LOOK_FOR_REPEATS(body.decode())
    return found


def idempotency_key(headers: Mapping[str, str]) -> str | None:
    """Return the header that tells a retried request; refuse one that cannot be kept."""
    found = headers.get("idempotency-key")
    if found is not None and not _KEY.fullmatch(found):
        raise Problem(
            HTTPStatus.BAD_REQUEST,
            "Idempotency-Key must be 1 to 128 visible ASCII characters, such as a UUID.",
        )
    return found


def _check_kind(headers: Mapping[str, str], kind: str) -> None:
    if headers.get("content-type", "").partition(";")[0].strip().lower() != kind:
        raise Problem(
            HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
            f"the body must be {_KINDS[kind]}: send it with Content-Type: {kind}.",
        )
    if headers.get("content-encoding", "identity").lower() not in ("identity", ""):
        raise Problem(
            HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
            "the body must not be compressed: send it without Content-Encoding.",
            headers={"Accept-Encoding": "identity"},
        )


def _refuse_repeats(pairs: list[tuple[str, Any]]) -> None:
    """Refuse an object that says a thing twice: others may read the first, and we the last."""
    if len(pairs) < 2 or len(dict(pairs)) == len(pairs):
        return
    seen: set[str] = set()
    for name, _ in pairs:
        if name in seen:
            raise Problem(
                HTTPStatus.UNPROCESSABLE_ENTITY,
                f"the name {name[:100]!r} comes twice in one object: give it once.",
            )
        seen.add(name)


_LOOK_FOR_REPEATS = JSONDecoder(
    object_pairs_hook=_refuse_repeats, parse_int=len, parse_float=len
).decode  # numbers are not needed


def _too_large(limit: int) -> Problem:
    return Problem(
        HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
        f"the body is larger than {limit:,} bytes: send fewer or shorter inputs at a time.",
    )
