"""HTTP transport of the client, with bounded retries."""

from __future__ import annotations

import json
import random
import ssl
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import Any

from calibrant.client.address import is_local
from calibrant.distribution import own_version
from calibrant.errors import InputError, MissingExtra, ServiceError

try:
    import httpx2
except ModuleNotFoundError:
    raise MissingExtra("the client", "serve") from None


_RETRY_STATUSES = (429, 502, 503, 504)  # Statuses after which a retry may succeed

_FIRST_WAIT = 0.5
_LONGEST_WAIT = 8.0
"""Seconds between attempts: exponential backoff from the first wait to the longest."""

_LONGEST_RETRY_AFTER = 60.0
"""Longest `Retry-After` in seconds that is followed; beyond it the service is unavailable."""

_MAX_RESPONSE = 1 << 26  # Maximum size of a response in bytes

_MAX_SHOWN = 400


class RequestRefused(InputError):
    """The service refused the content of a request; a retry would not help.

    `errors` are (where, message) of each invalid field.
    """

    def __init__(
        self, message: str, status: int = 400, errors: Sequence[tuple[str, str]] = ()
    ) -> None:
        super().__init__(message)
        self.status, self.errors = status, tuple(errors)


@dataclass(frozen=True)
class _Reply:
    """A raw response; `after` is `Retry-After` in seconds."""

    status: int
    kind: str
    content: bytes
    after: float | None
    location: str

    @property
    def is_json(self) -> bool:
        return self.kind in ("application/json", "application/problem+json")

    def json(self) -> Any:
        try:
            return json.loads(self.content)
        except ValueError:
            return None


@dataclass(frozen=True)
class _Failure:
    """A failed attempt: the problem, the remedy, and `Retry-After` in seconds."""

    problem: str
    remedy: str
    after: float | None = None
    permanent: bool = False


