"""KeyNames of the keys that actions were done with."""

from __future__ import annotations

from calibrant.store import Store

_LOCAL = "local visitor"


class KeyNames:
    """Names of keys by id, each looked up once."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: dict[str | None, str] = {None: _LOCAL}

    def name_of(self, key: str | None) -> str:
        """Return the name of a key, also of a revoked one."""
        if key not in self._known:
            record = self._store.keys.get(key or "")
            self._known[key] = "a deleted key" if record is None else record.name
        return self._known[key]
