"""Comparison of the recipe with cross-entropy trained with the same options.

A recipe may differ from the paper's cross-entropy in more than its loss: another epoch, another
optimiser. Its lead is then not the loss's alone, and a reader should see how much of it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from calibrant.study.report.wording import join_words
from reproductions.experiment import Experiment
from reproductions.goals import Recipe
from reproductions.paired_loss import PairedLoss, paired_loss
from reproductions.seed_figures import MethodSummary
from reproductions.summary_words import called, points

__all__ = ["like_for_like"]

_WORDS = {"choose_by": "the epoch that is kept"}


def like_for_like(
    experiment: Experiment,
    recipe: Recipe | None,
    methods: Sequence[MethodSummary],
    baseline: str | None,
    losses: Mapping[tuple[str, int], Mapping[str, Any]],
) -> str | None:
    """Say what is left of the recipe's lead over cross-entropy with the same options.

    None where recipe and cross-entropy differ in the loss alone, or where no cross-entropy was
    trained with the recipe's options.

    Parameters
    ----------
    experiment : with the options of each method
    recipe : from `choose_recipe`
    methods : all that were run
    baseline : the method that is plain cross-entropy
    losses : log loss of each test row after the automatic choice, by method and seed
    """
    known = {each.name: each for each in methods}
    if recipe is None or baseline not in known or recipe.method == baseline:
        return None
    options = {each.name: experiment.options_of(each) for each in experiment.methods}
    own, plain = options[recipe.method], options[baseline]
    others = _without_loss(own)
    if others == _without_loss(plain) or "loss" not in own:
        return None
    label = called(known[baseline].label)
    if own["loss"] == plain.get("loss"):
        unlike = sorted(n for n in {*own, *plain} if own.get(n) != plain.get(n))
        words = join_words([_WORDS.get(name, name) for name in unlike])
        return _same_loss(label, words, _paired(recipe.method, baseline, losses))
    for name, twin in known.items():
        if options[name].get("loss") == plain.get("loss") and (
            _without_loss(options[name]) == others
        ):
            return _beside(known[recipe.method], twin, label, _paired(recipe.method, name, losses))
    return None


def _same_loss(label: str, unlike: str, nll: PairedLoss | None) -> str:
    """Say what the other options gain where both are calibrated alike."""
    words = f"The recipe has the loss of {label}: what it gains comes from {unlike} and from its "
    words += "calibrator"
    if nll is None:
        return f"{words}."
    return (
        f"{words}. With the automatic choice of a calibrator for both, beside {label} its log loss "
        f"is {_gap_words(nll)}."
    )


def _without_loss(options: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if name != "loss"}


def _paired(
    ours: str, theirs: str, losses: Mapping[tuple[str, int], Mapping[str, Any]]
) -> PairedLoss | None:
    by_seed = (
        {seed: each["auto"] for (name, seed), each in losses.items() if name == method}
        for method in (ours, theirs)
    )
    return paired_loss(*by_seed)


def _beside(ours: MethodSummary, twin: MethodSummary, label: str, nll: PairedLoss | None) -> str:
    words = (
        f"The recipe differs from {label} in more than the loss. Cross-entropy with the same "
        f"options is {called(twin.label)}: after the automatic choice its error is "
        f"{points(twin.mean('auto', 'error'))} % (the recipe: {points(ours.mean('auto', 'error'))})"
    )
    if nll is None:
        return f"{words}."
    return f"{words}, and beside it the recipe's log loss is {_gap_words(nll)}."


def _gap_words(nll: PairedLoss) -> str:
    side = "higher" if nll.difference > 0 else "lower"
    verdict = "level" if nll.verdict == "level" else "more than two SE"
    return f"{side} by {abs(nll.difference):.4f} ± {nll.error:.4f} (SE over test rows): {verdict}"
