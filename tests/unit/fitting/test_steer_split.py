"""steer_mask: a share of every class, drawn by the seed alone."""

import numpy as np
import pytest
from tests.sentences import refuses

from calibrant.errors import InputError
from calibrant.fitting.row_classifier import steer_mask


def test_every_class_gives_its_share():
    labels = np.repeat([0, 1, 2], [1000, 100, 10])
    marked = steer_mask(labels, 0.1)
    assert [np.count_nonzero(marked & (labels == k)) for k in range(3)] == [100, 10, 1]


def test_rare_classes_give_one_row_and_keep_one():
    labels = np.repeat([0, 1, 2], [50, 2, 1])
    for share in (0.01, 0.1, 0.99):
        marked = steer_mask(labels, share)
        assert np.count_nonzero(marked[50:52]) == 1
        assert not marked[52]
        assert not marked[:50].all()


def test_the_seed_decides_and_labels_in_another_order_do_not_matter_for_counts():
    labels = np.repeat([0, 1], [300, 200])
    assert np.array_equal(steer_mask(labels, 0.2, seed=3), steer_mask(labels, 0.2, seed=3))
    assert not np.array_equal(steer_mask(labels, 0.2, seed=3), steer_mask(labels, 0.2, seed=4))
    assert steer_mask(labels[::-1], 0.2).sum() == steer_mask(labels, 0.2).sum() == 100


def test_rows_of_a_class_are_drawn_evenly():
    drawn = np.mean([steer_mask(np.zeros(20, int), 0.25, seed=s) for s in range(400)], axis=0)
    assert abs(drawn - 0.25).max() < 5 * np.sqrt(0.25 * 0.75 / 400)


def test_a_share_of_numpys_is_a_share():
    labels = np.repeat([0, 1], [300, 200])
    assert np.array_equal(steer_mask(labels, np.float32(0.25)), steer_mask(labels, 0.25))


@pytest.mark.parametrize("share", [0, 1, -0.1, 1.5, True, "0.1", float("nan")])
def test_a_share_outside_0_and_1_is_refused(share):
    with refuses(InputError, "steer_share", "above 0", "below 1"):
        steer_mask(np.zeros(10, int), share)


def test_an_empty_steer_split_is_refused():
    with refuses(InputError, "steer split", "empty"):
        steer_mask(np.array([0, 1, 2]), 0.1)
