"""The network for longer texts: a convolutional one with global pooling."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812  # torch's own convention
from torch import Tensor, nn

from calibrant.errors import InputError
from calibrant.models.dropout import Dropout
from calibrant.models.options import check_counts, check_dropout
from calibrant.models.registry import register
from calibrant.models.text_batch import beyond, clean_tokens, embedded


@register("text_cnn")
class TextCNN(nn.Module):
    r"""Three convolutions over a text, the largest answer of each filter, two dense layers.

    Convolution, ReLU, max-pool of stride 1; the same again; convolution, ReLU, global max;
    Linear, ReLU, Dropout, Linear. One output of the last convolution sees

    $$ r = 5 (w - 1) + 1 $$

    tokens, with $w$ the width of filters and pools: 21 for $w = 5$. A shorter text is filled up
    with padding to $r$ tokens. Outputs that would see beyond the end of a text are left out of
    the global max, so its logits depend neither on padding nor on the other texts of its batch.
    The original pads every text at the front to 1,000 tokens and lets padding take part.

    It is not aware of where in the text something stands.

    Parameters
    ----------
    n_tokens : size of the vocabulary; token 0 is padding
    n_classes : number of logits
    embedding : numbers per token
    filters : of each convolution, and width of the first dense layer
    width : tokens that a filter spans, and places that a pool spans
    dropout : share of values dropped before the last layer
    vectors : (n_tokens, embedding) given embeddings, such as GloVe; not in `config`: they are part
        of the weights
    frozen : whether the embeddings stay as they are in training; None means: if they are given

    Examples
    --------
    >>> import torch
    >>> from calibrant.models import TextCNN
    >>> model = TextCNN(50, 3, embedding=8, filters=4)
    >>> model(torch.tensor([[7, 8, 9], [4, 0, 0]]), torch.tensor([3, 1])).shape
    torch.Size([2, 3])

    References
    ----------
    Lin, Chen and Yan (2013), Network in network (global pooling); Kumar et al. (2018), Trainable
    calibration measures, and Mukhoti et al. (2020), for this network on 20 Newsgroups.
    """

    def __init__(
        self,
        n_tokens: int,
        n_classes: int,
        embedding: int = 100,
        filters: int = 128,
        width: int = 5,
        dropout: float = 0.3,
        vectors: Any = None,
        frozen: bool | None = None,
    ) -> None:
        super().__init__()
        check_counts(n_tokens=n_tokens, embedding=embedding, filters=filters, width=width)
        check_counts(n_classes=n_classes, least=2)
        check_dropout(dropout=dropout)
        frozen = vectors is not None if frozen is None else frozen
        self.width = width
        self.sees = 5 * (width - 1) + 1
        self.embedding = nn.Embedding(n_tokens, embedding, padding_idx=0)
        if vectors is not None:
            self.embedding.weight.data.copy_(_as_vectors(vectors, n_tokens, embedding))
        self.embedding.weight.requires_grad_(not frozen)
        self.first = nn.Conv1d(embedding, filters, width)
        self.second = nn.Conv1d(filters, filters, width)
        self.third = nn.Conv1d(filters, filters, width)
        self.dense = nn.Sequential(
            nn.Linear(filters, filters),
            nn.ReLU(inplace=True),
            Dropout(dropout),
            nn.Linear(filters, n_classes),
        )
        self.config: dict[str, Any] = {
            "model": "text_cnn",
            "n_tokens": n_tokens,
            "n_classes": n_classes,
            "embedding": embedding,
            "filters": filters,
            "width": width,
            "dropout": dropout,
            "frozen": frozen,
        }

    def forward(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        """Return the logits of (b, L) token ids, of which `lengths` count in each row."""
        tokens = clean_tokens(tokens, lengths)
        tokens = F.pad(tokens, (0, max(self.sees - tokens.shape[1], 0)))
        x = embedded(self.embedding, tokens).transpose(1, 2)
        x = F.max_pool1d(F.relu(self.first(x)), self.width, stride=1)
        x = F.max_pool1d(F.relu(self.second(x)), self.width, stride=1)
        x = F.relu(self.third(x))
        whole = lengths.clamp(min=self.sees) - (self.sees - 1)  # outputs within the text
        outside = beyond(whole, x.shape[2], x.device).unsqueeze(1)
        logits: Tensor = self.dense(x.masked_fill(outside, 0.0).amax(dim=2))  # no output is below 0
        return logits


def _as_vectors(vectors: Any, n_tokens: int, embedding: int) -> Tensor:
    tensor = torch.as_tensor(vectors).float()
    if tensor.shape != (n_tokens, embedding):
        raise InputError(
            f"vectors must have shape (n_tokens, embedding), ({n_tokens}, {embedding}) here, "
            f"got {tuple(tensor.shape)}."
        )
    if not bool(tensor.isfinite().all()):
        raise InputError("vectors must be finite numbers: give a missing token zeros.")
    return tensor
