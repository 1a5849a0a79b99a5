"""How a client's requests travel: sent again where that may help, and never for ever."""

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

__all__ = ["Refused", "Transport"]

_AGAIN = (429, 502, 503, 504)
"""Answers after which the same request may succeed a moment later."""

_FIRST_WAIT = 0.5
_LONGEST_WAIT = 8.0
"""Seconds between attempts: the first, doubled each time up to the longest."""

_LONGEST_ASKED = 60.0
"""Seconds that a service may ask us to wait (Retry-After); beyond them it counts as away."""

_LARGEST = 1 << 26
"""Bytes of an answer."""

_SHOWN = 400


class Refused(InputError):
    """A service refused a request for what it holds; sending it again would not help.

    Parameters
    ----------
    message : the service's sentence
    status : the HTTP status
    errors : what is wrong where, as (where, message)
    """

    def __init__(
        self, message: str, status: int = 400, errors: Sequence[tuple[str, str]] = ()
    ) -> None:
        super().__init__(message)
        self.status, self.errors = status, tuple(errors)


@dataclass(frozen=True)
class _Reply:
    """An answer as it came: the status, the type and the bytes of the body, and where it points."""

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
    """Why an attempt came to nothing: what is the matter, what to do, how long to wait."""

    matter: str
    remedy: str
    after: float | None = None
    hopeless: bool = False


