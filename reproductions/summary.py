"""Summary of all runs of an experiment: comparison with the paper, recipe, goals, order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from calibrant.formatting import format_count, sentence
from calibrant.study.report.wording import join_words
from reproductions.agreement import agreement_sentence
from reproductions.experiment import Experiment, Method
from reproductions.goals import (
    Goal,
    Recipe,
    beside_words,
    choose_recipe,
    goals_of,
    recipe_words,
)
from reproductions.like_for_like import like_for_like
from reproductions.ordering import Ordering, order_sentences, orderings_of
from reproductions.paired_loss import PairedLoss, paired_loss
from reproductions.run_checks import checked_losses, checked_records
from reproductions.seed_figures import MethodSummary, method_of, paper_error
from reproductions.setting import own_options
from reproductions.summary_words import called

__all__ = ["Summary", "baseline_of", "summarise"]

_MOST = 6  # methods with missing runs that a sentence names

Losses = Mapping[tuple[str, int], Mapping[str, Any]]


@dataclass(frozen=True)
class Summary:
    """Results of the runs of an experiment.

    Parameters
    ----------
    name, title, paper : of the experiment
    size : "full", "small" or "toy"
    rows : of each part
    classes : how many
    methods : in the order of the config, those that were run
    baseline : the method that is plain cross-entropy, where there is one
    recipe : what a study would take
    goals : goals that apply to this experiment
    orderings : ours beside the paper's, by figure
    faithful : whether all runs are on the paper's schedule
    missing : method and seed of runs that the config asks for
    hardware : runs by what they were made on
    dates : first and last day of the runs
    notes : how the rows differ from the paper's, and what else a reader must know
    fair : the recipe beside cross-entropy with the recipe's options, as a sentence
    labels : what tables call each method of the experiment, run or not
    """

    name: str
    title: str
    paper: str
    size: str
    rows: Mapping[str, int]
    classes: int
    methods: tuple[MethodSummary, ...]
    baseline: str | None
    recipe: Recipe | None
    goals: tuple[Goal, ...]
    orderings: tuple[Ordering, ...]
    faithful: bool
    missing: tuple[tuple[str, int], ...] = ()
    hardware: Mapping[str, int] | None = None
    dates: tuple[str, str] | None = None
    notes: tuple[str, ...] = ()
    fair: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)

    def __getitem__(self, name: str) -> MethodSummary:
        return next(each for each in self.methods if each.name == name)

    @property
    def sentences(self) -> tuple[str, ...]:
        """Return what was found in words: recipe, goals, agreement, order, what is missing."""
        lines = [] if self.recipe is None else [self.recipe.why]
        if self.recipe is not None and all(each.name != "ece_em" for each in self.goals):
            shown = paper_error(self.methods)
            lines.append(recipe_words(self.recipe, self[self.recipe.method], shown))
        lines += [each.sentence for each in self.goals]
        lines += [] if self.fair is None else [self.fair]
        if other := beside_words(self.methods, self.recipe):
            lines.append(other)
        if self.faithful and (agreement := agreement_sentence(self.methods)):
            lines.append(agreement)
        lines += order_sentences(self.orderings)
        lines += [*_unlike_seeds(self.methods), *_missing_words(self), *_hardware_words(self)]
        return tuple(lines)

    def to_dict(self) -> dict[str, Any]:
        """Return the stable JSON shape (schema 1): keys may be added, never renamed."""
        return {
            "schema": 1,
            "experiment": self.name,
            "title": self.title,
            "paper": self.paper,
            "size": self.size,
            "rows": dict(self.rows),
            "classes": self.classes,
            "methods": [each.to_dict() for each in self.methods],
            "baseline": self.baseline,
            "recipe": None if self.recipe is None else self.recipe.to_dict(),
            "goals": [each.to_dict() for each in self.goals],
            "orderings": [each.to_dict() for each in self.orderings],
            "faithful": self.faithful,
            "missing": [{"method": method, "seed": seed} for method, seed in self.missing],
            "hardware": dict(self.hardware or {}),
            "dates": None if self.dates is None else list(self.dates),
            "notes": list(self.notes),
            "sentences": list(self.sentences),
        }

    def __str__(self) -> str:
        from reproductions.summary_text import summary_text

        return summary_text(self)


def summarise(
    experiment: Experiment,
    records: Sequence[Mapping[str, Any]],
    losses: Losses | None = None,
) -> Summary:
    """Summarise the runs of an experiment, in any order.

    Parameters
    ----------
    experiment : at the size of the runs; see `Experiment.at`
    records : run records (schema 1), all of one size and the same rows. The same run twice counts
        once; two different records of one run are refused.
    losses : log loss of each test row by method and seed: `temperature` and `auto`, (n,) each.
        Without them log losses are not compared.
    """
    runs = checked_records(experiment, records)
    rows = checked_losses(runs, losses or {})
    baseline = baseline_of(experiment)
    methods = tuple(
        method_of(
            method,
            own,
            experiment.published.get(method.name, {}),
            _compared(rows, method.name, "auto", baseline),
            _compared(rows, method.name, "temperature", baseline),
        )
        for method in experiment.methods
        if (own := [each for each in runs if each["method"] == method.name])
    )
    first, size = runs[0], str(runs[0]["size"])
    recipe = choose_recipe(methods, experiment.choose_on)
    whole = not own_options(first.get("given"))
    faithful = whole and _is_faithful(experiment, runs)
    test = int(first["rows"]["test"])
    return Summary(
        name=experiment.name,
        title=experiment.title,
        paper=experiment.paper,
        size=size,
        rows={name: int(n) for name, n in first["rows"].items()},
        classes=len(first["classes"]),
        methods=methods,
        baseline=baseline if any(each.name == baseline for each in methods) else None,
        recipe=recipe,
        goals=goals_of(experiment, recipe, methods, baseline, size=size, whole=whole),
        orderings=orderings_of(methods, test, paper=experiment.published_rows, claim=faithful),
        faithful=faithful,
        missing=_missing(experiment, runs),
        hardware=_hardware(runs),
        dates=_dates(runs),
        notes=_notes(experiment, runs),
        fair=like_for_like(experiment, recipe, methods, baseline, rows),
        labels={each.name: each.label for each in experiment.methods},
    )


def baseline_of(experiment: Experiment) -> str | None:
    """Return the method that is plain cross-entropy: called "ce", or trained with it alone.

    Examples
    --------
    >>> from reproductions.experiment import experiment_named
    >>> baseline_of(experiment_named("newsgroups-cnn"))
    'ce'
    """
    names = [each.name for each in experiment.methods]
    if "ce" in names:
        return "ce"
    plain = [each for each in experiment.methods if each.options.get("loss") == "ce"]
    return min(plain, key=lambda each: len(each.options)).name if plain else None


def _compared(losses: Losses, method: str, way: str, baseline: str | None) -> PairedLoss | None:
    """Compare with cross-entropy after temperature scaling; not cross-entropy with itself."""
    if baseline is None or (method, way) == (baseline, "temperature"):
        return None

    def of(name: str, calibrated: str) -> dict[int, Any]:
        losses_of_method = {seed: each for (own, seed), each in losses.items() if own == name}
        return {
            seed: each[calibrated] for seed, each in losses_of_method.items() if calibrated in each
        }

    return paired_loss(of(method, way), of(baseline, "temperature"))


def _is_faithful(experiment: Experiment, runs: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether the runs are on the paper's schedule, none cut short by hand."""
    if not experiment.faithful or any(each["size"] != "full" for each in runs):
        return False
    methods = {each.name: each for each in experiment.methods}
    return all(_whole(experiment, methods[each["method"]], each) for each in runs)


