"""Divide the rows: logs to train, steer and hold out, trusted rows to calibrate and test."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from calibrant.data.row_identity import content_groups
from calibrant.data.splits import Part, Splits
from calibrant.data.splitting import split_rows
from calibrant.errors import InputError
from calibrant.inputs import IntArray
from calibrant.study.config import StudyConfig

if TYPE_CHECKING:
    from calibrant.study.reading import Source

__all__ = ["divide"]

WITH_GOLDEN = (8.0, 1.0, 1.0)
"""Shares of the logs that train, steer and are held out, where a golden set does the rest."""

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
    them as the traffic; of the others, nobody learns from them.

    Parameters
    ----------
    logs, golden : the rows
    outside : which rows of each belong to no class
    config : the settings
    columns : those that the model reads; equal texts stay together
    """
    train, steer, held = config.shares or (ALONE if golden is None else WITH_GOLDEN)
    if golden is None:
        parts = _split(logs, (train, steer, held / 2, held / 2), config, columns)
        calibrate, test = Part("logs", parts[2]), Part("logs", parts[3])
        log_test = np.empty(0, dtype=np.int64)
    else:
        parts = _split(logs, (train, steer, held), config, columns)
        log_test = parts[2]
        trusted = _split(golden, (1.0, 1.0), config, columns)
        calibrate, test = (Part("golden", part) for part in trusted)
    off = outside["logs"]
    idle = np.concatenate([part[off[part]] for part in (parts[0], parts[1], log_test)])
    return Splits(
        train=Part("logs", parts[0][~off[parts[0]]]),
        steer=Part("logs", parts[1][~off[parts[1]]]),
        log_test=Part("logs", log_test[~off[log_test]]),
        calibrate=calibrate,
        test=test,
        out_of_scope=Part("logs", np.sort(idle)),
    )


def _split(
    source: Source, shares: tuple[float, ...], config: StudyConfig, columns: list[str]
) -> tuple[IntArray, ...]:
    labels = None if config.cut else [str(label) for label in source.labels.to_pylist()]
    here: dict[str, Any] = {}
    if config.time is not None and (source.name == "logs" or _has(source, config.time)):
        here["times"] = source.column(config.time)
    elif config.group is not None and (source.name == "logs" or _has(source, config.group)):
        here["groups"] = source.column(config.group)
    elif config.text is not None:  # equal rows of a table are chance, equal texts were learned
        here["groups"] = content_groups(source.table, columns)
    else:
        here["n"] = len(source)
    try:
        return split_rows(labels, shares, seed=config.seed, **here)
    except InputError as error:
        raise InputError(f"{source.file}: {error}") from None


def _has(source: Source, column: str) -> bool:
    return column in source.table.column_names
