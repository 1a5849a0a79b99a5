"""Validation of a client's URL and API key."""

from __future__ import annotations

import ipaddress
import os
import re
from typing import Any
from urllib.parse import SplitResult, unquote, urlsplit

from calibrant.errors import InputError

KEY = "CALIBRANT_KEY"  # Environment variable with the API key

_EXAMPLE = "http://127.0.0.1:8000"
_INVALID_CHARACTERS = re.compile(r"[^\x21-\x7e]|[\\\"<>^`{|}]")
_HOST = re.compile(r"(?=[^:]{1,253}$)[\w-]{1,63}(\.[\w-]{1,63})*\.?|[0-9a-f:.]*:[0-9a-f:.]*")
"""A DNS name or an IPv6 address."""

_API_PATH = re.compile(r"/v1(/(predict|outcomes|predictions|bundle|units)(/.*)?)?$")
_KEY = re.compile(r"[\x21-\x7e]{1,512}")


def check_url(url: Any) -> str:
    """Normalise the URL of a service, without a trailing slash; raise `InputError` if invalid.

    It may have a path, for a proxy with several services on one host.
    """
    parts = _split_url(url)
    if parts.username is not None or parts.password is not None:
        # The URL is not shown because it contains a password.
        raise InputError(
            f"url must not contain a user name or password: use {parts.scheme}://{parts.hostname} "
            "and pass the key as key= or CALIBRANT_KEY."
        )
    if parts.query or parts.fragment or url.endswith(("?", "#")):
        raise InputError(
            f"url must be only the address of a service, like {_EXAMPLE}, got {url!r}: remove the "
            "query and fragment (? and #)."
        )
    path = parts.path.rstrip("/")
    if any(step in ("", ".", "..") or "/" in step for step in map(unquote, path.split("/")[1:])):
        raise InputError(f"url must not have empty segments, '.' or '..' in its path, got {url!r}.")
    if _API_PATH.search(path):
        raise InputError(
            f"url must be the address of the service itself, got {url!r}: remove /v1 and "
            "everything after it."
        )
    return f"{parts.scheme}://{parts.netloc.lower()}{path}"


def _split_url(url: Any) -> SplitResult:
    """Split a URL; refuse one without a host or with another scheme than http(s)."""
    if not isinstance(url, str) or _INVALID_CHARACTERS.search(url):
        shown = repr(url)[:80] if "@" not in repr(url) else "a URL with credentials"
        raise InputError(f"url must be an address like {_EXAMPLE}, got {shown}.")
    try:
        parts = urlsplit(url)
        valid = parts.scheme in ("http", "https") and parts.port != 0
        valid = valid and _HOST.fullmatch(parts.hostname or "") is not None
    except ValueError:  # an invalid port or unbalanced brackets
        valid = False
    if not valid:
        shown = repr(url)[:80] if "@" not in url else "a URL with credentials"
        raise InputError(f"url must be an address like {_EXAMPLE}, got {shown}.")
    return parts


def resolve_key(key: Any) -> str | None:
    """Return the key argument or that of the environment, or None; errors never show it."""
    value = os.environ.get(KEY) if key is None else key
    if value is None or value == "":
        return None
    if not isinstance(value, str) or not _KEY.fullmatch(value):
        raise InputError(
            "key must be a token like cal_..., as printed by calibrant keys add: remove spaces, "
            "quotes and line ends."
        )
    return value


def is_local(url: str) -> bool:
    """Return whether a URL is on this machine."""
    return is_loopback(urlsplit(url).hostname or "")


def plaintext_key_warning(url: str, key: str | None) -> str | None:
    """Return a warning if the key would be sent unencrypted, or None.

    Not an error: plain http is usual inside a cluster or behind a proxy that adds TLS.
    """
    if key is None or url.startswith("https:") or is_local(url):
        return None
    return (
        f"the key is sent to {url} unencrypted and can be read on the network: use https unless "
        "you trust the network."
    )


def is_loopback(host: str) -> bool:
    """Return whether a host name or address is loopback."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
