"""The fields of the Try it page: one for each thing that the bundle reads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from calibrant.data.encoders.category_column import CategoryColumn
from calibrant.serving.bundle_slot import Served
from calibrant.study.report.wording import shown_name

__all__ = ["MOST_FIELDS", "Field", "fields_of"]

Kind = Literal["text", "number", "category", "logit"]

MOST_FIELDS = 100
"""Beyond it a row is pasted as a whole: nobody types so many values one by one."""

_HINTED = 3
"""Categories that a hint names; the field offers all of them."""


@dataclass(frozen=True)
class Field:
    """One field.

    Parameters
    ----------
    key : its name in the form; names of columns and classes could be anything
    name : of the column or class
    kind : what it holds
    column : what the encoder knows of a column of categories, else None
    usual : mean of a column of numbers in the train rows, else None
    """

    key: str
    name: str
    kind: Kind
    column: CategoryColumn | None = None
    usual: float | None = None

    @property
    def label(self) -> str:
        """What the page calls it."""
        return "Message" if self.kind == "text" else shown_name(self.name)

    @property
    def known(self) -> tuple[str, ...]:
        """The categories that the model knows."""
        return () if self.column is None else self.column.categories

    @property
    def hint(self) -> str:
        """What may stand in it."""
        if self.kind == "category":
            some = [shown_name(name) for name in self.known[:_HINTED]]
            return ", ".join(some) + (", …" if len(self.known) > _HINTED or self.pools else "")
        return "a number" if self.usual is None else f"a number; {self.usual:.4g} on average"

    @property
    def pools(self) -> bool:
        """Whether rare categories, which are not listed, share a feature."""
        return self.column is not None and self.column.other


def fields_of(served: Served) -> tuple[Field, ...]:
    """Return the fields of what a bundle reads, in the order in which the model has them."""
    if served.reads == "text":
        return (Field("text", "text", "text"),)
    if served.reads == "logits":
        return tuple(Field(f"value-{i}", name, "logit") for i, name in enumerate(served.classes))
    scorer = served.bundle.scorer
    assert scorer is not None  # it reads tables
    columns = scorer.encoder.columns_  # type: ignore[union-attr]
    return tuple(
        Field(f"value-{i}", each.name, "category", each)
        if isinstance(each, CategoryColumn)
        else Field(f"value-{i}", each.name, "number", usual=each.mean)
        for i, each in enumerate(columns)
    )
