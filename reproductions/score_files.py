"""Logits of a run, saved as score files that every verb reads."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from calibrant.errors import InputError
from calibrant.files.atomic_write import write_atomically
from calibrant.files.npz import read_npz
from calibrant.inputs import FloatArray, IntArray
from reproductions.parts import Parts

__all__ = ["SAVED_PARTS", "as_saved", "read_logits", "score_file", "write_scores"]

SAVED_PARTS = ("calib", "test")
"""Parts whose logits are kept: what fits calibrators, and what they are judged by."""

_LEAST = -60_000.0
"""Logits further below the largest one of their row have no place in 16 bits."""


def as_saved(logits: FloatArray) -> FloatArray:
    r"""Return logits as saved in files: float16, with the largest of each row at 0.

    $$ z'_k = \mathrm{float16}(z_k - \max_j z_j) $$

    Probabilities are the same to three digits, and those of likely classes to more. Calibrators are
    fitted and judged on these, so that the files give the figures of a run back. What needs the
    size of logits, such as the energy, cannot be computed from them.

    Examples
    --------
    >>> as_saved(np.array([[12.3456, 2.0], [-1.0, 1e6]])).tolist()
    [[0.0, -10.34375], [-60000.0, 0.0]]
    """
    below = np.maximum(logits - logits.max(axis=1, keepdims=True), _LEAST)
    return np.asarray(below.astype(np.float16), dtype=np.float64)


def score_file(record: Path, part: str) -> Path:
    """Return the score file of a run, next to its record.

    Examples
    --------
    >>> score_file(Path("cifar10-resnet50/ce-0.json"), "test").as_posix()
    'cifar10-resnet50/ce-0.test.npz'
    """
    return record.with_suffix(f".{part}.npz")


def write_scores(record: Path, logits_of_parts: dict[str, FloatArray], parts: Parts) -> None:
    """Write the logits of each part, as returned by `as_saved`, with labels and classes."""
    for part, logits in logits_of_parts.items():
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
    """Read the saved logits (n, K) and labels (n,) of a part of a run."""
    path = score_file(record, part)
    if not path.exists():
        raise InputError(f"{path} is not there: earlier runs kept no logits; run it --again.")
    try:
        arrays = read_npz(path)
        return arrays["logits"].astype(np.float64), arrays["labels"].astype(np.int64)
    except (InputError, LookupError, ValueError, OSError):
        raise InputError(f"{path} does not hold logits of a run: run it --again.") from None
