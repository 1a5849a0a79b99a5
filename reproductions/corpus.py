"""Rows of the return-reason paper: the built-in corpus at the paper's size."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from calibrant.data.return_reasons import Messages, draw
from calibrant.errors import InputError
from calibrant.inputs import IntArray
from reproductions.parts import Part, Parts

__all__ = ["chosen", "fresh_messages", "return_reasons"]

GOLDEN = {True: 1013, False: 1839}
"""Annotated messages of the paper: of its binary model, and of its model with five classes."""

_USUAL: Mapping[str, Any] = {
    "binary": False,
    "logs": 18_000,
    "golden": None,
    "test": 10_000,
    "fresh": 100_000,
    "seed": 0,
    "hold": (),
}
_SPARE = 1.05
"""More messages are drawn than needed, for those that stand in another part are left out."""

_NOTE = (
    "The paper's messages are not public: these are made up, with a posterior that is known. "
    "Logs have noisy labels and another prior than the golden messages; the golden set only "
    "calibrates, and other messages like it judge."
)


def return_reasons(reading: Mapping[str, Any]) -> Parts:
    """Draw logs, a golden set of the paper's size, and further golden messages that judge.

    The paper tunes thresholds and reports figures on the same golden set. Here the golden set is
    the calib part and has the paper's size; the test part is drawn after it and is larger, so that
    figures are sharper. Logs are cut 8:1 into train and steer, as the paper's 8:1:1 cuts them; its
    last tenth has no part in any of its figures. A message that stands in two parts is left out of
    the logs, and of the golden set where the test part has it.

    The world is the built-in one: shares of the reasons and noise of the labels are not the
    paper's, which prints neither.

    Parameters
    ----------
    reading : `binary` (item_defective against the rest), `logs`, `golden` (None for the paper's
        number), `test` (numbers of messages), `seed` (of the messages); `fresh` and `hold` are
        options of the extras "promise" and "true_ce"

    Examples
    --------
    >>> parts = return_reasons({"binary": True, "logs": 900, "test": 500})
    >>> parts.sizes()
    {'train': 800, 'steer': 100, 'calib': 1013, 'test': 500}
    >>> parts.classes
    ('others', 'item_defective')
    """
    options = chosen(reading, _USUAL)
    binary, seed = bool(options["binary"]), options["seed"]
    n_golden = GOLDEN[binary] if options["golden"] is None else options["golden"]
    # Sources and seeds are streams of their own: the test messages are other draws.
    test = _golden(options["test"], 3 * seed + 1, binary, ())
    calib = _golden(n_golden, 3 * seed, binary, test.inputs)
    logs = draw(options["logs"], source="logs", seed=seed, binary=binary)
    seen = {*test.inputs, *calib.inputs}
    fit = [i for i, text in enumerate(_once(logs.texts)) if text is not None and text not in seen]
    order = np.random.default_rng(1).permutation(np.asarray(fit, dtype=np.int64))
    n_steer = len(order) // 9
    return Parts(
        train=_part(logs, order[n_steer:]),
        steer=_part(logs, order[:n_steer]),
        calib=calib,
        test=test,
        classes=logs.classes,
        note=_NOTE,
    )


def fresh_messages(reading: Mapping[str, Any], seen: Collection[str]) -> Part:
    """Draw golden messages that no part holds: what a deployed model would meet.

    Parameters
    ----------
    reading : as for `return_reasons`; `fresh` is the number of messages
    seen : messages that are left out, so that none was learned by heart

    Examples
    --------
    >>> fresh = fresh_messages({"binary": True, "fresh": 20}, ())
    >>> fresh.posterior.shape
    (20, 2)
    """
    options = chosen(reading, _USUAL)
    return _golden(options["fresh"], 3 * options["seed"] + 2, bool(options["binary"]), seen)


def chosen(reading: Mapping[str, Any], usual: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a loader; one that it does not know is refused.

    Examples
    --------
    >>> chosen({"logs": 900}, {"logs": 18_000, "seed": 0})
    {'logs': 900, 'seed': 0}
    """
    strange = [name for name in reading if name not in usual]
    if strange:
        raise InputError(
            f"reading has the option {strange[0]!r}, which its loader does not know: choose among "
            f"{', '.join(usual)}."
        )
    return {**usual, **reading}


def _golden(n: int, seed: int, binary: bool, seen: Collection[str]) -> Part:
    """Draw n golden messages that are not among those seen."""
    drawn = draw(int(_SPARE * n) + 10, source="golden", seed=seed, binary=binary)
    known = set(seen)
    new = [i for i, text in enumerate(drawn.texts) if text not in known][:n]
    return _part(drawn, np.asarray(new, dtype=np.int64))


def _part(drawn: Messages, rows: IntArray) -> Part:
    place = {name: k for k, name in enumerate(drawn.classes)}
    return Part(
        inputs=[drawn.texts[i] for i in rows],
        labels=np.array([place[name] for name in drawn.labels[rows].tolist()], dtype=np.int64),
        posterior=(drawn.logged if drawn.source == "logs" else drawn.posterior)[rows],
    )


def _once(texts: Sequence[str]) -> list[str | None]:
    """Return the texts with None in the place of each repetition."""
    first: dict[str, int] = {}
    return [text if first.setdefault(text, i) == i else None for i, text in enumerate(texts)]
