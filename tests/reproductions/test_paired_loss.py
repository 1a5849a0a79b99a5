import math

import numpy as np
import pytest
from reproductions.paired_loss import paired_loss
from tests.reproductions.made_records import (
    goal,
    made_losses,
    made_runs,
    made_summary,
)

from calibrant.errors import InputError


def by_hand(scale=1.0):
    """Four rows: FL-3 less CE is -1, -1, 0, 0 on average over seeds."""
    gaps = {0: [-1, 0, -1, 0], 1: [-1, -2, 1, 0], 2: [-1, -1, 0, 0]}
    plain = np.array([3.0, 4.0, 5.0, 6.0])
    found = {("ce", seed): {"temperature": plain, "auto": plain} for seed in gaps}
    for seed, gap in gaps.items():
        both = plain + scale * np.array(gap)
        found["focal", seed] = {"temperature": plain, "auto": both}
    return found


def of_four_rows(losses):
    rows = {"train": 800, "steer": 100, "calib": 100, "test": 4}
    return made_summary([{**each, "rows": rows} for each in made_runs()], losses)


def test_paired_loss_by_hand():
    found = of_four_rows(by_hand())["focal"]
    assert found.nll.difference == pytest.approx(-0.5)
    # squares about -0.5: 4 x 0.25 = 1; variance 1 / 3; error sqrt(1 / 12)
    assert found.nll.error == pytest.approx(math.sqrt(1 / 12))
    assert found.nll.by_seed == pytest.approx({0: -0.5, 1: -0.5, 2: -0.5})
    assert (found.nll.rows, found.nll.seeds, found.nll.verdict) == (4, (0, 1, 2), "level")
    assert found.nll_scaled.same
    assert found.nll_scaled.verdict == "level"


def test_log_loss_sentences():
    better = goal(made_summary(losses=made_losses(-0.1)), "nll")
    worse = goal(made_summary(losses=made_losses(0.1)), "nll")
    level = goal(of_four_rows(by_hand()), "nll")
    assert (better.state, worse.state, level.state) == ("reached", "missed", "reached")
    assert "lower than that of CE with temperature scaling by 0.1" in better.sentence
    assert worse.sentence.startswith(
        "CE with temperature scaling wins: the recipe's log loss is higher by 0.0"
    )
    assert worse.sentence.endswith("more than two SE: missed.")
    assert level.sentence == (
        "The recipe's log loss is level with that of CE with temperature scaling: lower by 0.5000 "
        "± 0.2887 (SE over 4 test rows; by seed -0.5000 to -0.5000), within two SE: reached."
    )


def test_a_recipe_that_is_the_baseline_says_so():
    runs = [{**each, "chosen": "temperature"} for each in made_runs()]
    for run in runs[3:]:
        run["steer"] = {"refinement": 0.9}
    found = made_summary(runs, made_losses())
    assert found.recipe.name == "CE + temperature scaling"
    assert goal(found, "nll").sentence == (
        "The recipe is CE with temperature scaling itself, so its log loss is the same: reached."
    )


def test_only_seeds_that_both_have_are_compared():
    losses = made_losses()
    del losses["ce", 2]
    found = made_summary(losses=losses)
    assert found["focal"].nll.seeds == (0, 1)
    assert goal(found, "nll").state == "open"


def test_losses_that_cannot_be_compared_give_no_goal():
    losses = made_losses()
    for seed in range(3):
        losses["focal", seed]["auto"][0] = np.inf
    assert [each.name for each in made_summary(losses=losses).goals] == ["ece_em", "error"]
    assert [each.name for each in made_summary().goals] == ["ece_em", "error"]
    with pytest.raises(InputError, match="cannot be paired"):
        paired_loss({0: [1.0, 2.0]}, {0: [1.0]})
    assert paired_loss({0: [1.0]}, {0: [2.0]}) is None
    assert paired_loss({0: [1.0, 2.0]}, {1: [1.0, 2.0]}) is None


def drawn(rng, gap, n=250, seeds=3):
    """Losses whose true difference is `gap`: rows matter more than seeds, tails are heavy."""
    row = rng.exponential(0.4, n) - 0.4
    plain = {seed: rng.exponential(1.0, n) for seed in range(seeds)}
    return {seed: plain[seed] + gap + row + rng.normal(0, 0.1, n) for seed in plain}, plain


def test_two_standard_errors_keep_what_they_say_where_the_truth_is_known():
    rng = np.random.default_rng(1)
    repeats = 2000
    level = [paired_loss(*drawn(rng, 0.0)) for _ in range(repeats)]
    wrong = sum(each.verdict != "level" for each in level) / repeats
    assert 0.03 < wrong < 0.065  # 4.6 % for a normal mean
    error = float(np.mean([each.error for each in level]))
    for sign in (-1, 1):
        found = [paired_loss(*drawn(rng, sign * 4 * error)).verdict for _ in range(300)]
        right = "better by 2 SE" if sign < 0 else "worse by 2 SE"
        opposite = "worse by 2 SE" if sign < 0 else "better by 2 SE"
        assert found.count(right) > 0.95 * 300
        assert opposite not in found


def test_rows_under_several_seeds_are_not_more_rows():
    """Taking each row and seed as a row of its own would claim too much."""
    rng = np.random.default_rng(2)
    wrong = 0
    for _ in range(500):
        ours, theirs = drawn(rng, 0.0)
        gaps = np.concatenate([ours[seed] - theirs[seed] for seed in ours])
        wrong += abs(gaps.mean()) > 2 * gaps.std(ddof=1) / math.sqrt(len(gaps))
    assert wrong / 500 > 0.15


@pytest.mark.parametrize(("gap", "word"), [(-0.1, "better"), (0.0, "level"), (0.1, "worse")])
def test_the_verdict_in_a_word(gap, word):
    noise = np.random.default_rng(0).normal(0, 0.01, 400)
    found = paired_loss({0: 1.0 + gap + noise - noise.mean()}, {0: np.ones(400)})
    assert found.word == word
    assert found.verdict.startswith(word)
