"""The logits of a run, kept as files of scores that every verb reads."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from calibrant.errors import InputError
from calibrant.files.atomic_write import write_atomically
from calibrant.files.npz import read_npz
from calibrant.inputs import FloatArray, IntArray
from reproductions.parts import Parts

__all__ = ["KEPT", "as_kept", "read_logits", "score_file", "write_scores"]

KEPT = ("calib", "test")
"""Parts whose logits are kept: what fits calibrators, and what they are judged by."""

_LEAST = -60_000.0
"""Logits further below the largest one of their row have no place in 16 bits."""


def as_kept(logits: FloatArray) -> FloatArray:
    r"""Return logits as files keep them, in 16 bits with the largest one of each row at 0.

    $$ z'_k = \mathrm{float16}(z_k - \max_j z_j) $$

    Probabilities are the same to three digits, and those of likely classes to more. Calibrators are
    fitted and judged on these, so that the files give the figures of a run back. What needs the
    size of logits, as the energy does, cannot be told from them.

    Examples
    --------
    >>> as_kept(np.array([[12.3456, 2.0], [-1.0, 1e6]])).tolist()
    [[0.0, -10.34375], [-60000.0, 0.0]]
    """
    below = np.maximum(logits - logits.max(axis=1, keepdims=True), _LEAST)
    return np.asarray(below.astype(np.float16), dtype=np.float64)


def score_file(record: Path, part: str) -> Path:
    """Return where the logits of a run lie: beside its record.

    Examples
    --------
    >>> score_file(Path("cifar10-resnet50/ce-0.json"), "test").as_posix()
    'cifar10-resnet50/ce-0.test.npz'
    """
    return record.with_suffix(f".{part}.npz")


def write_scores(record: Path, kept: dict[str, FloatArray], parts: Parts) -> None:
    """Write the logits of each part, as `as_kept` gives them, with labels and classes."""
    for part, logits in kept.items():
        labels = parts.named()[part].labels
        smallest = np.min_scalar_type(len(parts.classes))
        with write_atomically(score_file(record, part)) as draft:
            np.savez_compressed(
                draft,
                logits=logits.astype(np.float16),
                labels=np.asarray(labels).astype(smallest),
                classes=np.array([str(each) for each in parts.classes]),
            )


def read_logits(record: Path, part: str) -> tuple[FloatArray, IntArray]:
    """Read the logits (n, K) and labels (n,) that a run kept of a part."""
    path = score_file(record, part)
    if not path.exists():
        raise InputError(f"{path} is not there: earlier runs kept no logits; run it --again.")
    try:
        found = read_npz(path)
        return found["logits"].astype(np.float64), found["labels"].astype(np.int64)
    except (InputError, LookupError, ValueError, OSError):
        raise InputError(f"{path} does not hold logits of a run: run it --again.") from None
