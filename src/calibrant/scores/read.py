"""Score files: predicted scores with true labels, read whole or in batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from calibrant.errors import InputError
from calibrant.files.source import BatchLocation, ColumnOptions, Source
from calibrant.inputs import FloatArray, IntArray
from calibrant.scores.checks import (
    FLOOR,
    check_scores,
    check_weights,
    clip_logits,
    floor_note,
    scores_to_logits,
    scores_to_probs,
    zero_replacement,
)
from calibrant.scores.columns import Layout, check_same_layout, layout_of
from calibrant.scores.files import Paths, open_source, score_files
from calibrant.scores.labels import BOOLEAN_CODES, as_names, class_codes, resolve_classes

_MOST_GROUPS = 200


@dataclass(frozen=True)
class Scores:
    """Validated rows of a score file.

    Parameters
    ----------
    labels : (n,) positions in `classes`
    probs : (n,) P(second class), or (n, K) in the order of `classes`
    classes : class names, as text
    weights : (n,) or None
    groups : (n,) names, or None
    ids : (n,) row names, or None
    notes : notes for the report
    logits : if requested: (n,) log-odds of the second class, or (n, K)
    floored : number of probabilities replaced by `zero_as` in `logits`, because 0 has no logarithm
    zero_as : smallest probability in `logits`
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
    positive : for two classes, the positive class; by default the second column
    group : column that divides the rows into groups
    label : name of the label column
    weight : name of the weight column; without it, all rows have equal weight
    ids : name of a column of row ids, read if it exists
    logits : also return logits: those of the file, or the logarithms of its probabilities

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
    whole = parts[0] if len(parts) == 1 else _concatenate(parts)
    if whole.floored and whole.logits is not None:
        floor = zero_replacement(whole.probs)
        notes = (*whole.notes, floor_note(whole.floored, floor))
        whole = replace(whole, logits=clip_logits(whole.logits, floor), zero_as=floor, notes=notes)
    if whole.groups is not None:
        _check_groups(whole.groups, str(group))
    labels_present = np.unique(whole.labels)
    if len(labels_present) == 1:
        name = whole.classes[int(labels_present[0])]
        subject = "The only label is" if whole.n == 1 else f"All {whole.n:,} labels are"
        note = f"{subject} '{name}': ranking metrics need a second class."
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
    r"""Read score files in batches, in constant memory.

    The first file sets the classes and their order; a later file with different columns raises
    `InputError`. Options are those of `read_scores`. For text formats, the batch size is fixed by
    the reader.

    Examples
    --------
    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "scores.jsonl"
    >>> _ = file.write_text('{"label": 1, "prob": 0.9}\n{"label": 0, "prob": 0.2}\n')
    >>> [batch.n for batch in scan_scores(file)]
    [2]
    """
    ask = ColumnOptions(label=label, weight=weight, group=group, positive=positive, ids=ids)
    files = score_files(path)
    first = open_source(files[0], ask)
    layout = layout_of(first, ask)
    layout = resolve_classes(layout, _open_sources(files, first, layout, ask), ask, first.pair)
    # Open again: the batches read to resolve the classes are part of the data.
    sources = _open_sources(files, first, layout, ask)
    return _batches(sources, layout, files, batch_rows, logits=logits)


