import json

import numpy as np
import pyarrow as pa
import pytest
from tests.few_draws import few_draws

from calibrant.errors import InputError
from calibrant.metrics import evaluate
from calibrant.metrics.cells import ExactSums, ScoreCells, log_odds
from calibrant.metrics.streaming import StreamingEvaluation
from calibrant.testing import WORLDS

EXACT = [
    "ece_ew", "mce", "ece_classwise", "accuracy", "precision_macro", "recall_macro", "f1_macro",
    "matthews", "nll", "brier",
]  # fmt: skip
BOUNDED = ["ece_debiased", "ece_em", "ace", "ks", "auroc", "auprc", "aurc", "ece_smooth"]
TOP_LABEL = ["ece_ew_top_label", "ece_em_top_label"]


def streamed(draw, batch, *, weights=None):
    k = 2 if draw.probs.ndim == 1 else draw.probs.shape[1]
    stream = StreamingEvaluation(k, weighted=weights is not None)
    for start in range(0, len(draw.labels), batch):
        rows = slice(start, start + batch)
        part = None if weights is None else weights[rows]
        stream.update(draw.labels[rows], draw.probs[rows], part)
    return stream


@pytest.fixture(scope="module", params=["binary", "multiclass", "tied", "saturated", "rare"])
def both(request):
    draw = WORLDS[request.param].draw(20_000, 1)
    return evaluate(draw.labels, draw.probs), streamed(draw, 777).compute()


def test_the_same_keys_come_from_memory_and_from_a_stream(both):
    whole, stream = both
    assert list(whole.figures) == list(stream.figures)
    assert set(whole.to_dict()) <= set(stream.to_dict())
    assert set(whole.tests) == set(stream.tests)
    assert "stream" in stream.tests["spiegelhalter"].why


@pytest.mark.parametrize("name", EXACT)
def test_exact_figures_are_equal(both, name):
    whole, stream = both
    if whole[name].value is None:  # an infinite log loss is infinite in both
        assert stream[name].value is None
        assert stream[name].why == whole[name].why
    else:
        assert stream[name].value == pytest.approx(whole[name].value, rel=1e-12)


@pytest.mark.parametrize("name", BOUNDED)
def test_other_figures_are_within_their_stated_bound(both, name):
    whole, stream = both
    bound = stream[name].error_bound
    assert abs(stream[name].value - whole[name].value) <= bound + 1e-12
    # Rare events crowd into few cells; the bound of the debiased error then says little.
    assert bound < 0.05 or name == "ece_debiased"


def test_top_label_figures_of_a_binary_stream(both):
    whole, stream = both
    if whole.target == "positive":
        assert stream["ece_ew_top_label"].value == pytest.approx(
            whole["ece_ew_top_label"].value, rel=1e-12
        )
        result, exact = stream["ece_em_top_label"], whole["ece_em_top_label"].value
        assert abs(result.value - exact) <= result.error_bound + 1e-12


def test_sweep_errors_are_null_with_a_reason(both):
    for name in ("ece_sweep_ew", "ece_sweep_em"):
        assert both[1][name].value is None
        assert "stream" in both[1][name].why


def test_intervals_and_verdict_agree(both):
    whole, stream = both
    assert stream.verdict.miscalibrated == whole.verdict.miscalibrated
    for name in ("ece_ew", "accuracy", "brier"):
        mine, theirs = stream[name].interval, whole[name].interval
        assert mine.low == pytest.approx(theirs.low, abs=0.004)
        assert mine.high == pytest.approx(theirs.high, abs=0.004)


@pytest.mark.parametrize("weighted", [False, True])
def test_any_batching_and_any_order_of_merging_gives_the_same_equal_width_figures(weighted):
    draw = WORLDS["binary"].draw(50_000, 0)
    weights = np.random.default_rng(0).uniform(0.5, 20, 50_000) if weighted else None
    one = streamed(draw, 50_000, weights=weights).compute()
    rng = np.random.default_rng(1)
    order = rng.permutation(50_000)
    parts = []
    for rows in np.array_split(order, 13):
        part = StreamingEvaluation(2, weighted=weighted)
        part.update(draw.labels[rows], draw.probs[rows], None if weights is None else weights[rows])
        parts.append(part)
    merged = StreamingEvaluation(2, weighted=weighted)
    for part in parts[::-1]:
        merged.merge(part)
    other = merged.compute()
    for name in ("ece_ew", "mce", "ece_classwise", "ece_ew_top_label"):
        assert other[name].value == pytest.approx(one[name].value, rel=1e-12)
    whole = evaluate(draw.labels, draw.probs, weights=weights)
    assert other["ece_ew"].value == pytest.approx(whole["ece_ew"].value, rel=1e-12)


