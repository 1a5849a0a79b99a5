"""Sampling of messages with labels and exact posteriors."""

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

FloatArray = NDArray[np.float64]
RowSource = Literal["logs", "golden"]

BINARY = ("others", "item_defective")
"""The classes of the binary form: the second is the one to detect."""

OUT_OF_SCOPE = "out_of_scope"
"""The label of a message that is not about a return."""

_SOURCES = tuple(PRIORS)
_CHUNK = 4096


@dataclass(frozen=True)
class Messages:
    """Customer messages with labels and exact posteriors.

    Parameters
    ----------
    texts : n messages
    labels : the noisy logged labels, or the true reasons in a golden set; "out_of_scope" for
        messages that are not about a return
    clean : the true reasons
    posterior : (n, K) P(true reason | text) under the prior of the source; NaN out of scope
    logged : (n, K) P(logged label | text) in the logs; NaN out of scope
    in_scope : whether a message is about a return
    classes : names of the K columns
    source : "logs" or "golden"
    ids : row ids
    """

    texts: list[str]
    labels: NDArray[np.str_]
    clean: NDArray[np.str_]
    posterior: FloatArray
    logged: FloatArray
    in_scope: NDArray[np.bool_]
    classes: tuple[str, ...]
    source: RowSource
    ids: list[str]
    _posteriors: dict[str, FloatArray] = field(repr=False)

    def __len__(self) -> int:
        return len(self.texts)

    def posterior_under(self, source: RowSource) -> FloatArray:
        """Return (n, K) P(true reason | text) under the prior of a source."""
        return self._posteriors[_check_source(source)]

    def to_table(self) -> pa.Table:
        """Return a table with the columns `id`, `message` and `reason`."""
        columns = {"id": self.ids, "message": self.texts, "reason": self.labels.tolist()}
        return pa.table({name: pa.array(column, pa.string()) for name, column in columns.items()})

    def write(self, path: str | os.PathLike[str]) -> Path:
        """Write `to_table` as .csv, .parquet or .jsonl (text also .gz)."""
        write_tables(path, [self.to_table()])
        return Path(path)


