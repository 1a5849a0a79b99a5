"""Texts that come again and again: without a golden set a promise counts each of them once."""

from __future__ import annotations

import math

import numpy as np
import pytest

from calibrant.errors import TargetUnreachable
from calibrant.study import StudyConfig
from calibrant.study.rows.read import read_study_rows
from calibrant.thresholds import precision, select

DRAWS, TEXTS, ROWS, ERROR = 100, 400, 2_000, 0.05


def world(seed):
    """Texts with a label and a score each, and how often each comes: a few very often."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 2, TEXTS)
    scores = rng.normal(1.0 * labels, 1.0)
    return labels, 1 / (1 + np.exp(-scores)), rng.dirichlet(np.full(TEXTS, 0.3)), rng


def drawn(seed, folder):
    """Return labels, scores and the rows of a study of such logs, as it divides them."""
    labels, scores, often, rng = world(seed)
    rows = rng.choice(TEXTS, ROWS, p=often)
    path = folder / f"{seed}.csv"
    path.write_text("text,label\n" + "".join(f"text {i},{labels[i]}\n" for i in rows))
    config = StudyConfig(data=str(path), text="text", label="label", candidates=("ce",), seed=seed)
    return labels, scores, read_study_rows(config)


def true_precision(threshold):
    """Of texts that are drawn anew: labels are even, scores normal around 0 and 1."""
    at = math.log(threshold / (1 - threshold))
    above = [math.erfc((at - mean) / math.sqrt(2)) / 2 for mean in (0.0, 1.0)]
    return above[1] / sum(above)


def broken(places, labels, scores):
    try:
        point = select(labels[places], scores[places], hold=precision >= 0.75)
    except TargetUnreachable:
        return False
    return true_precision(min(max(point.threshold, 1e-9), 1 - 1e-9)) < 0.75


@pytest.mark.smoke
def test_promises_about_new_texts_are_kept_as_often_as_they_say(tmp_path):
    found = []
    for seed in range(DRAWS):
        labels, scores, rows = drawn(seed, tmp_path)
        numbers = [int(text.split()[1]) for text in rows["calibrate"].inputs]
        assert len(set(numbers)) == len(numbers)
        # Rows as they come, as many as the texts that were dealt to them: what used to be counted.
        often = np.random.default_rng([seed, 1]).dirichlet(np.full(len(numbers), 0.3))
        again = np.random.default_rng([seed, 2]).choice(numbers, ROWS // 5, p=often)
        found.append([broken(each, labels, scores) for each in (np.array(numbers), again)])
    once, repeated = np.mean(found, axis=0)
    assert once <= ERROR + 2 * math.sqrt(ERROR * (1 - ERROR) / DRAWS)
    assert repeated > 2 * ERROR  # the world is one in which counting rows breaks promises
