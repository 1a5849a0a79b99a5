"""Drawn messages: texts, labels, and what the truth about them is."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from calibrant.data.return_reasons.rendering import N_CHOICES, outside_texts, texts
from calibrant.data.return_reasons.world import (
    N_FACTS,
    NOISE,
    PRIORS,
    REASONS,
    Facts,
    draw_facts,
    posterior,
)
from calibrant.errors import InputError
from calibrant.files.write_table import write_tables

__all__ = ["BINARY", "OUT_OF_SCOPE", "Messages", "Source", "draw"]

FloatArray = NDArray[np.float64]
Source = Literal["logs", "golden"]

BINARY = ("others", "item_defective")
"""The classes of the binary form: the second is the one to detect."""

OUT_OF_SCOPE = "out_of_scope"
"""The label of a message that is not about a return."""

_SOURCES = tuple(PRIORS)
_CHUNK = 4096


@dataclass(frozen=True)
class Messages:
    """Messages of customers, with their labels and their exact posteriors.

    Parameters
    ----------
    texts : n messages
    labels : what a file says: the logged label, noisy, or the true reason in a golden set;
        "out_of_scope" for messages that are not about a return
    clean : the true reason
    posterior : (n, K) P(true reason | text) under the prior of the source; NaN out of scope
    logged : (n, K) P(logged label | text) in the logs; NaN out of scope
    in_scope : whether a message is about a return
    classes : the K names of the columns
    source : "logs" or "golden"
    ids : a name for each row
    """

    texts: list[str]
    labels: NDArray[np.str_]
    clean: NDArray[np.str_]
    posterior: FloatArray
    logged: FloatArray
    in_scope: NDArray[np.bool_]
    classes: tuple[str, ...]
    source: Source
    ids: list[str]
    _posteriors: dict[str, FloatArray] = field(repr=False)

    def __len__(self) -> int:
        return len(self.texts)

    def posterior_under(self, source: Source) -> FloatArray:
        """Return (n, K) P(true reason | text) under the prior of a source."""
        return self._posteriors[_checked(source)]

    def to_table(self) -> pa.Table:
        """Return the columns `id`, `message` and `reason`: what a file of messages holds."""
        columns = {"id": self.ids, "message": self.texts, "reason": self.labels.tolist()}
        return pa.table({name: pa.array(column, pa.string()) for name, column in columns.items()})

    def write(self, path: str | os.PathLike[str]) -> Path:
        """Write `to_table` as .csv, .parquet or .jsonl (text also .gz)."""
        write_tables(path, [self.to_table()])
        return Path(path)


def draw(
    n: int,
    *,
    source: Source = "logs",
    seed: int = 0,
    binary: bool = False,
    out_of_scope: float = 0.0,
) -> Messages:
    """Draw messages of customers who return something, each with its exact posterior.

    The same source and seed give the same messages, to the byte; fewer of them are the first of
    more. Sources and seeds are independent of each other. `binary` renames the reasons and changes
    nothing else, and `out_of_scope` replaces messages and leaves the others as they are.

    Parameters
    ----------
    n : number of messages, 0 or more
    source : "logs" (labels as a clerk clicked them, prior of the logs) or "golden" (true reasons,
        prior of the messages met online)
    seed : seed of the draw, 0 or more
    binary : whether item_defective is to be told from all else
    out_of_scope : share of messages that are not about a return

    Examples
    --------
    >>> drawn = draw(1000, source="golden", seed=1)
    >>> drawn.posterior.shape, drawn.classes[0]
    ((1000, 5), 'item_defective')
    >>> drawn.texts[:2] == draw(2, source="golden", seed=1).texts
    True
    """
    _check(n, seed, out_of_scope)
    code = _SOURCES.index(_checked(source))
    starts = range(0, max(n, 1), _CHUNK)
    parts = [
        _Part.drawn(min(_CHUNK, n - start), source, (seed, code, start // _CHUNK), out_of_scope)
        for start in starts
    ]
    scores = {key: np.concatenate([part.scores[key] for part in parts]) for key in parts[0].scores}
    clean = np.concatenate([part.reasons for part in parts])
    label = np.concatenate([part.labels for part in parts])
    in_scope = np.concatenate([part.in_scope for part in parts])
    classes = BINARY if binary else REASONS
    if binary:
        scores = {key: _merged(values) for key, values in scores.items()}
        clean, label = (clean == 0).astype(np.int64), (label == 0).astype(np.int64)
    return Messages(
        texts=[text for part in parts for text in part.texts],
        labels=_named(label if source == "logs" else clean, classes, in_scope),
        clean=_named(clean, classes, in_scope),
        posterior=scores[source],
        logged=scores["logged"],
        in_scope=in_scope,
        classes=classes,
        source=source,
        ids=[f"{source}-{seed}-{i}" for i in range(n)],
        _posteriors={key: scores[key] for key in _SOURCES},
    )


@dataclass(frozen=True)
class _Part:
    """A piece of a draw; pieces have streams of their own, so a draw can be cut anywhere."""

    texts: list[str]
    reasons: NDArray[np.int64]
    labels: NDArray[np.int64]
    in_scope: NDArray[np.bool_]
    scores: dict[str, FloatArray]

    @classmethod
    def drawn(cls, n: int, source: Source, seed: tuple[int, ...], outside: float) -> _Part:
        # Numbers are made for whole pieces and cut after: rounding cannot depend on n.
        uniform = np.random.default_rng(seed).random((3 + N_FACTS + N_CHOICES, _CHUNK))
        scope, reason, label = uniform[:3]
        reasons = _inverse(PRIORS[source][None], np.zeros(_CHUNK, dtype=np.int64), reason)
        facts = draw_facts(reasons, uniform[3 : 3 + N_FACTS])
        scores = {key: posterior(facts, prior) for key, prior in PRIORS.items()}
        scores["logged"] = scores["logs"] @ NOISE
        inside = scope >= outside
        for values in scores.values():
            values[~inside] = np.nan
        return cls(
            texts=_written(facts, uniform[3 + N_FACTS :], inside[:n]),
            reasons=reasons[:n],
            labels=_inverse(NOISE, reasons, label)[:n],
            in_scope=inside[:n],
            scores={key: values[:n] for key, values in scores.items()},
        )


def _written(facts: Facts, uniform: FloatArray, inside: NDArray[np.bool_]) -> list[str]:
    """Render the first messages: those about a return from their facts, the others without."""
    own, strange = np.flatnonzero(inside), np.flatnonzero(~inside)
    rows = Facts(**{name: values[own] for name, values in vars(facts).items()})
    ours, theirs = iter(texts(rows, uniform[:, own])), iter(outside_texts(uniform[:, strange]))
    return [next(ours if inner else theirs) for inner in inside.tolist()]


def _inverse(chances: FloatArray, row: NDArray[np.int64], uniform: FloatArray) -> NDArray[np.int64]:
    """Draw a column of each row's distribution."""
    steps = np.cumsum(chances, axis=1)[:, :-1]
    return np.asarray((uniform[:, None] >= steps[row]).sum(axis=1), dtype=np.int64)


def _merged(scores: FloatArray) -> FloatArray:
    """Return the columns of the binary form."""
    return np.column_stack([scores[:, 1:].sum(axis=1), scores[:, 0]])


def _named(
    codes: NDArray[np.int64], classes: tuple[str, ...], in_scope: NDArray[np.bool_]
) -> NDArray[np.str_]:
    names = np.array([*classes, OUT_OF_SCOPE])
    return np.asarray(names[np.where(in_scope, codes, len(classes))])


def _checked(source: str) -> str:
    if source not in _SOURCES:
        raise InputError(f"source must be 'logs' or 'golden', got {source!r}.")
    return source


def _check(n: int, seed: int, out_of_scope: float) -> None:
    for name, value in (("n", n), ("seed", seed)):
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 0:
            raise InputError(f"{name} must be a whole number of at least 0, got {value!r}.")
    if not isinstance(out_of_scope, int | float) or not 0.0 <= out_of_scope <= 1.0:
        raise InputError(
            f"out_of_scope must lie in [0, 1], got {out_of_scope!r}: it is a share of the messages."
        )
