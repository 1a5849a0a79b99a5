import json

import numpy as np
import pytest

from calibrant.errors import InputError
from calibrant.metrics import evaluate
from calibrant.metrics.cells import ExactSums, ScoreCells, log_odds
from calibrant.metrics.streaming import StreamingEvaluation
from calibrant.testing import WORLDS

EXACT = [
    "ece_ew", "mce", "ece_classwise", "accuracy", "precision_macro", "recall_macro", "f1_macro",
    "matthews", "nll", "brier",
]  # fmt: skip
BOUNDED = ["ece_em", "ace", "ks", "auroc", "auprc", "aurc", "ece_smooth"]
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
    assert bound < 0.05


def test_top_label_figures_of_a_binary_stream(both):
    whole, stream = both
    if whole.target == "positive":
        assert stream["ece_ew_top_label"].value == pytest.approx(
            whole["ece_ew_top_label"].value, rel=1e-12
        )
        found, exact = stream["ece_em_top_label"], whole["ece_em_top_label"].value
        assert abs(found.value - exact) <= found.error_bound + 1e-12


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
