"""What a card says about the network of a model: one, or several that are averaged."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from calibrant.bundle.card.wording import code
from calibrant.formatting import format_count

if TYPE_CHECKING:
    from calibrant.models.scorer import Scorer

__all__ = ["network"]


def network(scorer: Scorer) -> Iterator[str]:
    """Say which network it is, what it averages, and how large it is."""
    config = scorer.config
    weights = f"{sum(part.numel() for part in scorer.model.parameters()):,} weights"
    own = " and ".join(code(name) for name in dict.fromkeys(scorer.networks))
    if config["model"] == "ensemble":
        members = len(config["members"])
        yield (
            f"It is an ensemble: it averages the probabilities of "
            f"{format_count(members, 'network')}, {own}, with {weights} together."
        )
    elif config["model"] == "mc_dropout":
        yield (
            f"It averages the probabilities of {config['passes']:,} thinned copies of one network, "
            f"{own}, with {weights}. Each copy leaves out other parts of it, and always the same "
            "ones, so that a row gets the same answer every time."
        )
    else:
        yield f"The network is {own}, with {weights}."
    yield from _transformer(scorer)


def _transformer(scorer: Scorer) -> Iterator[str]:
    from calibrant.models.transformer import Transformer

    found = next((part for part in scorer.model.modules() if isinstance(part, Transformer)), None)
    if found is None:
        return
    kind = code(found.config["architecture"]["model_type"])
    layers = getattr(found.network.config, "num_hidden_layers", None)
    deep = f" with {format_count(layers, 'layer')}" if isinstance(layers, int) else ""
    yield (
        f"The transformer is of the architecture {kind}{deep}. Where it was pretrained, what those "
        "texts held shows in its answers too."
    )
