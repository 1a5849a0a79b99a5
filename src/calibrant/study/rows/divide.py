"""Divide the rows of a study into train, steer, choice, held-out, calibrate and test splits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from calibrant.data.row_identity import content_groups
from calibrant.data.splits import SplitPart, Splits
from calibrant.data.splitting import group_codes, split_rows
from calibrant.errors import InputError
from calibrant.inputs import IntArray
from calibrant.study.settings.config import StudyConfig

if TYPE_CHECKING:
    from calibrant.study.rows.source import StudySource

MIN_ROWS = 2
"""Rows that each half needs to fit a temperature."""


WITH_GOLDEN = (8.0, 1.0, 1.0)
"""Shares of the logs for train, steer (and choice) and held-out rows, with a golden set."""

WITHOUT_GOLDEN = (7.0, 1.0, 2.0)
"""Shares without a golden set; one half of the held-out rows calibrates, the other tests."""


def divide_rows(
    logs: StudySource,
    golden: StudySource | None,
    outside: Mapping[str, NDArray[np.bool_]],
    config: StudyConfig,
    columns: list[str],
) -> Splits:
    """Assign every row to one split.

    Out-of-scope rows are stratified like a class, so that the trusted rows contain as many of them
    as the traffic; those in other splits are not used for training. With several candidates, half
    of the steer rows become choice rows. Without a golden set each text or image occurs once among
    the calibrate and test rows; its repeats are left out.
    """
    shares = config.shares or (WITHOUT_GOLDEN if golden is None else WITH_GOLDEN)
    grouping = _split_grouping(logs, config, columns)
    train, steer, held = _split_logs(logs, shares, config, grouping)
    if golden is None:
        held = _drop_repeats(held, config, grouping)
        halves = _halve_trusted(logs.take(held), config)
        calibrate, test = (SplitPart("logs", held[half]) for half in halves)
        held = np.empty(0, dtype=np.int64)
    else:
        calibrate, test = (SplitPart("golden", half) for half in _halve_trusted(golden, config))
    off = outside["logs"]
    steered, choice = _split_choice(logs, steer[~off[steer]], config, columns)
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


def _split_logs(
    logs: StudySource, shares: tuple[float, ...], config: StudyConfig, grouping: Mapping[str, Any]
) -> tuple[IntArray, ...]:
    """Split the logs so that memorised rows are not among those that evaluate."""
    try:
        return split_rows(_labels(logs, config), shares, seed=config.seed, **grouping)
    except InputError as error:
        alike = config.kind != "table" and config.group is None
        reason = f"equal {config.kind}s stay in one split, and " if alike else ""
        raise InputError(f"{logs.file}: {reason}{error}") from None


def _drop_repeats(held: IntArray, config: StudyConfig, grouping: Mapping[str, Any]) -> IntArray:
    """Keep one random row of each text or image among logs that replace a golden set.

    Equal rows were assigned to a split together, so they are not independent draws: a few frequent
    texts would count as hundreds, and the confidence of a promise would be overstated.
    """
    if config.group is not None or "groups" not in grouping:
        return held
    mixed = np.random.default_rng(config.seed).permutation(held)
    first = np.unique(grouping["groups"][mixed], return_index=True)[1]
    return np.sort(mixed[first])


def _split_choice(
    logs: StudySource, steer: IntArray, config: StudyConfig, columns: list[str]
) -> tuple[IntArray, IntArray]:
    """Split the steer rows into steer and choice rows; a single candidate needs no choice rows."""
    if not config.compares:
        return steer, steer[:0]
    part = logs.take(steer)
    try:
        steering, choosing = halve_steer(
            _labels(part, config), seed=config.seed, **_split_grouping(part, config, columns)
        )
    except InputError:  # a single row, or a single time
        steering, choosing = steer, steer[:0]
    if min(len(steering), len(choosing)) < MIN_ROWS:
        raise InputError(
            f"{logs.file}: the {len(steer)} {logs.unit}s of the steer share cannot be halved into "
            f"steer and choice {logs.unit}s (each half needs {MIN_ROWS}, and a class needs two "
            f"{logs.unit}s or groups to be in both): give more "
            f"{logs.unit}s, a larger second share like --shares 6:3:1, or train a single candidate "
            "(--candidates ce with one seed)."
        )
    return steer[steering], steer[choosing]


def _labels(source: StudySource, config: StudyConfig) -> list[str] | None:
    """Return the labels as texts, or None if they are cut into classes later."""
    return None if config.cut else [str(label) for label in source.labels.to_pylist()]


def _split_grouping(logs: StudySource, config: StudyConfig, columns: list[str]) -> dict[str, Any]:
    """Return the `split_rows` argument that keeps log rows together: times, groups or content."""
    if config.time is not None:
        return {"times": logs.column(config.time)}
    if config.group is not None:
        return {"groups": logs.column(config.group)}
    if config.kind != "table":  # equal table rows are coincidence, equal texts can be memorised
        return {"groups": content_groups(logs.table, columns)}
    return {"n": len(logs)}


def _halve_trusted(source: StudySource, config: StudyConfig) -> tuple[IntArray, ...]:
    """Halve trusted rows into calibrate and test rows.

    Rows are drawn one by one: a threshold cannot memorise texts, and a promise needs rows drawn
    like the traffic. If equal texts of a golden set were kept together, a frequent one would be in
    one half only. Only rows of a user-defined group stay together.
    """
    grouping: dict[str, Any] = {"n": len(source)}
    labels = None if config.cut else _strata(source)
    if config.time is not None and config.time in source.table.column_names:
        labels, grouping = None, {"times": source.column(config.time)}
    elif config.group is not None and config.group in source.table.column_names:
        labels, grouping = None, {"groups": source.column(config.group)}
    try:
        return split_rows(labels, (1, 1), seed=config.seed, **grouping)
    except InputError as error:
        raise InputError(f"{source.file}: {error}") from None


def _strata(source: StudySource) -> list[str]:
    """Return the labels, with labels of a single row merged into the most common one."""
    labels = [str(label) for label in source.labels.to_pylist()]
    counts = Counter(labels)
    common = counts.most_common(1)[0][0]
    return [label if counts[label] > 1 else common for label in labels]


def halve_steer(
    labels: Sequence[str] | None,
    *,
    groups: Any = None,
    times: Any = None,
    n: int | None = None,
    seed: int = 0,
) -> tuple[IntArray, IntArray]:
    """Return the positions of the steer rows and of the choice rows.

    A candidate looks better on rows that steered its loss or its best epoch than on new rows; on
    choice rows, which steered no candidate, the comparison is fair. Each class is halved by
    `split_rows`, at random with a fixed seed; rows of one group stay together, and with times the
    later half chooses.

    A class with a single row or group cannot be halved and stays with the steer rows, as does a
    class left with fewer than two groups once those stay. If groups are too large for every class
    to be in both halves, they are halved without stratification.

    No minimum number of choice rows is enforced here: with very few, the choice is mostly noise.

    Examples
    --------
    >>> steer, choice = halve_steer(["a"] * 4 + ["b"] * 2 + ["c"])
    >>> len(steer), len(choice), 6 in steer
    (4, 3, True)
    >>> halve_steer(None, times=[3, 1, 2, 4])
    (array([1, 2]), array([0, 3]))
    """
    if labels is None or times is not None:
        steer, choice = split_rows(labels, (1, 1), groups=groups, times=times, n=n, seed=seed)
        return steer, choice
    units = np.arange(len(labels)) if groups is None else group_codes(groups)
    stays = _mask_one_sided(np.unique(list(labels), return_inverse=True)[1].reshape(-1), units)
    rest = np.flatnonzero(~stays)
    if not len(rest):
        return np.arange(len(labels)), rest
    rest_groups = None if groups is None else units[rest]
    first, second = _halve_rows([labels[i] for i in rest.tolist()], rest_groups, seed)
    return np.sort(np.concatenate([np.flatnonzero(stays), rest[first]])), rest[second]


def _mask_one_sided(codes: IntArray, units: IntArray) -> NDArray[np.bool_]:
    """Return a mask of the rows that stay: whole units, until every other class has two units."""
    stays = np.zeros(len(codes), dtype=bool)
    while True:
        pairs = np.unique(np.stack([codes[~stays], units[~stays]]), axis=1)
        spread = np.bincount(pairs[0], minlength=int(codes.max(initial=0)) + 1)
        lone = np.flatnonzero(spread == 1)
        if not len(lone):
            return stays
        stays |= np.isin(units, units[~stays & np.isin(codes, lone)])


def _halve_rows(labels: list[str], groups: IntArray | None, seed: int) -> tuple[IntArray, IntArray]:
    try:
        first, second = split_rows(labels, (1, 1), groups=groups, n=len(labels), seed=seed)
    except InputError:  # no group can be moved without moving another class too
        first, second = split_rows(None, (1, 1), groups=groups, n=len(labels), seed=seed)
    return first, second