class Transport:
    """Sends requests to one service; threads may share it.

    An attempt takes at most about `timeout` seconds. A request is retried if the connection fails,
    no response or a truncated one arrives, or the status is 429, 502, 503 or 504. The waits double
    from half a second to eight, with random jitter, plus the `Retry-After` of the service.
    """

    def __init__(self, url: str, key: str | None, *, timeout: float, retries: int) -> None:
        self.url = url
        _check_host(url)
        self._key, self._timeout, self._retries = key, timeout, retries
        self._closed = threading.Event()
        headers = {"User-Agent": f"calibrant/{own_version()}", "Accept": "application/json"}
        if key is not None:
            headers["Authorization"] = f"Bearer {key}"
        # Connections expire before the service closes them, which would cost an attempt.
        limits = httpx2.Limits(max_connections=None, keepalive_expiry=2.0)
        self._http = httpx2.Client(
            headers=headers,
            timeout=timeout,
            limits=limits,
            follow_redirects=False,  # the key is for this host alone
            trust_env=not is_local(url),  # a proxy cannot reach this machine's loopback
        )

    def close(self) -> None:
        """Close the connections and cancel pending retries."""
        self._closed.set()
        self._http.close()

    def call(
        self,
        method: str,
        path: str,
        *,
        content: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: float = 0.0,
    ) -> Any:
        """Send a request, with retries, and return the JSON of the response."""
        longest = max(timeout, self._timeout)
        sent = dict(headers or {})
        if content is not None:
            sent["Content-Type"] = "application/json"
        for attempt in range(self._retries + 1):
            reply = self._attempt(method, path, content, sent, longest)
            if not isinstance(reply, _Failure):
                return self._content(reply)
            after = reply.after
            if reply.permanent or attempt == self._retries or (after or 0.0) > _LONGEST_RETRY_AFTER:
                raise self._unavailable(reply, attempt + 1)
            self._closed.wait(_backoff(attempt, after))
        raise AssertionError("the loop returns or raises")

    def status(self, path: str) -> int | None:
        """Send a GET once and return the HTTP status, or None without a response."""
        self._check_open()
        try:
            return self._send("GET", path, None, {}, self._timeout).status
        except httpx2.HTTPError:
            return None

    def _attempt(
        self,
        method: str,
        path: str,
        content: bytes | None,
        headers: Mapping[str, str],
        timeout: float,
    ) -> _Reply | _Failure:
        self._check_open()
        try:
            reply = self._send(method, path, content, headers, timeout)
        except httpx2.TimeoutException:
            what = f"did not respond within {timeout:g} s"
            return _Failure(what, "increase timeout, or try again later")
        except httpx2.HTTPError as error:
            return _connection_failure(error)
        if reply.status in _RETRY_STATUSES:
            detail = self._detail(reply) or HTTPStatus(reply.status).phrase
            after = "" if reply.after is None else f"; retry after {reply.after:.0f} s"
            what = f"is not available ({reply.status}: {detail.rstrip('.')}{after})"
            return _Failure(what, "try again later", reply.after)
        if reply.status == HTTPStatus.OK and reply.is_json and reply.json() is None:
            return _Failure("sends truncated responses", "check the network and proxies between")
        return reply

    def _send(
        self,
        method: str,
        path: str,
        content: bytes | None,
        headers: Mapping[str, str],
        timeout: float,
    ) -> _Reply:
        start, parts, size = time.monotonic(), [], 0
        with self._http.stream(
            method, f"{self.url}{path}", content=content, headers=dict(headers), timeout=timeout
        ) as response:
            for part in response.iter_bytes():
                parts.append(part)
                size += len(part)
                if size > _MAX_RESPONSE:
                    raise httpx2.DecodingError(f"the response exceeds {_MAX_RESPONSE:,} bytes")
                if (
                    time.monotonic() - start > timeout
                ):  # each read is fast, but the response does not end
                    raise httpx2.ReadTimeout("the response does not end")
            kind = response.headers.get("Content-Type", "").partition(";")[0].strip().lower()
            after = _parse_retry_after(response.headers.get("Retry-After"))
            location = response.headers.get("Location", "")
        return _Reply(response.status_code, kind, b"".join(parts), after, location)

    def _content(self, reply: _Reply) -> Any:
        """Return the JSON of a successful response; raise the error of another one."""
        if reply.status == HTTPStatus.OK and reply.is_json:
            return reply.json()
        is_problem = reply.kind == "application/problem+json" and isinstance(reply.json(), dict)
        if 400 <= reply.status < 500 and (is_problem or reply.status in (401, 403, 413)):
            raise self._refusal(reply)
        if reply.status >= 500:
            detail = self._detail(reply) or "no reason given"
            raise ServiceError(
                f"{self.url} failed ({reply.status}: {detail.rstrip('.')}): see its log."
            )
        if 300 <= reply.status < 400:
            where = self._clean(reply.location) or "elsewhere"
            raise ServiceError(
                f"{self.url} redirects to {where}, where the key is not sent: use the address of "
                "the service itself."
            )
        raise ServiceError(
            f"{self.url} sent a response that is not from a calibrant service ({reply.status}, "
            f"{self._clean(reply.kind) or 'no content type'}): check the address."
        )

    def _refusal(self, reply: _Reply) -> RequestRefused:
        """Return the service's message, with the invalid field of the request."""
        content = reply.json()
        listed = content.get("errors") if isinstance(content, dict) else None
        errors = [
            (self._clean(each.get("where", "")), self._clean(each.get("message", "")))
            for each in (listed if isinstance(listed, list) else [])
            if isinstance(each, dict)
        ]
        message = self._detail(reply) or f"{self.url} refused the request ({reply.status})."
        if errors and errors[0][0] not in message:
            message = f"{errors[0][0]}: {message}"
        if len(errors) > 1:
            more = "error" if len(errors) == 2 else "errors"
            message = f"{message.rstrip('.')} (and {len(errors) - 1} more {more})."
        if reply.status == HTTPStatus.UNAUTHORIZED and self._key is None:
            message = f"{message.rstrip('.')}: no key was sent; set CALIBRANT_KEY or pass key."
        return RequestRefused(message, reply.status, errors)

    def _unavailable(self, failure: _Failure, attempts: int) -> ServiceError:
        tried = "" if attempts == 1 else f", tried {attempts} times"
        return ServiceError(f"{self.url} {failure.problem}{tried}: {failure.remedy}.")

    def _detail(self, reply: _Reply) -> str:
        """Return the detail of a problem, or an empty string."""
        content = reply.json() if reply.is_json else None
        return self._clean(content.get("detail", "")) if isinstance(content, dict) else ""

    def _clean(self, text: Any) -> str:
        """Return text from the service as one line, without control characters or the key."""
        line = "".join(c if c.isprintable() else " " for c in str(text)[: 4 * _MAX_SHOWN])
        line = " ".join(line.split())
        line = line if self._key is None else line.replace(self._key, "(the key)")
        return line if len(line) <= _MAX_SHOWN else f"{line[:_MAX_SHOWN]}…"

    def _check_open(self) -> None:
        if self._closed.is_set():
            raise InputError("this client is closed: create a new one.")


def _check_host(url: str) -> None:
    try:
        httpx2.URL(url)
    except httpx2.InvalidURL as error:
        raise InputError(f"url {url!r} has an invalid host: {error}.") from None


def _connection_failure(error: httpx2.HTTPError) -> _Failure:
    """Return why there was no response."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, ssl.SSLError):
        cause = cause.__cause__ or cause.__context__
    reason = " ".join(str(error).split())[:_MAX_SHOWN].rstrip(".") or type(error).__name__
    if cause is not None:
        what = f"cannot be reached over https ({reason})"
        return _Failure(what, "check the address and the service's certificate", permanent=True)
    if isinstance(error, httpx2.ConnectError):
        return _Failure(
            f"cannot be reached ({reason})", "check that calibrant serve is running there"
        )
    return _Failure(f"closed the connection ({reason})", "try again later, or see its log")


def _backoff(attempt: int, after: float | None) -> float:
    """Return the seconds to wait after an attempt: backoff with jitter plus `Retry-After`."""
    backoff = min(_FIRST_WAIT * 2.0**attempt, _LONGEST_WAIT) * random.uniform(0.5, 1.0)
    return backoff + (after or 0.0)


def _parse_retry_after(header: str | None) -> float | None:
    """Parse a Retry-After header, seconds or a date; None if it is neither."""
    if header is None:
        return None
    if header.strip().isdecimal():
        return float(header)
    try:
        return max(0.0, (parsedate_to_datetime(header) - datetime.now(UTC)).total_seconds())
    except (ValueError, TypeError):
        return None
