"""The recipe that a study would choose, and whether it reaches the published results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from calibrant.formatting import format_count
from reproductions.experiment import ChooseOn, Experiment
from reproductions.paired_loss import SURE, PairedLoss
from reproductions.seed_figures import MethodSummary, SeedFigure, Spread, paper_error
from reproductions.summary_words import (
    calibrators_words,
    called,
    figure_name,
    points,
    points_apart,
    seeds_words,
)

__all__ = [
    "Goal",
    "Recipe",
    "beside_words",
    "best_published",
    "choose_recipe",
    "goals_of",
    "recipe_words",
]

State = Literal["reached", "missed", "open"]

FEWEST_SEEDS = 3
"""Seeds that a goal asks for; with fewer it stays open."""

SLACK = 0.005
"""What the recipe's error may exceed that of cross-entropy by: half a point."""

_ROUNDING = 1e-12  # of means


@dataclass(frozen=True)
class Recipe:
    """A loss and a calibrator, both chosen without a look at the test rows.

    Parameters
    ----------
    method, label : of the way of training
    calibrators : that the automatic choice took, by seed
    why : this method and not another, as a sentence
    rows : that chose it, "choice", "steer" or "calib"
    """

    method: str
    label: str
    calibrators: Mapping[int, str]
    why: str
    rows: str = "steer"

    @property
    def name(self) -> str:
        """Return how sentences call it, such as "AdaFocal + spline"."""
        if set(self.calibrators.values()) == {"identity"}:
            return f"{called(self.label)} as it is"
        return f"{called(self.label)} + {calibrators_words(self.calibrators)}"

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        taken = {str(seed): each for seed, each in self.calibrators.items()}
        fields = {"method": self.method, "label": self.label, "name": self.name, "why": self.why}
        return {**fields, "rows": self.rows, "calibrators": taken}


@dataclass(frozen=True)
class Goal:
    """A figure to reach.

    Parameters
    ----------
    name : "ece_em", "error" or "nll"
    state : "reached", "missed", or "open" where the runs cannot tell yet
    value : ours; for "error" and "nll" the difference from cross-entropy
    limit : that it is held against
    sentence : for people
    """

    name: str
    state: State
    value: float
    limit: float
    sentence: str

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return asdict(self)

    def __str__(self) -> str:
        return self.sentence


def choose_recipe(methods: Sequence[MethodSummary], by: ChooseOn = "steer") -> Recipe | None:
    """Return the method with the least mean log loss, by rows that are not reported on.

    On the steer rows it is the log loss after temperature scaling: the rule of a study. It flatters
    a loss that follows these rows, such as AdaFocal, so an experiment can keep half of them, the
    choice rows, for nothing but this. On the calib rows it is cross-validated, after the automatic
    choice of a calibrator; a promise that is certified on the same rows has then to pay for the
    choice. Test rows have no say. Of equal methods the first is taken. None where a method does not
    tell its figure.
    """
    scores = [(each.calib_nll if by == "calib" else each.refinement, each) for each in methods]
    able = [(figure, i, each) for i, (figure, each) in enumerate(scores) if figure is not None]
    if not able or (by == "calib" and len(able) < len(methods)):
        return None
    ranked = sorted(able, key=lambda each: (each[0].mean, each[1]))
    least, _, best = ranked[0]
    after = "the automatic choice of a calibrator" if by == "calib" else "temperature scaling"
    rows = "calib" if by == "calib" else best.compared_on
    value, name = f"{least.mean:.4f} ({seeds_words(least.n)})", called(best.label)
    if len(ranked) == 1:
        why = f"{name} is the only method here; on the {rows} rows its log loss after {after} is "
        why += value
    else:
        why = f"On the {rows} rows {name} has the least log loss after {after}, {value}"
        second, _, other = ranked[1]
        why += f"; next is {called(other.label)}, {second.mean:.4f}"
        overlap = min(least.n, second.n) > 1 and second.least <= least.most
        why += ", and their seeds overlap" if overlap else ""
    return Recipe(best.name, best.label, best.chosen, f"{why}.", rows)


