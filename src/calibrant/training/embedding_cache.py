"""Embeddings of texts by a frozen transformer, kept in a folder by their content."""

from __future__ import annotations

import hashlib
import os
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.errors import InputError

Vectors = NDArray[np.float32]
_DAMAGED = (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error)


class EmbeddingCache:
    """Embeddings (n, H) in a folder, by the hash of each text; one subfolder for each model.

    A file that is damaged, half-written or of another shape is ignored: its texts are embedded
    again. Several processes may share a folder, because files are renamed when they are complete.
    """

    def __init__(self, folder: str | Path | None, model: str) -> None:
        self.folder = None if folder is None else _make_folder(Path(folder) / model)
        self._known: dict[bytes, NDArray[np.float32]] = {}
        self._read: set[str] = set()

    def embed(self, texts: Sequence[str], compute: Callable[[list[str]], Vectors]) -> Vectors:
        """Return the embeddings of texts; `compute` is called once, with those not known yet."""
        digests = [_digest(text) for text in texts]
        self._load()
        new = {
            key: text for key, text in zip(digests, texts, strict=True) if key not in self._known
        }
        if new:
            vectors = compute(list(new.values()))
            self._save(list(new), vectors)
            self._known.update(zip(new, vectors, strict=True))
        rows = np.stack([self._known[key] for key in digests])
        if self.folder is None:
            self._known = {}
        return rows

    def _load(self) -> None:
        for path in sorted(self.folder.glob("*.npz")) if self.folder is not None else ():
            if path.name not in self._read:
                self._read.add(path.name)
                self._known.update(_read_file(path))

    def _save(self, digests: list[bytes], vectors: Vectors) -> None:
        if self.folder is None:
            return
        keys = np.frombuffer(b"".join(digests), dtype=np.uint8).reshape(len(digests), -1)
        name = f"{hashlib.sha256(keys.tobytes()).hexdigest()[:32]}.npz"
        handle, draft = tempfile.mkstemp(dir=self.folder, suffix=".part")
        try:
            with os.fdopen(handle, "wb") as file:
                np.savez(file, texts=keys, vectors=vectors)
            Path(draft).replace(self.folder / name)
        except BaseException:
            Path(draft).unlink(missing_ok=True)
            raise
        self._read.add(name)


def _read_file(path: Path) -> dict[bytes, NDArray[np.float32]]:
    try:
        with np.load(path, allow_pickle=False) as archive:
            keys: NDArray[Any] = archive["texts"]
            vectors: NDArray[Any] = archive["vectors"]
    except _DAMAGED:
        return {}
    fits = keys.dtype == np.uint8 and keys.ndim == vectors.ndim == 2
    if not fits or vectors.dtype != np.float32 or len(keys) != len(vectors):
        return {}
    if not np.isfinite(vectors).all():
        return {}
    return {key.tobytes(): vector for key, vector in zip(keys, vectors, strict=True)}


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


def _make_folder(folder: Path) -> Path:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"the folder {str(folder)!r} for embeddings cannot be made ({error.strerror}): give "
            "another cache."
        ) from None
    return folder
