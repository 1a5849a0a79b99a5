"""Input fields of the Try it page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from calibrant.data.encoders.category_column import CategoryColumn
from calibrant.serving.bundle_slot import Served
from calibrant.study.report.wording import shown_name

Kind = Literal["text", "number", "category", "logit"]

MAX_FIELDS = 100  # With more fields than this, a row is pasted as a whole

_MAX_HINTS = 3  # Categories named in a hint; the field offers all of them


@dataclass(frozen=True)
class Field:
    """One input field."""

    key: str  # name in the form, because names of columns and classes are arbitrary
    name: str
    kind: Kind
    column: CategoryColumn | None = None  # encoding of a categorical column, else None
    mean: float | None = None  # mean of a numeric column in the train rows, else None

    @property
    def label(self) -> str:
        """Label on the page."""
        return "Message" if self.kind == "text" else shown_name(self.name)

    @property
    def known(self) -> tuple[str, ...]:
        """Categories that the model knows."""
        return () if self.column is None else self.column.categories

    @property
    def hint(self) -> str:
        """Hint about accepted values."""
        if self.kind == "category":
            some = [shown_name(name) for name in self.known[:_MAX_HINTS]]
            return ", ".join(some) + (", …" if len(self.known) > _MAX_HINTS or self.pools else "")
        return "a number" if self.mean is None else f"a number; mean {self.mean:.4g}"

    @property
    def pools(self) -> bool:
        """Whether rare, unlisted categories share a feature."""
        return self.column is not None and self.column.other


def list_fields(served: Served) -> tuple[Field, ...]:
    """Return the input fields of a bundle, in the order of the model."""
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
        else Field(f"value-{i}", each.name, "number", mean=each.mean)
        for i, each in enumerate(columns)
    )
