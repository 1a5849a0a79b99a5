"""Choosing a candidate: rows that were followed flatter, rows that nobody followed do not.

Candidates are made of the true log-probabilities and of errors, so that it is known which is
better. Followers look at the labels of the steer rows as training does; what they see there is
chance, and helps on no other row.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from calibrant.data.splits import SplitPart, Splits
from calibrant.study.candidates.trained import compute_refinement, tempered_losses
from calibrant.study.choose import choose_among
from calibrant.study.rows.divide import halve_steer
from calibrant.study.rows.rows import SplitRows, StudyRows

DRAWS, ROWS, CLASSES = 100, 240, 3


class World:
    """Rows with a known posterior; the first half is the steer share, nothing else is scored."""

    def __init__(self, seed: int, n: int = 2 * ROWS) -> None:
        self.rng = np.random.default_rng(seed)
        raw = self.rng.normal(0, 1.5, (n, CLASSES))
        self.probs = np.exp(raw) / np.exp(raw).sum(axis=1, keepdims=True)
        self.truth = np.log(self.probs)
        self.codes = self.drawn()

    def drawn(self) -> np.ndarray:
        """Draw a class for each row."""
        return (self.rng.random((len(self.probs), 1)) > self.probs.cumsum(axis=1)).sum(axis=1)

    def plain(self, error: float) -> np.ndarray:
        """Return the logits of a candidate that looked at no label."""
        return self.truth + self.rng.normal(0, error, self.truth.shape)

    def stopped(self, error: float, followed: np.ndarray, epochs: int = 20) -> np.ndarray:
        """Return those of the epoch that is best on the followed rows; all are equally good."""
        runs = [self.plain(error) for _ in range(epochs)]
        lost = [log_loss(run[followed], self.codes[followed]) for run in runs]
        return runs[int(np.argmin(lost))]

    def fitted(self, error: float, followed: np.ndarray) -> np.ndarray:
        """Return logits that moved towards labels: on followed rows towards their own ones.

        On other rows they moved towards labels that were drawn anew: the error is of one kind.
        """
        labels = self.drawn()
        labels[followed] = self.codes[followed]
        return self.truth + error * (np.eye(CLASSES)[labels] - self.probs)


def log_loss(logits: np.ndarray, codes: np.ndarray) -> float:
    shifted = logits - logits.max(axis=1, keepdims=True)
    own = shifted[np.arange(len(codes)), codes]
    return float((np.log(np.exp(shifted).sum(axis=1)) - own).mean())


@cache
def true_refinement(how: str, error: float) -> float:
    """Return the log loss over all labels that a row may have, at the best temperature."""
    world = World(10_000, 40_000)
    nobody = np.empty(0, dtype=np.int64)
    logits = world.plain(error) if how != "fitted" else world.fitted(error, nobody)
    found = []
    for temperature in np.linspace(0.8, 2.5, 35):
        scaled = logits / temperature
        top = scaled.max(axis=1, keepdims=True)
        logs = scaled - top - np.log(np.exp(scaled - top).sum(axis=1, keepdims=True))
        found.append(-(world.probs * logs).sum(axis=1).mean())
    return float(min(found))


def splits_of(world: World, *, choice: bool) -> Splits:
    """Return the splits of a study: half of the steer rows choose, or none does."""
    rest = np.arange(ROWS, 2 * ROWS)
    parts = {"train": rest[:2], "calibrate": rest[2:4], "test": rest[4:]}
    steer, kept = np.arange(ROWS), np.empty(0, dtype=np.int64)
    if choice:
        steer, kept = halve_steer([str(code) for code in world.codes[:ROWS]], n=ROWS)
    parts |= {"steer": steer, "choice": kept}
    return Splits(**{name: SplitPart("logs", ids) for name, ids in parts.items()})


@cache
def refinements(seed: int, how: str, errors: tuple[float, float], *, choice: bool) -> list[float]:
    """Return what a plain candidate and a follower get on the rows that compare them."""
    world = World(seed)
    splits = splits_of(world, choice=choice)
    rows = StudyRows(
        "text", tuple(range(CLASSES)), {"logs": SplitRows([""] * (2 * ROWS), world.codes)},
        splits, {},
    )  # fmt: skip
    made = (world.plain(errors[0]), getattr(world, how)(errors[1], splits.steer.ids))
    return [compute_refinement(rows, scored(one, splits)) for one in made]


def scored(logits: np.ndarray, splits: Splits) -> dict[str, np.ndarray]:
    return {name: logits[getattr(splits, name).ids] for name in ("steer", "choice")}


def share_of_followers(how: str, errors: tuple[float, float], *, choice: bool) -> float:
    """Return how often the follower has the smaller log loss; a tie would be its own."""
    draws = (refinements(seed, how, errors, choice=choice) for seed in range(DRAWS))
    return float(np.mean([follower <= plain for plain, follower in draws]))


WORSE = {"stopped": (0.6, 0.7), "fitted": (0.4, 0.8)}
"""Errors of the plain candidate and of a follower that is worse in truth."""


@pytest.mark.smoke
@pytest.mark.parametrize("how", WORSE)
def test_a_worse_candidate_that_followed_the_rows_wins_on_them_and_not_on_choice_rows(how):
    errors = WORSE[how]
    assert true_refinement(how, errors[1]) > true_refinement("plain", errors[0]) + 0.003
    assert share_of_followers(how, errors, choice=False) > 0.8
    assert share_of_followers(how, errors, choice=True) < 0.5


def test_choice_rows_take_a_follower_that_is_better():
    errors = (0.9, 0.4)
    assert true_refinement("stopped", errors[1]) < true_refinement("plain", errors[0]) - 0.02
    assert share_of_followers("stopped", errors, choice=True) > 0.8


def test_between_equals_choice_rows_are_a_fair_coin():
    # 3.5 standard errors of a fair coin.
    share = share_of_followers("stopped", (0.6, 0.6), choice=True)
    assert abs(share - 0.5) <= 3.5 * np.sqrt(0.25 / DRAWS)


@pytest.mark.parametrize("how", WORSE)
def test_followed_rows_promise_a_log_loss_that_choice_rows_do_not(how):
    errors = WORSE[how]
    truth = true_refinement(how, errors[1])
    told = {}
    for choice in (False, True):
        found = [refinements(seed, how, errors, choice=choice)[1] for seed in range(DRAWS)]
        told[choice] = (np.mean(found) - truth) / (np.std(found) / np.sqrt(DRAWS))
    assert told[False] < -5  # standard errors below the truth
    assert abs(told[True]) < 3.5


def choices(errors: tuple[float, ...], n: int) -> np.ndarray:
    """Return which candidate is chosen on n choice rows of each draw; the first is preferred."""
    chosen = []
    for seed in range(2 * DRAWS):
        world = World(seed, n)
        losses = [tempered_losses(world.plain(error), world.codes) for error in errors]
        chosen.append(choose_among(losses, order=range(len(errors))).chosen)
    return np.array(chosen)


@pytest.mark.smoke
def test_of_equals_the_preferred_candidate_is_chosen_nearly_always():
    # Another one must lead by a standard error: about 16 % of draws for one rival.
    assert (choices((0.6, 0.6), 300) == 0).mean() > 0.75
    assert (choices((0.6, 0.6, 0.6, 0.6), 300) == 0).mean() > 0.55


def test_a_candidate_that_is_clearly_better_is_chosen_whatever_the_order():
    assert (choices((0.9, 0.4), 500) == 1).mean() > 0.95


@pytest.mark.parametrize("errors", [(0.6, 0.6), (0.6, 0.65), (0.6, 0.7, 0.5), (0.6, 0.55)])
def test_the_choice_does_no_harm(errors):
    """In truth it costs at most 0.003 nats on average against always the preferred candidate."""
    truth = np.array([true_refinement("plain", error) for error in errors])
    gains = truth[choices(errors, 300)] - truth[0]
    assert gains.mean() <= 0.003
