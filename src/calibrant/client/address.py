"""The address and the key that a client was given, checked before anything is sent."""

from __future__ import annotations

import ipaddress
import os
import re
from typing import Any
from urllib.parse import SplitResult, unquote, urlsplit

from calibrant.errors import InputError

__all__ = ["KEY", "checked_url", "given_key", "is_local", "is_loopback", "open_key_note"]

KEY = "CALIBRANT_KEY"
"""Environment variable that holds the key."""

_EXAMPLE = "http://127.0.0.1:8000"
_ODD = re.compile(r"[^\x21-\x7e]|[\\\"<>^`{|}]")
_HOST = re.compile(r"(?=[^:]{1,253}$)[\w-]{1,63}(\.[\w-]{1,63})*\.?|[0-9a-f:.]*:[0-9a-f:.]*")
"""A name of labels that the network can look up, or an address of IPv6."""

_INSIDE = re.compile(r"/v1(/(predict|outcomes|predictions|bundle|units)(/.*)?)?$")
_KEY = re.compile(r"[\x21-\x7e]{1,512}")


def checked_url(url: Any) -> str:
    """Return the address of a service without a slash at its end; refuse what is none.

    It may have a path, where a proxy serves several things at one host.

    Examples
    --------
    >>> checked_url("HTTPS://models.example.org/returns/")
    'https://models.example.org/returns'
    """
    parts = _parts(url)
    if parts.username is not None or parts.password is not None:
        # The address is not shown: it holds a password.
        raise InputError(
            f"url must not hold a name or a password: give {parts.scheme}://{parts.hostname} and "
            "the key as key= or CALIBRANT_KEY."
        )
    if parts.query or parts.fragment or url.endswith(("?", "#")):
        raise InputError(
            f"url must be the address of a service alone, like {_EXAMPLE}, got {url!r}: leave out "
            "what stands after ? and #."
        )
    path = parts.path.rstrip("/")
    if any(step in ("", ".", "..") or "/" in step for step in map(unquote, path.split("/")[1:])):
        raise InputError(f"url must not have empty steps, '.' or '..' in its path, got {url!r}.")
    if _INSIDE.search(path):
        raise InputError(
            f"url must be the address of the service itself, got {url!r}: leave out /v1 and what "
            "follows."
        )
    return f"{parts.scheme}://{parts.netloc.lower()}{path}"


def _parts(url: Any) -> SplitResult:
    """Split an address; refuse what has no host or another scheme."""
    if not isinstance(url, str) or _ODD.search(url):
        shown = repr(url)[:80] if "@" not in repr(url) else "another one"
        raise InputError(f"url must be an address like {_EXAMPLE}, got {shown}.")
    try:
        parts = urlsplit(url)
        known = parts.scheme in ("http", "https") and parts.port != 0
        known = known and _HOST.fullmatch(parts.hostname or "") is not None
    except ValueError:  # a port that is none, or brackets that do not match
        known = False
    if not known:
        shown = repr(url)[:80] if "@" not in url else "another one"
        raise InputError(f"url must be an address like {_EXAMPLE}, got {shown}.")
    return parts


def given_key(key: Any) -> str | None:
    """Return the key that was given or that of the environment, or None; never shows it."""
    found = os.environ.get(KEY) if key is None else key
    if found is None or found == "":
        return None
    if not isinstance(found, str) or not _KEY.fullmatch(found):
        raise InputError(
            "key must be a word like cal_..., as calibrant keys add printed it: look for spaces, "
            "quotes or a line end that came along."
        )
    return found


def is_local(url: str) -> bool:
    """Tell whether an address is one of this machine.

    Examples
    --------
    >>> is_local("http://localhost:8000"), is_local("http://10.0.0.7:8000")
    (True, False)
    """
    return is_loopback(urlsplit(url).hostname or "")


def open_key_note(url: str, key: str | None) -> str | None:
    """Return a sentence where a key travels so that others on the way can read it.

    It is no refusal: inside a cluster or behind a proxy that adds TLS, plain http is usual.
    """
    if key is None or url.startswith("https:") or is_local(url):
        return None
    return (
        f"the key goes to {url} without encryption, so others on the way can read it: use https "
        "unless the network is yours."
    )


def is_loopback(host: str) -> bool:
    """Tell whether only this machine reaches a host name or address.

    Examples
    --------
    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