def beside_words(methods: Sequence[MethodSummary], recipe: Recipe | None) -> str | None:
    """Say what the calib rows would have chosen, where they did not and it is another method."""
    other = choose_recipe(methods, "calib")
    if other is None or recipe is None or other.method == recipe.method:
        return None
    ours, shown = next(each for each in methods if each.name == other.method), paper_error(methods)
    figure, error = ours.figure("auto", shown), ours.mean("auto", "error")
    if figure is None or error is None:
        return None
    return (
        f"{other.why} {other.name} has {figure_name(shown)} {points(figure.value.mean)} % and "
        f"error {points(error)} %. That is not a goal: the rule of a study is the one above."
    )


def best_published(experiment: Experiment) -> float | None:
    """Return the ECE_EM to reach, as a fraction: `reach`, or the least of the paper's row.

    Examples
    --------
    >>> from reproductions.experiment import experiment_named
    >>> best_published(experiment_named("newsgroups-cnn"))
    0.0213
    """
    rows = [experiment.reach] if experiment.reach else list(experiment.published.values())
    names = ("ece_em", "ece_em_scaled")
    published = [row[name] for row in rows for name in names if row.get(name) is not None]
    return round(min(published) / 100, 12) if published else None


def goals_of(
    experiment: Experiment,
    recipe: Recipe | None,
    methods: Sequence[MethodSummary],
    baseline: str | None,
    *,
    size: str = "full",
    whole: bool = True,
) -> tuple[Goal, ...]:
    """Compare the recipe with the goals that apply to this experiment.

    ECE_EM: at most the larger of the paper's best and the floor's mean, or at most the floor's
    95 % quantile. Error: at most half a point above cross-entropy. Log loss: not above that of
    cross-entropy with temperature scaling by two paired standard errors. Means over at least three
    seeds, at full size; else a goal stays open.

    Parameters
    ----------
    experiment : with the paper's figures
    recipe : from `choose_recipe`
    methods : all that were run
    baseline : the method that is plain cross-entropy, where it was run
    size : of the runs
    whole : whether they were made with the options of the config
    """
    known = {each.name: each for each in methods}
    if recipe is None:
        return ()
    ours, plain = known[recipe.method], known.get(baseline or "")
    goals = [_ece_goal(recipe, ours, best_published(experiment))]
    if plain is not None:
        goals += [_error_goal(ours, plain), _nll_goal(ours, plain)]
    reported = [each for each in goals if each is not None]
    return tuple(_ended(each, n, size, whole=whole) for each, n in reported)


def recipe_words(recipe: Recipe, ours: MethodSummary, shown: str = "ece_em") -> str:
    """Say which calibration error the recipe has, where the paper printed no ECE_EM to reach."""
    figure = ours.figure("auto", shown)
    if figure is None:
        return f"The recipe is {recipe.name}, chosen on the {recipe.rows} rows."
    words = _has(recipe, ours, f"{points(figure.value.mean)} %", figure.value, shown)
    if figure.floor is not None and figure.floor_q95 is not None:
        words += f"; a calibrated model gets {points(figure.floor)} % on average and up to "
        words += f"{points(figure.floor_q95)} % 95 times in 100"
    return f"{words}. No paper printed an ECE_EM for these rows, so there is none to reach."


_DraftGoal = tuple[Goal, int]  # a goal without its ending, and the seeds behind it


def _ece_goal(recipe: Recipe, ours: MethodSummary, best: float | None) -> _DraftGoal | None:
    figure = ours.figure("auto", "ece_em")
    if figure is None or best is None:
        return None
    value = figure.value.mean
    limit = max(best, figure.floor or 0.0, figure.floor_q95 or 0.0)
    own = points_apart(value, best)[0]
    words = f"{_has(recipe, ours, own, figure.value)}, {_ece_words(figure, best)}"
    state: State = "reached" if value <= limit + _ROUNDING else "missed"
    return Goal("ece_em", state, value, limit, words), figure.value.n


def _has(
    recipe: Recipe, ours: MethodSummary, value: str, seeds: Spread, shown: str = "ece_em"
) -> str:
    """Name the recipe, its calibration error, how far seeds lie apart, and other errors beside."""
    beside = [seeds_words(seeds.n)]
    if seeds.n > 1:
        beside[0] += f", {points(seeds.least)} to {points(seeds.most)}"
    others = {"ece_em": "ECE_EM", "ece_debiased": "debiased ECE (L2)"}
    for name, words in others.items():
        mean = None if name == shown else ours.mean("auto", name)
        beside += [] if mean is None else [f"{words} {points(mean)} %"]
    return (
        f"The recipe is {recipe.name}, chosen on the {recipe.rows} rows. Its {figure_name(shown)} "
        f"is {value} ({'; '.join(beside)})"
    )


