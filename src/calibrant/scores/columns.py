"""What the columns of a score file mean, read from their names and never from their values."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from calibrant.errors import InputError
from calibrant.files.source import Ask, Source, is_score

__all__ = [
    "Layout",
    "layout_of",
    "same_layout",
]


@dataclass(frozen=True)
class Layout:
    """Which column plays which part.

    `classes` follows the order of the value columns; for a lone `prob` or `logit` it stays empty
    until the labels have been looked at. `named_by` says who named the classes of a lone column:
    nobody (then labels are 0 and 1, or false and true), the user, or the file.
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
        """Whether one column holds P(positive)."""
        return len(self.values) == 1

    @property
    def numbers(self) -> tuple[str, ...]:
        """Columns that must hold numbers."""
        return self.values if self.weight is None else (*self.values, self.weight)

    @property
    def words(self) -> tuple[str, ...]:
        """Columns that hold names, of any type."""
        found = (self.label, self.group, self.ids)
        return tuple(dict.fromkeys(c for c in found if c is not None))


def layout_of(source: Source, ask: Ask) -> Layout:
    """Give each column its part, or say in one sentence what is missing."""
    names, file = list(source.names), source.file
    _refuse_twice(names, file)
    if not ask.whole:
        _require(ask.label, "label", "--label", names, file)
    if ask.group is not None:
        _require(ask.group, "group", "--group", names, file)
    _refuse_scores(ask, names, file)
    _refuse_label_as_group(ask, file)
    taken = {ask.label, ask.weight, ask.group, ask.ids}
    kind, values = _value_columns([n for n in names if n not in taken], names, file)
    found = Layout(
        kind=kind,
        values=values,
        classes=() if len(values) == 1 else _class_names(values, file),
        label=ask.label,
        weight=ask.weight if ask.weight in names else None,
        group=ask.group,
        ids=ask.ids if ask.ids in names else None,
    )
    return found if found.lone else _with_positive(found, ask.positive, file)


def same_layout(first: Layout, first_file: Path, other: Layout, file: Path) -> None:
    """Refuse a later file whose columns differ from the first one's."""
    for what, mine, theirs in (
        ("score columns", set(first.values), set(other.values)),
        ("weight columns", {first.weight} - {None}, {other.weight} - {None}),
        ("id columns", {first.ids} - {None}, {other.ids} - {None}),
    ):
        if mine != theirs:
            raise InputError(
                f"{file} has other {what} than {first_file}: {_listed(theirs)} instead of "
                f"{_listed(mine)}: all files must have the same columns."
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
    found = tuple(probs or logits)
    kind: Literal["prob", "logit"] = "prob" if probs else "logit"
    if not found:
        raise InputError(
            f"{file} has no score columns{_near(free, ('prob', 'logit'))}: name them "
            f"'prob_<class>' or 'logit_<class>', or a lone 'prob' (columns: {_listed(names)})."
        )
    if len(found) > 1 and kind in found:
        other = next(n for n in found if n != kind)
        raise InputError(
            f"{file} has a lone '{kind}' beside '{other}': keep the lone column, "
            "or one column for each class."
        )
    if len(found) == 1 and found[0] != kind:
        name = found[0].split("_", 1)[1]
        raise InputError(
            f"{file} has only one class column '{found[0]}': add a column for each other class, "
            f"or rename it to '{kind}' and pass --positive {name}."
        )
    if any(n.strip() == f"{kind}_" for n in found):
        raise InputError(f"{file} has a column '{kind}_' without a class: write '{kind}_<class>'.")
    return kind, found


def _class_names(values: Sequence[str], file: Path) -> tuple[str, ...]:
    """Return what follows the first underscore, without spaces around it."""
    names = [value.split("_", 1)[1].strip() for value in values]
    twice = [i for i, name in enumerate(names) if name in names[:i]]
    if twice:
        other, this = values[names.index(names[twice[0]])], values[twice[0]]
        raise InputError(
            f"{file} has the class '{names[twice[0]]}' twice, as '{other}' and '{this}': "
            "rename or drop one of them."
        )
    return tuple(names)


def _refuse_scores(ask: Ask, names: Sequence[str], file: Path) -> None:
    """Refuse a score column that is asked to play another part as well."""
    for flag, part, name in (("--label", "label", ask.label), ("--group", "group", ask.group)):
        if name in names and is_score(str(name)):
            raise InputError(
                f"{flag} {name}: the column '{name}' of {file} is a score column and cannot be the "
                f"{part} column: name another one."
            )


def _refuse_label_as_group(ask: Ask, file: Path) -> None:
    """Refuse to judge rows of one label alone: no model is calibrated among them."""
    if ask.group is not None and ask.group == ask.label:
        raise InputError(
            f"--group {ask.group}: the column '{ask.group}' of {file} is the label; among rows of "
            "one label no score is right: name another column."
        )


def _with_positive(layout: Layout, positive: str | None, file: Path) -> Layout:
    """For two class columns put the positive class second, and say which it is."""
    classes = layout.classes
    if positive is not None and positive not in classes:
        raise InputError(
            f"--positive {positive} is not a class of {file}{_near(classes, (positive,))}: "
            f"choose among {_listed(classes)}."
        )
    if len(classes) > 2:
        if positive is not None:
            raise InputError(
                f"--positive {positive} needs two classes, but {file} has {len(classes)}: "
                "leave it out."
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


def _refuse_twice(names: list[str], file: Path) -> None:
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise InputError(f"{file} has the column '{twice[0]}' twice: rename or drop one of them.")


def _require(name: str, part: str, flag: str, names: list[str], file: Path) -> None:
    if name in names:
        return
    raise InputError(
        f"{file} has no {part} column '{name}'{_near(names, (name,))}: name it with {flag} or "
        f"check that the first line holds the column names (columns: {_listed(names)})."
    )


def _near(names: Sequence[str], wanted: Sequence[str]) -> str:
    """Suggest the name that was probably meant."""
    lower = {name.lower(): name for name in reversed(list(names))}
    for want in wanted:
        longer = [name for name in lower if name.startswith(want.lower())]
        close = difflib.get_close_matches(want.lower(), list(lower), n=1) or longer
        if close:
            return f" (is it '{lower[close[0]]}'?)"
    return ""


def _listed(names: Sequence[str] | set[Any], most: int = 8) -> str:
    known = sorted(names) if isinstance(names, set) else list(names)
    if not known:
        return "none"
    shown = ", ".join(f"'{name}'" for name in known[:most])
    return f"{shown} and {len(known) - most} more" if len(known) > most else shown
