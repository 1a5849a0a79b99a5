"""Sketches of labelled rows, to recognise rows that a calibrator or threshold was fitted on."""

from __future__ import annotations

import binascii
from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from calibrant.inputs import FloatArray, IntArray


def fingerprint(*arrays: NDArray[Any], named: str = "") -> str:
    """Return a hash of the contents of arrays, which depends on the order of the rows.

    It detects changes, not their author: it is not a signature.
    """
    digest = blake2b(named.encode(), digest_size=16)
    for array in arrays:
        digest.update(np.ascontiguousarray(array).data)
    return f"blake2b:{digest.hexdigest()}"


MAX_HASHES = 1024  # Number of distinct hashes in a sketch
FALSE_ALARM_RATE = 2.0**-20
"""Bound on the probability that independent rows are taken for the same ones."""


_GRID = 2.0**20  # about 1e-6, the resolution of single precision
_BLOCK = 1 << 17  # values per block, to stay within the CPU cache
_INCREMENT = np.uint64(0x9E3779B97F4A7C15)
_MULTIPLIER_1, _MULTIPLIER_2 = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
Hashes = NDArray[np.uint64]
Counts = NDArray[np.int64]
Scores = NDArray[np.floating[Any]]


class LabelledScores(Protocol):
    """Rows with scores and labels, from which a sketch is computed."""

    @property
    def logits(self) -> Scores:
        """Scores, (n,) or (n, K)."""

    @property
    def labels(self) -> IntArray:
        """Class indices, (n,)."""


@dataclass(frozen=True)
class ScoresAndLabels:
    """Scores and labels, the minimum from which a sketch is computed."""

    logits: Scores  # (n,) or (n, K) scores of any kind
    labels: IntArray  # (n,) class indices


