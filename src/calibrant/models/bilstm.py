"""The network for short texts: a bidirectional LSTM."""

from __future__ import annotations

from typing import Any

from torch import Tensor, cat, nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence

from calibrant.models.dropout import Dropout
from calibrant.models.options import check_counts, check_dropout
from calibrant.models.registry import register
from calibrant.models.text_batch import clean_tokens, embedded


@register("bilstm")
class BiLSTM(nn.Module):
    """Bidirectional LSTM layers followed by two dense layers.

    The last state of each direction of the top layer goes through Dropout, Linear, ReLU, Dropout
    and Linear. Texts are packed: nothing is computed for padding, and the logits of a text depend
    neither on how far it was padded nor on the other texts of its batch. An empty text is read as
    one padding token.

    There is no positional encoding besides the recurrence, and a text takes one sequential step per
    token: batch texts of similar length together (`TextRows`).

    Parameters
    ----------
    n_tokens : size of the vocabulary; token 0 is padding
    n_classes : number of logits
    embedding : numbers per token
    hidden : numbers of the state of each direction; the paper has 128 for two classes, 512 for five
    layers : bidirectional layers on top of each other
    dense : width of the first dense layer; None for `hidden`
    embedding_dropout : share of the embeddings' values dropped in training
    dense_dropout : share of the values dropped before each dense layer

    Examples
    --------
    >>> import torch
    >>> from calibrant.models import BiLSTM
    >>> model = BiLSTM(50, 3, embedding=8, hidden=4)
    >>> model(torch.tensor([[7, 8, 9], [4, 0, 0]]), torch.tensor([3, 1])).shape
    torch.Size([2, 3])

    References
    ----------
    The return-reason paper, section 3 (model and hyper-parameters); how the states reach the dense
    layers, and where dropout stands among those, is not said there.
    """

    def __init__(
        self,
        n_tokens: int,
        n_classes: int,
        embedding: int = 1024,
        hidden: int = 128,
        layers: int = 2,
        dense: int | None = None,
        embedding_dropout: float = 0.1,
        dense_dropout: float = 0.2,
    ) -> None:
        super().__init__()
        dense = hidden if dense is None else dense
        check_counts(n_tokens=n_tokens, embedding=embedding, hidden=hidden, layers=layers)
        check_counts(dense=dense)
        check_counts(n_classes=n_classes, least=2)
        check_dropout(embedding_dropout=embedding_dropout, dense_dropout=dense_dropout)
        self.embedding = nn.Embedding(n_tokens, embedding, padding_idx=0)
        self.embedding_dropout = Dropout(embedding_dropout)
        self.lstm = nn.LSTM(embedding, hidden, layers, bidirectional=True)
        self.dense = nn.Sequential(
            Dropout(dense_dropout),
            nn.Linear(2 * hidden, dense),
            nn.ReLU(inplace=True),
            Dropout(dense_dropout),
            nn.Linear(dense, n_classes),
        )
        self.config: dict[str, Any] = {
            "model": "bilstm",
            "n_tokens": n_tokens,
            "n_classes": n_classes,
            "embedding": embedding,
            "hidden": hidden,
            "layers": layers,
            "dense": dense,
            "embedding_dropout": embedding_dropout,
            "dense_dropout": dense_dropout,
        }

    def forward(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        """Return the logits of (b, L) token ids, of which `lengths` count in each row."""
        tokens = clean_tokens(tokens, lengths)
        # Tokens are packed before they are looked up: padding is not even embedded.
        packed = pack_padded_sequence(
            tokens, lengths.cpu().clamp(min=1), batch_first=True, enforce_sorted=False
        )
        vectors = self.embedding_dropout(embedded(self.embedding, packed.data))
        _, (states, _) = self.lstm(PackedSequence(vectors, *packed[1:]))
        logits: Tensor = self.dense(cat((states[-2], states[-1]), dim=1))
        return logits
