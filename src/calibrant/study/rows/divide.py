"""Divide the rows: logs to train, steer, choose and hold out, others to calibrate and test."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from calibrant.data.row_identity import content_groups
from calibrant.data.splits import SplitPart, Splits
from calibrant.data.splitting import split_rows
from calibrant.errors import InputError
from calibrant.inputs import IntArray
from calibrant.study.rows.choice_split import FEWEST, halve_steer
from calibrant.study.settings.config import StudyConfig

if TYPE_CHECKING:
    from calibrant.study.rows.source import Source

__all__ = ["divide"]

WITH_GOLDEN = (8.0, 1.0, 1.0)
"""Shares of the logs that train, steer (or choose) and are held out, beside a golden set."""

ALONE = (7.0, 1.0, 2.0)
"""Without a golden set; of the held-out rows one half calibrates, the other tests."""


def divide(
    logs: Source,
    golden: Source | None,
    outside: Mapping[str, NDArray[np.bool_]],
    config: StudyConfig,
    columns: list[str],
) -> Splits:
    """Give every row one job.

    Rows of no class are spread like a class of their own, so that the trusted rows hold as many of
    them as the traffic; of the others, nobody learns from them. Where there are several candidates,
    half of the steer rows are kept for the choice. Without a golden set each text or image stands
    once among the rows that calibrate and test; its other rows have no job.
    """
    shares = config.shares or (ALONE if golden is None else WITH_GOLDEN)
    together = _together(logs, config, columns)
    train, steer, held = _split(logs, shares, config, together)
    if golden is None:
        held = _each_once(held, config, together)
        calibrate, test = (
            SplitPart("logs", held[half]) for half in _halves(logs.take(held), config)
        )
        held = np.empty(0, dtype=np.int64)
    else:
        calibrate, test = (SplitPart("golden", half) for half in _halves(golden, config))
    off = outside["logs"]
    steered, choice = _with_choice(logs, steer[~off[steer]], config, columns)
    idle = np.concatenate([part[off[part]] for part in (train, steer, held)])
    return Splits(
        train=SplitPart("logs", train[~off[train]]),
        steer=SplitPart("logs", steered),
        choice=SplitPart("logs", choice),
        log_test=SplitPart("logs", held[~off[held]]),
        calibrate=calibrate,
        test=test,
        out_of_scope=SplitPart("logs", np.sort(idle)),
    )


def _split(
    logs: Source, shares: tuple[float, ...], config: StudyConfig, together: Mapping[str, Any]
) -> tuple[IntArray, ...]:
    """Split the logs; what was learned by heart must not stand among the rows that judge."""
    try:
        return split_rows(_labels(logs, config), shares, seed=config.seed, **together)
    except InputError as error:
        alike = config.kind != "table" and config.group is None
        why = f"equal {config.kind}s stay in one split, and " if alike else ""
        raise InputError(f"{logs.file}: {why}{error}") from None


def _each_once(held: IntArray, config: StudyConfig, together: Mapping[str, Any]) -> IntArray:
    """Keep one row of each text or image, at random, of the logs that take a golden set's place.

    Equal ones were dealt together, so they are no rows drawn one by one: a few frequent texts would
    count as hundreds, and a promise would be far less sure than it says.
    """
    if config.group is not None or "groups" not in together:
        return held
    mixed = np.random.default_rng(config.seed).permutation(held)
    first = np.unique(together["groups"][mixed], return_index=True)[1]
    return np.sort(mixed[first])


def _with_choice(
    logs: Source, steer: IntArray, config: StudyConfig, columns: list[str]
) -> tuple[IntArray, IntArray]:
    """Halve the steer rows into those that steer and those that choose the candidate.

    Of a single candidate all of them steer: nothing has to be chosen.
    """
    if not config.compares:
        return steer, steer[:0]
    part = logs.take(steer)
    try:
        own, kept = halve_steer(
            _labels(part, config), seed=config.seed, **_together(part, config, columns)
        )
    except InputError:  # one row, or one moment
        own, kept = steer, steer[:0]
    if min(len(own), len(kept)) < FEWEST:
        raise InputError(
            f"{logs.file}: the {len(steer)} {logs.unit}s of the steer share cannot be halved into "
            f"those that steer the training and those that choose the candidate (each half needs "
            f"{FEWEST}, and a class two {logs.unit}s or groups to be in both): give more "
            f"{logs.unit}s, a larger second share like --shares 6:3:1, or train a single candidate "
            "(--candidates ce with one seed)."
        )
    return steer[own], steer[kept]


def _labels(source: Source, config: StudyConfig) -> list[str] | None:
    """Return the labels as texts; None where they are cut into classes later."""
    return None if config.cut else [str(label) for label in source.labels.to_pylist()]


def _together(logs: Source, config: StudyConfig, columns: list[str]) -> dict[str, Any]:
    """Return what keeps rows of the logs in one split: time, groups, or equal content."""
    if config.time is not None:
        return {"times": logs.column(config.time)}
    if config.group is not None:
        return {"groups": logs.column(config.group)}
    if config.kind != "table":  # equal rows of a table are chance, equal texts were learned
        return {"groups": content_groups(logs.table, columns)}
    return {"n": len(logs)}


def _halves(source: Source, config: StudyConfig) -> tuple[IntArray, ...]:
    """Halve trusted rows into those that calibrate and those that test.

    Row by row: a threshold learns no text by heart, and a promise needs rows drawn like the
    traffic. Were equal texts of a golden set kept together, a frequent one would stand in one half
    only. Only rows of one group, which the user named, stay together.
    """
    here: dict[str, Any] = {"n": len(source)}
    labels = None if config.cut else _strata(source)
    if config.time is not None and config.time in source.table.column_names:
        labels, here = None, {"times": source.column(config.time)}
    elif config.group is not None and config.group in source.table.column_names:
        labels, here = None, {"groups": source.column(config.group)}
    try:
        return split_rows(labels, (1, 1), seed=config.seed, **here)
    except InputError as error:
        raise InputError(f"{source.file}: {error}") from None


def _strata(source: Source) -> list[str]:
    """Return the labels; those of a single row, which cannot be halved, go with the commonest."""
    labels = [str(label) for label in source.labels.to_pylist()]
    counts = Counter(labels)
    common = counts.most_common(1)[0][0]
    return [label if counts[label] > 1 else common for label in labels]
