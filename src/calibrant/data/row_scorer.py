"""The model of a bundle: reads rows of one kind and computes logits."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from calibrant.data.encoders.input_columns import InputColumns
from calibrant.data.encoders.table_encoder import TableEncoder
from calibrant.data.explanation import Explanation
from calibrant.data.model_inputs import Encoder, as_inputs, columns_of, kind_of
from calibrant.data.redaction.redactor import redact_column
from calibrant.errors import InputError
from calibrant.inputs import FloatArray

if TYPE_CHECKING:
    import pyarrow as pa


class RowScorer(ABC):
    r"""Compute logits of texts, table rows or images.

    $$ z = f(e(x)) - s $$

    with e the encoder, f the model and s the shift of the logits caused by the loss or by
    resampling. A row that the model cannot score (see `is_unscorable`) has z = 0 for every class;
    an `OodRule` with `equal` flags these rows. A scorer is immutable, so threads may share it.

    Its logits are not calibrated: a bundle's calibrator is applied to them. Subclasses set `f` by
    `compute_logits`, and call `_set_classes` at the end of their constructor.

    Parameters
    ----------
    encoder : a fitted encoder of texts, tables or images
    redact : whether to redact e-mail addresses and numbers in texts first
    column : name of the column of texts in a table; None for "text"
    resize : whether image files of other sizes are resized; arrays of another size are an error
    """

    n_classes: int
    shift: FloatArray | None
    classes: tuple[Any, ...] | None

    def __init__(
        self,
        encoder: Encoder,
        *,
        redact: bool = False,
        column: str | None = None,
        resize: bool = False,
    ) -> None:
        self._kind = kind_of(encoder)
        self.encoder = encoder
        self.text = self._kind == "text"
        self.redact = bool(redact) and self.text
        self.resize = bool(resize) and self._kind == "image"
        self.column = (column or "text") if self.text else None

    def _set_classes(self, n_classes: int, shift: Any, classes: Sequence[Any] | None) -> None:
        self.n_classes = n_classes
        self.shift = as_shift(shift, n_classes)
        self.classes = None if classes is None else tuple(classes)
        if self.classes is not None and len(self.classes) != n_classes:
            raise InputError(
                f"the model gives {n_classes} logits, but there are {len(self.classes)} classes."
            )

    @property
    def kind(self) -> str:
        """What it reads: "text", "table" or "image"."""
        return self._kind

    @property
    def columns(self) -> InputColumns:
        """The columns that it reads of a table: none where it reads images."""
        return columns_of(self.encoder, self.column)

    @property
    def knows_far_numbers(self) -> bool:
        """Whether it reads a column of numbers of which it knows how far they reached in training.

        Columns with few values, or learned before there were such limits, have none.
        """
        return isinstance(self.encoder, TableEncoder) and self.encoder.has_limits

    @property
    @abstractmethod
    def config(self) -> dict[str, Any]:
        """What the model is built from; "model" is its name."""

    @property
    def networks(self) -> tuple[str, ...]:
        """Names of its models: one, or those that it averages."""
        return (str(self.config["model"]),)

    @property
    @abstractmethod
    def size(self) -> str:
        """Its size in words, like "1,234 weights"."""

    @property
    def note(self) -> str:
        """A sentence on the model for the model card, or ""."""
        return ""

    @property
    def packages(self) -> tuple[str, ...]:
        """Packages that run it, whose versions are part of a bundle's provenance."""
        return ()

    @property
    def is_deep(self) -> bool:
        """Whether one batch keeps all cores busy."""
        return False

    @property
    def device_type(self) -> str:
        """Where it runs: "cpu" or "cuda"."""
        return "cpu"

    def predict_logits(self, inputs: Any) -> FloatArray:
        """Return logits (n, K)."""
        rows = as_inputs(inputs, self.encoder, self.column)
        if self.redact:
            rows = redact_column(rows)
        logits = self.compute_logits(rows).astype(np.float64)
        if self.shift is not None:
            logits -= self.shift
        unscorable = self.is_unscorable(rows)
        if unscorable is not None:
            logits[unscorable] = 0.0
        return logits

    @abstractmethod
    def compute_logits(self, rows: Any) -> NDArray[Any]:
        """Return the model's own logits (n, K) of rows that were read and redacted."""

    def is_unscorable(self, rows: Any) -> NDArray[np.bool_] | None:
        """Return which rows (n,) the model cannot score; None if it can score all rows.

        A table row with a number far from the train rows is one: models are often overconfident
        there.
        """
        return self.encoder.is_far(rows) if isinstance(self.encoder, TableEncoder) else None

    @property
    def explains(self) -> bool:
        """Whether `explain` can tell what the parts of a row contribute."""
        return False

    def explain(self, inputs: Any) -> Explanation | None:
        """Return what each part of a row contributes to its logits; None if it cannot tell."""
        return None

    @abstractmethod
    def trial(self) -> FloatArray:
        """Return the model's own logits of one made-up row, which touches every part of it."""

    def pick(self, table: pa.Table) -> Any:
        """Take what `predict_logits` reads out of an Arrow table that may have further columns."""
        if self._kind == "image":
            raise InputError(
                "the bundle reads images, which a table does not hold: give predict_logits, "
                "predict_proba or decide the images."
            )
        if isinstance(self.encoder, TableEncoder) and not self.encoder.named_:
            return table  # columns without names go by position
        picked = self.columns.select_from(table)
        return picked.column(0) if self.text else picked

    @abstractmethod
    def save(self, folder: Path, prefix: str = "") -> dict[str, Any]:
        """Write its files, with `prefix` before their names; return what the loader takes."""

    def describe_inputs(self) -> dict[str, Any]:
        """Return the part of the saved record that every kind of model has."""
        return {
            "input": self.kind,
            "columns": {"text": self.column} if self.text else self.columns.to_dict(),
            "log_shift": None if self.shift is None else self.shift.tolist(),
            "redact": self.redact,
            **({"resize": self.resize} if self._kind == "image" else {}),
        }


def read_text_column(spec: Mapping[str, Any]) -> str | None:
    """Return the column of texts that a saved record names; None for tables and images."""
    if spec["input"] != "text":
        return None
    name = spec["columns"].get("text")
    if not isinstance(name, str) or not name:
        raise InputError("the manifest does not name the column of texts.")
    return name


def as_shift(shift: Any, n_classes: int) -> FloatArray | None:
    """Return a shift of the logits as (K,) finite numbers, or None."""
    if shift is None:
        return None
    try:
        values = np.asarray(shift, dtype=np.float64)
    except (TypeError, ValueError):
        values = np.empty(0)
    if values.shape != (n_classes,) or not np.isfinite(values).all():
        raise InputError(f"shift must hold {n_classes} finite numbers, one for each class.")
    return values
