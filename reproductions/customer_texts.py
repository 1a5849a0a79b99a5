"""Public customer texts: tickets, reviews and requests."""

from __future__ import annotations

import csv
import gzip
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from calibrant.inputs import IntArray
from reproductions.corpus import chosen
from reproductions.parts import Part, Parts

__all__ = ["clinc150", "it_tickets", "made_texts", "womens_clothing"]

REVIEWS = ("recommended", "not_recommended")
"""The second class is the rare one: who would not recommend a thing would send it back."""

_OOS = "oos"
_CALIB, _TEST = 1839, 5_000
"""Rows that stand in for the golden set, as many as the paper has for five classes, and more that
judge."""

_USUAL: Mapping[str, Any] = {
    "rows": None,
    "calib": _CALIB,
    "test": _TEST,
    "made": False,
    "hold": (),
}


class _Texts(NamedTuple):
    texts: list[str]
    codes: IntArray
    classes: tuple[str, ...]


def it_tickets(reading: Mapping[str, Any]) -> Parts:
    """Read IT service tickets of eight topics.

    They were made lower-case and robbed of stop words by those who published them. All parts are
    of one source with one prior, unlike the paper's logs and golden set.

    Parameters
    ----------
    reading : `rows` (at most, None for all), `calib` and `test` (rows of these parts; the others
        are cut 8:1 into train and steer), `made` (make rows up, without a file); `hold` is an
        option of the extra "promise"

    Examples
    --------
    >>> it_tickets({"rows": 300, "calib": 60, "test": 60, "made": True}).sizes()
    {'train': 160, 'steer': 20, 'calib': 60, 'test': 60}
    """
    options = chosen(reading, _USUAL)
    note = (
        "The paper has no such data: the same models on real tickets, cut at random, "
        "without the shift from logs to golden messages."
    )
    if options["made"]:
        return _cut(made_texts(options["rows"], _TOPICS), options, note)
    import pyarrow.parquet as pq

    table = pq.read_table(_file("it_tickets", "it_tickets.parquet"))
    pairs = set(zip(table["label"].to_pylist(), table["label_name"].to_pylist(), strict=True))
    classes = tuple(name for _, name in sorted(pairs))
    codes = np.asarray(table["label"], dtype=np.int64)
    return _cut(_Texts(table["text"].to_pylist(), codes, classes), options, note)


def womens_clothing(reading: Mapping[str, Any]) -> Parts:
    """Read reviews of clothes, where the rare class is that the customer would not recommend it.

    It is the nearest open stand-in for a reason to send something back; it is not one. Title and
    review are read as one text; reviews without text are left out.

    Parameters
    ----------
    reading : as for `it_tickets`

    Examples
    --------
    >>> parts = womens_clothing({"rows": 300, "calib": 60, "test": 60, "made": True})
    >>> parts.classes[1], round(float(parts.train.labels.mean()), 1)
    ('not_recommended', 0.2)
    """
    options = chosen(reading, _USUAL)
    note = (
        "The paper has no such data: the same models on real reviews, cut at random, "
        "without the shift from logs to golden messages."
    )
    if options["made"]:
        return _cut(made_texts(options["rows"], REVIEWS), options, note)
    path = _file("womens_clothing", "womens_clothing_reviews.csv.gz")
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        reviews = [row for row in csv.DictReader(file) if row["Review Text"].strip()]
    texts = [f"{row['Title']} {row['Review Text']}".strip() for row in reviews]
    codes = np.array([int(row["Recommended IND"] == "0") for row in reviews], dtype=np.int64)
    return _cut(_Texts(texts, codes, REVIEWS), options, note)