class Transport:
    """Sends requests to one service; threads may share it.

    Each attempt ends after about `timeout` seconds. A request is sent again where the connection
    failed, no answer came, the answer was cut off, or the service said 429, 502, 503 or 504; the
    waits between double from half a second to eight, are shortened at random so that many clients
    do not come back at once, and are longer where the service asks for it.

    Parameters
    ----------
    url : address of the service, checked
    key : sent with each request, or None
    timeout : seconds for one attempt
    retries : how many times a request is sent again
    """

    def __init__(self, url: str, key: str | None, *, timeout: float, retries: int) -> None:
        self.url = url
        _refuse_host(url)
        self._key, self._timeout, self._retries = key, timeout, retries
        self._closed = threading.Event()
        headers = {"User-Agent": f"calibrant/{own_version()}", "Accept": "application/json"}
        if key is not None:
            headers["Authorization"] = f"Bearer {key}"
        # Connections are given up before the service does so, which would cost an attempt.
        limits = httpx2.Limits(max_connections=None, keepalive_expiry=2.0)
        self._http = httpx2.Client(
            headers=headers,
            timeout=timeout,
            limits=limits,
            follow_redirects=False,  # the key is for this host alone
            trust_env=not is_local(url),  # a proxy does not lead back to this machine
        )

    def close(self) -> None:
        """Give up the connections and whatever still waits for another attempt."""
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
        """Send a request until it is answered, and return the JSON of the answer."""
        longest = max(timeout, self._timeout)
        sent = dict(headers or {})
        if content is not None:
            sent["Content-Type"] = "application/json"
        for attempt in range(self._retries + 1):
            found = self._attempt(method, path, content, sent, longest)
            if not isinstance(found, _Failure):
                return self._content(found)
            asked = found.after
            if found.hopeless or attempt == self._retries or (asked or 0.0) > _LONGEST_ASKED:
                raise self._away(found, attempt + 1)
            self._closed.wait(_pause(attempt, asked))
        raise AssertionError("the loop returns or raises")

    def status(self, path: str) -> int | None:
        """Ask once and return the HTTP status, or None where nothing answers."""
        self._refuse_closed()
        try:
            return self._sent("GET", path, None, {}, self._timeout).status
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
        self._refuse_closed()
        try:
            reply = self._sent(method, path, content, headers, timeout)
        except httpx2.TimeoutException:
            what = f"did not answer within {timeout:g} s"
            return _Failure(what, "give it more time (timeout), or try again later")
        except httpx2.HTTPError as error:
            return _broken(error)
        if reply.status in _AGAIN:
            said = self._detail(reply) or HTTPStatus(reply.status).phrase
            after = "" if reply.after is None else f", and asks to wait {reply.after:.0f} s"
            what = f"is not available ({reply.status}: {said.rstrip('.')}{after})"
            return _Failure(what, "try again later", reply.after)
        if reply.status == HTTPStatus.OK and reply.is_json and reply.json() is None:
            return _Failure("sends answers that are cut off", "look for a fault on the way to it")
        return reply

    def _sent(
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
                if size > _LARGEST:
                    raise httpx2.DecodingError(f"the answer has more than {_LARGEST:,} bytes")
                if time.monotonic() - start > timeout:  # each read is quick, but no end
                    raise httpx2.ReadTimeout("the answer does not end")
            kind = response.headers.get("Content-Type", "").partition(";")[0].strip().lower()
            after = _seconds(response.headers.get("Retry-After"))
            location = response.headers.get("Location", "")
        return _Reply(response.status_code, kind, b"".join(parts), after, location)

    def _content(self, reply: _Reply) -> Any:
        """Return the JSON of a good answer; raise what a bad one says."""
        if reply.status == HTTPStatus.OK and reply.is_json:
            return reply.json()
        own = reply.kind == "application/problem+json" and isinstance(reply.json(), dict)
        if 400 <= reply.status < 500 and (own or reply.status in (401, 403, 413)):
            raise self._refused(reply)
        if reply.status >= 500:
            said = self._detail(reply) or "it does not say why"
            raise ServiceError(
                f"{self.url} failed ({reply.status}: {said.rstrip('.')}): look into its log."
            )
        if 300 <= reply.status < 400:
            where = self._clean(reply.location) or "elsewhere"
            raise ServiceError(
                f"{self.url} points to {where}, and the key is not sent there: give the address "
                "that the service itself has."
            )
        raise ServiceError(
            f"{self.url} answered as no calibrant service does ({reply.status}, "
            f"{self._clean(reply.kind) or 'of no type'}): check the address."
        )

    def _refused(self, reply: _Reply) -> Refused:
        """Return the sentence of the service, with the place in the request where it is wrong."""
        content = reply.json()
        listed = content.get("errors") if isinstance(content, dict) else None
        errors = [
            (self._clean(each.get("where", "")), self._clean(each.get("message", "")))
            for each in (listed if isinstance(listed, list) else [])
            if isinstance(each, dict)
        ]
        said = self._detail(reply) or f"{self.url} refused the request ({reply.status})."
        if errors and errors[0][0] not in said:
            said = f"{errors[0][0]}: {said}"
        if len(errors) > 1:
            more = "fault" if len(errors) == 2 else "faults"
            said = f"{said.rstrip('.')} (and {len(errors) - 1} more {more})."
        if reply.status == HTTPStatus.UNAUTHORIZED and self._key is None:
            said = f"{said.rstrip('.')}: no key was given; set CALIBRANT_KEY, or give key."
        return Refused(said, reply.status, errors)

    def _away(self, failure: _Failure, attempts: int) -> ServiceError:
        tried = "" if attempts == 1 else f", tried {attempts} times"
        return ServiceError(f"{self.url} {failure.matter}{tried}: {failure.remedy}.")

    def _detail(self, reply: _Reply) -> str:
        """Return the sentence that a problem holds, or nothing."""
        content = reply.json() if reply.is_json else None
        return self._clean(content.get("detail", "")) if isinstance(content, dict) else ""

    def _clean(self, text: Any) -> str:
        """Return a text of the other side as one line: no control characters, never the key."""
        said = "".join(c if c.isprintable() else " " for c in str(text)[: 4 * _SHOWN])
        said = " ".join(said.split())
        said = said if self._key is None else said.replace(self._key, "(the key)")
        return said if len(said) <= _SHOWN else f"{said[:_SHOWN]}…"

    def _refuse_closed(self) -> None:
        if self._closed.is_set():
            raise InputError("this client is closed: make a new one.")


def _refuse_host(url: str) -> None:
    try:
        httpx2.URL(url)
    except httpx2.InvalidURL as error:
        raise InputError(f"url {url!r} has no host that could be asked: {error}.") from None


def _broken(error: httpx2.HTTPError) -> _Failure:
    """Return why no answer came."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, ssl.SSLError):
        cause = cause.__cause__ or cause.__context__
    reason = " ".join(str(error).split())[:_SHOWN].rstrip(".") or type(error).__name__
    if cause is not None:
        what = f"is not reached over https ({reason})"
        return _Failure(what, "check the address, and the service's certificate", hopeless=True)
    if isinstance(error, httpx2.ConnectError):
        return _Failure(f"cannot be reached ({reason})", "see whether calibrant serve runs there")
    return _Failure(f"broke off ({reason})", "try again later, or look into its log")


def _pause(attempt: int, asked: float | None) -> float:
    """Return the seconds to wait after an attempt: our own and those that the service asks for."""
    own = min(_FIRST_WAIT * 2.0**attempt, _LONGEST_WAIT) * random.uniform(0.5, 1.0)
    return own + (asked or 0.0)


def _seconds(header: str | None) -> float | None:
    """Read a Retry-After header: seconds or a date; what is neither counts as none.

    Examples
    --------
    >>> _seconds("2"), _seconds("soon")
    (2.0, None)
    """
    if header is None:
        return None
    if header.strip().isdecimal():
        return float(header)
    try:
        return max(0.0, (parsedate_to_datetime(header) - datetime.now(UTC)).total_seconds())
    except (ValueError, TypeError):
        return None
