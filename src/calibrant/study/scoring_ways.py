"""How a candidate comes to its scores: by one network, or by the average of several."""

from __future__ import annotations

__all__ = ["WAYS", "called", "way_sentence"]

WAYS = ("one", "ensemble", "mc_dropout")
"""One trained network; the networks of all seeds averaged; thinned copies of a network averaged."""

_SENTENCES = {
    "ensemble": (
        "An ensemble gives the average of the probabilities of networks that were trained in the "
        "same way from different first weights (seeds): as one model, which takes as much work as "
        "all of them."
    ),
    "mc_dropout": (
        "MC dropout gives the average of the probabilities of one network with parts of it left "
        "out, other parts in each pass: as one model, which takes as much work as all passes."
    ),
}


def called(loss: str, seed: int = 0, way: str = "one", members: int = 0, passes: int = 0) -> str:
    """Name a candidate: the loss, the seed where it is not 0, and what its scores average.

    Examples
    --------
    >>> called("ce"), called("ce", 1), called("ce", way="ensemble", members=5)
    ('ce', 'ce (seed 1)', 'ce, ensemble of 5')
    >>> called("ce", 1, "mc_dropout", passes=20)
    'ce (seed 1), MC dropout (20 passes)'
    """
    if way == "ensemble":
        return f"{loss}, ensemble of {members}"
    own = f"{loss} (seed {seed})" if seed else loss
    return f"{own}, MC dropout ({passes} passes)" if way == "mc_dropout" else own


def way_sentence(way: str) -> str:
    """Say what a candidate of this way is; nothing of one network.

    Examples
    --------
    >>> way_sentence("ensemble").split(" that")[0]
    'An ensemble gives the average of the probabilities of networks'
    """
    return _SENTENCES.get(way, "")
