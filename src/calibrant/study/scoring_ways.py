"""Kinds of candidates: one network, an ensemble, or MC dropout."""

from __future__ import annotations

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


def name_candidate(
    loss: str, seed: int = 0, way: str = "one", members: int = 0, passes: int = 0
) -> str:
    """Name a candidate: the loss, the seed if it is not 0, and the kind of average.

    Examples
    --------
    >>> name_candidate("ce"), name_candidate("ce", way="ensemble", members=5)
    ('ce', 'ce, ensemble of 5')
    >>> name_candidate("ce", 1, "mc_dropout", passes=20)
    'ce (seed 1), MC dropout (20 passes)'
    """
    if way == "ensemble":
        return f"{loss}, ensemble of {members}"
    name = f"{loss} (seed {seed})" if seed else loss
    return f"{name}, MC dropout ({passes} passes)" if way == "mc_dropout" else name


def way_sentence(way: str) -> str:
    """Return a sentence that explains this kind of candidate; empty for one network.

    Examples
    --------
    >>> way_sentence("ensemble").split(" that")[0]
    'An ensemble gives the average of the probabilities of networks'
    """
    return _SENTENCES.get(way, "")