def test_scores_on_bin_edges_fall_as_in_memory():
    rng = np.random.default_rng(0)
    probs = np.concatenate([np.arange(16) / 15, 1 - np.arange(16) / 15, [0.5, 0.4, 0.6]] * 40)
    labels = (rng.random(len(probs)) < probs).astype(int)
    whole = evaluate(labels, probs)
    stream = StreamingEvaluation(2).update(labels, probs).compute()
    for name in ("ece_ew", "ece_classwise", "ece_ew_top_label", "accuracy", "aurc", "ks"):
        assert stream[name].value == pytest.approx(whole[name].value, rel=1e-12), name


def assert_within_bounds(labels, probs, n_bins=15, weights=None):
    classes = 2 if np.ndim(probs) == 1 else np.shape(probs)[1]
    with few_draws():  # values and their bounds are compared, and nothing that is resampled
        whole = evaluate(labels, probs, n_bins=n_bins, weights=weights)
        stream = StreamingEvaluation(classes, n_bins=n_bins, weighted=weights is not None)
        result = stream.update(labels, probs, weights).compute()
    for name, figure in result.figures.items():
        exact = whole[name].value
        if figure.value is None or exact is None:
            continue
        bound = (figure.error_bound or 0.0) + 1e-9 * max(1.0, abs(exact))
        assert abs(figure.value - exact) <= bound, (name, figure.value, exact, bound)


def test_scores_beyond_the_last_cell_tie_with_one_under_their_complement():
    probs = np.r_[np.full(100, 1.0), np.full(100, 1e-300), np.full(100, 1e-9)]
    assert_within_bounds(np.r_[np.ones(2, int), np.zeros(298, int)], probs)


def test_a_score_that_rounds_onto_an_edge_under_its_complement():
    probs = np.r_[np.full(200, 0.1 + 0.2), np.full(200, 0.3005)]
    assert_within_bounds([1] * 200 + [0] * 200, probs, n_bins=10)


def test_two_columns_that_do_not_quite_sum_to_one_are_both_used():
    probs = [[0.4996, 0.5], [0.2, 0.8], [0.9, 0.1]]
    assert StreamingEvaluation(2).update([1, 1, 0], probs).compute()["accuracy"].value == 1.0
    rng = np.random.default_rng(0)
    probs = rng.dirichlet([1, 1], 2000).round(3)
    assert_within_bounds(rng.integers(0, 2, 2000), probs)


def test_ties_inside_a_cell_are_within_the_bound_of_average_precision():
    probs = np.r_[[0.9] * 500, [0.7003] * 50, [0.7002] * 50]
    assert_within_bounds([0] * 500 + [1] * 50 + [0] * 50, probs)


@pytest.mark.parametrize("n_bins", [1, 2, 10, 20])
@pytest.mark.parametrize("world", ["binary", "tied", "saturated", "multiclass", "rare"])
def test_bounds_hold_for_other_numbers_of_bins_and_weights(world, n_bins):
    draw = WORLDS[world].draw(3000, 2)
    weights = np.random.default_rng(0).lognormal(0, 1, 3000)
    assert_within_bounds(draw.labels, draw.probs, n_bins)
    assert_within_bounds(draw.labels, draw.probs, n_bins, weights)


def test_heavy_weights_do_not_overflow():
    labels, probs = np.r_[0, np.ones(99_999, int)], np.ones(100_000)
    stream = StreamingEvaluation(2, weighted=True)
    for _ in range(3):
        stream.update(labels, probs, np.full(100_000, 1e6))
    assert stream.compute()["ece_ew"].value == pytest.approx(1e-5, rel=1e-9)
    assert_within_bounds([0, 1, 1], [0.2, 0.9, 0.4], weights=[1e12, 1.0, 1e11])


def test_threshold_curves_are_within_their_bound():
    draw = WORLDS["binary"].draw(20_000, 3)
    stream = StreamingEvaluation(2).update(draw.labels, draw.probs).compute()
    curve = stream.curves["classes"][1]["curve"]
    assert max(curve["bound"]) > 0
    columns = ("threshold", "precision", "recall", "flagged", "bound")
    for threshold, precision, recall, flagged, bound in zip(
        *(curve[name] for name in columns), strict=True
    ):
        kept = draw.probs >= threshold
        if kept.any():
            assert abs(draw.labels[kept].mean() - precision) <= bound + 1e-9
            assert abs((draw.labels[kept].sum() / draw.labels.sum()) - recall) <= bound + 1e-9
            assert abs(kept.mean() - flagged) <= bound + 1e-9


