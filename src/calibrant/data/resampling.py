"""Resampling of train rows, and the resulting shift of the logits."""

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

Resampling = Literal["over", "under"]


@dataclass(frozen=True)
class ResampledRows:
    """Positions of resampled rows, and the shift of logits learned on them.

    Parameters
    ----------
    places : positions in the original rows, with repeats
    log_shift : (K,) to subtract from logits learned on these rows, so that they refer to the
        original class frequencies; classes in sorted order
    """

    places: IntArray
    log_shift: FloatArray


def resample_rows(
    labels: Any, how: Resampling, *, seed: int = 0, ratio: float = 1.0
) -> ResampledRows:
    r"""Oversample rare classes or undersample frequent ones.

    $$ \text{shift}_k = \log \frac{m_k / m}{n_k / n} $$

    $n_k$ of the $n$ original rows and $m_k$ of the $m$ resampled rows are of class $k$. By Bayes'
    rule the odds of a class grow by the same factor as its share of the rows, whatever the
    features. A model trained on the resampled rows is therefore over-confident on rare classes:
    subtract `log_shift` from its logits before probabilities are measured, calibrated or compared
    with a threshold. This is exact for a proper loss and a well-specified model, and otherwise
    approximate; an improper loss, such as focal loss, distorts probabilities in other ways too.

    Resample train rows only. Repeats in two splits are leakage, and a test split with other class
    frequencies measures a different problem.

    Parameters
    ----------
    labels : (n,) classes: text, whole numbers or booleans
    how : "over" keeps all rows and repeats rows of the smaller classes, drawn with replacement;
        "under" drops rows of the larger classes, drawn without replacement, and keeps the order
    seed : random seed
    ratio : degree of balance, in (0, 1]: every class gets at least `ratio` times the rows of the
        largest ("over"), or at most the rows of the smallest divided by `ratio` ("under"); classes
        within these bounds stay unchanged

    Examples
    --------
    >>> import numpy as np
    >>> from calibrant.data import resample_rows
    >>> labels = np.array([0] * 90 + [1] * 10)
    >>> rows = resample_rows(labels, "over")
    >>> np.bincount(labels[rows.places]).tolist()
    [90, 90]
    >>> rows.log_shift.round(3).tolist()  # log(0.5 / 0.9), log(0.5 / 0.1)
    [-0.588, 1.609]
    >>> odds = 0.0 - (rows.log_shift[1] - rows.log_shift[0])  # of an uninformative model
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
            f"ratio must be above 0 and at most 1, got {ratio!r}: 1 balances the classes fully."
        )
    draw = np.random.default_rng(_check_seed(seed))
    codes, classes = _label_codes(labels)
    counts = np.bincount(codes, minlength=len(classes))
    if how == "over":
        wanted = np.maximum(counts, int(float(ratio) * counts.max()))
        places = _oversample(codes, wanted - counts, draw)
    else:
        wanted = np.minimum(counts, int(counts.min() / float(ratio)))
        places = _undersample(codes, wanted, draw)
    return ResampledRows(places, _log_shift(counts, wanted))


def smote(
    features: Any, labels: Any, *, seed: int = 0, neighbours: int = 5
) -> tuple[NDArray[Any], NDArray[Any], FloatArray]:
    r"""Oversample all classes to the size of the largest with interpolated rows (SMOTE).

    $$ x_{new} = x + u (x' - x), \qquad u \sim U(0, 1) $$

    $x$ is a row of a smaller class and $x'$ one of its nearest neighbours of the same class, both
    drawn at random. Returns features and labels, original rows first, and the (K,) `log_shift` of
    `resample_rows` to subtract from logits learned on them.

    The shift corrects for the class frequencies. It does not correct for the interpolation, which
    makes a class look denser than it is: calibrate, on rows that were not resampled. Interpolated
    rows are not real: one-hot categories become fractions, and texts cannot be interpolated.

    A class with at most `neighbours` rows uses as many neighbours as it has. Requires the extra
    `resampling` (imbalanced-learn).

    Parameters
    ----------
    features : (n, d) finite numbers, on comparable scales
    labels : (n,) classes: text, whole numbers or booleans
    seed : random seed
    neighbours : number of nearest neighbours to interpolate with

    Examples
    --------
    >>> import numpy as np
    >>> from calibrant.data import smote
    >>> features, labels = np.array([[0.0], [0.1], [0.2], [0.3], [8.0], [9.0]]), [0, 0, 0, 0, 1, 1]
    >>> rows, classes, log_shift = smote(features, labels)
    >>> classes.tolist(), bool(((rows[6:] >= 8) & (rows[6:] <= 9)).all())
    ([0, 0, 0, 0, 1, 1, 1, 1], True)
    >>> log_shift.round(3).tolist()  # log(0.5 / (4 / 6)), log(0.5 / (2 / 6))
    [-0.288, 0.405]

    References
    ----------
    Chawla et al. (2002), SMOTE: synthetic minority over-sampling technique.
    """
    if not isinstance(neighbours, Integral) or isinstance(neighbours, bool) or neighbours < 1:
        raise InputError(f"neighbours must be a whole number of at least 1, got {neighbours!r}.")
    start = _check_seed(seed)
    codes, classes = _label_codes(labels)
    rows = _check_features(features, len(codes))
    counts = np.bincount(codes, minlength=len(classes))
    if counts.min() == 1 and counts.max() > 1:
        name = classes.tolist()[counts.argmin()]
        raise InputError(
            f"class {name!r} has 1 train row, but SMOTE interpolates between rows of a class: "
            'add rows, or resample with "over".'
        )
    parts, part_codes = [rows], [codes]
    # SMOTE takes one number of neighbours for all classes, hence one call per number.
    nearest = np.minimum(counts - 1, int(neighbours))
    for k in np.unique(nearest[counts < counts.max()]).tolist():
        few = np.flatnonzero((counts < counts.max()) & (nearest == k))
        wanted = dict.fromkeys(few.tolist(), int(counts.max()))
        more, more_codes = _smote_sampler(wanted, k, start).fit_resample(rows, codes)
        parts.append(more[len(rows) :])
        part_codes.append(more_codes[len(rows) :])
    new_codes = np.concatenate(part_codes)
    return np.concatenate(parts), classes[new_codes], _log_shift(counts, np.bincount(new_codes))


def _oversample(codes: IntArray, missing: IntArray, draw: np.random.Generator) -> IntArray:
    parts = [np.arange(len(codes))]
    for code, n in enumerate(missing.tolist()):
        if n:
            parts.append(draw.choice(np.flatnonzero(codes == code), n))
    return np.concatenate(parts)


def _undersample(codes: IntArray, wanted: IntArray, draw: np.random.Generator) -> IntArray:
    parts = [
        draw.choice(np.flatnonzero(codes == code), n, replace=False)
        for code, n in enumerate(wanted.tolist())
    ]
    return np.sort(np.concatenate(parts))


def _log_shift(before: IntArray, after: IntArray) -> FloatArray:
    old, new = before / before.sum(), after / after.sum()
    return np.asarray(np.log(new / old), dtype=np.float64)


def _label_codes(labels: Any) -> tuple[IntArray, NDArray[Any]]:
    """Return each label's position in the sorted classes, and these classes."""
    array = np.asarray(labels)
    if array.ndim != 1 or not len(array):
        raise InputError(f"labels must have one class per row, (n,), got shape {array.shape}.")
    if array.dtype.kind in "Of":
        is_gap = [is_missing(label) for label in array.tolist()]
        if any(is_gap):
            row = is_gap.index(True)
            raise InputError(f"labels row {row} is missing: label or drop that row.")
    try:
        classes, codes = np.unique(array, return_inverse=True)
    except TypeError:
        raise InputError(
            "labels have mixed types, which cannot be sorted: make them all text, or all numbers."
        ) from None
    return codes.astype(np.int64), classes


def _check_features(features: Any, n: int) -> NDArray[Any]:
    rows = np.asarray(features)
    if rows.dtype.kind not in "fiub" or rows.ndim != 2 or rows.shape[1] == 0:
        raise InputError(
            "features must be numbers of shape (n, d), one row per label, got "
            f"{rows.dtype} of shape {rows.shape}: encode a table with TableEncoder first."
        )
    if len(rows) != n:
        raise InputError(
            f"features and labels must have the same number of rows, got {len(rows)} and {n}."
        )
    finite = np.isfinite(rows).all(axis=1)
    if not finite.all():
        row = int(np.argmin(finite))
        raise InputError(f"features must be finite, but row {row} is not: fill or drop it first.")
    return rows if rows.dtype.kind == "f" else rows.astype(np.float64)


def _check_seed(seed: Any) -> int:
    if not isinstance(seed, Integral) or isinstance(seed, bool) or seed < 0:
        raise InputError(f"seed must be a whole number of at least 0, got {seed!r}.")
    return int(seed)


def _smote_sampler(wanted: Mapping[int, int], neighbours: int, seed: int) -> Any:
    try:
        from imblearn.over_sampling import SMOTE
    except ImportError:
        raise MissingExtra("SMOTE", "resampling") from None
    return SMOTE(sampling_strategy=dict(wanted), k_neighbors=neighbours, random_state=seed % 2**32)
