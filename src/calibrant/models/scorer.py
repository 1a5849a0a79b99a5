"""The model of a bundle: an encoder and a network."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from calibrant.data.encoders.image_encoder import ImageEncoder
from calibrant.data.encoders.subword_encoder import SubwordEncoder
from calibrant.data.encoders.table_encoder import TableEncoder
from calibrant.data.encoders.text_encoder import TextEncoder
from calibrant.data.model_inputs import Encoder
from calibrant.data.row_scorer import RowScorer, read_text_column
from calibrant.errors import InputError
from calibrant.formatting import format_count
from calibrant.inputs import FloatArray
from calibrant.models.ensemble import Ensemble
from calibrant.models.mc_dropout import MCDropout
from calibrant.models.options import plain
from calibrant.models.saved_parts import (
    config_of,
    device_named,
    module_of,
    networks_of,
    read_encoder,
    read_network,
    write_encoder,
    write_network,
)
from calibrant.models.scoring import (
    array_logits,
    device_of,
    image_logits,
    lay_out,
    text_logits,
)
from calibrant.models.transformer import Transformer


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


class Scorer(RowScorer):
    """A network with its encoder: the model of a bundle.

    $$ z = f(e(x)) - s $$

    with e the encoder, f the network and s the shift of the logits; see `RowScorer`.

    Parameters
    ----------
    encoder : a fitted `TextEncoder`, `SubwordEncoder`, `TableEncoder` or `ImageEncoder`
    model : the network; it must have a `config`, as registered networks do
    shift : (K,) subtracted from the logits, or None
    redact : whether to redact e-mail addresses and numbers in texts first
    column : name of the column of texts in a table; None for "text"
    classes : names of the classes in the order of the logits; None where they are not known
    resize : whether images of other sizes are brought to that of the encoder where files are read,
        as those it was trained on were; arrays of another size are refused all the same
    device : where the network runs: "cpu", "cuda", "cuda:1", or "auto" for a GPU where there is one

    Examples
    --------
    >>> from calibrant.models import MLP
    >>> encoder = TableEncoder().fit({"weight": [1.0, 2.0], "fat": ["low", "high"]})
    >>> scorer = Scorer(encoder, MLP(3, 2))
    >>> scorer.predict_logits({"fat": ["high"], "weight": [5.0]}).shape
    (1, 2)
    >>> scorer.columns
    InputColumns(numbers=('weight',), texts=('fat',), formatted=())
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
        resize: bool = False,
        device: str = "cpu",
    ) -> None:
        super().__init__(encoder, redact=redact, column=column, resize=resize)
        config_of(model)
        self.model = copy.deepcopy(model).float().to(device_named(device)).eval()
        self.model.requires_grad_(False)
        if self._kind == "image":
            lay_out(self.model)
        check_length(encoder, self.model)
        self._set_classes(self._count_classes(), plain(shift), classes)

    @classmethod
    def from_classifier(
        cls,
        estimator: Any,
        *,
        column: str | None = None,
        redact: bool = False,
        resize: bool = False,
        device: str = "cpu",
    ) -> Self:
        """Build a scorer from a fitted classifier for texts, tables or images."""
        if not hasattr(estimator, "encoder_") or not hasattr(estimator, "model_"):
            raise InputError(
                "scorer must come from a fitted TextClassifier, TabularClassifier or "
                f"ImageClassifier, got {type(estimator).__name__}: call fit first."
            )
        return cls(
            estimator.encoder_,
            estimator.model_,
            estimator.log_shift_,
            redact=redact,
            column=column,
            classes=estimator.classes_.tolist(),
            resize=resize,
            device=device,
        )

    @classmethod
    def ensemble(cls, scorers: Sequence[Scorer]) -> Self:
        """Build a scorer that averages the probabilities of several scorers with equal encoders.

        The shifts of the members become part of the `Ensemble`; the result has no shift.

        Examples
        --------
        >>> from calibrant.models import MLP
        >>> encoder = TableEncoder().fit({"weight": [1.0, 2.0]})
        >>> both = Scorer.ensemble([Scorer(encoder, MLP(1, 2)), Scorer(encoder, MLP(1, 2))])
        >>> both.config["model"], both.networks
        ('ensemble', ('mlp', 'mlp'))
        """
        if len(scorers) < 2:
            raise InputError(f"an ensemble needs at least two models, got {len(scorers)}.")
        first = scorers[0]
        for i, other in enumerate(scorers[1:], start=1):
            check_alike(first, other, i)
        shifts = None
        if any(scorer.shift is not None for scorer in scorers):
            zeros = np.zeros(first.n_classes)
            shifts = np.stack([zeros if each.shift is None else each.shift for each in scorers])
        return cls._like(first, Ensemble([scorer.model for scorer in scorers], shifts))

    @classmethod
    def mc_dropout(cls, scorer: Scorer, passes: int = 20, *, seed: int = 0) -> Self:
        """Build a scorer that averages the probabilities of passes with dropout active."""
        return cls._like(scorer, MCDropout(scorer.model, passes, seed, scorer.shift))

    @classmethod
    def _like(cls, other: Scorer, model: nn.Module) -> Self:
        """Return a scorer with the encoder of another one, and without a shift."""
        return cls(
            other.encoder,
            model,
            redact=other.redact,
            column=other.column,
            classes=other.classes,
            resize=other.resize,
            device=str(other.device),
        )

    @property
    def networks(self) -> tuple[str, ...]:
        """The names of its networks: one, or those that it averages."""
        return networks_of(self.config)

    @property
    def config(self) -> dict[str, Any]:
        """What the network is built from; "model" is its name."""
        return config_of(self.model)

    @property
    def device(self) -> torch.device:
        """Where the network runs."""
        return device_of(self.model)

    @property
    def device_type(self) -> str:
        """Where the network runs: "cpu" or "cuda"."""
        return str(self.device.type)

    @property
    def size(self) -> str:
        """Its number of weights, in words."""
        return f"{sum(part.numel() for part in self.model.parameters()):,} weights"

    @property
    def note(self) -> str:
        """A sentence on the transformer, if it is one."""
        transformers = (part for part in self.model.modules() if isinstance(part, Transformer))
        transformer = next(transformers, None)
        if transformer is None:
            return ""
        kind = transformer.config["architecture"]["model_type"]
        layers = getattr(transformer.network.config, "num_hidden_layers", None)
        depth = f" with {format_count(layers, 'layer')}" if isinstance(layers, int) else ""
        return (
            f"The transformer is of the architecture `{kind}`{depth}. If it was pretrained, its "
            "output also reflects the pretraining texts."
        )

    @property
    def packages(self) -> tuple[str, ...]:
        """Packages that run the network."""
        more = ("transformers",) if "transformer" in self.networks else ()
        return ("torch", "safetensors", "tokenizers", *more)

    @property
    def is_deep(self) -> bool:
        """Whether one batch keeps all cores busy."""
        return self.kind == "image" or "transformer" in self.networks

    def save(self, folder: Path, prefix: str = "") -> dict[str, Any]:
        """Write `model.safetensors` and, for texts, `tokenizer.json`; return what `load` takes."""
        write_network(self.model, folder, prefix)
        return {
            "kind": "torch",
            "encoder": write_encoder(self.encoder, folder, prefix),
            "model": self.config,
            "module": module_of(self.model),
            **self.describe_inputs(),
        }

    @classmethod
    def load(
        cls,
        spec: Mapping[str, Any],
        folder: Path,
        *,
        classes: Sequence[Any] | None = None,
        device: str = "auto",
        prefix: str = "",
    ) -> Self:
        """Rebuild from what `save` returned and wrote; runs no code of the folder.

        What does not fit together, or names a network that is not here, raises `InputError`.
        """
        encoder = read_encoder(spec, folder, prefix)
        network = read_network(spec, folder, prefix)
        return cls(
            encoder,
            network,
            spec["log_shift"],
            redact=spec["redact"],
            column=read_text_column(spec),
            classes=classes,
            resize=spec.get("resize", False),
            device=device,
        )

    def compute_logits(self, rows: Any) -> NDArray[np.float32]:
        """Return the network's own logits (n, K)."""
        encoder = self.encoder
        if isinstance(encoder, ImageEncoder):
            return image_logits(self.model, rows, mean=encoder.mean_, std=encoder.std_)
        if isinstance(encoder, TableEncoder):
            return array_logits(self.model, encoder.transform(rows))
        assert isinstance(encoder, TextEncoder | SubwordEncoder)
        deep = isinstance(encoder, SubwordEncoder)
        return text_logits(self.model, *encoder.encode(rows), deep=deep)

    def trial(self) -> FloatArray:
        """Return the network's own logits of one made-up row, which touches every part of it."""
        encoder = self.encoder
        if isinstance(encoder, ImageEncoder):
            shape = (1, *encoder.size_, encoder.channels_)
            image = (7 * np.arange(np.prod(shape)) % 256).astype(np.uint8).reshape(shape)
            raw = image_logits(self.model, image, mean=encoder.mean_, std=encoder.std_)
        elif isinstance(encoder, TableEncoder):
            width = len(encoder.get_feature_names_out())
            raw = array_logits(self.model, np.zeros((1, width), dtype=np.float32))
        else:
            assert isinstance(encoder, TextEncoder | SubwordEncoder)
            last = len(encoder.words) - 1  # also makes the tokenizer, before threads come
            raw = text_logits(self.model, np.array([1, last]), np.array([0, 2]))
        return raw.astype(np.float64)

    def _count_classes(self) -> int:
        """Return the number of classes; refuse a network that cannot read what is encoded."""
        try:
            raw = self.trial()
        except (InputError, RuntimeError, TypeError, IndexError) as error:
            reason = str(error).strip().rstrip(".").partition("\n")[0]
            raise InputError(f"the network does not fit its encoder: {reason}.") from error
        if raw.ndim != 2 or raw.shape[1] < 2:
            raise InputError(
                f"the network must give a row of at least two logits, got shape {raw.shape}."
            )
        return int(raw.shape[1])
