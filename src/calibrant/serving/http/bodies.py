"""Request bodies: check the content type, then the size, then the content."""

from __future__ import annotations

import re
from collections.abc import Mapping
from http import HTTPStatus
from json import JSONDecoder
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from starlette.requests import ClientDisconnect
from starlette.types import Receive

from calibrant.serving.http.problems import Problem, validation_problem

Body = TypeVar("Body", bound=BaseModel)

_KEY = re.compile(r"[\x21-\x7e]{1,128}")
_KINDS = {"application/json": "JSON", "application/x-www-form-urlencoded": "a form"}


async def read_body(
    headers: Mapping[str, str], receive: Receive, limit: int, kind: str = "application/json"
) -> bytes:
    """Read a request body; refuse other content types and more than `limit` bytes.

    A `Content-Length` above the limit is refused at once; the bytes received are counted as well.
    """
    _check_content_type(headers, kind)
    declared = headers.get("content-length", "")
    if declared.isdecimal() and int(declared[:20]) > limit:
        raise _too_large(limit)
    body = bytearray()  # appending many small chunks must not copy each time
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        chunk: bytes = message.get("body", b"")
        if len(body) + len(chunk) > limit:
            raise _too_large(limit)
        more = message.get("more_body", False)
        if not more and not body:
            return chunk
        body += chunk
        if not more:
            return bytes(body)


def parse_body(body: bytes, message: type[Body]) -> Body:
    """Parse a body into `message`; raise `Problem` with the location of an error."""
    try:
        parsed = message.model_validate_json(body)
    except ValidationError as error:
        raise validation_problem(error) from None
    _CHECK_DUPLICATES(body.decode())
    return parsed


def read_idempotency_key(headers: Mapping[str, str]) -> str | None:
    """Return the `Idempotency-Key` header, or None; refuse one that cannot be stored."""
    key = headers.get("idempotency-key")
    if key is not None and not _KEY.fullmatch(key):
        raise Problem(
            HTTPStatus.BAD_REQUEST,
            "Idempotency-Key must be 1 to 128 visible ASCII characters, such as a UUID.",
        )
    return key


def _check_content_type(headers: Mapping[str, str], kind: str) -> None:
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


def _refuse_duplicates(pairs: list[tuple[str, Any]]) -> None:
    """Refuse duplicate names in an object: parsers disagree on which one counts."""
    if len(pairs) < 2 or len(dict(pairs)) == len(pairs):
        return
    seen: set[str] = set()
    for name, _ in pairs:
        if name in seen:
            raise Problem(
                HTTPStatus.UNPROCESSABLE_ENTITY,
                f"duplicate name {name[:100]!r} in an object: send it once.",
            )
        seen.add(name)


_CHECK_DUPLICATES = JSONDecoder(
    object_pairs_hook=_refuse_duplicates, parse_int=len, parse_float=len
).decode  # the numbers are not used


def _too_large(limit: int) -> Problem:
    return Problem(
        HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
        f"the body exceeds {limit:,} bytes: send fewer or shorter inputs per request.",
    )
