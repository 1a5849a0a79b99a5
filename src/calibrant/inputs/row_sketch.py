"""What calibrators and operating points remember of the rows that made them, to know them again."""

from __future__ import annotations

import binascii
from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from calibrant.inputs import FloatArray, IntArray
from calibrant.inputs.fingerprint import fingerprint

__all__ = ["KEPT", "LabelledScores", "RowSketch", "ScoresAndLabels", "row_hashes"]

KEPT = 1024
"""Different rows that are remembered."""

CHANCE = 2.0**-20
"""Rows are called known only where chance would make them look so less often than this."""

_GRID = 2.0**20  # a millionth, about what single precision tells apart
_BLOCK = 1 << 17  # what a processor has at hand
_ODD = np.uint64(0x9E3779B97F4A7C15)
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)

Hashes = NDArray[np.uint64]
Counts = NDArray[np.int64]
Scores = NDArray[np.floating[Any]]


class LabelledScores(Protocol):
    """Rows that can be remembered."""

    @property
    def logits(self) -> Scores:
        """Scores, (n,) or (n, K)."""

    @property
    def labels(self) -> IntArray:
        """Positions of the classes, (n,)."""


@dataclass(frozen=True)
class ScoresAndLabels:
    """Nothing but what is remembered.

    Parameters
    ----------
    logits : (n,) or (n, K) scores of any kind
    labels : (n,) positions of the classes
    """

    logits: Scores
    labels: IntArray


