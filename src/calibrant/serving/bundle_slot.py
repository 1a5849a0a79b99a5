"""The bundle that serves: replaced while requests run, and kept where the new one is damaged."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from calibrant.bundle import Bundle, load_bundle
from calibrant.bundle.files import manifest_identity
from calibrant.errors import BundleError, CalibrantError
from calibrant.store.schema import LONGEST_NAME

__all__ = ["BundleSlot", "Served"]

_log = logging.getLogger("calibrant.serving")

_PAUSE = 5.0
"""Seconds until a refused folder is read again: its files may still be on their way."""


@dataclass(frozen=True, eq=False)
class Served:
    """A loaded bundle with the names it goes by.

    Parameters
    ----------
    bundle : the bundle
    name : that of its folder
    loaded_at : when
    classes : names of its classes as text
    """

    bundle: Bundle
    name: str
    loaded_at: datetime
    classes: tuple[str, ...]

    @property
    def hash(self) -> str:
        """The seal of the manifest, which holds the hash of every file."""
        return str(self.bundle.manifest["sha256"])

    @property
    def id(self) -> str:
        """The first 12 characters of the hash."""
        return self.hash[:12]

    @property
    def reads(self) -> str:
        """What an input must be: "text", "table" or "logits"."""
        return "logits" if self.bundle.scorer is None else self.bundle.scorer.kind

    @property
    def manifest(self) -> Mapping[str, Any]:
        """All that the bundle says about itself, for the record."""
        return self.bundle.manifest


class BundleSlot:
    """Holds the bundle that serves and swaps it for a newer one in its folder.

    A request keeps the bundle that it was checked with, so that a swap drops nothing. A folder that
    is damaged, half-copied or not there is refused, and so is a bundle for which there is no room,
    or that cannot score a made-up row: the bundle in memory goes on.

    Parameters
    ----------
    folder : where the bundle is, and where a newer one will be
    device : where its model runs
    """

    def __init__(self, folder: Path, device: str = "auto") -> None:
        self._folder, self._device = folder, device
        self._lock = threading.Lock()
        self._current: Served | None = None
        self._seen: tuple[int, ...] | None = None
        self._next_try = 0.0
        self.refused: str | None = None

    @property
    def current(self) -> Served:
        """The bundle that serves."""
        assert self._current is not None, "load comes first"
        return self._current

    def load(self) -> Served:
        """Load the folder's bundle now; raise `BundleError` where it cannot be served."""
        with self._lock:
            return self._load()

    def reload(self) -> Served:
        """Load the folder again; `CalibrantError` where it is refused and the old bundle stays."""
        with self._lock:
            try:
                return self._load()
            except Exception as error:
                raise self._refuse(error) from error

    def look(self) -> bool:
        """Swap the bundle where the folder changed; tell whether it did."""
        with self._lock:
            seen = manifest_identity(self._folder)
            if seen == self._seen and time.monotonic() < self._next_try:
                return False
            before = self._current
            try:
                self._load()
            except Exception as error:  # whatever it is, the old bundle goes on
                self._refuse(error)
            return self._current is not before

    def _load(self) -> Served:
        seen = manifest_identity(self._folder)
        if self._current is not None and seen is None:
            raise BundleError(f"the bundle {self._folder} is not there any more.")
        bundle = load_bundle(self._folder, device=self._device)
        if bundle.scorer is not None and bundle.scorer.kind == "image":
            raise BundleError(
                f"the bundle {self._folder} reads images, which are not served: use calibrant "
                "predict on files."
            )
        classes = tuple(str(name) for name in bundle.classes)
        _check_names(classes, self._folder)
        _try_out(bundle)
        self._seen, self._next_try, self.refused = seen, float("inf"), None
        old = self._current
        if old is not None and old.hash == bundle.manifest["sha256"]:
            return old
        name = self._folder.resolve().name
        self._current = Served(bundle, name, datetime.now(UTC), classes)
        if old is not None:
            _log.warning("bundle %s took the place of %s", self._current.id, old.id)
        return self._current

    def _refuse(self, error: Exception) -> CalibrantError:
        """Note why a bundle is refused, and return it as one sentence."""
        told = error if isinstance(error, CalibrantError) else _told(error, self._folder)
        if str(told) != self.refused:
            details = None if told is error else error
            _log.warning(
                "a newer bundle is refused, the old one goes on: %s", told, exc_info=details
            )
        self.refused, self._seen = str(told), manifest_identity(self._folder)
        self._next_try = time.monotonic() + _PAUSE
        return told


def _check_names(classes: tuple[str, ...], folder: Path) -> None:
    """Refuse classes whose predictions could not be put on record."""
    longest = max(classes, key=len)
    if len(longest) > LONGEST_NAME:
        raise BundleError(
            f"the bundle {folder} has a class whose name, {longest[:40]!r}…, has {len(longest)} "
            f"characters, but predictions of at most {LONGEST_NAME} go on record: give it a "
            "shorter name."
        )


def _try_out(bundle: Bundle) -> None:
    """Score one made-up row all the way to a decision, as the first request would."""
    made_up = np.zeros((1, len(bundle.classes)))
    logits = made_up if bundle.scorer is None else bundle.scorer.trial()
    bundle.predict_proba(logits=logits)
    if bundle.points:
        bundle.decide(logits=logits)


def _told(error: Exception, folder: Path) -> BundleError:
    """Return a failure that nobody foresaw, such as too little memory, as one sentence."""
    reason = " ".join(str(error).split())[:300].rstrip(".")
    said = f"{type(error).__name__}: {reason}" if reason else type(error).__name__
    return BundleError(f"the bundle {folder} cannot be used ({said}).")
