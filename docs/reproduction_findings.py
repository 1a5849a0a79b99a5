"""The findings of a reproduction as sentences: one for the overview, more for its page.

Every figure in them comes from a record; the words are chosen by rules stated beside them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from docs.reproduction_records import ExperimentRuns, last_epoch, shown_error

if TYPE_CHECKING:
    from reproductions.goals import Recipe
    from reproductions.seed_figures import MethodSummary

_CLAIMS = (
    "The paper claims that focal loss calibrates better than cross-entropy, the more so the larger "
    "gamma, and that its flatter scores make it easier to put a threshold. Held against these "
    "runs:\n\n"
)
_STILL = 5  # last updates over which a gamma at its limit does not move
_TOO_SURE = 0.05  # confidence less accuracy that is worth a sentence
_SETTINGS = (
    "One setting is changed at a time; all answers are about this network and these posts.\n\n"
)


def headline(outcome: ExperimentRuns) -> str:
    """Return the main finding as one sentence."""
    from reproductions.adafocal_settings import setting_headline
    from reproductions.focal_words import focal_headline
    from reproductions.rare_class_words import rare_class_words

    parts = (outcome.experiment, outcome.summary, outcome.methods)
    sentence = setting_headline(*parts)
    if not sentence and any(goal.name == "ece_em" for goal in outcome.summary.goals):
        sentence = _recipe_line(outcome)
    sentence = sentence or focal_headline(*parts) or "".join(rare_class_words(outcome.runs)[:1])
    return tied(sentence or _range_line(outcome))


def findings(outcome: ExperimentRuns) -> str:
    """Return the findings as lists: claims or settings first, then recipe, goals and order."""
    from reproductions.adafocal_settings import setting_words
    from reproductions.focal_words import focal_words

    parts = (outcome.experiment, outcome.summary, outcome.methods)
    text = "## What was found\n\n"
    sentences = [*outcome.summary.sentences, *_epoch_line(outcome), *_limit_lines(outcome)]
    settings, focal = setting_words(*parts), focal_words(*parts)
    if settings:
        text += f"{_SETTINGS}{_listed(settings)}\n"
    if focal:
        text += f"{_CLAIMS}{_listed(focal)}\n"
    if settings or focal:
        text += "### Recipe and goals\n\n"
    return f"{text}{_listed(sentences)}\n"


def tied(text: str) -> str:
    """Keep each number and its % on one line."""
    return text.replace(" %", "\N{NO-BREAK SPACE}%")


def recipe_name(recipe: Recipe) -> str:
    """Return a short name, where seeds have different calibrators too."""
    kinds = set(recipe.calibrators.values())
    return recipe.name if len(kinds) < 2 else f"{recipe.label} + automatic choice"


def _recipe_line(outcome: ExperimentRuns) -> str:
    """Say what the recipe reached, beside the paper's best, chance, and cross-entropy."""
    from reproductions.goals import best_published

    summary = outcome.summary
    if summary.recipe is None:
        return "No recipe could be chosen."
    ours = summary[summary.recipe.method]
    figure, best = ours.figure("auto", "ece_em"), best_published(outcome.experiment)
    words = f"{recipe_name(summary.recipe)}: ECE_EM {_percent(ours.mean('auto', 'ece_em'))}"
    if best is not None:
        words += f", the paper's best {_percent(best)}"
    if figure is not None and figure.floor_q95 is not None:
        words += f", chance alone up to {_percent(figure.floor_q95)}"
    if summary.baseline is not None:
        plain = summary[summary.baseline]
        words += f"; error {_percent(ours.mean('auto', 'error'))} (that of {plain.label} "
        words += f"{_percent(plain.mean('raw', 'error'))})"
    return f"{words}."


def _range_line(outcome: ExperimentRuns) -> str:
    """Say between which methods calibration errors lie, and who beats cross-entropy."""
    from reproductions.summary_words import figure_name

    summary, metric = outcome.summary, shown_error(outcome.summary)
    known = [(value, each) for each in summary.methods if (value := each.mean("raw", metric))]
    if len(known) < 2 or summary.baseline is None:
        return _recipe_line(outcome)
    (low, best), (high, worst) = (end(known, key=lambda one: one[0]) for end in (min, max))
    scaled = [value for each in summary.methods if (value := each.mean("temperature", metric))]
    better = [
        each.label for each in summary.methods if each.nll and each.nll.verdict.startswith("better")
    ]
    names = ", ".join(better) or "no method"
    return (
        f"{figure_name(metric)} lies between {_percent(low)} ({best.label}) and {_percent(high)} "
        f"({worst.label}) as trained, and between {_percent(min(scaled))} and "
        f"{_percent(max(scaled))} with temperature; {names} "
        f"{'have' if len(better) > 1 else 'has'} a log loss clearly lower than "
        f"that of {summary[summary.baseline].label} with temperature."
    )


def _epoch_line(outcome: ExperimentRuns) -> list[str]:
    """Say by how much the kept epoch moves a figure that the paper printed."""
    moved: list[tuple[float, MethodSummary, float, float]] = []
    for each in outcome.summary.methods:
        best, last = each.mean("raw", "ece_em"), last_epoch(outcome, each.name)
        if "ece_em" in each.published and best is not None and last is not None:
            moved.append((abs(best - last), each, best, last))
    if not moved or max(moved, key=lambda one: one[0])[0] < 0.02:
        return []
    _, each, best, last = max(moved, key=lambda one: one[0])
    return [
        f"As trained, ECE_EM hangs on the epoch. Most of all that of {each.label}: "
        f"{_percent(best)} at the epoch that is kept, {_percent(last)} after the last one (the "
        f"paper: {each.published['ece_em']:.2f} %)."
    ]


def _limit_lines(outcome: ExperimentRuns) -> list[str]:
    """Say where gammas ended at their limit while the rows of their bin were still too sure."""
    sentences = []
    for name, runs in outcome.methods.items():
        run = next((each for each in runs if each.get("gammas") and each.get("bins")), None)
        printed = outcome.summary[name].published.get("ece_em")  # else nobody asks why it differs
        if run is None or len(run["gammas"]) < _STILL or printed is None:
            continue
        last, most = run["gammas"][-_STILL:], max(map(max, run["gammas"]))
        limited = [b for b in range(len(last[0])) if all(each[b] == most for each in last)]
        sure, right = (run["bins"][key][-1] for key in ("confidence", "accuracy"))
        gaps = {b: sure[b] - right[b] for b in limited if sure[b] is not None}
        if not gaps or max(gaps.values()) <= _TOO_SURE:
            continue
        worst = max(gaps, key=lambda b: gaps[b])
        first = limited == [*range(len(limited))]
        held = f"the {len(limited)} least sure of" if first else f"{len(limited)} of"
        sentences.append(
            f"{outcome.labels[name]}, seed {run['seed']}: in {held} {len(last[0])} bins gamma "
            f"ended at its limit, {most:g}, and in bin {worst} the steer rows were still too sure "
            f"by {100 * gaps[worst]:.0f} points: there the rule had no more to give."
        )
    return sentences


def _percent(value: float | None) -> str:
    return "unknown" if value is None else f"{100 * value:.2f} %"


def _listed(sentences: tuple[str, ...] | list[str]) -> str:
    return "".join(f"- {tied(sentence)}\n" for sentence in sentences)
