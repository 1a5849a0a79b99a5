"""Keys of the service: made once, kept as a hash, checked in constant time, revocable.

A key is `cal_<id>_<secret>`. The id is public and names the key in lists and logs. The secret has
256 random bits, and only its SHA-256 is kept. A slow hash is for passwords, which can be guessed;
256 random bits cannot, so a fast one is as safe and costs a request nothing.
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

__all__ = ["TOKEN", "KeyRing", "check_key"]

TOKEN = re.compile(r"cal_([a-z0-9]{12})_([0-9a-f]{64})")
"""The public form of a token: the id of its key, and the secret."""

_NOBODY = f"cal_{'0' * 12}_{'0' * 64}"
"""Looked up and compared in place of what is no key at all: that costs the same."""

_ID = re.compile(r"[a-z0-9]{12}")  # asked of no other text: a database refuses some
_ALPHABET = string.ascii_lowercase + string.digits
_LONGEST_NAME = 200


class KeyRing:
    """The keys of a store.

    Parameters
    ----------
    database : where they are kept

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
        """Make a key; return it with the token, which is not kept and cannot be had again.

        Parameters
        ----------
        name : whose it is; names may repeat, ids do not
        role : `predict`, `label` or `admin`
        rate : requests it has a minute; None for no limit
        """
        check_key(name, role, rate)
        made = "".join(secrets.choice(_ALPHABET) for _ in range(12))
        secret = secrets.token_hex(32)
        key = Key(made, name, role, rate, datetime.now(UTC), None, None)
        with self._database.write() as connection:
            connection.execute(
                insert(keys).values(
                    id=key.id,
                    name=key.name,
                    role=key.role,
                    rate=key.rate,
                    created=key.created,
                    secret_hash=_hashed(secret),
                )
            )
        return key, f"cal_{made}_{secret}"

    def all(self) -> list[Key]:
        """Return every key, revoked ones too, in the order in which they were made."""
        with self._database.read() as connection:
            rows = connection.execute(select(keys).order_by(keys.c.created, keys.c.id))
            return [_key(row) for row in rows.mappings()]

    def get(self, id: str) -> Key | None:
        """Return the key of that id, also a revoked one; None where there is none."""
        if not _ID.fullmatch(id):
            return None
        with self._database.read() as connection:
            found = connection.execute(select(keys).where(keys.c.id == id))
            row = found.mappings().one_or_none()
        return None if row is None else _key(row)

    def revoke(self, id: str) -> Key:
        """Revoke a key for good; one that is revoked already stays so since then.

        Parameters
        ----------
        id : of the key, or the key itself
        """
        token = TOKEN.fullmatch(id)
        known = token[1] if token else id
        now = datetime.now(UTC)
        open_one = (keys.c.id == known, keys.c.revoked.is_(None))
        row = None
        if _ID.fullmatch(known):
            with self._database.write() as connection:
                connection.execute(update(keys).where(*open_one).values(revoked=now))
                found = connection.execute(select(keys).where(keys.c.id == known))
                row = found.mappings().one_or_none()
        if row is None:
            raise StoreError(
                f"there is no key with the id {known[:40]!r}: 'calibrant keys list' shows all."
            )
        return _key(row)

    def check(self, token: str) -> Key | None:
        """Return the key of a token; None where it is unknown, wrong or revoked.

        All three, and what is no token at all, take the same work: one look into the store, one
        hash and one comparison in constant time.

        Parameters
        ----------
        token : as `add` returned it
        """
        parts = TOKEN.fullmatch(token) or TOKEN.fullmatch(_NOBODY)
        assert parts is not None
        with self._database.read() as connection:
            found = connection.execute(select(keys).where(keys.c.id == parts[1]))
            row = found.mappings().one_or_none()
        expected = _hashed("") if row is None else str(row["secret_hash"])
        same = hmac.compare_digest(_hashed(parts[2]), expected)
        if not same or row is None or row["revoked"] is not None:
            return None
        return _key(row)

    def used(self, ids: Mapping[str, datetime]) -> None:
        """Note when keys were last used; an earlier moment than the one on record is passed over.

        Parameters
        ----------
        ids : for ids of keys, the moment
        """
        if not ids:
            return
        later = or_(keys.c.last_used.is_(None), keys.c.last_used < bindparam("moment"))
        note = (
            update(keys)
            .where(keys.c.id == bindparam("key"), later)
            .values(last_used=bindparam("moment"))
        )
        # Always in one order, so that two processes that note the same keys never wait in a ring.
        moments = [{"key": key, "moment": ids[key]} for key in sorted(ids)]
        with self._database.write() as connection:
            connection.execute(note, moments)


def check_key(name: str, role: str, rate: float | None) -> None:
    """Refuse a key that cannot be made, before anything is written.

    Examples
    --------
    >>> check_key("shop", "read", None)
    Traceback (most recent call last):
    ...
    calibrant.errors.InputError: the role of a key must be 'predict', 'label' or 'admin', ...
    """
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
            f"the rate of a key must be a number of requests a minute above 0, got {rate:g}: "
            "leave it out for no limit."
        )


def _storable(text: str) -> bool:
    """Whether every database takes a text: none takes half characters, PostgreSQL no NUL."""
    return "\0" not in text and text.encode("utf-8", "replace").decode() == text


def _hashed(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


def _key(row: RowMapping | Mapping[str, Any]) -> Key:
    names = ("id", "name", "role", "rate", "created", "last_used", "revoked")
    return Key(**{name: row[name] for name in names})