@dataclass(frozen=True, eq=False)
class RowSketch:
    r"""A sketch of labelled rows, which tells later whether others are the same, or some of them.

    Each row has a hash of 64 bits, made of its scores and its label; its weight does not count,
    for a label that was seen was seen, however it is weighted. The fingerprint knows the same rows
    in the same order. For rows in another order, and for a part of them, the least hashes are kept
    with how often they occur: a random sample of the different rows, which is the same sample
    wherever it is taken.

    Equal rows are no proof. Where scores are few, independent samples share most of them. So a hash
    is looked at only if it occurs an even number of times c in both samples together. Of
    independent samples, whatever they are drawn from, each then has half of them with a chance of
    at most

    .. math:: \binom{c}{c/2} 2^{-c} \leq \tfrac12

    while a row that was copied is always there as often as in the original. Rows are known if so
    many hashes occur equally often as fair coins would give once in a million times.

    It does not know rows again whose scores were computed anew and differ in the sixth digit, nor
    an overlap of less than about a thirtieth of the fitted rows (where many rows are equal it takes
    more, up to all), nor shuffled rows with less than 20 different scores and labels.

    Parameters
    ----------
    rows : how many there were
    fingerprint : of all hashes in the order of the rows
    hashes : the least ones, ascending
    counts : how many rows have each of them

    Examples
    --------
    >>> scores, labels = np.random.default_rng(0).normal(size=400), np.arange(400) % 2
    >>> half = RowSketch.of(ScoresAndLabels(scores[:200], labels[:200]))
    >>> half.shares(ScoresAndLabels(scores[100:], labels[100:]))
    True
    >>> half.shares(ScoresAndLabels(scores[200:], labels[200:]))
    False
    """

    rows: int
    fingerprint: str
    hashes: Hashes
    counts: Counts

    @classmethod
    def of(cls, rows: LabelledScores) -> Self:
        """Remember rows."""
        hashes = row_hashes(rows)
        return cls(len(hashes), fingerprint(hashes), *_least(hashes))

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any]) -> Self:
        """Rebuild from `to_dict`; raise ValueError where it could not have been written."""
        hashes = _decoded(saved["hashes"], "<u8").astype(np.uint64)
        counts = np.ones(len(hashes), np.int64)
        if "counts" in saved:
            counts = _decoded(saved["counts"], "<u4").astype(np.int64)
        rows = saved["rows"]
        sound = (
            isinstance(rows, int)
            and isinstance(saved["fingerprint"], str)
            and counts.shape == hashes.shape
            and (np.diff(hashes) > 0).all()
            and (counts >= 1).all()
            and 0 < counts.sum() <= rows
        )
        if not sound:
            raise ValueError("fitted_on does not tell rows")
        return cls(rows, saved["fingerprint"], hashes, counts)

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON has it: hashes as one text, and counts too where rows repeat."""
        hashes = _encoded(self.hashes, "<u8")
        saved = {"rows": self.rows, "fingerprint": self.fingerprint, "hashes": hashes}
        if (self.counts == 1).all():
            return saved
        return {**saved, "counts": _encoded(self.counts, "<u4")}

    def shares(self, rows: LabelledScores) -> bool:
        """Whether these are the same rows, or share more of them than chance would."""
        hashes = row_hashes(rows)
        if (
            len(hashes) == self.rows
            and fingerprint(hashes) == self.fingerprint
            and _telling(hashes)
        ):
            return True
        if self.counts.sum() < self.rows:  # further hashes were not kept
            hashes = hashes[hashes <= self.hashes[-1]]
        other, counts = np.unique(hashes, return_counts=True)
        both = np.union1d(self.hashes, other)
        here, there = np.zeros((2, len(both)), np.int64)
        here[np.searchsorted(both, self.hashes)] = self.counts
        there[np.searchsorted(both, other)] = counts
        even = int(((here + there) % 2 == 0).sum())
        return _tail(int((here == there).sum()), even) <= CHANCE


def row_hashes(rows: LabelledScores) -> Hashes:
    """Return a hash of each row: scores and label, the same for logits that mean the same.

    Scores are taken in single precision, so that a text file with its digits gives what the
    numbers themselves give.
    """
    n = len(rows.labels)
    out = np.empty(n, np.uint64)
    step = max(1, _BLOCK // (rows.logits.shape[1] if rows.logits.ndim > 1 else 2))
    for start in range(0, n, step):
        block = slice(start, start + step)
        codes = rows.labels[block].astype(np.uint64) + np.uint64(1)
        with np.errstate(all="ignore"):  # logits beyond single precision are equal to each other
            grid = np.round(_one_score(rows.logits[block]) * _GRID) + 0.0  # no -0.0
        out[block] = _mixed(grid.view(np.uint64) ^ _mixed(codes * _ODD))
    return out


def _one_score(logits: Scores) -> FloatArray:
    """Return one number for each row that is the same if a constant is added to the row."""
    wide = logits.astype(np.float32, copy=False).astype(np.float64)
    if wide.ndim == 1:
        return wide
    if wide.shape[1] == 2:
        return np.asarray(wide[:, 1] - wide[:, 0])
    way = np.sin(np.arange(1.0, wide.shape[1] + 1.0))
    return np.asarray(wide @ (way - way.mean()))


def _mixed(bits: Hashes) -> Hashes:
    """Mix bits by the last step of SplitMix64 (Steele, Lea and Flood 2014)."""
    bits = (bits ^ (bits >> np.uint64(30))) * _FIRST
    bits = (bits ^ (bits >> np.uint64(27))) * _SECOND
    return np.asarray(bits ^ (bits >> np.uint64(31)))


def _least(hashes: Hashes) -> tuple[Hashes, Counts]:
    """Return the least different hashes, and how often each occurs."""
    share = 4.0 * KEPT / len(hashes)
    while share < 1:  # of very many rows no more are sorted than are needed
        below = hashes[hashes < np.uint64(share * 2.0**64)]
        found, counts = np.unique(below, return_counts=True)
        if len(found) >= KEPT:
            return found[:KEPT], counts[:KEPT]
        share *= 8
    found, counts = np.unique(hashes, return_counts=True)
    return found[:KEPT], counts[:KEPT]


def _telling(hashes: Hashes) -> bool:
    """Whether other rows drawn like these would hardly come out the same in the same order."""
    _, counts = np.unique(hashes, return_counts=True)
    return bool(counts @ np.log(counts / len(hashes)) <= np.log(CHANCE))


def _tail(heads: int, coins: int) -> float:
    """Return the chance of so many heads, or more, among fair coins."""
    from scipy.special import bdtrc

    return float(bdtrc(heads - 1, coins, 0.5)) if heads else 1.0


def _encoded(numbers: Hashes | Counts, kind: str) -> str:
    return b64encode(numbers.astype(kind).tobytes()).decode("ascii")


def _decoded(text: Any, kind: str) -> NDArray[Any]:
    try:
        return np.frombuffer(b64decode(text, validate=True), kind)
    except (binascii.Error, TypeError, ValueError):
        raise ValueError("fitted_on holds no numbers") from None
