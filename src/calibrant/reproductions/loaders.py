"""The rows of an experiment, by the name of its loader.

A loader is a function of the options in an experiment's `reading` that returns `Parts`.
"""

from __future__ import annotations

from calibrant.reproductions.experiment import Experiment
from calibrant.reproductions.named_functions import function_named
from calibrant.reproductions.parts import Parts

__all__ = ["LOADERS", "load"]

LOADERS = {
    "bigmart": "bigmart:bigmart",
    "cifar10": "cifar:cifar10",
    "cifar100": "cifar:cifar100",
    "clinc150": "customer_texts:clinc150",
    "imagenet": "imagenet:imagenet",
    "it_tickets": "customer_texts:it_tickets",
    "long_tail": "long_tail:long_tail",
    "newsgroups": "newsgroups:newsgroups",
    "return_reasons": "corpus:return_reasons",
    "tiny_imagenet": "tiny_imagenet:tiny_imagenet",
    "womens_clothing": "customer_texts:womens_clothing",
}


def load(experiment: Experiment) -> Parts:
    """Read, or make, the rows of an experiment."""
    loader = function_named(LOADERS, experiment.data, "loader")
    parts: Parts = loader(experiment.reading)
    return parts
