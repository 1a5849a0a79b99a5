"""Card lines on the network of a model."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from calibrant.bundle.card.wording import as_code
from calibrant.formatting import format_count

if TYPE_CHECKING:
    from calibrant.models.scorer import Scorer

__all__ = ["network"]


def network(scorer: Scorer) -> Iterator[str]:
    """Describe the network, its averaging and its size."""
    config = scorer.config
    weights = f"{sum(part.numel() for part in scorer.model.parameters()):,} weights"
    names = " and ".join(as_code(name) for name in dict.fromkeys(scorer.networks))
    if config["model"] == "ensemble":
        networks = format_count(len(config["members"]), "network")
        yield (
            f"It is an ensemble that averages the probabilities of {networks}, {names}, with "
            f"{weights} in total."
        )
    elif config["model"] == "mc_dropout":
        yield (
            f"It averages the probabilities of {config['passes']:,} thinned copies of one network, "
            f"{names}, with {weights}. Each copy drops a different, fixed set of units, so "
            "that the result for a row is always the same."
        )
    else:
        yield f"The network is {names}, with {weights}."
    yield from _transformer(scorer)


def _transformer(scorer: Scorer) -> Iterator[str]:
    from calibrant.models.transformer import Transformer

    transformer = next(
        (part for part in scorer.model.modules() if isinstance(part, Transformer)), None
    )
    if transformer is None:
        return
    kind = as_code(transformer.config["architecture"]["model_type"])
    layers = getattr(transformer.network.config, "num_hidden_layers", None)
    depth = f" with {format_count(layers, 'layer')}" if isinstance(layers, int) else ""
    yield (
        f"The transformer is of the architecture {kind}{depth}. If it was pretrained, its output "
        "also reflects the pretraining texts."
    )
