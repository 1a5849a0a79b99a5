import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibrant.errors import InputError
from calibrant.metrics import ace, ece, ece_classwise, mce, sce
from calibrant.metrics.binning import bin_index, mass_edges, width_edges
from calibrant.testing import WORLDS, shifted_world


def slow_ece(scores, events, edges, norm=1):
    """The definition, row by row and bin by bin."""
    gaps, shares = [], []
    for b in range(len(edges) - 1):
        last = b == len(edges) - 2
        inside = [
            i
            for i, s in enumerate(scores)
            if edges[b] <= s and (s < edges[b + 1] or (last and s <= 1))
        ]
        if inside:
            gaps.append(abs(np.mean([events[i] - scores[i] for i in inside])))
            shares.append(len(inside) / len(scores))
    gaps, shares = np.array(gaps), np.array(shares)
    if norm == 1:
        return float(shares @ gaps)
    return float(np.sqrt(shares @ gaps**2) if norm == 2 else gaps.max())


def test_a_confidence_of_exactly_one_is_in_the_last_bin():
    assert ece([1, 0], [0.95, 1.0], n_bins=10) == pytest.approx(0.475)
    assert mce([1, 0], [0.95, 1.0], n_bins=10) == pytest.approx(0.475)


def test_six_confidences_worked_by_hand():
    confidence, correct = [0.5, 0.5, 0.6, 0.8, 0.95, 1.0], [1, 0, 1, 1, 1, 0]
    assert ece(correct, confidence, n_bins=10) == pytest.approx(1.55 / 6)


def test_a_score_on_an_edge_belongs_to_the_bin_above_it():
    # 0.6 * 10 is below 6 in floating point; the shared edge array is not fooled.
    assert bin_index(np.array([0.6, 0.7, 0.3]), width_edges(10)).tolist() == [6, 7, 3]


@given(st.lists(st.floats(0, 1), min_size=1, max_size=50), st.integers(1, 30))
def test_bin_index_is_searchsorted_on_the_same_edges(scores, n_bins):
    scores, edges = np.array(scores), width_edges(n_bins)
    expected = np.searchsorted(edges[1:-1], scores, side="right")
    assert bin_index(scores, edges).tolist() == expected.tolist()
    exact = np.concatenate([edges, np.nextafter(edges, 0)])
    assert (
        bin_index(exact, edges).tolist()
        == np.searchsorted(edges[1:-1], exact, side="right").tolist()
    )


@given(st.lists(st.sampled_from([0.0, 0.1, 0.2, 0.5, 0.9, 1.0]), min_size=1, max_size=40))
def test_equal_mass_bins_hold_every_row_and_keep_ties_together(scores):
    ordered = np.sort(scores)
    edges = mass_edges(ordered, None, 4)
    index = bin_index(np.array(scores), edges)
    assert index.min() >= 0
    assert index.max() < len(edges) - 1
    for value in set(scores):
        assert len(set(index[np.array(scores) == value])) == 1


def test_equal_mass_bins_without_ties_are_the_rank_split():
    scores = np.arange(10) / 10 + 0.05
    assert np.bincount(bin_index(scores, mass_edges(scores, None, 3))).tolist() == [4, 3, 3]


def test_a_constant_confidence_is_one_bin_with_the_true_gap():
    assert ece([1, 0, 0], [0.9] * 3, scheme="mass", n_bins=5) == pytest.approx(0.9 - 1 / 3)


@pytest.mark.parametrize("norm", [1, 2, np.inf])
@pytest.mark.parametrize("scheme", ["width", "mass"])
@pytest.mark.parametrize("world", ["binary", "tied", "saturated"])
def test_the_fast_path_equals_the_definition(world, scheme, norm):
    draw = WORLDS[world].draw(400, 3)
    scores = np.sort(draw.probs).astype(np.float64)
    edges = width_edges(7) if scheme == "width" else mass_edges(scores, None, 7)
    result = ece(draw.labels, draw.probs, n_bins=7, scheme=scheme, norm=norm)
    assert result == pytest.approx(slow_ece(draw.probs, draw.labels, edges, norm), rel=1e-10)