def _ece_words(figure: SeedFigure, best: float) -> str:
    """Say what the mean is held against: the paper's best, else a calibrated model."""
    value, floor, q95 = figure.value.mean, figure.floor, figure.floor_q95
    paper = f"the paper's best, {points_apart(value, best)[1]}"
    if value <= best + _ROUNDING:
        return f"{'below' if value < best - _ROUNDING else 'equal to'} {paper}"
    if floor is not None and value <= floor:
        usual = f"what a calibrated model gets on average, {points_apart(value, floor)[1]}"
        return f"above {paper}, but not above {usual}"
    if q95 is None:
        return f"above {paper}"
    highest = f"what a calibrated model stays under 95 times in 100, {points_apart(value, q95)[1]}"
    return f"above {paper}, {'but not' if value <= q95 else 'and'} above {highest}"


def _error_goal(ours: MethodSummary, plain: MethodSummary) -> _DraftGoal | None:
    own, their = ours.figure("auto", "error"), plain.figure("raw", "error")
    if own is None or their is None:
        return None
    value = own.value.mean - their.value.mean
    state: State = "reached" if value <= SLACK + _ROUNDING else "missed"
    words = f"Its error is {points(own.value.mean)} %, "
    if abs(value) <= _ROUNDING:
        words += f"that of {plain.label} as trained"
    else:
        words += f"{abs(100 * value):.2f} points {'above' if value > 0 else 'below'} that of "
        words += f"{plain.label} as trained, {points(their.value.mean)} %"
    words += " (up to 0.5 points above is allowed)"
    return Goal("error", state, value, SLACK, words), min(own.value.n, their.value.n)


def _nll_goal(ours: MethodSummary, plain: MethodSummary) -> _DraftGoal | None:
    loss = ours.nll
    if loss is None:
        return None
    state: State = "missed" if loss.verdict.startswith("worse") else "reached"
    words = _nll_words(loss, plain.label)
    return Goal("nll", state, loss.difference, SURE * loss.error, words), len(loss.seeds)


def _nll_words(loss: PairedLoss, label: str) -> str:
    """Say which has the lower log loss, or that the rows cannot tell."""
    their = f"{label} with temperature scaling"
    if loss.same:
        return f"The recipe is {their} itself, so its log loss is the same"
    gap = f"{abs(loss.difference):.4f} ± {loss.error:.4f} (SE over {loss.rows:,} test rows"
    if len(loss.seeds) > 1:
        ends = (end(loss.by_seed.values()) for end in (min, max))
        gap += f"; by seed {' to '.join(f'{round(each, 4) + 0.0:+.4f}' for each in ends)}"
    if loss.verdict.startswith("worse"):
        return f"{their} wins: the recipe's log loss is higher by {gap}), more than two SE"
    if loss.verdict.startswith("better"):
        return f"The recipe's log loss is lower than that of {their} by {gap}), more than two SE"
    side = "higher" if loss.difference > 0 else "lower"
    return f"The recipe's log loss is level with that of {their}: {side} by {gap}), within two SE"


def _ended(goal: Goal, seeds: int, size: str, *, whole: bool) -> Goal:
    """End the sentence with the state; open if too few seeds or too small a size speak for it."""
    if not whole:
        reason = "no verdict for runs with other options than the paper's"
        return replace(goal, state="open", sentence=f"{goal.sentence}: {reason}.")
    if size != "full":
        return replace(goal, state="open", sentence=f"{goal.sentence}: no verdict at size {size}.")
    if seeds < FEWEST_SEEDS:
        few = f"with {format_count(seeds, 'seed')} of the {FEWEST_SEEDS} that the goal asks for"
        return replace(goal, state="open", sentence=f"{goal.sentence}: {goal.state} so far, {few}.")
    return replace(goal, sentence=f"{goal.sentence}: {goal.state}.")
