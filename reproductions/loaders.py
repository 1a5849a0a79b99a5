"""Loaders of the rows of experiments, by name.

A loader is a function of the options in an experiment's `reading` that returns `Parts`.
"""

from __future__ import annotations

import zlib

from calibrant.errors import CalibrantError, InputError
from reproductions.data_sets import data_set_named, find
from reproductions.experiment import Experiment
from reproductions.named_functions import function_named
from reproductions.parts import Parts

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


_DAMAGED = (
    ArithmeticError,
    AttributeError,
    EOFError,
    LookupError,
    OSError,
    TypeError,
    ValueError,
    zlib.error,
)
"""What reading a file raises that is cut short, or is not what it should be."""


def load(experiment: Experiment) -> Parts:
    """Read, or make, the rows of an experiment; a file that is not as it should be is named."""
    loader = function_named(LOADERS, experiment.data, "loader")
    try:
        parts: Parts = loader(experiment.reading)
    except CalibrantError:
        raise
    except _DAMAGED as error:
        if not experiment.needs:
            raise
        raise InputError(_describe(experiment, error)) from error
    if experiment.own_choice:
        parts = parts.with_choice()
    empty = [name for name, rows in parts.sizes().items() if not rows]
    if empty:
        raise InputError(_describe(experiment, ValueError(f"no rows for the {empty[0]} part")))
    return parts


def _describe(experiment: Experiment, error: Exception) -> str:
    named = [path for name in experiment.needs for path in find(name)]
    listed = ", ".join(str(path) for path in named[:4]) + (", ..." if len(named) > 4 else "")
    where = "; ".join(data_set_named(name).where for name in experiment.needs)
    what = " ".join(str(error).split())[:200] or "it ends too early"
    return (
        f"the data of {experiment.name} cannot be read ({type(error).__name__}: {what}): one of "
        f"{listed} is damaged or has other columns; get it again from {where}."
    )