def draw(
    n: int,
    *,
    source: RowSource = "logs",
    seed: int = 0,
    binary: bool = False,
    out_of_scope: float = 0.0,
) -> Messages:
    """Sample return messages with their exact posteriors.

    The same source and seed give identical messages, and a smaller sample is a prefix of a larger
    one. Sources and seeds are independent of each other. `binary` only merges the reasons into two
    classes, and `out_of_scope` replaces some messages without changing the others.

    Parameters
    ----------
    n : number of messages, 0 or more
    source : "logs" (noisy labels of clerks, prior of the logs) or "golden" (true reasons, prior of
        the messages in production)
    seed : random seed, 0 or more
    binary : whether to use two classes, item_defective against the rest
    out_of_scope : share of messages that are not about a return

    Examples
    --------
    >>> messages = draw(1000, source="golden", seed=1)
    >>> messages.posterior.shape, messages.classes[0]
    ((1000, 5), 'item_defective')
    >>> messages.texts[:2] == draw(2, source="golden", seed=1).texts
    True
    """
    _check_arguments(n, seed, out_of_scope)
    code = _SOURCES.index(_check_source(source))
    starts = range(0, max(n, 1), _CHUNK)
    parts = [
        _Chunk.sample(min(_CHUNK, n - start), source, (seed, code, start // _CHUNK), out_of_scope)
        for start in starts
    ]
    scores = {key: np.concatenate([part.scores[key] for part in parts]) for key in parts[0].scores}
    clean = np.concatenate([part.reasons for part in parts])
    label = np.concatenate([part.labels for part in parts])
    in_scope = np.concatenate([part.in_scope for part in parts])
    classes = BINARY if binary else REASONS
    if binary:
        scores = {key: _merge_to_binary(values) for key, values in scores.items()}
        clean, label = (clean == 0).astype(np.int64), (label == 0).astype(np.int64)
    return Messages(
        texts=[text for part in parts for text in part.texts],
        labels=_label_names(label if source == "logs" else clean, classes, in_scope),
        clean=_label_names(clean, classes, in_scope),
        posterior=scores[source],
        logged=scores["logged"],
        in_scope=in_scope,
        classes=classes,
        source=source,
        ids=[f"{source}-{seed}-{i}" for i in range(n)],
        _posteriors={key: scores[key] for key in _SOURCES},
    )


@dataclass(frozen=True)
class _Chunk:
    """A chunk of a sample; each has its own random stream, so a sample can have any length."""

    texts: list[str]
    reasons: NDArray[np.int64]
    labels: NDArray[np.int64]
    in_scope: NDArray[np.bool_]
    scores: dict[str, FloatArray]

    @classmethod
    def sample(cls, n: int, source: RowSource, seed: tuple[int, ...], outside: float) -> _Chunk:
        # Compute whole chunks and truncate afterwards, so that rounding does not depend on n.
        uniform = np.random.default_rng(seed).random((3 + N_FACTS + N_CHOICES, _CHUNK))
        scope, reason, label = uniform[:3]
        reasons = _sample_columns(PRIORS[source][None], np.zeros(_CHUNK, dtype=np.int64), reason)
        facts = draw_facts(reasons, uniform[3 : 3 + N_FACTS])
        scores = {key: posterior(facts, prior) for key, prior in PRIORS.items()}
        scores["logged"] = scores["logs"] @ NOISE
        inside = scope >= outside
        for values in scores.values():
            values[~inside] = np.nan
        return cls(
            texts=_render_texts(facts, uniform[3 + N_FACTS :], inside[:n]),
            reasons=reasons[:n],
            labels=_sample_columns(NOISE, reasons, label)[:n],
            in_scope=inside[:n],
            scores={key: values[:n] for key, values in scores.items()},
        )


def _render_texts(facts: Facts, uniform: FloatArray, inside: NDArray[np.bool_]) -> list[str]:
    """Render the messages: in-scope ones from their facts, the others without."""
    rows_inside, rows_outside = np.flatnonzero(inside), np.flatnonzero(~inside)
    rows = Facts(**{name: values[rows_inside] for name, values in vars(facts).items()})
    ours, theirs = (
        iter(texts(rows, uniform[:, rows_inside])),
        iter(outside_texts(uniform[:, rows_outside])),
    )
    return [next(ours if inner else theirs) for inner in inside.tolist()]


def _sample_columns(
    chances: FloatArray, row: NDArray[np.int64], uniform: FloatArray
) -> NDArray[np.int64]:
    """Sample a column from the distribution of each row."""
    steps = np.cumsum(chances, axis=1)[:, :-1]
    return np.asarray((uniform[:, None] >= steps[row]).sum(axis=1), dtype=np.int64)


def _merge_to_binary(scores: FloatArray) -> FloatArray:
    """Merge the columns into two classes."""
    return np.column_stack([scores[:, 1:].sum(axis=1), scores[:, 0]])


def _label_names(
    codes: NDArray[np.int64], classes: tuple[str, ...], in_scope: NDArray[np.bool_]
) -> NDArray[np.str_]:
    names = np.array([*classes, OUT_OF_SCOPE])
    return np.asarray(names[np.where(in_scope, codes, len(classes))])


def _check_source(source: str) -> str:
    if source not in _SOURCES:
        raise InputError(f"source must be 'logs' or 'golden', got {source!r}.")
    return source


def _check_arguments(n: int, seed: int, out_of_scope: float) -> None:
    for name, value in (("n", n), ("seed", seed)):
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 0:
            raise InputError(f"{name} must be a whole number of at least 0, got {value!r}.")
    if not isinstance(out_of_scope, int | float) or not 0.0 <= out_of_scope <= 1.0:
        raise InputError(
            f"out_of_scope must lie in [0, 1], got {out_of_scope!r}: it is the share of such "
            "messages."
        )
