"""A running model: an encoder and its network, made from a fitted classifier or from a bundle."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import torch
from torch import nn

from calibrant.data.input_columns import InputColumns
from calibrant.data.redaction import redacted_column
from calibrant.data.table_encoder import TableEncoder
from calibrant.data.text_encoder import TextEncoder
from calibrant.errors import InputError
from calibrant.inputs import FloatArray
from calibrant.models.options import plain
from calibrant.models.saved_parts import (
    config_of,
    device_named,
    read_encoder,
    read_network,
    write_encoder,
    write_network,
)
from calibrant.models.scorer_inputs import as_inputs, columns_of
from calibrant.models.scoring import array_logits, device_of, text_logits

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Scorer"]

Encoder = TextEncoder | TableEncoder


class Scorer:
    """What turns texts or rows of a table into logits: the model of a bundle.

    $$ z = f(e(x)) - s $$

    with e the encoder, f the network and s the shift that a loss or resampled train rows gave the
    logits. Nothing is learned here, and nothing changes after it was made, so threads may share it.

    It is not calibrated: a bundle's calibrator comes after it.

    Parameters
    ----------
    encoder : a fitted `TextEncoder` or `TableEncoder`
    model : the network; it must have a `config`, as registered networks do
    shift : (K,) what is taken off the logits, or None
    redact : whether e-mail addresses, numbers and the like are taken out of texts first
    column : name of the column of texts in a table; None for "text"
    classes : names of the classes in the order of the logits; None where they are not known
    device : where the network runs: "cpu", "cuda", "cuda:1", or "auto" for a GPU where there is one

    Examples
    --------
    >>> from calibrant.models import MLP
    >>> encoder = TableEncoder().fit({"weight": [1.0, 2.0], "fat": ["low", "high"]})
    >>> scorer = Scorer(encoder, MLP(3, 2))
    >>> scorer.predict_logits({"fat": ["high"], "weight": [5.0]}).shape
    (1, 2)
    >>> scorer.columns
    InputColumns(numbers=('weight',), texts=('fat',))
    """

    def __init__(
        self,
        encoder: Encoder,
        model: nn.Module,
        shift: Any = None,
        *,
        redact: bool = False,
        column: str | None = None,
        classes: Sequence[Any] | None = None,
        device: str = "cpu",
    ) -> None:
        if not isinstance(encoder, TextEncoder | TableEncoder):
            raise InputError(
                f"encoder must be a fitted TextEncoder or TableEncoder, got {encoder!r}."
            )
        config_of(model)
        self.encoder = encoder
        self.text = isinstance(encoder, TextEncoder)
        self.redact = bool(redact) and self.text
        self.column = (column or "text") if self.text else None
        self.model = copy.deepcopy(model).float().to(device_named(device)).eval()
        self.model.requires_grad_(False)
        self.n_classes = self._tried()
        self.shift = _as_shift(shift, self.n_classes)
        self.classes = None if classes is None else tuple(classes)
        if self.classes is not None and len(self.classes) != self.n_classes:
            raise InputError(
                f"the model gives {self.n_classes} logits, but there are {len(self.classes)} "
                "classes."
            )

    @classmethod
    def of(
        cls, estimator: Any, *, column: str | None = None, redact: bool = False, device: str = "cpu"
    ) -> Self:
        """Take the model out of a fitted `TextClassifier` or `TabularClassifier`.

        Parameters
        ----------
        estimator : the fitted classifier; its `predict_logits` gives the same
        column : name of the column of texts; None for "text", and for tables
        redact : whether texts are redacted first, as those it was trained on were
        device : see `Scorer`
        """
        if not hasattr(estimator, "encoder_") or not hasattr(estimator, "model_"):
            raise InputError(
                "scorer must come from a fitted TextClassifier or TabularClassifier, got "
                f"{type(estimator).__name__}: call fit first."
            )
        return cls(
            estimator.encoder_,
            estimator.model_,
            estimator.log_shift_,
            redact=redact,
            column=column,
            classes=estimator.classes_.tolist(),
            device=device,
        )

    @property
    def kind(self) -> str:
        """What it reads: "text" or "table"."""
        return "text" if self.text else "table"

    @property
    def columns(self) -> InputColumns:
        """The columns that it reads of a table."""
        return columns_of(self.encoder, self.column)

    @property
    def config(self) -> dict[str, Any]:
        """What the network is built from; "model" is its name."""
        return config_of(self.model)

    @property
    def device(self) -> torch.device:
        """Where the network runs."""
        return device_of(self.model)

    def predict_logits(self, inputs: Any) -> FloatArray:
        """Return logits (n, K).

        Parameters
        ----------
        inputs : a list or a column of texts, or a table with that column; or, where the model
            reads tables, a table as `TableEncoder` takes it
        """
        rows = as_inputs(inputs, self.encoder, self.column)
        if self.redact:
            rows = redacted_column(rows)
        return self._logits(rows)

    def pick(self, table: pa.Table) -> Any:
        """Take what `predict_logits` reads out of an Arrow table that may have further columns."""
        if isinstance(self.encoder, TableEncoder) and not self.encoder.named_:
            return table  # columns without names go by position
        picked = self.columns.picked_from(table)
        return picked.column(0) if self.text else picked

    def save(self, folder: Path) -> dict[str, Any]:
        """Write `model.safetensors` and, for texts, `tokenizer.json`; return what `load` takes."""
        write_network(self.model, folder)
        named = {"text": self.column} if self.text else self.columns.to_dict()
        return {
            "kind": "torch",
            "input": self.kind,
            "columns": named,
            "encoder": write_encoder(self.encoder, folder),
            "model": self.config,
            "module": type(self.model).__module__,
            "log_shift": None if self.shift is None else self.shift.tolist(),
            "redact": self.redact,
        }

    @classmethod
    def load(
        cls,
        spec: Mapping[str, Any],
        folder: Path,
        *,
        classes: Sequence[Any] | None = None,
        device: str = "auto",
    ) -> Self:
        """Rebuild from what `save` returned and wrote; runs no code of the folder.

        What does not fit together, or names a network that is not here, raises `InputError`.
        """
        encoder = read_encoder(spec, folder)
        network = read_network(spec, folder)
        return cls(
            encoder,
            network,
            spec["log_shift"],
            redact=spec["redact"],
            column=_text_column(spec),
            classes=classes,
            device=device,
        )

    def _logits(self, rows: Any) -> FloatArray:
        if isinstance(self.encoder, TextEncoder):
            found = text_logits(self.model, *self.encoder.encode(rows))
        else:
            found = array_logits(self.model, self.encoder.transform(rows))
        logits = found.astype(np.float64)
        return logits if self.shift is None else logits - self.shift

    def trial(self) -> FloatArray:
        """Return the network's own logits of one made-up row, which touches every part of it."""
        if isinstance(self.encoder, TextEncoder):
            last = len(self.encoder.words) - 1  # also makes the tokenizer, before threads come
            return text_logits(self.model, np.array([1, last]), np.array([0, 2])).astype(np.float64)
        width = len(self.encoder.get_feature_names_out())
        return array_logits(self.model, np.zeros((1, width), dtype=np.float32)).astype(np.float64)

    def _tried(self) -> int:
        """Return the number of classes; refuse a network that cannot read what is encoded."""
        try:
            found = self.trial()
        except (InputError, RuntimeError, TypeError, IndexError) as error:
            reason = str(error).strip().rstrip(".").partition("\n")[0]
            raise InputError(f"the network does not fit its encoder: {reason}.") from error
        if found.ndim != 2 or found.shape[1] < 2:
            raise InputError(
                f"the network must give a row of at least two logits, got shape {found.shape}."
            )
        return int(found.shape[1])


def _text_column(spec: Mapping[str, Any]) -> str | None:
    if spec["input"] != "text":
        return None
    name = spec["columns"].get("text")
    if not isinstance(name, str) or not name:
        raise InputError("the manifest does not name the column of texts.")
    return name


def _as_shift(shift: Any, n_classes: int) -> FloatArray | None:
    if shift is None:
        return None
    try:
        found = np.asarray(plain(shift), dtype=np.float64)
    except (TypeError, ValueError):
        found = np.empty(0)
    if found.shape != (n_classes,) or not np.isfinite(found).all():
        raise InputError(f"shift must hold {n_classes} finite numbers, one for each class.")
    return found
