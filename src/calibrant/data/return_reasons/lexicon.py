"""Lexicon of the corpus, loaded from TOML files."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

_OPENED = ("defect", "missing", "quality")
GROUPS = ("electric", "wear", "home", "play", "care")
"""Product groups; a group determines the possible complaints."""


@dataclass(frozen=True)
class Product:
    """A product: name, group, category and parts."""

    name: str
    group: int
    category: int
    parts: tuple[str, ...]


@dataclass(frozen=True)
class Claim:
    """A complaint.

    Parameters
    ----------
    name : key in the file
    kind : topic: defect, missing, quality, liking, service, open (anything) or gone (not received)
    lean : evidence for each reason
    share : relative frequency
    use : what the message may say about the use: any, opened, used, unused or none
    short : whether it can also be denied
    phrases : wordings for each group; empty if it does not apply
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
    """Return all products, by category."""
    out: list[Product] = []
    category = 0
    for group, categories in _load_toml("products").items():
        for entry in categories.values():
            parts = tuple(entry["parts"])
            out += [
                Product(name, GROUPS.index(group), category, parts) for name in entry["products"]
            ]
            category += 1
    return tuple(out)


@cache
def claims() -> tuple[Claim, ...]:
    """Return all complaints."""
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
        for name, entry in _load_toml("claims").items()
    )


@cache
def clauses() -> dict[str, Any]:
    """Return the other clauses of a message."""
    return _load_toml("clauses")


@cache
def words() -> dict[str, list[str]]:
    """Return the lists of rare words."""
    return _load_toml("words")


@cache
def lines() -> tuple[str, ...]:
    """Return the names of product lines: a thousand rare words."""
    return tuple(a + b for a in words()["line_starts"] for b in words()["line_ends"])


@cache
def outside() -> tuple[str, ...]:
    """Return the out-of-scope messages."""
    return tuple(_load_toml("outside")["phrases"])


def _load_toml(name: str) -> dict[str, Any]:
    text = files("calibrant.data.return_reasons").joinpath(f"{name}.toml").read_text("utf-8")
    return tomllib.loads(text)