def _whole(experiment: Experiment, method: Method, run: Mapping[str, Any]) -> bool:
    options = experiment.options_of(method)
    stops = options.get("patience", 0) not in ("none", None)  # early stopping may end it sooner
    expected, got = options.get("epochs"), run.get("epochs")
    return stops or expected is None or got is None or int(got) >= int(expected)


def _missing(
    experiment: Experiment, runs: Sequence[Mapping[str, Any]]
) -> tuple[tuple[str, int], ...]:
    there = {(each["method"], each["seed"]) for each in runs}
    expected = [(method.name, seed) for method in experiment.methods for seed in experiment.seeds]
    return tuple(each for each in expected if each not in there)


def _hardware(runs: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    machines = [each.get("machine") or {} for each in runs]
    names = Counter(str(each.get("gpu") or each.get("cpu") or "unknown") for each in machines)
    return dict(sorted(names.items(), key=lambda each: (-each[1], each[0])))


def _dates(runs: Sequence[Mapping[str, Any]]) -> tuple[str, str] | None:
    dates = sorted(str(each["date"]) for each in runs if each.get("date"))
    return (dates[0], dates[-1]) if dates else None


def _notes(experiment: Experiment, runs: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    synthetic = (
        "These rows are made up, to try the code out." if experiment.reading.get("made") else ""
    )
    notes = [synthetic, experiment.why, *sorted({str(each.get("note") or "") for each in runs})]
    warned = ((each["label"], message) for each in runs for message in each.get("warnings") or ())
    notes += [f"{called(label)}: {message}" for label, message in dict.fromkeys(warned)]
    notes += _earlier_choices(runs)
    return tuple(dict.fromkeys(sentence(each) for each in notes if each))


def _earlier_choices(runs: Sequence[Mapping[str, Any]]) -> list[str]:
    """Tell of runs from before the choice among several classes started from temperature.

    They are known by what they lack: a record tells since then what the choice looked at.
    """
    several = [each for each in runs if len(each["classes"]) > 2 and each["rows"]["calib"] >= 500]
    earlier = [each for each in several if not each.get("comparison")]
    if not earlier:
        return []
    how_many = "all" if len(earlier) == len(runs) else f"{len(earlier)} of {len(runs)}"
    return [
        f"The automatic choice of {how_many} runs was made by an earlier rule, which left a model "
        "as it is, or took a richer method, where a temperature is taken now."
    ]


def _unlike_seeds(methods: Sequence[MethodSummary]) -> list[str]:
    if len({each.seeds for each in methods}) < 2:
        return []
    return [
        "Not all methods were run with the same seeds: means over different seeds stand side by "
        "side, log losses are compared over the seeds that both have."
    ]


def _missing_words(summary: Summary) -> list[str]:
    if not summary.missing:
        return []
    there = {each.name: len(each.seeds) for each in summary.methods}
    seeds: dict[str, list[str]] = {}
    for name, seed in summary.missing:
        seeds.setdefault(name, []).append(str(seed))
    named = []
    for name, own in seeds.items():
        some = (
            f" with seed{'' if len(own) == 1 else 's'} {join_words(own)}" if name in there else ""
        )
        named.append(f"{called(summary.labels.get(name, name))}{some}")
    if len(named) > _MOST:
        named = [*named[:_MOST], format_count(len(named) - _MOST, "more method")]
    n = sum(there.values())
    are = "is" if n == 1 else "are"
    return [f"{format_count(n, 'run')} {are} here; missing: {'; '.join(named)}."]


def _hardware_words(summary: Summary) -> list[str]:
    machines = summary.hardware or {}
    if len(machines) < 2:
        return []
    named = ", ".join(f"{name} ({format_count(n, 'run')})" for name, n in machines.items())
    return [f"Made on different hardware, so seconds cannot be compared: {named}."]
