"""Beta calibration: separate slopes below and above one half."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from calibrant.calibrators.base.one_vs_rest import OneVsRestCalibrator, ScoreMap
from calibrant.calibrators.base.registry import register
from calibrant.calibrators.fits.logistic import (
    Shrink,
    fit_logistic,
    penalty_strength,
    regression_targets,
)
from calibrant.calibrators.methods.platt import MIN_SLOPE
from calibrant.convert import log_sigmoid
from calibrant.errors import InputError
from calibrant.inputs import FloatArray

Parameters = Literal["abm", "am", "ab"]


@register
class BetaCalibration(OneVsRestCalibrator):
    r"""Map probabilities by the likelihood ratio of two beta distributions.

    .. math:: \log\frac{p'}{1 - p'} = a \log p - b \log(1 - p) + c, \qquad a, b > 0

    p is the model's probability of a class; a, b and c minimise the NLL. In log-odds it is a curve
    with slope a far below one half and slope b far above: unlike `PlattScaling` it can sharpen one
    end and soften the other, and unlike a sigmoid of p it contains the identity (a = b = 1,
    c = 0). With more than two classes each has its own map and the results are normalised.

    Parameters
    ----------
    parameters : 'abm' fits all three; 'am' sets a = b; 'ab' sets c so that 1/2 stays 1/2
    shrink : regularisation, as in `PlattScaling`

    Attributes
    ----------
    maps_ : a, b and c of each map

    Examples
    --------
    >>> logits, labels = [-1.0] * 4 + [1.0] * 4, [1, 0, 0, 0, 1, 1, 0, 0]
    >>> calibrator = BetaCalibration(parameters="am", shrink=None).fit(logits, labels)
    >>> calibrator.predict_proba([-1.0, 1.0]).round(4)
    array([0.25, 0.5 ])

    References
    ----------
    Kull, Silva Filho and Flach, Beta calibration, AISTATS 2017, section 3.
    """

    method = "beta"
    keeps_ranking = True

    def __init__(self, parameters: Parameters = "abm", *, shrink: Shrink = "identity") -> None:
        self.parameters = parameters
        self.shrink = shrink

    def _learn_map(
        self, scores: FloatArray, events: NDArray[np.bool_], weights: FloatArray | None
    ) -> ScoreMap:
        targets = regression_targets(events, weights, self.shrink)
        ones = np.ones(len(scores))
        low, high = log_sigmoid(scores), -log_sigmoid(-scores)

        def fit(columns: list[FloatArray], start: list[float], slopes: int) -> list[float]:
            lowest = [MIN_SLOPE] * slopes + [-np.inf] * (len(start) - slopes)
            coefficients = fit_logistic(
                np.column_stack(columns),
                targets,
                weights,
                start=np.array(start),
                lowest=np.array(lowest),
                strength=penalty_strength(self.shrink),
            )
            return [float(value) for value in coefficients]

        if self.parameters == "abm":
            a, b, c = fit([low, high, ones], [1.0, 1.0, 0.0], 2)
        elif self.parameters == "am":
            a, c = fit([scores, ones], [1.0, 0.0], 1)
            b = a
        elif self.parameters == "ab":
            # At p = 1/2 the curve passes through 0 if c = (a - b) log 2.
            a, b = fit([low + np.log(2.0), high - np.log(2.0)], [1.0, 1.0], 2)
            c = (a - b) * float(np.log(2.0))
        else:
            raise InputError(f"parameters must be 'abm', 'am' or 'ab', got {self.parameters!r}.")
        return {"a": a, "b": b, "c": c}

    def _new_log_odds(self, learned: ScoreMap, scores: FloatArray) -> FloatArray:
        below, above = log_sigmoid(scores), log_sigmoid(-scores)
        return np.asarray(learned["a"] * below - learned["b"] * above + learned["c"])
