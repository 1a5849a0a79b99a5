"""Roles of the columns of a score file, determined by name and never by value."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from calibrant.errors import InputError
from calibrant.files.source import ColumnOptions, Source, is_score


@dataclass(frozen=True)
class Layout:
    """Role of each column.

    `classes` follows the order of the value columns; for a single `prob` or `logit` it is empty
    until the labels are read. `named_by` is the origin of the class names of a single column:
    "" (labels are 0 and 1, or false and true), the user, or the file.
    """

    kind: Literal["prob", "logit"]
    values: tuple[str, ...]
    classes: tuple[str, ...]
    label: str
    weight: str | None = None
    group: str | None = None
    ids: str | None = None
    notes: tuple[str, ...] = ()
    named_by: Literal["", "--positive", "classes"] = ""

    @property
    def lone(self) -> bool:
        """Whether a single column holds P(positive)."""
        return len(self.values) == 1

    @property
    def numbers(self) -> tuple[str, ...]:
        """Columns that must be numeric."""
        return self.values if self.weight is None else (*self.values, self.weight)

    @property
    def words(self) -> tuple[str, ...]:
        """Columns of names, of any type."""
        columns = (self.label, self.group, self.ids)
        return tuple(dict.fromkeys(c for c in columns if c is not None))


def layout_of(source: Source, ask: ColumnOptions) -> Layout:
    """Assign a role to each column, or raise `InputError` for a missing one."""
    names, file = list(source.names), source.file
    _reject_duplicates(names, file)
    if not ask.whole:
        _require_column(ask.label, "label", "--label", names, file)
    if ask.group is not None:
        _require_column(ask.group, "group", "--group", names, file)
    _reject_score_columns(ask, names, file)
    _reject_label_as_group(ask, file)
    named = {ask.label, ask.weight, ask.group, ask.ids}
    kind, values = _value_columns([n for n in names if n not in named], names, file)
    layout = Layout(
        kind=kind,
        values=values,
        classes=() if len(values) == 1 else _class_names(values, file),
        label=ask.label,
        weight=ask.weight if ask.weight in names else None,
        group=ask.group,
        ids=ask.ids if ask.ids in names else None,
    )
    return layout if layout.lone else _with_positive(layout, ask.positive, file)


def check_same_layout(first: Layout, first_file: Path, other: Layout, file: Path) -> None:
    """Raise `InputError` if the columns of a later file differ from the first one."""
    for what, expected, actual in (
        ("score columns", set(first.values), set(other.values)),
        ("weight columns", {first.weight} - {None}, {other.weight} - {None}),
        ("id columns", {first.ids} - {None}, {other.ids} - {None}),
    ):
        if expected != actual:
            raise InputError(
                f"{file} has different {what} than {first_file}: {_format_names(actual)} instead "
                f"of {_format_names(expected)}: give all files the same columns."
            )


def _value_columns(
    free: list[str], names: list[str], file: Path
) -> tuple[Literal["prob", "logit"], tuple[str, ...]]:
    probs = [n for n in free if is_score(n, "prob")]
    logits = [n for n in free if is_score(n, "logit")]
    if probs and logits:
        raise InputError(
            f"{file} has both probabilities ('{probs[0]}') and logits ('{logits[0]}'): "
            "keep one kind and rename or drop the other."
        )
    score_columns = tuple(probs or logits)
    kind: Literal["prob", "logit"] = "prob" if probs else "logit"
    if not score_columns:
        raise InputError(
            f"{file} has no score columns{_suggest_name(free, ('prob', 'logit'))}: name them "
            "'prob_<class>' or 'logit_<class>', or a single 'prob' (columns: "
            f"{_format_names(names)})."
        )
    if len(score_columns) > 1 and kind in score_columns:
        other = next(n for n in score_columns if n != kind)
        raise InputError(
            f"{file} has both '{kind}' and '{other}': keep the single column, "
            "or one column per class."
        )
    if len(score_columns) == 1 and score_columns[0] != kind:
        name = score_columns[0].split("_", 1)[1]
        raise InputError(
            f"{file} has only one class column '{score_columns[0]}': add a column for every other "
            f"class, or rename it to '{kind}' and pass --positive {name}."
        )
    if any(n.strip() == f"{kind}_" for n in score_columns):
        raise InputError(f"{file} has a column '{kind}_' without a class: write '{kind}_<class>'.")
    return kind, score_columns


def _class_names(values: Sequence[str], file: Path) -> tuple[str, ...]:
    """Return the class names: the stripped text after the first underscore."""
    names = [value.split("_", 1)[1].strip() for value in values]
    duplicates = [i for i, name in enumerate(names) if name in names[:i]]
    if duplicates:
        other, this = values[names.index(names[duplicates[0]])], values[duplicates[0]]
        raise InputError(
            f"{file} has the class '{names[duplicates[0]]}' twice, as '{other}' and '{this}': "
            "rename or drop one of them."
        )
    return tuple(names)


def _reject_score_columns(ask: ColumnOptions, names: Sequence[str], file: Path) -> None:
    """Reject a score column used as label or group."""
    for flag, part, name in (("--label", "label", ask.label), ("--group", "group", ask.group)):
        if name in names and is_score(str(name)):
            raise InputError(
                f"{flag} {name}: the column '{name}' of {file} is a score column and cannot be the "
                f"{part} column: choose another one."
            )


def _reject_label_as_group(ask: ColumnOptions, file: Path) -> None:
    """Reject the label as group: no model is calibrated among rows of one label."""
    if ask.group is not None and ask.group == ask.label:
        raise InputError(
            f"--group {ask.group}: the column '{ask.group}' of {file} is the label, and no model "
            "is calibrated among rows of one label: choose another column."
        )


def _with_positive(layout: Layout, positive: str | None, file: Path) -> Layout:
    """Put the positive of two classes second, and add a note that names it."""
    classes = layout.classes
    if positive is not None and positive not in classes:
        raise InputError(
            f"--positive {positive} is not a class of {file}{_suggest_name(classes, (positive,))}: "
            f"choose one of {_format_names(classes)}."
        )
    if len(classes) > 2:
        if positive is not None:
            raise InputError(
                f"--positive {positive} needs two classes, but {file} has {len(classes)}: omit it."
            )
        return layout
    if positive is None:
        note = (
            f"The positive class is '{classes[1]}', the second score column; "
            "--positive chooses another."
        )
        return replace(layout, notes=(note,))
    order = (0, 1) if positive == classes[1] else (1, 0)
    return replace(
        layout,
        values=tuple(layout.values[i] for i in order),
        classes=tuple(classes[i] for i in order),
        notes=(f"The positive class is '{positive}'.",),
    )


def _reject_duplicates(names: list[str], file: Path) -> None:
    duplicates = [name for name, count in Counter(names).items() if count > 1]
    if duplicates:
        raise InputError(
            f"{file} has the column '{duplicates[0]}' twice: rename or drop one of them."
        )


def _require_column(name: str, part: str, flag: str, names: list[str], file: Path) -> None:
    if name in names:
        return
    raise InputError(
        f"{file} has no {part} column '{name}'{_suggest_name(names, (name,))}: name it with {flag} "
        f"or check that the first line holds the column names (columns: {_format_names(names)})."
    )


def _suggest_name(names: Sequence[str], wanted: Sequence[str]) -> str:
    """Suggest a similar name."""
    lower = {name.lower(): name for name in reversed(list(names))}
    for want in wanted:
        longer = [name for name in lower if name.startswith(want.lower())]
        close = difflib.get_close_matches(want.lower(), list(lower), n=1) or longer
        if close:
            return f" (did you mean '{lower[close[0]]}'?)"
    return ""


def _format_names(names: Sequence[str] | set[Any], most: int = 8) -> str:
    known = sorted(names) if isinstance(names, set) else list(names)
    if not known:
        return "none"
    shown = ", ".join(f"'{name}'" for name in known[:most])
    return f"{shown} and {len(known) - most} more" if len(known) > most else shown
