"""Bundle hot reload: swap in a newer bundle, or keep the old one if the new one is invalid."""

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

_log = logging.getLogger("calibrant.serving")

_RETRY_AFTER = 5.0  # Seconds until a refused folder is read again: it may still be being copied


@dataclass(frozen=True, eq=False)
class Served:
    """A loaded bundle with its folder name, load time and class names as text."""

    bundle: Bundle
    name: str
    loaded_at: datetime
    classes: tuple[str, ...]

    @property
    def hash(self) -> str:
        """Hash of the manifest, which contains the hash of every file."""
        return str(self.bundle.manifest["sha256"])

    @property
    def id(self) -> str:
        """The first 12 characters of the hash."""
        return self.hash[:12]

    @property
    def reads(self) -> str:
        """Input kind: "text", "table" or "logits"."""
        return "logits" if self.bundle.scorer is None else self.bundle.scorer.kind

    @property
    def manifest(self) -> Mapping[str, Any]:
        """The bundle's manifest, as recorded in the store."""
        return self.bundle.manifest


class BundleSlot:
    """Holds the served bundle and replaces it when its folder changes.

    A request keeps the bundle it was validated against, so a swap drops no request. A folder that
    is damaged, partly copied or missing is refused, and so is a bundle that does not fit into
    memory or cannot score a dummy row; the loaded bundle then stays.
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
        """The served bundle."""
        assert self._current is not None, "call load first"
        return self._current

    def load(self) -> Served:
        """Load the bundle; raise `BundleError` if it cannot be served."""
        with self._lock:
            return self._load()

    def reload(self) -> Served:
        """Reload the folder; raise `CalibrantError` if it is refused and the old bundle stays."""
        with self._lock:
            try:
                return self._load()
            except Exception as error:
                raise self._refuse(error) from error

    def look(self) -> bool:
        """Reload the bundle if its folder changed; return whether it was replaced."""
        with self._lock:
            seen = manifest_identity(self._folder)
            if seen == self._seen and time.monotonic() < self._next_try:
                return False
            before = self._current
            try:
                self._load()
            except Exception as error:  # whatever it is, the old bundle stays
                self._refuse(error)
            return self._current is not before

    def _load(self) -> Served:
        seen = manifest_identity(self._folder)
        if self._current is not None and seen is None:
            raise BundleError(f"the bundle {self._folder} no longer exists.")
        bundle = load_bundle(self._folder, device=self._device)
        if bundle.scorer is not None and bundle.scorer.kind == "image":
            raise BundleError(
                f"the bundle {self._folder} takes images, which cannot be served: use calibrant "
                "predict on files."
            )
        classes = tuple(str(name) for name in bundle.classes)
        _check_class_names(classes, self._folder)
        _score_dummy_row(bundle)
        self._seen, self._next_try, self.refused = seen, float("inf"), None
        old = self._current
        if old is not None and old.hash == bundle.manifest["sha256"]:
            return old
        name = self._folder.resolve().name
        self._current = Served(bundle, name, datetime.now(UTC), classes)
        if old is not None:
            _log.warning("bundle %s replaced %s", self._current.id, old.id)
        return self._current

    def _refuse(self, error: Exception) -> CalibrantError:
        """Record why a bundle is refused, and return the error."""
        reason = error if isinstance(error, CalibrantError) else _wrap_error(error, self._folder)
        if str(reason) != self.refused:
            details = None if reason is error else error
            _log.warning(
                "a newer bundle is refused, the old one stays: %s", reason, exc_info=details
            )
        self.refused, self._seen = str(reason), manifest_identity(self._folder)
        self._next_try = time.monotonic() + _RETRY_AFTER
        return reason


def _check_class_names(classes: tuple[str, ...], folder: Path) -> None:
    """Refuse class names that are too long to be stored."""
    longest = max(classes, key=len)
    if len(longest) > LONGEST_NAME:
        raise BundleError(
            f"the bundle {folder} has a class name of {len(longest)} characters, "
            f"{longest[:40]!r}…, but at most {LONGEST_NAME} can be stored: use a shorter name."
        )


def _score_dummy_row(bundle: Bundle) -> None:
    """Score and decide a dummy row, as the first request would."""
    zeros = np.zeros((1, len(bundle.classes)))
    logits = zeros if bundle.scorer is None else bundle.scorer.trial()
    bundle.predict_proba(logits=logits)
    if bundle.points:
        bundle.decide(logits=logits)


def _wrap_error(error: Exception, folder: Path) -> BundleError:
    """Return an unexpected failure, such as too little memory, as a `BundleError`."""
    reason = " ".join(str(error).split())[:300].rstrip(".")
    cause = f"{type(error).__name__}: {reason}" if reason else type(error).__name__
    return BundleError(f"the bundle {folder} cannot be used ({cause}).")
