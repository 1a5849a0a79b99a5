"""A weighted ensemble of the models that a study trained anyway."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from calibrant.bundle.scorers import EnsembleScorer, mix_logits
from calibrant.calibrators import TemperatureScaling
from calibrant.convert import log_probs_from_logits
from calibrant.data.row_scorer import RowScorer
from calibrant.inputs import FloatArray, IntArray
from calibrant.study.candidates.candidate import weighted_ensemble
from calibrant.study.candidates.combined import combined_facts, scored_splits
from calibrant.study.candidates.trained import TrainedCandidate
from calibrant.study.rows.rows import StudyRows

_MOST_MEMBERS = 3
_LEAST_WEIGHT = 0.05
_LEAST_ROWS = 50
_FOLDS = 5
_STEPS = 500  # of the weights' fixed-point iteration, which converges in a few dozen


@dataclass(frozen=True)
class Mixture:
    r"""Weights and temperatures of an ensemble.

    $$ p = \sum_m w_m \operatorname{softmax}(z_m / T_m) $$
    """

    weights: tuple[float, ...]
    temperatures: tuple[float, ...]

    def logits(self, members: Sequence[FloatArray]) -> FloatArray:
        """Return the logits (n, K) of the ensemble."""
        return mix_logits(members, self.weights, self.temperatures)


@dataclass(frozen=True)
class WeightedCandidate(TrainedCandidate):
    """A weighted ensemble, evaluated and packed as one model.

    Its choice losses are cross-fitted: the weights and temperatures behind the loss of a row were
    fitted without this row, so that the ensemble is compared fairly with single models.
    """

    members: tuple[TrainedCandidate, ...] = ()
    mixture: Mixture = Mixture((), ())
    cross_fitted: FloatArray | None = None

    def scorer(self) -> RowScorer:
        """Load the ensemble with its members."""
        members = [member.scorer() for member in self.members]
        return EnsembleScorer(members, self.mixture.weights, self.mixture.temperatures)

    def choice_losses(self, rows: StudyRows) -> FloatArray:
        """Return the cross-fitted log loss of each choice row (n,)."""
        assert self.cross_fitted is not None
        return self.cross_fitted


def build_weighted(
    trained: Sequence[TrainedCandidate], folder: Path, rows: StudyRows, *, seed: int
) -> WeightedCandidate | None:
    """Return the ensemble of the best models, or None if one model takes all the weight."""
    codes = rows["choice"].codes
    members = _pick_members(trained)
    if len(members) < 2 or len(codes) < _LEAST_ROWS:
        return None
    choice = [member.logits["choice"] for member in members]
    mixture = fit_mixture(choice, codes)
    used = [i for i, weight in enumerate(mixture.weights) if weight > 0]
    if len(used) < 2:
        return None
    losses = cross_fit_losses(choice, codes, seed=seed)
    members = [members[i] for i in used]
    mixture = Mixture(
        tuple(mixture.weights[i] for i in used), tuple(mixture.temperatures[i] for i in used)
    )
    logits = {
        name: mixture.logits([member.logits[name] for member in members])
        for name in scored_splits(rows)
    }
    candidate = weighted_ensemble(tuple(member.candidate for member in members))
    facts = combined_facts(members, logits, rows) | {"refinement": float(losses.mean())}
    return WeightedCandidate(
        candidate, folder / candidate.folder, logits, facts, tuple(members), mixture, losses
    )


def _pick_members(trained: Sequence[TrainedCandidate]) -> list[TrainedCandidate]:
    """Return the best single model of each family, or the best losses of the only one."""
    ordered = sorted(
        (each for each in trained if each.candidate.way == "one"), key=lambda each: each.refinement
    )
    models = {each.candidate.model for each in ordered}
    if len(models) == 1:
        return drop_twins(ordered)[:_MOST_MEMBERS]
    best = {each.candidate.model: each for each in reversed(ordered)}
    return sorted(best.values(), key=lambda each: each.refinement)[:_MOST_MEMBERS]


def drop_twins(trained: Sequence[TrainedCandidate]) -> list[TrainedCandidate]:
    """Drop candidates with the logits of an earlier one, as AdaFocal's can be those of focal."""
    out: list[TrainedCandidate] = []
    for each in trained:
        logits = each.logits["choice"]
        if not any(np.array_equal(logits, other.logits["choice"]) for other in out):
            out.append(each)
    return out


def fit_mixture(members: Sequence[FloatArray], codes: IntArray) -> Mixture:
    """Fit a temperature for each member, then the weights with the smallest log loss.

    Members with a weight below 0.05 get weight 0, and the others are weighted again.

    Examples
    --------
    >>> good, noise = np.log([[0.9, 0.1], [0.2, 0.8]] * 50), np.zeros((100, 2))
    >>> fit_mixture([good, noise], np.array([0, 1] * 50)).weights
    (1.0, 0.0)
    """
    temperatures = tuple(_temperature(logits, codes) for logits in members)
    rows = np.arange(len(codes))
    likelihoods = np.stack(
        [
            np.exp(log_probs_from_logits(logits / temperature)[rows, codes])
            for logits, temperature in zip(members, temperatures, strict=True)
        ]
    )
    weights = _fit_weights(likelihoods)
    large = weights >= _LEAST_WEIGHT
    final = np.zeros(len(weights))
    final[large] = _fit_weights(likelihoods[large])
    return Mixture(tuple(float(weight) for weight in final / final.sum()), temperatures)


def _temperature(logits: FloatArray, codes: IntArray) -> float:
    scaling = TemperatureScaling(smooth=True).fit(logits, codes, classes=range(logits.shape[1]))
    return float(scaling.temperature_)


def _fit_weights(likelihoods: FloatArray) -> FloatArray:
    """Return the mixture weights (m,) of the largest likelihood, from those of each row (m, n)."""
    weights = np.full(len(likelihoods), 1.0 / len(likelihoods))
    floored = np.maximum(likelihoods, 1e-300)
    for _ in range(_STEPS):
        shares = weights[:, None] * floored
        updated = (shares / shares.sum(axis=0)).mean(axis=1)
        if np.abs(updated - weights).max() < 1e-9:
            break
        weights = updated
    return weights


def cross_fit_losses(members: Sequence[FloatArray], codes: IntArray, *, seed: int) -> FloatArray:
    """Return the log loss of each row (n,) under a mixture that was fitted without its fold."""
    n = len(codes)
    folds = np.random.default_rng(seed).permutation(n) % _FOLDS
    losses = np.empty(n)
    for fold in range(_FOLDS):
        inside, rest = folds == fold, folds != fold
        mixture = fit_mixture([logits[rest] for logits in members], codes[rest])
        temperature = _temperature(mixture.logits([z[rest] for z in members]), codes[rest])
        log_probs = log_probs_from_logits(
            mixture.logits([z[inside] for z in members]) / temperature
        )
        losses[inside] = -log_probs[np.arange(int(inside.sum())), codes[inside]]
    return losses
