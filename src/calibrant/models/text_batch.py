"""A batch of texts as the text networks take it: token ids and lengths."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from calibrant.errors import InputError


def padded(tokens: Tensor, starts: Tensor, lengths: Tensor, width: int) -> Tensor:
    """Return texts that stand one after the other as (b, width), 0 beyond the end of each.

    Examples
    --------
    >>> import torch
    >>> padded(torch.tensor([5, 6, 7, 8]), torch.tensor([3, 0]), torch.tensor([1, 3]), 3).tolist()
    [[8, 0, 0], [5, 6, 7]]
    """
    columns = torch.arange(width, device=tokens.device)
    where = starts.unsqueeze(1) + columns
    if not len(tokens):  # every text is empty
        return torch.zeros_like(where)
    ids = tokens[where.clamp_(max=len(tokens) - 1)]
    return ids.masked_fill_(columns >= lengths.unsqueeze(1), 0)


def clean_tokens(tokens: Tensor, lengths: Tensor) -> Tensor:
    """Return the token ids with 0 beyond each length; refuse what is not (b, L) with (b,).

    Examples
    --------
    >>> import torch
    >>> clean_tokens(torch.tensor([[5, 6, 7], [8, 9, 9]]), torch.tensor([3, 1])).tolist()
    [[5, 6, 7], [8, 0, 0]]
    """
    _check(tokens, lengths)
    return tokens.masked_fill(beyond(lengths, tokens.shape[1], tokens.device), 0)


def _check(tokens: Tensor, lengths: Tensor) -> None:
    for name, value in (("tokens", tokens), ("lengths", lengths)):
        if value.is_floating_point() or value.is_complex() or value.dtype == torch.bool:
            raise InputError(f"{name} must be whole numbers, got {value.dtype}.")
    if tokens.ndim != 2 or not tokens.shape[1]:
        raise InputError(
            "tokens must have one row per text and at least one column (0 for an empty text), "
            f"got shape {tuple(tokens.shape)}."
        )
    if lengths.shape != tokens.shape[:1]:
        raise InputError(
            f"lengths must hold one number per text, {tuple(tokens.shape[:1])} here, "
            f"got shape {tuple(lengths.shape)}."
        )
    if lengths.device.type == "cpu" and len(lengths):  # on a GPU a look would stop the queue
        low, high = (int(bound) for bound in lengths.aminmax())
        if low < 0 or high > tokens.shape[1]:
            raise InputError(
                f"lengths must lie in 0..{tokens.shape[1]}, the columns of tokens, "
                f"got {low} to {high}."
            )


def beyond(lengths: Tensor, width: int, device: torch.device) -> Tensor:
    """Return a (b, width) mask of the columns that lie beyond the end of their row.

    Examples
    --------
    >>> import torch
    >>> beyond(torch.tensor([1, 3]), 3, torch.device("cpu")).int().tolist()
    [[0, 1, 1], [0, 0, 0]]
    """
    columns = torch.arange(width, device=device)
    return columns >= lengths.to(device, non_blocking=True).unsqueeze(1)


def embedded(embedding: nn.Embedding, tokens: Tensor) -> Tensor:
    """Look token ids up, or name the one that is too large."""
    try:
        vectors: Tensor = embedding(tokens)
    except IndexError as error:
        raise InputError(
            f"tokens must lie in 0..{embedding.num_embeddings - 1} for this network, "
            f"got {int(tokens.min())} to {int(tokens.max())}."
        ) from error
    return vectors
