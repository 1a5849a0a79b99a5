"""Visits to the console: a signed cookie that names the key, and the token of its forms."""

from __future__ import annotations

import hmac
import re
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass

__all__ = ["LIFETIME", "Session", "Sessions"]

LIFETIME = 8 * 3600
"""Seconds that a visit lasts: a working day."""

_FORM = re.compile(r"([0-9a-f]{32})\.([a-z0-9]{12}|-)\.([0-9]{1,12})\.([0-9a-f]{64})")


@dataclass(frozen=True, slots=True)
class Session:
    """One visit.

    Parameters
    ----------
    id : 128 random bits as text
    key : id of the key that the visitor showed; None for one who showed none
    expires : when it ends, in seconds since 1970
    """

    id: str
    key: str | None
    expires: int

    def ended(self, now: float) -> bool:
        """Tell whether it is over."""
        return now >= self.expires


class Sessions:
    """Makes sessions, and tells its own cookies from forged ones.

    Nothing is kept: a cookie holds the session, and only who knows the secret can sign one. It
    never holds the key's secret.

    Parameters
    ----------
    sign : returns the signature of bytes, for a purpose of at most 16 bytes

    Examples
    --------
    >>> import hashlib
    >>> def sign(data, *, purpose):
    ...     return hashlib.blake2b(data, key=b"secret", digest_size=32, person=purpose).hexdigest()
    >>> sessions = Sessions(sign)
    >>> session = sessions.begin("abcdefghijkl", now=1000)
    >>> cookie = sessions.sealed(session)
    >>> sessions.opened(cookie) == session, sessions.opened(cookie[:-1] + "x") is None
    (True, True)
    """

    def __init__(self, sign: Callable[..., str]) -> None:
        self._sign = sign

    def begin(self, key: str | None, *, now: float | None = None) -> Session:
        """Return a new session."""
        begin = time.time() if now is None else now
        return Session(secrets.token_hex(16), key, int(begin) + LIFETIME)

    def sealed(self, session: Session) -> str:
        """Return the cookie of a session."""
        content = f"{session.id}.{session.key or '-'}.{session.expires}"
        return f"{content}.{self._sign(content.encode(), purpose=b'console visit')}"

    def opened(self, cookie: str) -> Session | None:
        """Return the session of a cookie, also of one that has ended; None where it is forged."""
        found = _FORM.fullmatch(cookie)
        if found is None:
            return None
        id, key, expires, _ = found.groups()
        session = Session(id, None if key == "-" else key, int(expires))
        return session if hmac.compare_digest(self.sealed(session), cookie) else None

    def csrf(self, session: Session) -> str:
        """Return the token that forms of a session carry: no other page can know it."""
        return self._sign(session.id.encode(), purpose=b"console form")

    def is_csrf(self, session: Session, given: str) -> bool:
        """Tell whether a form's token is that of the session."""
        return hmac.compare_digest(self.csrf(session).encode(), given.encode())
