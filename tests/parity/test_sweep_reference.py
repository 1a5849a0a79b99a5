"""The sweep: the reference's count on scores without ties, a plain transcription with ties."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.parity.peer_rows import NO_TIES, drawn, one_problem

from calibrant.metrics import ece_sweep
from reproductions import parity

SCHEMES = ("mass", "width")


def plain_bins(scores, count, scheme):
    """Return the bin of each row; rows with equal scores count from the first of them."""
    n, out = len(scores), []
    for s in scores:
        if scheme == "mass":
            below = sum(1 for other in scores if other < s)
            out.append(below * count // n)
        else:
            out.append(max(b for b in range(count) if b / count <= s))
    return out


def plain_gaps(events, scores, bins):
    """Return (rows, events, sum of scores) of each non-empty bin in order."""
    table = {}
    for y, s, b in zip(events, scores, bins, strict=True):
        rows, hits, total = table.get(b, (0, 0, 0.0))
        table[b] = (rows + 1, hits + y, total + s)
    return [table[b] for b in sorted(table)]


def plain_sweep(events, scores, scheme, norm):
    """Sweep row by row, up to one bin less than there are rows."""
    events, scores = [int(y) for y in events], [float(s) for s in scores]
    distinct = [sorted(set(scores)).index(s) for s in scores]
    if not falls(plain_gaps(events, scores, distinct)):
        chosen = plain_gaps(events, scores, distinct)
    else:
        count = 1
        while count < len(scores) - 1 and not falls(
            plain_gaps(events, scores, plain_bins(scores, count + 1, scheme))
        ):
            count += 1
        chosen = plain_gaps(events, scores, plain_bins(scores, count, scheme))
    n = len(scores)
    return sum(m / n * abs(h / m - t / m) ** norm for m, h, t in chosen) ** (1 / norm)


def falls(table):
    return any(
        hits * rows_before < hits_before * rows
        for (rows_before, hits_before, _), (rows, hits, _) in pairwise(table)
    )


@pytest.mark.parametrize("norm", [1, 2])
@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("name", NO_TIES)
def test_the_reference_agrees_on_scores_without_ties(name, scheme, norm):
    for n in (100, 512, 1000):
        for seed in range(3):
            labels, probs = drawn(name, n, seed)
            events, scores = one_problem(labels, probs)
            assert len(np.unique(scores)) == n
            assert ece_sweep(labels, probs, scheme=scheme, norm=norm) == pytest.approx(
                parity.sweep(events, scores, scheme=scheme, norm=norm), abs=1e-12
            )


@pytest.mark.parametrize("norm", [1, 2])
@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("name", ["tied", "saturated", "binary", "multiclass", "long_tailed"])
def test_the_plain_transcription_agrees_with_ties_or_without(name, scheme, norm):
    for seed in range(4):
        labels, probs = drawn(name, 120, seed, np.float32 if seed % 2 else np.float64)
        events, scores = one_problem(labels, probs)
        assert ece_sweep(labels, probs, scheme=scheme, norm=norm) == pytest.approx(
            plain_sweep(events, scores, scheme, norm), abs=1e-9
        )


@given(
    rows=st.lists(st.tuples(st.integers(0, 12), st.booleans()), min_size=1, max_size=25),
    scheme=st.sampled_from(SCHEMES),
    norm=st.sampled_from([1, 2]),
)
@settings(max_examples=80, deadline=None)
def test_the_plain_transcription_agrees_on_any_few_rows_with_many_ties(rows, scheme, norm):
    scores = np.array([score / 12 for score, _ in rows])
    events = np.array([int(event) for _, event in rows])
    assert ece_sweep(events, scores, scheme=scheme, norm=norm) == pytest.approx(
        plain_sweep(events, scores, scheme, norm), abs=1e-9
    )


def test_the_order_of_tied_rows_matters_to_the_reference_and_not_here():
    labels, probs = drawn("tied", 400, 1)
    events, scores = one_problem(labels, probs)
    sorted_within = np.lexsort((events, scores))
    shuffled = np.random.default_rng(0).permutation(400)
    theirs = {round(parity.sweep(events[o], scores[o]), 9) for o in (sorted_within, shuffled)}
    ours = {round(ece_sweep(events[o], scores[o], norm=2), 9) for o in (sorted_within, shuffled)}
    assert len(theirs) == 2
    assert len(ours) == 1


def test_labels_in_perfect_order_give_a_bin_for_each_score_here_and_one_less_there():
    events, scores = [0, 0, 1, 1], [0.1, 0.2, 0.7, 0.8]
    assert parity.sweep(events, scores) == pytest.approx(np.sqrt((0.045 + 0.09 + 0.04) / 4))
    assert ece_sweep(events, scores, norm=2) == pytest.approx(
        np.sqrt((0.01 + 0.04 + 0.09 + 0.04) / 4)
    )


def test_the_sweep_stops_at_one_bin_less_than_rows_here_and_there():
    # Six rows: the sweep stops at five bins, where the low rows share one, although the order
    # would hold until an edge parts 0.90 from 0.9001.
    events, scores = [0, 0, 1, 1, 1, 0], [0.02, 0.05, 0.05, 0.90, 0.90, 0.9001]
    high = abs(2 - 2.7001)
    assert parity.sweep(events, scores, scheme="width", norm=1) == pytest.approx((0.88 + high) / 6)
    assert ece_sweep(events, scores, scheme="width") == pytest.approx((0.88 + high) / 6)