def test_blocks_and_threads_do_not_change_the_figure():
    draw = WORLDS["multiclass"].draw(300_000, 0)
    whole = ece(draw.labels, draw.probs)
    confidence = draw.probs.max(axis=1)
    correct = draw.probs.argmax(axis=1) == draw.labels
    index = np.searchsorted(width_edges(15)[1:-1], confidence, side="right")
    gap = np.bincount(index, correct - confidence, 15)
    assert whole == pytest.approx(np.abs(gap).sum() / 300_000, rel=1e-12)


def test_many_columns_take_the_same_top_label_as_few():
    rng = np.random.default_rng(0)
    probs = rng.dirichlet(np.ones(100), 500)
    labels = rng.integers(0, 100, 500)
    correct = (probs.argmax(axis=1) == labels).astype(int)
    assert ece(labels, probs) == pytest.approx(ece(correct, probs.max(axis=1)), rel=1e-12)


def test_among_equal_probabilities_the_first_class_is_predicted():
    assert ece([0], [[0.5, 0.5]], target="top-label") == 0.5
    assert ece([1], [[0.5, 0.5]], target="top-label") == 0.5
    assert ece([0, 1], [[0.4, 0.4, 0.2]] * 2, n_bins=1) == pytest.approx(0.1)


def test_positive_and_top_label_differ_on_a_binary_problem():
    labels, probs = [0, 0, 0, 1], [0.1, 0.3, 0.4, 0.7]
    assert ece(labels, probs, target="positive", n_bins=1) == pytest.approx(0.125)
    assert ece(labels, probs, target="top-label", n_bins=1) == pytest.approx(1 - 0.725)


def test_classwise_is_the_mean_over_the_classes_columns():
    draw = WORLDS["multiclass"].draw(500, 0)
    each = [ece((draw.labels == k).astype(int), draw.probs[:, k]) for k in range(5)]
    assert ece_classwise(draw.labels, draw.probs) == pytest.approx(np.mean(each))
    assert sce(draw.labels, draw.probs) == ece_classwise(draw.labels, draw.probs)
    assert ace(draw.labels, draw.probs) == ece_classwise(draw.labels, draw.probs, scheme="mass")


def test_an_absent_class_still_counts_in_the_classwise_mean():
    probs = np.array([[0.8, 0.1, 0.1], [0.1, 0.8, 0.1]])
    assert ece_classwise([0, 1], probs, n_bins=1) == pytest.approx((0.05 + 0.05 + 0.1) / 3)


def test_a_large_sample_finds_the_known_error():
    draw = shifted_world(0.05).draw(400_000, 1)
    # The bin around 1/2 holds errors of both signs; the rest of the mass errs by 0.05.
    expected = 0.05 * (1 - (1 / 15) / 0.8)
    assert ece(draw.labels, draw.probs) == pytest.approx(expected, abs=0.002)


def test_norms_are_ordered():
    draw = WORLDS["binary"].draw(1000, 2)
    one, two, most = (ece(draw.labels, draw.probs, norm=p) for p in (1, 2, np.inf))
    assert one <= two <= most


def test_float16_scores_are_summed_in_float64():
    draw = WORLDS["binary"].draw(70_000, 0)
    half = draw.probs.astype(np.float16)
    assert ece(draw.labels, half) == pytest.approx(
        ece(draw.labels, half.astype(np.float64)), rel=1e-6
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_bins": 0}, "n_bins must be a whole number of at least 1, got 0"),
        ({"n_bins": 2.5}, "n_bins must be a whole number"),
        ({"n_bins": True}, "n_bins must be a whole number of at least 1, got True"),
        ({"n_bins": 10_001}, "n_bins must be at most 10,000, got 10,001: use fewer bins"),
        ({"scheme": "equal"}, "scheme must be 'width' or 'mass', got 'equal'"),
        ({"norm": 3}, "norm must be 1, 2 or inf, got 3"),
        ({"target": "all"}, "target must be 'positive', 'top-label' or 'classwise', got 'all'"),
        ({"weights": [1, -1]}, "got -1.0 in row 1"),
        ({"weights": [0, 0]}, "all zero"),
        ({"weights": [1]}, r"shape \(2,\)"),
    ],
)
def test_bad_options_get_one_sentence(options, message):
    with pytest.raises(InputError, match=message):
        ece([0, 1], [0.2, 0.7], **options)