@dataclass(frozen=True, eq=False)
class RowSketch:
    r"""Sketch of labelled rows that detects later whether other rows overlap with them.

    Each row has a 64-bit hash of its scores and its label; the weight is left out, because a label
    that was used was used, whatever its weight. The fingerprint recognises the same rows in the
    same order. For rows in another order, or a subset, the smallest hashes are stored with their
    counts (bottom-k sampling): a random sample of the distinct rows that is the same wherever it is
    taken.

    Equal rows alone prove nothing: with few distinct scores, independent samples share most of
    them. Only hashes that occur an even number of times $c$ in both samples together are therefore
    compared. In independent samples from any one distribution, such a hash is split evenly with
    probability at most

    .. math:: \binom{c}{c/2} 2^{-c} \leq \tfrac12

    while a copied row occurs equally often in both. Rows count as the same when the number of even
    splits would occur with fair coins less than once in a million times.

    The sketch does not recognise rows whose scores were recomputed and differ in the sixth digit,
    an overlap of less than about a thirtieth of the fitted rows (more when many rows are equal, up
    to all of them), or shuffled rows with fewer than 20 distinct scores and labels.
    """

    rows: int
    fingerprint: str  # hash of all row hashes, in row order
    hashes: Hashes  # the smallest row hashes, ascending
    counts: Counts  # number of rows with each hash

    @classmethod
    def from_rows(cls, rows: LabelledScores) -> Self:
        """Compute the sketch of labelled rows."""
        hashes = row_hashes(rows)
        return cls(len(hashes), fingerprint(hashes), *_smallest_hashes(hashes))

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any]) -> Self:
        """Rebuild from `to_dict`; raise ValueError if the values are inconsistent."""
        hashes = _decode(saved["hashes"], "<u8").astype(np.uint64)
        counts = np.ones(len(hashes), np.int64)
        if "counts" in saved:
            counts = _decode(saved["counts"], "<u4").astype(np.int64)
        rows = saved["rows"]
        consistent = (
            isinstance(rows, int)
            and isinstance(saved["fingerprint"], str)
            and counts.shape == hashes.shape
            and (np.diff(hashes) > 0).all()
            and (counts >= 1).all()
            and 0 < counts.sum() <= rows
        )
        if not consistent:
            raise ValueError("fitted_on is inconsistent")
        return cls(rows, saved["fingerprint"], hashes, counts)

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values: hashes in base64, and counts only if rows repeat."""
        hashes = _encode(self.hashes, "<u8")
        saved = {"rows": self.rows, "fingerprint": self.fingerprint, "hashes": hashes}
        if (self.counts == 1).all():
            return saved
        return {**saved, "counts": _encode(self.counts, "<u4")}

    def shares(self, rows: LabelledScores) -> bool:
        """Return whether these rows overlap with the sketched ones more than by chance."""
        hashes = row_hashes(rows)
        if (
            len(hashes) == self.rows
            and fingerprint(hashes) == self.fingerprint
            and _is_distinctive(hashes)
        ):
            return True
        if self.counts.sum() < self.rows:  # the sketch holds only the smallest hashes
            hashes = hashes[hashes <= self.hashes[-1]]
        other, counts = np.unique(hashes, return_counts=True)
        both = np.union1d(self.hashes, other)
        own_counts, other_counts = np.zeros((2, len(both)), np.int64)
        own_counts[np.searchsorted(both, self.hashes)] = self.counts
        other_counts[np.searchsorted(both, other)] = counts
        even = int(((own_counts + other_counts) % 2 == 0).sum())
        return _binomial_tail(int((own_counts == other_counts).sum()), even) <= FALSE_ALARM_RATE


def row_hashes(rows: LabelledScores) -> Hashes:
    """Return a hash of the scores and label of each row, equal for equivalent logits.

    Scores are rounded to single precision, so that a text file of them gives the same hashes.
    """
    n = len(rows.labels)
    out = np.empty(n, np.uint64)
    step = max(1, _BLOCK // (rows.logits.shape[1] if rows.logits.ndim > 1 else 2))
    for start in range(0, n, step):
        block = slice(start, start + step)
        codes = rows.labels[block].astype(np.uint64) + np.uint64(1)
        with np.errstate(all="ignore"):  # logits that overflow float32 count as equal
            grid = np.round(_reduce_scores(rows.logits[block]) * _GRID) + 0.0  # no -0.0
        out[block] = _mix_bits(grid.view(np.uint64) ^ _mix_bits(codes * _INCREMENT))
    return out


def _reduce_scores(logits: Scores) -> FloatArray:
    """Reduce each row to one number that is invariant to adding a constant to the row."""
    wide = logits.astype(np.float32, copy=False).astype(np.float64)
    if wide.ndim == 1:
        return wide
    if wide.shape[1] == 2:
        return np.asarray(wide[:, 1] - wide[:, 0])
    direction = np.sin(np.arange(1.0, wide.shape[1] + 1.0))
    return np.asarray(wide @ (direction - direction.mean()))


def _mix_bits(bits: Hashes) -> Hashes:
    """Mix bits with the finaliser of SplitMix64 (Steele, Lea and Flood 2014)."""
    bits = (bits ^ (bits >> np.uint64(30))) * _MULTIPLIER_1
    bits = (bits ^ (bits >> np.uint64(27))) * _MULTIPLIER_2
    return np.asarray(bits ^ (bits >> np.uint64(31)))


def _smallest_hashes(hashes: Hashes) -> tuple[Hashes, Counts]:
    """Return the smallest distinct hashes and their counts."""
    share = 4.0 * MAX_HASHES / len(hashes)
    while share < 1:  # avoids sorting all hashes of very many rows
        below = hashes[hashes < np.uint64(share * 2.0**64)]
        distinct, counts = np.unique(below, return_counts=True)
        if len(distinct) >= MAX_HASHES:
            return distinct[:MAX_HASHES], counts[:MAX_HASHES]
        share *= 8
    distinct, counts = np.unique(hashes, return_counts=True)
    return distinct[:MAX_HASHES], counts[:MAX_HASHES]


def _is_distinctive(hashes: Hashes) -> bool:
    """Return whether independent rows would hardly ever match in the same order."""
    _, counts = np.unique(hashes, return_counts=True)
    return bool(counts @ np.log(counts / len(hashes)) <= np.log(FALSE_ALARM_RATE))


def _binomial_tail(heads: int, coins: int) -> float:
    """Return the probability of at least `heads` heads among fair coins."""
    from scipy.special import bdtrc

    return float(bdtrc(heads - 1, coins, 0.5)) if heads else 1.0


def _encode(numbers: Hashes | Counts, kind: str) -> str:
    return b64encode(numbers.astype(kind).tobytes()).decode("ascii")


def _decode(text: Any, kind: str) -> NDArray[Any]:
    try:
        return np.frombuffer(b64decode(text, validate=True), kind)
    except (binascii.Error, TypeError, ValueError):
        raise ValueError("fitted_on is not base64 of numbers") from None
