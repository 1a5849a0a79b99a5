"""Does AdaFocal pay: all experiments in which it stands beside cross-entropy, in one table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from docs.reproduction_records import ExperimentRuns
from docs.reproduction_tables import difference, percent
from docs.tables import dense, table

if TYPE_CHECKING:
    from reproductions.paired_loss import PairedLoss
    from reproductions.seed_figures import MethodSummary

    _Pair = tuple[ExperimentRuns, MethodSummary, MethodSummary, PairedLoss]

_NAMES = ("adafocal_paper", "mode-paper", "adafocal", "default")
"""AdaFocal by the paper's rule and by our own, trained as cross-entropy is."""


def adafocal_section(outcomes: Mapping[str, ExperimentRuns]) -> str:
    """Return the table, with a sentence that counts; nothing where there is no such pair."""
    pairs = [pair for one in outcomes.values() for pair in _pairs(one)]
    if not pairs:
        return ""
    verdicts = Counter(loss.word for *_, loss in pairs)
    counts = ", ".join(f"{verdict} in {n}" for verdict, n in verdicts.most_common())
    head = ("experiment", "AdaFocal", "ECE_EM as trained", "ECE_EM with temperature", "error",
            "log loss with temperature, less that of cross-entropy")  # fmt: skip
    return (
        "## Does AdaFocal pay?\n\nAdaFocal beside cross-entropy that was trained in the same way, "
        "wherever both were run. What counts is what is left when each has its temperature: of "
        f"{len(pairs)} log losses AdaFocal's is {counts}, by two standard errors over test rows. "
        "ECE_EM and error in %, cross-entropy → AdaFocal; means over seeds.\n\n"
        f"{dense(table(head, [_row(*pair) for pair in pairs]))}\n"
    )


def _pairs(outcome: ExperimentRuns) -> Iterator[_Pair]:
    """Return each AdaFocal of an experiment that differs from cross-entropy in its loss alone."""
    there = {each.name: each for each in outcome.summary.methods}
    options = {each.name: {**each.options, "loss": ""} for each in outcome.experiment.methods}
    plain = there.get(outcome.summary.baseline or "")
    for name in _NAMES:
        ours = there.get(name)
        if plain is None or ours is None or options[name] != options[plain.name]:
            continue
        if ours.nll_scaled is not None:
            yield outcome, plain, ours, ours.nll_scaled


def _row(
    outcome: ExperimentRuns, plain: MethodSummary, ours: MethodSummary, loss: PairedLoss
) -> tuple[str, ...]:
    both = [
        " → ".join(percent(each.mean(way, name)) for each in (plain, ours))
        for way, name in (("raw", "ece_em"), ("temperature", "ece_em"), ("raw", "error"))
    ]
    return (f"[{outcome.summary.title}]({outcome.name}.md)", ours.label, *both, difference(loss))
