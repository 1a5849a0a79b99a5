"""The words of the corpus, read from the files beside this module."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "GROUPS",
    "Claim",
    "Product",
    "claims",
    "clauses",
    "lines",
    "outside",
    "products",
    "words",
]

FloatArray = NDArray[np.float64]

_OPENED = ("defect", "missing", "quality")
GROUPS = ("electric", "wear", "home", "play", "care")
"""Kinds of products; a group decides which complaints make sense."""


@dataclass(frozen=True)
class Product:
    """Something that is sold: its name, its group, its category and the parts that belong to it."""

    name: str
    group: int
    category: int
    parts: tuple[str, ...]


@dataclass(frozen=True)
class Claim:
    """A complaint.

    Parameters
    ----------
    name : its key in the file
    kind : what it is about: defect, missing, quality, liking, service, open (anything) or
        gone (the thing is not there)
    lean : how strongly it speaks for each reason
    share : how common it is
    use : what may be said about its use: any, opened, used, unused or none
    short : whether it can be denied too
    phrases : for each group its wordings; none where it makes no sense
    """

    name: str
    kind: str
    lean: FloatArray
    share: float
    use: str
    short: bool
    phrases: tuple[tuple[str, ...], ...]


@cache
def products() -> tuple[Product, ...]:
    """Return everything that is sold, category by category."""
    out: list[Product] = []
    category = 0
    for group, categories in _read("products").items():
        for entry in categories.values():
            parts = tuple(entry["parts"])
            out += [
                Product(name, GROUPS.index(group), category, parts) for name in entry["products"]
            ]
            category += 1
    return tuple(out)


@cache
def claims() -> tuple[Claim, ...]:
    """Return every complaint."""
    return tuple(
        Claim(
            name=name,
            kind=entry["kind"],
            lean=np.array(entry["lean"], dtype=np.float64),
            share=float(entry["share"]),
            use=entry.get("use", "opened" if entry["kind"] in _OPENED else "any"),
            short=entry.get("short", False),
            phrases=tuple((*entry.get("all", ()), *entry.get(group, ())) for group in GROUPS),
        )
        for name, entry in _read("claims").items()
    )


@cache
def clauses() -> dict[str, Any]:
    """Return the other clauses of a message."""
    return _read("clauses")


@cache
def words() -> dict[str, list[str]]:
    """Return the lists of rare words."""
    return _read("words")


@cache
def lines() -> tuple[str, ...]:
    """Return the names of lines of products: a thousand words, each of them rare."""
    return tuple(a + b for a in words()["line_starts"] for b in words()["line_ends"])


@cache
def outside() -> tuple[str, ...]:
    """Return the messages that are about something else."""
    return tuple(_read("outside")["phrases"])


def _read(name: str) -> dict[str, Any]:
    text = files("calibrant.data.return_reasons").joinpath(f"{name}.toml").read_text("utf-8")
    return tomllib.loads(text)
