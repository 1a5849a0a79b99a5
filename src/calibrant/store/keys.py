"""API keys: stored as a hash, checked in constant time, revocable.

A key is `cal_<id>_<secret>`. The id is public and identifies the key in lists and logs. The secret
has 256 random bits, and only its SHA-256 is stored. Slow hashes protect guessable passwords; for
256 random bits a fast one is as safe.
"""

from __future__ import annotations

import hashlib
import hmac
import math
import re
import secrets
import string
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import RowMapping, bindparam, insert, or_, select, update

from calibrant.errors import InputError, StoreError
from calibrant.store.database import Database
from calibrant.store.records import ROLES, Key
from calibrant.store.schema import keys

TOKEN = re.compile(r"cal_([a-z0-9]{12})_([0-9a-f]{64})")
"""Form of a token: the id of its key, and the secret."""

_DUMMY_TOKEN = f"cal_{'0' * 12}_{'0' * 64}"
"""Dummy key, so that malformed tokens take constant time."""

_ID = re.compile(r"[a-z0-9]{12}")  # the database refuses some other texts
_ALPHABET = string.ascii_lowercase + string.digits
_LONGEST_NAME = 200


class KeyRing:
    """API keys of a store.

    Parameters
    ----------
    database : database with the tables of the store

    Examples
    --------
    >>> import tempfile
    >>> from calibrant.store import Store
    >>> with Store.open(tempfile.mkdtemp() + "/calibrant.db") as store:
    ...     key, token = store.keys.add("shop", "predict", rate=600)
    ...     store.keys.check(token) == key, store.keys.check(token[:-1] + "x")
    (True, None)
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, name: str, role: str, *, rate: float | None = None) -> tuple[Key, str]:
        """Create a key; return it with the token, which is not stored.

        Parameters
        ----------
        name : name of the client; not unique
        role : `predict`, `label` or `admin`
        rate : requests per minute; None for no limit
        """
        check_key(name, role, rate)
        id = "".join(secrets.choice(_ALPHABET) for _ in range(12))
        secret = secrets.token_hex(32)
        key = Key(id, name, role, rate, datetime.now(UTC), None, None)
        with self._database.write() as connection:
            connection.execute(
                insert(keys).values(
                    id=key.id,
                    name=key.name,
                    role=key.role,
                    rate=key.rate,
                    created=key.created,
                    secret_hash=_hash_secret(secret),
                )
            )
        return key, f"cal_{id}_{secret}"

    def all(self) -> list[Key]:
        """Return all keys, including revoked ones, in order of creation."""
        with self._database.read() as connection:
            rows = connection.execute(select(keys).order_by(keys.c.created, keys.c.id))
            return [_key(row) for row in rows.mappings()]

    def get(self, id: str) -> Key | None:
        """Return the key with this id, possibly revoked, or None."""
        if not _ID.fullmatch(id):
            return None
        with self._database.read() as connection:
            result = connection.execute(select(keys).where(keys.c.id == id))
            row = result.mappings().one_or_none()
        return None if row is None else _key(row)

    def revoke(self, id: str) -> Key:
        """Revoke a key permanently; an earlier revocation keeps its time.

        Parameters
        ----------
        id : id of the key, or its token
        """
        token = TOKEN.fullmatch(id)
        key_id = token[1] if token else id
        now = datetime.now(UTC)
        unrevoked = (keys.c.id == key_id, keys.c.revoked.is_(None))
        row = None
        if _ID.fullmatch(key_id):
            with self._database.write() as connection:
                connection.execute(update(keys).where(*unrevoked).values(revoked=now))
                result = connection.execute(select(keys).where(keys.c.id == key_id))
                row = result.mappings().one_or_none()
        if row is None:
            raise StoreError(f"no key has the id {key_id[:40]!r}: 'calibrant keys list' shows all.")
        return _key(row)

    def check(self, token: str) -> Key | None:
        """Return the key of a token, or None if it is unknown, wrong or revoked.

        Each case, including a malformed token, takes one lookup, one hash and one constant-time
        comparison.

        Parameters
        ----------
        token : token returned by `add`
        """
        parts = TOKEN.fullmatch(token) or TOKEN.fullmatch(_DUMMY_TOKEN)
        assert parts is not None
        with self._database.read() as connection:
            result = connection.execute(select(keys).where(keys.c.id == parts[1]))
            row = result.mappings().one_or_none()
        expected = _hash_secret("") if row is None else str(row["secret_hash"])
        same = hmac.compare_digest(_hash_secret(parts[2]), expected)
        if not same or row is None or row["revoked"] is not None:
            return None
        return _key(row)

    def used(self, ids: Mapping[str, datetime]) -> None:
        """Record when keys were last used; earlier times are ignored.

        Parameters
        ----------
        ids : time of use by key id
        """
        if not ids:
            return
        later = or_(keys.c.last_used.is_(None), keys.c.last_used < bindparam("moment"))
        note = (
            update(keys)
            .where(keys.c.id == bindparam("key"), later)
            .values(last_used=bindparam("moment"))
        )
        # In a fixed order, so that two processes cannot deadlock.
        moments = [{"key": key, "moment": ids[key]} for key in sorted(ids)]
        with self._database.write() as connection:
            connection.execute(note, moments)


def check_key(name: str, role: str, rate: float | None) -> None:
    """Refuse invalid options of a key."""
    if role not in ROLES:
        listed = f"{', '.join(map(repr, ROLES[:-1]))} or {ROLES[-1]!r}"
        raise InputError(f"the role of a key must be {listed}, got {role!r}.")
    if not name.strip() or len(name) > _LONGEST_NAME or not _storable(name):
        shown = f"{len(name):,} characters" if len(name) > _LONGEST_NAME else repr(name)
        raise InputError(
            f"the name of a key must be text of 1 to {_LONGEST_NAME} characters, got {shown}."
        )
    if rate is not None and not 0 < rate < math.inf:
        raise InputError(
            f"the rate of a key must be a number of requests per minute above 0, got {rate:g}: "
            "leave it out for no limit."
        )


def _storable(text: str) -> bool:
    """Whether a text has neither unpaired surrogates nor NUL."""
    return "\0" not in text and text.encode("utf-8", "replace").decode() == text


def _hash_secret(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


def _key(row: RowMapping | Mapping[str, Any]) -> Key:
    names = ("id", "name", "role", "rate", "created", "last_used", "revoked")
    return Key(**{name: row[name] for name in names})