def clinc150(reading: Mapping[str, Any]) -> Parts:
    """Read requests of 150 intents, the authors' imbalanced variant, with those of no intent.

    Their own parts are kept: train is cut 8:1 into train and steer, intent by intent for some have
    25 rows, val calibrates, test judges.
    Only train is imbalanced, so that a prior shifts between logs and golden rows, as in the paper.

    Parameters
    ----------
    reading : as for `it_tickets`; each of the authors' parts is thinned alike where `rows` is
        given, and `calib` and `test` only count for rows that are made up

    Examples
    --------
    >>> parts = clinc150({"rows": 300, "calib": 60, "test": 60, "made": True})
    >>> list(parts.outside), len(parts.outside["oos"])
    (['oos'], 30)
    """
    options = chosen(reading, _USUAL)
    note = (
        "The paper has no such data: the same models on short requests of 150 intents, whose train "
        "part is imbalanced and whose other parts are not."
    )
    if options["made"]:
        parts = _cut(made_texts(options["rows"], _INTENTS), options, note)
        outside = made_texts(len(parts.test) // 2, (_OOS,)).texts
        return replace(parts, outside={_OOS: outside})
    with gzip.open(_file("clinc150", "clinc150_imbalanced.jsonl.gz"), "rt", encoding="utf-8") as f:
        rows = [json.loads(line) for line in f]
    inside = [row for row in rows if row["label"] >= 0]
    share = 1.0 if options["rows"] is None else min(1.0, options["rows"] / len(inside))
    rng = np.random.default_rng(1)
    golden = {name: _thinned(rng, inside, name, share) for name in ("val", "test")}
    known = {row["text"] for part in golden.values() for row in part}
    logs = [row for row in _thinned(rng, inside, "train", share) if row["text"] not in known]
    train, steer = _eight_to_one(logs)
    names = {row["label"]: row["label_name"] for row in inside}
    return Parts(
        train=_part_of(train),
        steer=_part_of(steer),
        calib=_part_of(golden["val"]),
        test=_part_of(golden["test"]),
        classes=tuple(names[label] for label in sorted(names)),
        outside={_OOS: [row["text"] for row in rows if row["label_name"] == _OOS]},
        note=note,
    )


_TOPICS = ("hardware", "access", "storage", "purchase")
_INTENTS = ("balance", "alarm", "weather", "recipe")


def made_texts(rows: int | None, classes: Sequence[str]) -> _Texts:
    """Make texts up: some of the words of each belong to its class, the others to nobody.

    Classes have 1, 1/2, 1/4, ... of the rows of the first, but no less than 1/4.

    Examples
    --------
    >>> made = made_texts(50, ("yes", "no"))
    >>> len(made.texts), made.classes
    (50, ('yes', 'no'))
    """
    rng = np.random.default_rng(1)
    n = 300 if rows is None else rows
    share = np.maximum(0.25, 0.5 ** np.arange(len(classes)))
    share = share if len(classes) != len(REVIEWS) else np.array([0.8, 0.2])
    codes = rng.choice(len(classes), size=n, p=share / share.sum())
    own = rng.random((n, 8)) < 0.4
    words = rng.integers(30, size=(n, 8))
    texts = [
        " ".join(
            f"{classes[code]}{word % 5}" if mine else f"word{word}"
            for mine, word in zip(own[i], words[i], strict=True)
        )
        + f" {i}"
        for i, code in enumerate(codes)
    ]
    return _Texts(texts, np.asarray(codes, dtype=np.int64), tuple(classes))


def _cut(source: _Texts, options: Mapping[str, Any], note: str) -> Parts:
    """Cut texts at random: test and calib have their numbers, the others go 8:1 to train, steer."""
    unique = np.asarray(list({text: i for i, text in enumerate(source.texts)}.values()))
    order = np.random.default_rng(1).permutation(unique)[: options["rows"]]
    n_test, n_calib = (min(options[name], len(order) // 5) for name in ("test", "calib"))
    test, calib, logs = np.split(order, [n_test, n_test + n_calib])
    steer, train = np.split(logs, [len(logs) // 9])

    def part(rows: IntArray) -> Part:
        return Part([source.texts[i] for i in rows], source.codes[rows])

    return Parts(part(train), part(steer), part(calib), part(test), source.classes, note=note)


def _thinned(
    rng: np.random.Generator, rows: Sequence[Mapping[str, Any]], split: str, share: float
) -> list[Mapping[str, Any]]:
    mine = [row for row in rows if row["split"] == split]
    return [mine[i] for i in rng.permutation(len(mine))[: round(share * len(mine))]]


def _eight_to_one(
    rows: Sequence[Mapping[str, Any]],
) -> tuple[list[Mapping[str, Any]], list[Mapping[str, Any]]]:
    """Cut rows class by class; of two rows or more each side gets one."""
    left: list[Mapping[str, Any]] = []
    right: list[Mapping[str, Any]] = []
    for label in sorted({row["label"] for row in rows}):
        mine = [row for row in rows if row["label"] == label]
        n = max(len(mine) // 9, int(len(mine) > 1))
        left, right = left + mine[n:], right + mine[:n]
    return left, right


def _part_of(rows: Sequence[Mapping[str, Any]]) -> Part:
    return Part(
        [row["text"] for row in rows], np.array([row["label"] for row in rows], dtype=np.int64)
    )


def _file(name: str, file: str) -> Path:
    from reproductions.data_sets import find

    return find(name, file)[0]
