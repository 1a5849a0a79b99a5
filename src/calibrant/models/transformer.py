"""Transformers: networks of the transformers library that read texts."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

import torch
from torch import Tensor, nn

from calibrant.errors import InputError
from calibrant.models.architectures import (
    config_from,
    described,
    network_from,
    padding_of,
    positions_of,
    quiet,
    reason_of,
    rows_of,
)
from calibrant.models.dropout import Dropout
from calibrant.models.options import check_counts, check_dropout, plain
from calibrant.models.registry import register
from calibrant.models.text_batch import beyond, clean_tokens

_AUTO = "auto"
_POOLINGS = ("own", "mean")
_OPTIONS = ("pooling", "dropout")
_USUAL_DROPOUT = 0.1
_AT_A_TIME = {"cpu": 4_096, "cuda": 131_072}
"""Tokens, padding included, that are read at a time where nothing is learned."""


@register("transformer")
class Transformer(nn.Module):
    r"""A transformer with a head for classes: BERT, RoBERTa, DistilBERT, ELECTRA, GPT-2, ...

    With pooling "own" it is what the transformers library calls
    `AutoModelForSequenceClassification`: the head that the architecture has. It stands on the first
    token (BERT and its kin), or on the last one of the text (GPT-2, Llama). With "mean" it is

    $$ z = W d(m) + b, \quad m = \frac{1}{l} \sum_{i \le l} h_i $$

    with $h_i$ the last hidden states of the $l$ tokens of a text, and $d$ dropout: what models for
    sentence vectors were made for.

    Its logits depend neither on what stands beyond the end of a text nor on the other texts of its
    batch, up to rounding.

    It is built from `config` alone: no file of the model that it began with is needed, and no
    network is asked. It is not for architectures that write texts from texts (T5, BART).

    Parameters
    ----------
    architecture : what `config.json` of a transformer says: "model_type" and its numbers
    n_classes : number of logits
    pooling : "own" for the head of the architecture, "mean" for a layer on the mean of the tokens
    dropout : share of values dropped before the last layer; None for what the architecture has,
        or 0.1 with pooling "mean"
    network : the network with its weights, as `from_pretrained` reads it; None for first weights.
        Not in `config`: it is part of the weights

    Examples
    --------
    >>> import torch
    >>> from calibrant.models import Transformer
    >>> tiny = {"model_type": "bert", "vocab_size": 50, "hidden_size": 8, "num_hidden_layers": 1,
    ...     "num_attention_heads": 2, "intermediate_size": 16}
    >>> model = Transformer(tiny, n_classes=3)
    >>> model(torch.tensor([[2, 8, 9], [4, 0, 0]]), torch.tensor([3, 1])).shape
    torch.Size([2, 3])

    References
    ----------
    Devlin et al. (2019), BERT; Wolf et al. (2020), Transformers: state-of-the-art natural language
    processing; Reimers and Gurevych (2019), Sentence-BERT (the mean of the tokens).
    """

    def __init__(
        self,
        architecture: Mapping[str, Any],
        n_classes: int,
        pooling: str = "own",
        dropout: float | None = None,
        network: Any = None,
    ) -> None:
        super().__init__()
        check_counts(n_classes=n_classes, least=2)
        _check_options(pooling, dropout)
        config = config_from(architecture, n_classes)
        network = network_from(config, pooling) if network is None else network
        self.network: nn.Module = network
        self.head: nn.Module | None = None
        if pooling == "mean":
            share = _USUAL_DROPOUT if dropout is None else dropout
            self.head = nn.Sequential(Dropout(share), nn.Linear(config.hidden_size, n_classes))
        elif dropout is not None:
            _set_dropout(network, dropout, config.model_type)
        self.rows = rows_of(network)
        self.positions = positions_of(network, config)
        self.padding = padding_of(config, self.rows)
        self.at_the_end = pooling == "own" and isinstance(
            getattr(network, "score", None), nn.Linear
        )
        self.train()
        self.config: dict[str, Any] = {
            "model": "transformer",
            "architecture": {**described(config), "pad_token_id": self.padding},
            "n_classes": n_classes,
            "pooling": pooling,
            "dropout": dropout,
        }

    @classmethod
    def from_pretrained(
        cls,
        source: str | Path,
        n_classes: int,
        *,
        pooling: str = _AUTO,
        dropout: float | None = None,
    ) -> Self:
        """Make one with the weights of a folder or of a hub; a new head is drawn at random.

        A head with as many classes is kept. Only safetensors are read, and no code of the folder
        is run.

        Parameters
        ----------
        source : a folder as `save_pretrained` writes it, or an id on a hub such as
            "distilbert-base-uncased"
        n_classes, dropout : see `Transformer`
        pooling : "own" or "mean", see `Transformer`; "auto" for "mean" where the folder says that
            it makes sentence vectors so (`1_Pooling/config.json`), else "own"
        """
        from calibrant.models.pretrained import load_network, read_pretrained

        check_counts(n_classes=n_classes, least=2)
        _check_options(pooling, dropout, (_AUTO, *_POOLINGS))
        pretrained = read_pretrained(source, pooling=pooling)
        config = config_from(pretrained.architecture, n_classes)
        network = load_network(pretrained, config)
        model = cls(
            pretrained.architecture, n_classes, pretrained.pooling, dropout, network=network
        )
        model._try()
        return model

    def forward(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        """Return the logits of (b, L) token ids, of which `lengths` count in each row."""
        if not torch.compiler.is_compiling():  # a look at the lengths would break the graph
            tokens = clean_tokens(tokens, lengths)
        if self.positions is not None and tokens.shape[1] > self.positions:
            raise InputError(
                f"tokens must have at most {self.positions} columns, the positions of this "
                f"network, got {tokens.shape[1]}: cut texts to that length."
            )
        most = _AT_A_TIME.get(tokens.device.type, tokens.numel())
        rows = max(most // tokens.shape[1], 1)
        if torch.is_grad_enabled() or len(tokens) <= rows:
            return self._logits(tokens, lengths)
        parts = zip(torch.split(tokens, rows), torch.split(lengths, rows), strict=True)
        return torch.cat([self._logits(*_trimmed(*part)) for part in parts])

    def _logits(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        width, device = tokens.shape[1], tokens.device
        ids = tokens.masked_fill(beyond(lengths, width, device), self.padding)
        lengths = lengths.clamp(min=1).to(device, non_blocking=True)  # an empty text is one filler
        read = ~beyond(lengths, width, device)
        network: Any = self.network
        reader = network.base_model if self.at_the_end else network
        try:
            output = reader(input_ids=ids, attention_mask=read.long(), return_dict=True)
        except IndexError as error:
            raise InputError(
                f"tokens must lie in 0..{self.rows - 1} for this network, got {int(ids.min())} to "
                f"{int(ids.max())}."
            ) from error
        if self.at_the_end:
            rows = torch.arange(len(ids), device=device)
            logits: Tensor = network.score(output.last_hidden_state[rows, lengths - 1])
        elif self.head is None:
            logits = output.logits
        else:
            logits = self.head(_mean(output.last_hidden_state, read))
        return logits

    def _try(self) -> None:
        """Score two synthetic texts; a network that fails or attends to padding is an error.

        Weights that the logits do not depend on, such as an unused pooler, are frozen: processes
        that share a model would wait for their gradients.
        """
        kind, pooling = self.config["architecture"]["model_type"], self.config["pooling"]
        width = min(7, self.positions or 7)
        texts, short = _made_up(width, self.rows, self.padding), max(width // 2, 1)
        self.eval()
        try:
            with quiet():
                self(texts[:1, :1], torch.tensor([0]))
                alone = self(texts[:1, :short], torch.tensor([short]))[0].detach()
                both = self(texts, torch.tensor([short, width]))
                both.sum().backward()
        except Exception as error:  # every architecture fails in its own way
            raise InputError(
                f"the architecture {kind!r} cannot be called with token ids and a mask of padding "
                f"({reason_of(error)}): choose another, such as 'bert' or 'roberta'."
            ) from error
        for weights in self.parameters():
            weights.requires_grad_(weights.grad is not None)
            weights.grad = None
        self.train()
        both = both.detach()
        apart = float((both[0] - both[1]).abs().max())
        if float((both[0] - alone).abs().max()) > 1e-4 * apart + 1e-5 * float(both.abs().max()):
            remedy = "" if pooling == "mean" else "pooling='mean', or "
            raise InputError(
                f"the architecture {kind!r} with pooling {pooling!r} gives a text other logits "
                f"beside a longer one, so they cannot be trusted: choose {remedy}another model, "
                "such as 'bert' or 'roberta'."
            )


def _mean(states: Tensor, read: Tensor) -> Tensor:
    """Return the mean of the states that are read, summed in no less than single precision."""
    weights = read.to(torch.promote_types(states.dtype, torch.float32)).unsqueeze(2)
    return ((states * weights).sum(dim=1) / weights.sum(dim=1)).to(states.dtype)


def _made_up(width: int, rows: int, padding: int) -> Tensor:
    """Return (2, width) tokens from all over the table, without the one that pads."""
    some = torch.arange(2 * width).reshape(2, width) * max(rows // (2 * width), 1) % rows
    return some.masked_fill(some == padding, (padding + 1) % rows)


def options_of(options: Mapping[str, Any], *, name: str = "model_options") -> dict[str, Any]:
    """Return the options of a transformer; an unknown one raises `InputError`.

    Examples
    --------
    >>> options_of({"pooling": "mean"})
    {'pooling': 'mean'}
    >>> options_of({"hidden": 64})
    Traceback (most recent call last):
    ...
    calibrant.errors.InputError: model_options names 'hidden', which is not an option of a
    transformer: use pooling or dropout.
    """
    unknown = next((option for option in options if option not in _OPTIONS), None)
    if unknown is not None:
        raise InputError(
            f"{name} names {unknown!r}, which is not an option of a transformer: use "
            f"{' or '.join(_OPTIONS)}."
        )
    values = dict(plain(options))
    _check_options(values.get("pooling", _AUTO), values.get("dropout"), (_AUTO, *_POOLINGS))
    return values


def _check_options(pooling: Any, dropout: Any, poolings: tuple[str, ...] = _POOLINGS) -> None:
    if pooling not in poolings:
        names = " or ".join(map(repr, poolings))
        raise InputError(f"pooling must be {names}, got {pooling!r}.")
    if dropout is not None:
        check_dropout(dropout=dropout)


def _set_dropout(network: Any, share: float, kind: str) -> None:
    """Set the dropout of a head: of all that is not part of the body."""
    body = set(getattr(network, network.base_model_prefix, network).modules())
    parts = [part for part in network.modules() if part not in body]
    dropouts = [part for part in parts if isinstance(part, nn.Dropout)]
    if not dropouts:
        raise InputError(
            f"the head of the architecture {kind!r} has no dropout to set: leave dropout out, or "
            "choose pooling='mean'."
        )
    for part in dropouts:
        part.p = share


def _trimmed(tokens: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
    """Leave out columns that no row reaches, where looking at the lengths costs nothing."""
    if lengths.device.type != "cpu":
        return tokens, lengths
    return tokens[:, : max(int(lengths.max()), 1)], lengths