def test_the_state_survives_json():
    draw = WORLDS["multiclass"].draw(500, 0)
    stream = streamed(draw, 100)
    again = StreamingEvaluation.from_dict(json.loads(json.dumps(stream.to_dict())))
    assert again.compute().to_dict() == stream.compute().to_dict()
    again.update(draw.labels, draw.probs)
    assert again.n == 1000


def test_a_weighted_state_survives_json():
    draw = WORLDS["binary"].draw(500, 0)
    stream = streamed(draw, 100, weights=np.linspace(1, 2, 500))
    again = StreamingEvaluation.from_dict(json.loads(json.dumps(stream.to_dict())))
    assert again.compute().to_dict() == stream.compute().to_dict()


def test_the_state_does_not_grow_with_the_rows():
    draw = WORLDS["binary"].draw(400_000, 0)
    few, many = streamed(draw, 1000), StreamingEvaluation(2)
    for _ in range(5):
        many.update(draw.labels, draw.probs)
    assert many.top.count.nbytes == few.top.count.nbytes
    assert many.n == 2_000_000


def test_class_names_are_kept():
    stream = StreamingEvaluation(["no", "yes"])
    stream.update(["no", "yes", "yes"], [0.1, 0.8, 0.6])
    assert stream.compute().classes == ("no", "yes")


def test_a_bad_batch_changes_nothing():
    stream = StreamingEvaluation(2).update([0, 1], [0.2, 0.8])
    before = stream.to_dict()
    with pytest.raises(InputError, match="row 1"):
        stream.update([0, 1], [0.5, 1.5])
    assert stream.to_dict() == before


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: StreamingEvaluation(2).compute(), "empty"),
        (lambda: StreamingEvaluation(2).update([1], [0.5]).compute(), "the only label is 1"),
        (lambda: StreamingEvaluation(1), "at least two classes, got 1"),
        (lambda: StreamingEvaluation(2, target="classwise"), "'positive' or 'top-label'"),
        (lambda: StreamingEvaluation(2, n_bins=0), "n_bins"),
        (lambda: StreamingEvaluation(2).update([0, 1], [0.2, 0.8], [1, 1]), "weighted=True"),
        (lambda: StreamingEvaluation(3).update([0, 1], [0.2, 0.8]), "has 3"),
        (lambda: StreamingEvaluation(3).merge(StreamingEvaluation(2)), "same classes"),
        (lambda: StreamingEvaluation.from_dict({"format": 9}), "format 9"),
    ],
)
def test_misuse_gets_one_sentence(make, message):
    with pytest.raises(InputError, match=message):
        make()


def test_exact_sums_do_not_depend_on_the_order():
    values = np.random.default_rng(0).random(10_000)
    index = np.zeros(10_000, dtype=np.int64)
    totals = set()
    for seed in range(5):
        sums = ExactSums(1)
        for part in np.array_split(np.random.default_rng(seed).permutation(values), seed + 1):
            sums.add(index[: len(part)], part)
        totals.add(float(sums.totals()[0]))
    assert len(totals) == 1


def test_cells_rise_with_the_score_and_edges_stand_alone():
    cells = ScoreCells(15)
    scores = np.sort(np.r_[np.random.default_rng(0).random(10_000), cells.exact])
    index = cells.index(scores, log_odds(scores))
    assert (np.diff(index) >= 0).all()
    for exact in cells.exact:
        near = np.array([np.nextafter(exact, 0), exact, np.nextafter(exact, 1)])
        inside = np.unique(near[near <= 1])
        assert len(set(cells.index(inside, log_odds(inside)).tolist())) == len(inside)


def test_batches_of_tables_are_read_by_the_names_of_their_columns():
    draw = WORLDS["multiclass"].draw(400, 0)
    labels = np.array(list("abcde"))[draw.labels]
    table = pa.table({name: draw.probs[:, k] for k, name in enumerate("abcde")})
    named = StreamingEvaluation(list("abcde"))
    named.update(labels[:200], table.slice(0, 200).select(list("dbeac")))
    named.update(labels[200:], table.slice(200))
    plain = streamed(draw, 200)
    assert np.array_equal(named.confusion, plain.confusion)
    assert named.losses == pytest.approx(plain.losses)


def test_a_batch_cannot_name_the_classes_of_a_stream():
    table = pa.table({"a": [0.2, 0.7], "b": [0.8, 0.3]})
    with pytest.raises(InputError, match="classes 'a', 'b', but this stream has 0, 1"):
        StreamingEvaluation(2).update(["a", "b"], table)
