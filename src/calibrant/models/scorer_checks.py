"""Checks of the parts of a running model against each other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from torch import nn

from calibrant.errors import InputError
from calibrant.inputs import FloatArray
from calibrant.models.options import plain
from calibrant.models.scorer_inputs import Encoder
from calibrant.models.transformer import Transformer

if TYPE_CHECKING:
    from calibrant.models.scorer import Scorer

__all__ = ["as_shift", "check_alike", "check_length", "text_column_of"]


def check_length(encoder: Encoder, model: nn.Module) -> None:
    """Refuse a transformer that has fewer positions than its encoder gives tokens."""
    for part in model.modules():
        most = part.positions if isinstance(part, Transformer) else None
        length = getattr(encoder, "max_length", 0)
        if most is not None and length > most:
            raise InputError(
                f"the network does not fit its encoder: it reads {most} tokens of a text at most, "
                f"but max_length is {length}."
            )


def check_alike(first: Scorer, other: Scorer, place: int) -> None:
    """Refuse to average models that read or tell different things."""
    for name in ("classes", "column", "redact", "resize"):
        mine, theirs = getattr(first, name), getattr(other, name)
        if mine != theirs:
            raise InputError(
                f"models of an ensemble must have the same {name}, got {mine!r} and, of model "
                f"{place}, {theirs!r}."
            )
    if first.encoder.to_dict() != other.encoder.to_dict():
        raise InputError(
            f"models of an ensemble must have the same encoder, but that of model {place} is "
            "another one than the first: train them on the same rows."
        )


def text_column_of(spec: Mapping[str, Any]) -> str | None:
    """Return the column of texts that a manifest names; None for tables and images."""
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
        values = np.asarray(plain(shift), dtype=np.float64)
    except (TypeError, ValueError):
        values = np.empty(0)
    if values.shape != (n_classes,) or not np.isfinite(values).all():
        raise InputError(f"shift must hold {n_classes} finite numbers, one for each class.")
    return values
