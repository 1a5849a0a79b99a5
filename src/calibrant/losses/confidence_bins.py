"""Confidence bins of tensors: look-up, and checks of edges and of numbers per bin."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from calibrant.errors import InputError
from calibrant.fitting.confidence_bins import SCALES


def look_up(scores: Tensor, edges: Tensor) -> Tensor:
    """Return the bin of each score; a bin includes its lower edge.

    A score below all edges is in the first bin, one above all (and NaN) in the last.
    """
    return torch.searchsorted(edges.to(scores), scores.contiguous(), right=True)


def per_bin(values: Any, name: str, like: Tensor) -> Tensor:
    """Validate one number per bin; they get the dtype and device of `like`."""
    figures = _to_tensor(values, name, like)
    if figures.ndim != 1 or not len(figures):
        raise InputError(f"{name} must be one number per bin, got shape {tuple(figures.shape)}.")
    return figures


def check_edges(edges: Any, n_bins: int, scale: str, like: Tensor) -> Tensor:
    """Validate bin edges; they get the dtype and device of `like`."""
    if scale not in SCALES:
        raise InputError(f"scale must be 'log-odds' or 'probability', got {scale!r}.")
    values = _to_tensor(edges, "edges", like)
    if values.shape != (n_bins - 1,):
        raise InputError(
            f"edges must be the {n_bins - 1} inner edges of {n_bins} bins, "
            f"got shape {tuple(values.shape)}."
        )
    if values.device.type == "cpu" and not bool((values.diff() >= 0).all()):
        raise InputError(f"edges must be in ascending order, got {values.tolist()}.")
    return values


def _to_tensor(values: Any, name: str, like: Tensor) -> Tensor:
    try:
        return torch.as_tensor(values, dtype=like.dtype, device=like.device)
    except (TypeError, ValueError, RuntimeError) as error:
        raise InputError(f"{name} must be a list of numbers, got {values!r:.100}.") from error
