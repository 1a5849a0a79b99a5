"""Names of the keys that something was done with."""

from __future__ import annotations

from calibrant.store import Store

__all__ = ["Names"]

_LOCAL = "local visitor"


class Names:
    """Names of keys by their ids; each is looked up once.

    Parameters
    ----------
    store : that knows the keys
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: dict[str | None, str] = {None: _LOCAL}

    def of(self, key: str | None) -> str:
        """Return the name of a key, of one that was revoked too."""
        if key not in self._known:
            found = self._store.keys.get(key or "")
            self._known[key] = "a key that is gone" if found is None else found.name
        return self._known[key]
