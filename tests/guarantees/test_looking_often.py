"""Verdicts of the Overview: whoever looks after every label is misled no more than is said."""

from __future__ import annotations

import math

import numpy as np
import pytest

from calibrant.stats import share_log_evidence
from calibrant.stats.proportions import exact_bounds

ERROR = 0.05
LABELS = 1_500
DRAWS = 2_000


def shares(true, *, draws=DRAWS, seed=0):
    """Draw labels; return how many are right after 1, 2, 3, ... of them, and those numbers."""
    right = np.random.default_rng(seed).random((draws, LABELS)) < true
    return right.cumsum(axis=1).astype(float), np.arange(1.0, LABELS + 1)


def called(true, target, *, draws=DRAWS, seed=0):
    """Return where promises are called kept, and where broken, at looks after every label."""
    hits, n = shares(true, draws=draws, seed=seed)
    told = share_log_evidence(hits, n, np.array(target)) >= -math.log(ERROR)
    return told & (hits > target * n), told & (hits < target * n)


@pytest.mark.smoke
@pytest.mark.parametrize("target", [0.3, 0.5, 0.85, 0.95])
def test_a_promise_that_just_holds_is_seldom_called_broken_however_often_one_looks(target):
    kept, broken = called(target, target)
    wrong = (kept | broken).any(axis=1).mean()
    assert broken.any(axis=1).mean() <= wrong <= ERROR + 3 * math.sqrt(ERROR / DRAWS)


def test_an_interval_for_one_look_misleads_whoever_looks_daily():
    hits, n = shares(0.85, draws=300)
    daily = np.arange(19, 1_200, 20)
    _, high = exact_bounds(hits[:, daily], n[daily], 1 - ERROR)
    assert (high < 0.85).any(axis=1).mean() > 2 * ERROR


@pytest.mark.parametrize(
    ("true", "target", "labels"), [(0.75, 0.85, 300), (0.7, 0.85, 150), (0.4, 0.5, 600)]
)
def test_a_broken_promise_is_found(true, target, labels):
    kept, broken = called(true, target, draws=500)
    assert broken[:, :labels].any(axis=1).mean() >= 0.9
    assert kept.any(axis=1).mean() <= ERROR + 3 * math.sqrt(ERROR / 500)


def test_a_kept_promise_is_found():
    kept, _ = called(0.92, 0.85, draws=500)
    assert kept[:, :500].any(axis=1).mean() >= 0.9
