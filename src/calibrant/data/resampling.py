"""Train rows with other class frequencies, and what that does to the logits learned on them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from calibrant.data.encoders.table_columns import is_missing
from calibrant.errors import InputError, MissingExtra
from calibrant.inputs import FloatArray, IntArray

__all__ = ["Resampled", "Resampling", "resampled", "smote"]

Resampling = Literal["over", "under"]


@dataclass(frozen=True)
class Resampled:
    """Which rows to learn from, and what that moves the logits by.

    Parameters
    ----------
    places : positions into the given rows; a row that is drawn again is there again
    log_shift : (K,) what logits learned on these rows have to be lessened by, to be those for the
        class frequencies of the given rows; classes in sorted order
    """

    places: IntArray
    log_shift: FloatArray


def resampled(labels: Any, how: Resampling, *, seed: int = 0, ratio: float = 1.0) -> Resampled:
    r"""Draw rows so that rare classes become more frequent among them.

    $$ \text{shift}_k = \log \frac{m_k / m}{n_k / n} $$

    $n_k$ of the $n$ given rows and $m_k$ of the $m$ rows drawn are of class $k$. By Bayes' rule
    the odds of a class grow by the factor by which its share of the rows grew, whatever the
    features are. So a model that learned on the rows drawn is too sure of rare classes:
    subtract `log_shift` from its logits before probabilities are measured, calibrated or
    compared with a threshold. This is exact for a proper loss and a model that fits, and nearly so
    else; a loss that is not proper, such as focal loss, moves probabilities in other ways too.

    Give it train rows only. Repeats in two splits would be a leak, and a test split with other
    frequencies than the data's measures another problem.

    Parameters
    ----------
    labels : (n,) classes: text, whole numbers or booleans
    how : "over" keeps all rows and repeats rows of the smaller classes, drawn with replacement;
        "under" drops rows of the larger classes, drawn without replacement, and keeps the order
    seed : of the draw
    ratio : how even the classes become, above 0 and at most 1: none is left with fewer than `ratio`
        times the rows of the largest ("over"), or with more than the smallest's divided by `ratio`
        ("under"); classes that are even enough already are left alone

    Examples
    --------
    >>> import numpy as np
    >>> from calibrant.data import resampled
    >>> labels = np.array([0] * 90 + [1] * 10)
    >>> found = resampled(labels, "over")
    >>> np.bincount(labels[found.places]).tolist()
    [90, 90]
    >>> found.log_shift.round(3).tolist()  # log(0.5 / 0.9), log(0.5 / 0.1)
    [-0.588, 1.609]
    >>> odds = 0.0 - (found.log_shift[1] - found.log_shift[0])  # of a model that knows nothing
    >>> round(float(1 / (1 + np.exp(-odds))), 3)
    0.1

    References
    ----------
    Elkan (2001), The foundations of cost-sensitive learning, theorem 2.
    """
    if not isinstance(how, str) or how not in get_args(Resampling):
        raise InputError(f'how must be "over" or "under", got {how!r}.')
    if not isinstance(ratio, Real) or isinstance(ratio, bool) or not 0 < ratio <= 1:
        raise InputError(
            f"ratio must be above 0 and at most 1, got {ratio!r}: 1 makes all classes alike."
        )
    draw = np.random.default_rng(_seed(seed))
    codes, classes = _codes(labels)
    counts = np.bincount(codes, minlength=len(classes))
    if how == "over":
        wanted = np.maximum(counts, int(float(ratio) * counts.max()))
        places = _with_repeats(codes, wanted - counts, draw)
    else:
        wanted = np.minimum(counts, int(counts.min() / float(ratio)))
        places = _without_some(codes, wanted, draw)
    return Resampled(places, _log_shift(counts, wanted))


def smote(
    features: Any, labels: Any, *, seed: int = 0, neighbours: int = 5
) -> tuple[NDArray[Any], NDArray[Any], FloatArray]:
    r"""Fill up all classes to the size of the largest with rows between rows.

    $$ x_{new} = x + u (x' - x), \qquad u \sim U(0, 1) $$

    $x$ is a row of a smaller class and $x'$ one of its nearest neighbours of the same class, both
    drawn at random. Returned are features and labels, the given rows first, and the (K,) shift
    of `resampled`, which logits learned on them have to be lessened by.

    The shift undoes the new class frequencies. It cannot undo that new rows lie between the old
    ones, which makes a class look denser than it is: calibrate, on rows as they are. A new row is
    no real one: categories as one-hot features become shares, and texts cannot be averaged at all.

    A class with at most `neighbours` rows takes as many neighbours as it has. Needs the extra
    `resampling` (imbalanced-learn).

    Parameters
    ----------
    features : (n, d) finite numbers, on scales that can be compared
    labels : (n,) classes: text, whole numbers or booleans
    seed : of the draw
    neighbours : of a row that it may be mixed with

    Examples
    --------
    >>> import numpy as np
    >>> from calibrant.data import smote
    >>> features, labels = np.array([[0.0], [0.1], [0.2], [0.3], [8.0], [9.0]]), [0, 0, 0, 0, 1, 1]
    >>> more, of, log_shift = smote(features, labels)
    >>> of.tolist(), bool(((more[6:] >= 8) & (more[6:] <= 9)).all())
    ([0, 0, 0, 0, 1, 1, 1, 1], True)
    >>> log_shift.round(3).tolist()  # log(0.5 / (4 / 6)), log(0.5 / (2 / 6))
    [-0.288, 0.405]

    References
    ----------
    Chawla et al. (2002), SMOTE: synthetic minority over-sampling technique.
    """
    if not isinstance(neighbours, Integral) or isinstance(neighbours, bool) or neighbours < 1:
        raise InputError(f"neighbours must be a whole number of at least 1, got {neighbours!r}.")
    start = _seed(seed)
    codes, classes = _codes(labels)
    rows = _features(features, len(codes))
    counts = np.bincount(codes, minlength=len(classes))
    if counts.min() == 1 and counts.max() > 1:
        name = classes.tolist()[counts.argmin()]
        raise InputError(
            f"class {name!r} has 1 train row, but SMOTE mixes a row with another of its class: "
            'give it more rows, or resample with "over".'
        )
    parts, part_codes = [rows], [codes]
    # The library has one number of neighbours for all classes, so each number takes a call.
    nearest = np.minimum(counts - 1, int(neighbours))
    for k in np.unique(nearest[counts < counts.max()]).tolist():
        few = np.flatnonzero((counts < counts.max()) & (nearest == k))
        wanted = dict.fromkeys(few.tolist(), int(counts.max()))
        more, more_codes = _sampler(wanted, k, start).fit_resample(rows, codes)
        parts.append(more[len(rows) :])
        part_codes.append(more_codes[len(rows) :])
    found = np.concatenate(part_codes)
    return np.concatenate(parts), classes[found], _log_shift(counts, np.bincount(found))


def _with_repeats(codes: IntArray, missing: IntArray, draw: np.random.Generator) -> IntArray:
    parts = [np.arange(len(codes))]
    for code, n in enumerate(missing.tolist()):
        if n:
            parts.append(draw.choice(np.flatnonzero(codes == code), n))
    return np.concatenate(parts)


def _without_some(codes: IntArray, wanted: IntArray, draw: np.random.Generator) -> IntArray:
    parts = [
        draw.choice(np.flatnonzero(codes == code), n, replace=False)
        for code, n in enumerate(wanted.tolist())
    ]
    return np.sort(np.concatenate(parts))


def _log_shift(before: IntArray, after: IntArray) -> FloatArray:
    old, new = before / before.sum(), after / after.sum()
    return np.asarray(np.log(new / old), dtype=np.float64)


def _codes(labels: Any) -> tuple[IntArray, NDArray[Any]]:
    """Return the place of each row's label among the classes that occur, and these, sorted."""
    array = np.asarray(labels)
    if array.ndim != 1 or not len(array):
        raise InputError(f"labels must be one class for each row, (n,), got shape {array.shape}.")
    if array.dtype.kind in "Of":
        gone = [is_missing(label) for label in array.tolist()]
        if any(gone):
            row = gone.index(True)
            raise InputError(f"labels row {row} is missing: drop that row, or find its label.")
    try:
        classes, codes = np.unique(array, return_inverse=True)
    except TypeError:
        raise InputError(
            "labels hold classes of several types, which have no order: make all of them text, or "
            "all of them numbers."
        ) from None
    return codes.astype(np.int64), classes


def _features(features: Any, n: int) -> NDArray[Any]:
    rows = np.asarray(features)
    if rows.dtype.kind not in "fiub" or rows.ndim != 2 or rows.shape[1] == 0:
        raise InputError(
            "features must be numbers, one row of them for each label, (n, d), got "
            f"{rows.dtype} of shape {rows.shape}: encode a table with TableEncoder first."
        )
    if len(rows) != n:
        raise InputError(f"features and labels must have as many rows, got {len(rows)} and {n}.")
    finite = np.isfinite(rows).all(axis=1)
    if not finite.all():
        row = int(np.argmin(finite))
        raise InputError(f"features must be finite, but row {row} is not: fill or drop it first.")
    return rows if rows.dtype.kind == "f" else rows.astype(np.float64)


def _seed(seed: Any) -> int:
    if not isinstance(seed, Integral) or isinstance(seed, bool) or seed < 0:
        raise InputError(f"seed must be a whole number of at least 0, got {seed!r}.")
    return int(seed)


def _sampler(wanted: Mapping[int, int], neighbours: int, seed: int) -> Any:
    try:
        from imblearn.over_sampling import SMOTE
    except ImportError:
        raise MissingExtra("SMOTE", "resampling") from None
    return SMOTE(sampling_strategy=dict(wanted), k_neighbors=neighbours, random_state=seed % 2**32)
