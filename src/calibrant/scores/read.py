"""`read_scores` and `scan_scores`: what a model said, and what was true, from files."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from calibrant.errors import InputError
from calibrant.files.source import Ask, Place, Source
from calibrant.inputs import FloatArray, IntArray
from calibrant.scores.checks import (
    FLOOR,
    as_checked_probs,
    as_finite_logits,
    checked_scores,
    checked_weights,
    floor_note,
    raised,
    zero_as,
)
from calibrant.scores.columns import Layout, layout_of, same_layout
from calibrant.scores.files import Paths, open_source, score_files
from calibrant.scores.labels import class_codes, names_of, settle_classes

__all__ = ["Scores", "read_scores", "scan_scores"]

_MOST_GROUPS = 200


@dataclass(frozen=True)
class Scores:
    """Rows of a score file that passed every check.

    Parameters
    ----------
    labels : (n,) positions into `classes`
    probs : (n,) P(second class), or (n, K) in the order of `classes`
    classes : class names, always as text
    weights : (n,) or None
    groups : (n,) names, or None
    ids : (n,) names of the rows, or None
    notes : sentences that a report should repeat
    logits : where they were asked for: (n,) log-odds of the second class, or (n, K)
    floored : how many probabilities count as `zero_as` in `logits`, for 0 has no logarithm
    zero_as : the least that a probability counts as in `logits`
    """

    labels: IntArray
    probs: NDArray[np.floating[Any]]
    classes: tuple[str, ...]
    weights: FloatArray | None = None
    groups: NDArray[np.str_] | None = None
    ids: NDArray[np.str_] | None = None
    notes: tuple[str, ...] = ()
    logits: NDArray[np.floating[Any]] | None = None
    floored: int = 0
    zero_as: float = FLOOR

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.labels)


def read_scores(
    path: Paths,
    *,
    positive: str | None = None,
    group: str | None = None,
    label: str = "label",
    weight: str = "weight",
    ids: str | None = None,
    logits: bool = False,
) -> Scores:
    r"""Read a score file, a folder or a glob of them into memory.

    Parameters
    ----------
    path : `.csv`, `.jsonl` (also `.gz`), `.parquet` or `.npz`; a folder, a glob, or a list of them
    positive : for two classes, the one that counts as the event; by default the second column
    group : column whose values split the rows into groups
    label : name of the label column
    weight : name of the weight column; rows count alike where there is none
    ids : name of a column that identifies rows, read where it exists
    logits : also give the logits: those of the file, or the logarithms of its probabilities

    Examples
    --------
    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "scores.csv"
    >>> _ = file.write_text("label,prob_cat,prob_dog\ncat,0.9,0.1\ndog,0.3,0.7\n")
    >>> scores = read_scores(file, logits=True)
    >>> scores.classes, scores.labels
    (('cat', 'dog'), array([0, 1]))
    >>> scores.logits[0].round(3)
    array([-0.105, -2.303])
    """
    parts = list(
        scan_scores(
            path,
            positive=positive,
            group=group,
            label=label,
            weight=weight,
            ids=ids,
            logits=logits,
            batch_rows=1 << 20,
        )
    )
    whole = parts[0] if len(parts) == 1 else _joined(parts)
    if whole.floored and whole.logits is not None:
        floor = zero_as(whole.probs)
        notes = (*whole.notes, floor_note(whole.floored, floor))
        whole = replace(whole, logits=raised(whole.logits, floor), zero_as=floor, notes=notes)
    if whole.groups is not None:
        _check_groups(whole.groups, str(group))
    present = np.unique(whole.labels)
    if len(present) == 1:
        name = whole.classes[int(present[0])]
        all_are = "The only label is" if whole.n == 1 else f"All {whole.n:,} labels are"
        note = f"{all_are} '{name}': figures that rank classes need a second one."
        whole = replace(whole, notes=(*whole.notes, note))
    return whole


def scan_scores(
    path: Paths,
    *,
    positive: str | None = None,
    group: str | None = None,
    label: str = "label",
    weight: str = "weight",
    ids: str | None = None,
    logits: bool = False,
    batch_rows: int = 1 << 20,
) -> Iterator[Scores]:
    r"""Read score files batch by batch, in constant memory.

    The first file fixes the classes and their order; a later file with other columns is an error
    that names it. Options are those of `read_scores`. Text formats choose their own batch length.

    Examples
    --------
    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "scores.jsonl"
    >>> _ = file.write_text('{"label": 1, "prob": 0.9}\n{"label": 0, "prob": 0.2}\n')
    >>> [batch.n for batch in scan_scores(file)]
    [2]
    """
    ask = Ask(label=label, weight=weight, group=group, positive=positive, ids=ids)
    files = score_files(path)
    first = open_source(files[0], ask)
    layout = layout_of(first, ask)
    layout = settle_classes(layout, _opened(files, first, layout, ask), ask, first.pair)
    # Opened anew: what was looked at to settle the classes is read again with the rest.
    sources = _opened(files, first, layout, ask)
    return _batches(sources, layout, files, batch_rows, logits=logits)


def _opened(files: list[Path], first: Source, layout: Layout, ask: Ask) -> Iterator[Source]:
    """Open one file after the other, each only when its turn comes."""
    yield first
    for file in files[1:]:
        source = open_source(file, ask)
        same_layout(layout, files[0], layout_of(source, ask), file)
        if source.pair != first.pair:
            raise InputError(
                f"{file} has other classes than {files[0]}: all files must have the same."
            )
        yield source


def _batches(
    sources: Iterator[Source],
    layout: Layout,
    files: list[Path],
    batch_rows: int,
    *,
    logits: bool,
) -> Iterator[Scores]:
    n, mass = 0, 0.0
    for source in sources:
        first = 0
        for batch in source.batches(layout.numbers, layout.words, batch_rows):
            if batch.num_rows == 0:
                continue
            place = Place(source.file, first, source.called)
            scores = _scores(batch, layout, place, logits=logits)
            first += scores.n
            mass += scores.n if scores.weights is None else float(scores.weights.sum())
            yield scores
        n += first
    shown = str(files[0]) if len(files) == 1 else f"{files[0]} and {len(files) - 1} more"
    if n == 0:
        raise InputError(f"{shown} has column names but no rows: at least one row is needed.")
    if mass == 0:
        raise InputError(
            f"{shown}, column '{layout.weight}': the weights are all zero: "
            "at least one row must count."
        )


def _scores(batch: pa.RecordBatch, layout: Layout, place: Place, *, logits: bool) -> Scores:
    """Check one batch."""
    values = checked_scores(batch, layout, place)
    found, floored = as_finite_logits(values, layout) if logits else (None, 0)

    def words(name: str | None) -> NDArray[np.str_] | None:
        return None if name is None else names_of(batch.column(name), name, place)

    return Scores(
        labels=class_codes(batch.column(layout.label), layout, place),
        probs=as_checked_probs(values, layout),
        classes=layout.classes,
        weights=None
        if layout.weight is None
        else checked_weights(batch.column(layout.weight), layout.weight, place),
        groups=words(layout.group),
        ids=words(layout.ids),
        notes=layout.notes,
        logits=found,
        floored=floored,
    )


def _joined(parts: list[Scores]) -> Scores:
    def join(name: str) -> Any:
        columns = [getattr(part, name) for part in parts]
        return None if columns[0] is None else np.concatenate(columns)

    names = ("labels", "probs", "weights", "groups", "ids", "logits")
    floored = sum(part.floored for part in parts)
    return replace(parts[0], floored=floored, **{name: join(name) for name in names})


def _check_groups(groups: NDArray[np.str_], name: str) -> None:
    found = len(np.unique(groups))
    if found > _MOST_GROUPS:
        raise InputError(
            f"the group column '{name}' has {found:,} different values, at most {_MOST_GROUPS} are "
            "compared: choose a coarser column."
        )
