"""Detection of images from other data sets."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from calibrant.calibrators import TemperatureScaling
from calibrant.inputs import FloatArray
from calibrant.ood import energy, entropy, separation
from reproductions.fitting import Fitted

__all__ = ["doubt", "ood_figures"]


def doubt(logits: FloatArray) -> FloatArray:
    r"""Logarithm of the probability that the most probable class is not the one.

    $$ s = \log (1 - \max_k p_k), \qquad p = \mathrm{softmax}(z) $$

    with $z$ the logits (n, K) of a row. Rows come in the same order as by minus the largest
    probability, but it does not round to the same number where a network is sure beyond 16 digits.

    Examples
    --------
    >>> doubt(np.array([[np.log(3.0), 0.0], [100.0, 0.0]])).round(4)
    array([  -1.3863, -100.    ])
    """
    ordered = np.sort(logits, axis=1) - logits.max(axis=1, keepdims=True)
    others = np.exp(ordered[:, :-1] - ordered[:, -2:-1]).sum(axis=1)
    return np.asarray(ordered[:, -2] + np.log(others) - np.log(np.exp(ordered).sum(axis=1)))


_SCORES: Mapping[str, Callable[[Any], FloatArray]] = {
    "entropy": entropy,
    "max_prob": doubt,
    "energy": energy,
}


def ood_figures(fitted: Fitted) -> dict[str, Any]:
    r"""AUROC of telling the test rows from each data set outside, before and after temperature.

    $$ \mathrm{AUROC} = P(s_o > s_i) + \tfrac12 P(s_o = s_i) $$

    with $s_i$ the score of a test row and $s_o$ that of a row outside. The papers' score is the
    entropy of the softmax; the largest probability and the energy are there beside it. A
    temperature changes the order of entropies, so the figure has two values. It is fitted to the
    rows of calibration, which are of the known classes alone.

    Returns {data set: {score: {"raw": AUROC, "temperature": AUROC}}}, as fractions.

    Parameters
    ----------
    fitted : a run, with logits of "calib", "test" and each data set of `parts.outside`

    References
    ----------
    Ghosh et al. (2022), AdaFocal: calibration-aware adaptive focal loss, Figure 6.
    """
    calib = fitted.logits["calib"]
    scaling = TemperatureScaling().fit(
        calib, fitted.parts.calib.labels, classes=range(calib.shape[1])
    )
    ways = {"raw": 1.0, "temperature": float(scaling.temperature_)}
    return {name: _of(fitted.logits["test"], fitted.logits[name], ways)
            for name in fitted.parts.outside}  # fmt: skip


def _of(
    inside: FloatArray, outside: FloatArray, ways: Mapping[str, float]
) -> dict[str, dict[str, float]]:
    return {
        name: {
            way: separation(score(inside / divisor), score(outside / divisor)).auroc
            for way, divisor in ways.items()
        }
        for name, score in _SCORES.items()
    }