def _open_sources(
    files: list[Path], first: Source, layout: Layout, ask: ColumnOptions
) -> Iterator[Source]:
    """Open the files lazily, one after the other."""
    yield first
    for file in files[1:]:
        source = open_source(file, ask)
        check_same_layout(layout, files[0], layout_of(source, ask), file)
        if source.pair != first.pair:
            raise InputError(
                f"{file} has different classes than {files[0]}: use the same in all files."
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
            place = BatchLocation(source.file, first, source.display_names)
            scores = _check_batch(batch, layout, place, logits=logits)
            first += scores.n
            mass += scores.n if scores.weights is None else float(scores.weights.sum())
            yield scores
        n += first
    shown = str(files[0]) if len(files) == 1 else f"{files[0]} and {len(files) - 1} more"
    if n == 0:
        raise InputError(f"{shown} has column names but no rows: at least one row is needed.")
    if mass == 0:
        raise InputError(
            f"{shown}, column '{layout.weight}': all weights are zero: "
            "at least one must be positive."
        )


def _check_batch(
    batch: pa.RecordBatch, layout: Layout, place: BatchLocation, *, logits: bool
) -> Scores:
    """Validate one batch."""
    values = check_scores(batch, layout, place)
    file_logits, floored = scores_to_logits(values, layout) if logits else (None, 0)

    def words(name: str | None) -> NDArray[np.str_] | None:
        return None if name is None else as_names(batch.column(name), name, place)

    return Scores(
        labels=class_codes(batch.column(layout.label), layout, place),
        probs=scores_to_probs(values, layout),
        classes=layout.classes,
        weights=None
        if layout.weight is None
        else check_weights(batch.column(layout.weight), layout.weight, place),
        groups=words(layout.group),
        ids=words(layout.ids),
        notes=layout.notes,
        logits=file_logits,
        floored=floored,
    )


def _concatenate(parts: list[Scores]) -> Scores:
    def join(name: str) -> Any:
        columns = [getattr(part, name) for part in parts]
        return None if columns[0] is None else np.concatenate(columns)

    names = ("labels", "probs", "weights", "groups", "ids", "logits")
    floored = sum(part.floored for part in parts)
    return replace(parts[0], floored=floored, **{name: join(name) for name in names})


def _check_groups(groups: NDArray[np.str_], name: str) -> None:
    n_groups = len(np.unique(groups))
    if n_groups > _MOST_GROUPS:
        raise InputError(
            f"the group column '{name}' has {n_groups:,} distinct values, but at most "
            f"{_MOST_GROUPS} are supported: choose a coarser column."
        )


def class_order(
    available: Sequence[str], wanted: Sequence[str], *, files: tuple[str, str]
) -> list[int]:
    """Return the position in `available` of each class in `wanted`, or raise `InputError`.

    0 and 1 match false and true. `files` names the origins of both, for messages.
    """
    if len(available) != len(wanted):
        raise InputError(
            f"{files[0]} has scores for {len(available)} classes, but {files[1]} has "
            f"{len(wanted)}: use the same classes for both."
        )
    if set(available) != set(wanted) and are_boolean(available) and are_boolean(wanted):
        available, wanted = (
            [str(BOOLEAN_CODES[name.lower()]) for name in names] for names in (available, wanted)
        )
    if set(available) != set(wanted):
        missing = next(name for name in wanted if name not in available)
        extra = next(name for name in available if name not in wanted)
        raise InputError(
            f"{files[0]} has scores for the class '{extra}' where {files[1]} has '{missing}': "
            "use the same classes for both."
        )
    return [list(available).index(name) for name in wanted]


def are_boolean(classes: Sequence[str]) -> bool:
    """Return whether the classes are 0 and 1, or false and true."""
    return sorted(BOOLEAN_CODES.get(name.lower(), -1) for name in classes) == [0, 1]


def reorder_classes(scores: Scores, classes: tuple[str, ...], *, files: tuple[str, str]) -> Scores:
    """Return scores, which must have logits, with their classes in another order."""
    order = class_order(scores.classes, classes, files=files)
    labels = np.argsort(order)[scores.labels]
    assert scores.logits is not None
    if scores.probs.ndim == 2:
        probs, logits = scores.probs[:, order], scores.logits[:, order]
    elif order == [0, 1]:
        probs, logits = scores.probs, scores.logits
    else:
        probs, logits = 1.0 - scores.probs, -scores.logits
    return replace(scores, labels=labels, probs=probs, logits=logits, classes=classes)
