"""Input fields of the Try it page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from calibrant.data.encoders.category_column import CategoryColumn
from calibrant.data.encoders.date_column import DateColumn
from calibrant.data.encoders.number_format import PLAIN
from calibrant.data.encoders.table_columns import Format
from calibrant.data.encoders.table_features import EncodedColumn
from calibrant.serving.bundle_slot import Served
from calibrant.study.report.wording import shown_name

Kind = Literal["text", "number", "category", "date", "logit"]

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
    format: Format | None = None  # how numbers or dates are written, else None

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
        like = "" if self.format in (None, PLAIN) else f" like {self.format.example}"
        mean = "" if self.mean is None else f"; mean {self.mean:.4g}"
        return f"a {'date' if self.kind == 'date' else 'number'}{like}{mean}"

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
    return tuple(_field(f"value-{i}", column) for i, column in enumerate(columns))


def _field(key: str, column: EncodedColumn) -> Field:
    if isinstance(column, CategoryColumn):
        return Field(key, column.name, "category", column)
    if isinstance(column, DateColumn):
        return Field(key, column.name, "date", format=column.format)
    return Field(key, column.name, "number", mean=column.mean, format=column.format)
