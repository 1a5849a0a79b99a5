import json

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from tests.few_draws import few_draws

from calibrant import metrics
from calibrant.errors import InputError
from calibrant.metrics import evaluate
from calibrant.testing import WORLDS, shifted_world

DOCUMENTED_METRICS = """
ece_ew ece_em mce ece_debiased ece_sweep_ew ece_sweep_em ece_classwise ece_smooth ks nll brier
accuracy precision_macro recall_macro f1_macro auroc auprc aurc
"""


@pytest.fixture(scope="module")
def binary():
    draw = WORLDS["binary"].draw(3000, 0)
    return draw, evaluate(draw.labels, draw.probs)


def test_every_documented_metric_is_present_with_its_definition(binary):
    shape = binary[1].to_dict()
    assert set(DOCUMENTED_METRICS.split()) <= set(shape["metrics"])
    for name, figure in shape["metrics"].items():
        assert {"value", "low", "high", "floor", "definition"} <= set(figure), name
        assert len(figure["definition"]) > 20
    assert shape["schema"] == 1
    assert shape["n"] == 3000
    assert shape["target"] == "positive"
    json.dumps(shape, allow_nan=False)


def test_figures_equal_the_public_functions(binary):
    draw, result = binary
    same = {
        "ece_ew": metrics.ece,
        "ece_debiased": metrics.ece_debiased,
        "ece_sweep_em": metrics.ece_sweep,
        "ece_smooth": metrics.ece_smooth,
        **{
            name: getattr(metrics, name)
            for name in result.figures
            if hasattr(metrics, name) and name != "ece_debiased"
        },
    }
    for name, function in same.items():
        assert result[name].value == pytest.approx(function(draw.labels, draw.probs)), name
    assert result["ece_em"].value == pytest.approx(
        metrics.ece(draw.labels, draw.probs, scheme="mass")
    )
    assert result["ece_ew_top_label"].value == pytest.approx(
        metrics.ece(draw.labels, draw.probs, target="top-label")
    )


def test_figures_equal_the_public_functions_for_more_classes():
    draw = WORLDS["long_tailed"].draw(3000, 0)
    result = evaluate(draw.labels, draw.probs)
    for name in ("ks", "ece_classwise", "ace", "auroc", "auprc", "aurc", "f1_macro", "brier"):
        expected = getattr(metrics, name)(draw.labels, draw.probs)
        assert result[name].value == pytest.approx(expected), name
    assert result.target == "top-label"


@pytest.mark.parametrize("world", ["binary", "multiclass", "tied"])
def test_measure_gives_the_same_values_as_plain_numbers(world):
    draw = WORLDS[world].draw(2000, 1)
    weights = np.random.default_rng(0).uniform(0.5, 3, 2000)
    result = evaluate(draw.labels, draw.probs, weights=weights)
    values = metrics.measure(draw.labels, draw.probs, weights=weights, names=list(result.figures))
    for name, figure in result.figures.items():
        expected = np.inf if figure.value is None else figure.value
        assert values[name] == pytest.approx(expected, rel=1e-9), name
    with pytest.raises(InputError, match="names contains 'ecee'"):
        metrics.measure(draw.labels, draw.probs, names=["ecee"])


def test_calibration_errors_have_a_floor_and_others_do_not(binary):
    _, result = binary
    for name, figure in result.figures.items():
        calibration = name.startswith(("ece", "ks", "mce", "ace"))
        assert (figure.floor is not None) == calibration, name


def test_intervals_contain_their_estimate(binary):
    for figure in binary[1].figures.values():
        if figure.name != "ece_debiased":
            assert figure.interval.low <= figure.value <= figure.interval.high, figure.name


def test_the_same_seed_gives_the_same_bits():
    draw = WORLDS["multiclass"].draw(400, 0)
    first, second = (evaluate(draw.labels, draw.probs, rng=7).to_dict() for _ in range(2))
    assert first == second
    assert evaluate(draw.labels, draw.probs, rng=8).to_dict() != first


def test_the_floor_matches_simulated_calibrated_models():
    """Compare with a simulation: draw labels, call the public function, average."""
    draw = WORLDS["multiclass"].draw(1500, 0)
    result = evaluate(draw.labels, draw.probs)
    rng = np.random.default_rng(0)
    functions = {
        "ece_ew": metrics.ece,
        "ece_sweep_em": metrics.ece_sweep,
        "ece_smooth": metrics.ece_smooth,
        "ece_classwise": metrics.ece_classwise,
        "ks": metrics.ks,
        "ece_debiased": metrics.ece_debiased,
    }
    drawn = {name: [] for name in functions}
    cumulative = np.cumsum(draw.probs, axis=1)
    for _ in range(200):
        labels = (rng.random((1500, 1)) > cumulative).sum(axis=1).clip(0, 4)
        for name, function in functions.items():
            drawn[name].append(function(labels, draw.probs))
    for name, values in drawn.items():
        floor = result[name].floor
        # Four standard errors of the two simulated means, of 200 draws each.
        noise = 4 * np.std(values) * np.sqrt(2 / 200)
        assert floor.mean == pytest.approx(np.mean(values), abs=noise), name
        assert floor.q95 == pytest.approx(np.quantile(values, 0.95), rel=0.12, abs=0.001), name


def test_verdict_of_an_over_confident_top_label():
    draw = WORLDS["multiclass"].draw(3000, 0)
    result = evaluate(draw.labels, draw.probs).verdict
    assert result.miscalibrated is True
    assert result.text.startswith("over-confident by about")
    assert "mean confidence" in result.text


def test_verdict_of_scores_that_are_too_extreme():
    draw = shifted_world(0.1).draw(5000, 0)
    assert "high probabilities too high" in evaluate(draw.labels, draw.probs).verdict.text


def test_verdict_of_under_confident_scores():
    rng = np.random.default_rng(0)
    scores = rng.uniform(0.2, 0.8, 5000)
    labels = (rng.random(5000) < 0.5 + 1.5 * (scores - 0.5)).astype(int)
    assert evaluate(labels, scores).verdict.text.startswith("under-confident")


@pytest.mark.parametrize(("shift", "word"), [(0.1, "too high"), (-0.1, "too low")])
def test_verdict_of_scores_shifted_on_average(shift, word):
    rng = np.random.default_rng(0)
    truth = rng.uniform(0.2, 0.8, 4000)
    labels = (rng.random(4000) < truth).astype(int)
    text = evaluate(labels, truth + shift).verdict.text
    assert f"probabilities {word} by about" in text


def test_verdict_never_calls_a_model_perfect():
    draw = WORLDS["calibrated"].draw(3000, 5)
    result = evaluate(draw.labels, draw.probs).verdict
    assert result.miscalibrated is False
    assert result.text.startswith("no miscalibration detectable at n=3,000")
    assert "perfect" not in result.text


def test_verdict_of_too_few_rows_is_undecided():
    result = evaluate([0, 1, 0, 0], [0.2, 0.7, 0.3, 0.1]).verdict
    assert result.miscalibrated is None
    assert result.text == "too little data to judge calibration: 4 rows, 1 of them positive"


def test_groups_get_their_own_figures_and_adjusted_verdicts():
    good, bad = WORLDS["calibrated"].draw(2000, 1), shifted_world(0.1).draw(2000, 1)
    labels = np.concatenate([good.labels, bad.labels])
    probs = np.concatenate([good.probs, bad.probs])
    names = np.repeat(["good", "bad"], 2000)
    result = evaluate(labels, probs, groups=names)
    alone = evaluate(bad.labels, bad.probs)
    assert result.groups["good"].verdict.miscalibrated is False
    assert result.groups["bad"].verdict.miscalibrated is True
    assert result.groups["bad"]["ece_ew"].value == pytest.approx(alone["ece_ew"].value)
    # Holm: the smaller of two p-values counts twice.
    assert result.groups["bad"].verdict.p_value == pytest.approx(
        2 * result.groups["bad"].tests["ks"].p_value
    )
    assert "groups" in result.to_dict()


@pytest.mark.parametrize(
    ("groups", "names"),
    [
        (["x", None, "y", "nan", ""], {"x", "y", "(missing)"}),
        (np.array(["x", None, "y", "y", "x"], dtype=object), {"x", "y", "(missing)"}),
        ([1.0, 2.0, np.nan, 1.0, 2.0], {"1", "2", "(missing)"}),
        (np.array([1.0, 2.0, np.nan, 1.0, 2.5]), {"1", "2", "2.5", "(missing)"}),
        (np.array([3, 4, 3, 4, 3]), {"3", "4"}),
        (pd.Series([1, 2, None, 1, 2], dtype="Int64"), {"1", "2", "(missing)"}),
        (pd.Series(["x", None, "y", "x", "y"], dtype="category"), {"x", "y", "(missing)"}),
        (pd.Series(["x", None, "y", "x", "y"], dtype="string"), {"x", "y", "(missing)"}),
        (pl.Series(["x", None, "y", "x", "y"]), {"x", "y", "(missing)"}),
        (pa.array(["x", None, "y", "x", "y"]), {"x", "y", "(missing)"}),
        (np.ma.masked_array([1, 2, 1, 2, 1], mask=[0, 0, 0, 0, 1]), {"1", "2", "(missing)"}),
    ],
)
def test_groups_are_named_as_in_a_score_file(groups, names):
    with few_draws():
        result = evaluate([0, 1, 0, 1, 0], [0.2, 0.7, 0.4, 0.6, 0.1], groups=groups)
    assert set(result.groups) == names
    assert sum(group.n for group in result.groups.values()) == 5


def test_an_infinite_log_loss_is_null_with_a_reason():
    result = evaluate([1, 0, 1, 0], [0.0, 0.1, 0.9, 0.4])
    assert result["nll"].value is None
    assert result["nll"].why == "infinite: 1 row gave probability 0 to the label"
    json.dumps(result.to_dict(), allow_nan=False)


def test_one_class_only_is_refused():
    with pytest.raises(InputError, match="all 3 labels are 'yes', but rows of at least two"):
        evaluate(["yes"] * 3, [0.9, 0.8, 0.7], classes=["no", "yes"])


@pytest.mark.parametrize("k", [2, 3])
def test_a_group_of_one_row_has_figures_but_no_ranking(k):
    probs = np.full((4, k), 1 / k)
    result = evaluate([0, 1, 1, 0], probs, groups=["lone", "b", "b", "b"]).groups["lone"]
    assert result["auroc"].value is None
    assert "at least two classes" in result["auroc"].why
    assert result["ece_ew"].value == pytest.approx(1 / k if k == 2 else 1 - 1 / k)
    assert result["nll"].interval is None
    json.dumps(result.to_dict(), allow_nan=False)


def test_perfect_scores_have_intervals_of_positive_width():
    result = evaluate([0, 1] * 50, [0.0, 1.0] * 50)
    for name in ("accuracy", "f1_macro", "auroc"):
        assert result[name].value == 1.0
        assert result[name].interval.low < 0.97
        assert result[name].interval.high == 1.0


def test_weights_act_as_repetitions_on_values():
    draw = WORLDS["binary"].draw(500, 0)
    times = np.random.default_rng(0).integers(1, 4, 500)
    weighted = evaluate(draw.labels, draw.probs, weights=times)
    repeated = evaluate(np.repeat(draw.labels, times), np.repeat(draw.probs, times))
    for name in ("ece_ew", "ece_em", "ks", "nll", "auroc", "auprc", "f1_macro", "ece_smooth"):
        assert weighted[name].value == pytest.approx(repeated[name].value), name
    assert weighted.weighted
    assert weighted.tests["spiegelhalter"].p_value is None
    assert "weighted rows" in weighted.tests["spiegelhalter"].why


def test_weights_widen_intervals_beyond_those_of_the_rows():
    draw = WORLDS["binary"].draw(2000, 0)
    heavy = np.random.default_rng(0).lognormal(0, 1.0, 2000)
    plain = evaluate(draw.labels, draw.probs)["brier"].interval
    wide = evaluate(draw.labels, draw.probs, weights=heavy)["brier"].interval
    assert wide.high - wide.low > 1.3 * (plain.high - plain.low)


def test_weighted_floors_match_weighted_simulations():
    rng = np.random.default_rng(0)
    probs, weights = rng.random(2000), rng.lognormal(0, 1.3, 2000)
    result = evaluate((rng.random(2000) < probs).astype(int), probs, weights=weights)
    functions = {
        "ece_debiased": metrics.ece_debiased,
        "ece_smooth": metrics.ece_smooth,
        "ece_sweep_em": metrics.ece_sweep,
        "ece_ew": metrics.ece,
    }
    for name, function in functions.items():
        drawn = [
            function((rng.random(2000) < probs).astype(int), probs, weights=weights)
            for _ in range(150)
        ]
        noise = 4 * np.std(drawn) * np.sqrt(2 / 150)
        assert result[name].floor.mean == pytest.approx(np.mean(drawn), abs=noise), name


def test_the_class_wise_floor_is_right_for_rare_classes():
    rng = np.random.default_rng(0)
    probs = rng.dirichlet(np.full(200, 0.5), 300)
    cumulative = np.cumsum(probs, axis=1)

    def labels():
        return (rng.random((300, 1)) > cumulative).sum(axis=1).clip(0, 199)

    floor = evaluate(labels(), probs)["ace"].floor
    drawn = np.mean([metrics.ace(labels(), probs) for _ in range(20)])
    assert floor.mean == pytest.approx(drawn, rel=0.05)


def test_a_correlation_stays_between_minus_one_and_one():
    few = evaluate([0] * 18 + [1] * 2, [0.7] + [0.2] * 17 + [0.8] * 2)["matthews"]
    assert -1 <= few.interval.low < few.value < few.interval.high <= 1
    perfect = evaluate([0, 1, 0, 1, 1], [0.1, 0.9, 0.2, 0.8, 0.7])["matthews"]
    assert perfect.interval.low < 0.9
    assert perfect.interval.high == 1


def test_the_scale_of_weights_does_not_matter():
    draw = WORLDS["binary"].draw(400, 0)
    names = list(evaluate(draw.labels, draw.probs).figures)
    one, tenth = (
        metrics.measure(draw.labels, draw.probs, weights=np.full(400, weight), names=names)
        for weight in (1.0, 0.1)
    )
    plain = metrics.measure(draw.labels, draw.probs, names=names)
    assert one == pytest.approx(plain)
    assert tenth == pytest.approx(plain)


def test_labels_in_perfect_order_give_the_same_sweep_as_the_function():
    probs = np.sort(np.random.default_rng(0).random(5000))
    labels = (probs > 0.5).astype(int)
    result = evaluate(labels, probs)
    assert result["ece_sweep_em"].value == pytest.approx(metrics.ece_sweep(labels, probs))
    assert result["ece_sweep_ew"].value == pytest.approx(
        metrics.ece_sweep(labels, probs, scheme="width")
    )


def test_rows_of_weight_zero_are_dropped():
    draw = WORLDS["binary"].draw(400, 0)
    weights = np.r_[np.ones(300), np.zeros(100)]
    groups = np.array(["a", "b"])[np.arange(400) % 2]
    result = evaluate(draw.labels, draw.probs, weights=weights, groups=groups)
    assert result.n == 300
    assert result.groups["a"].n == 150


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"groups": ["a"]}, r"groups must have shape \(2,\)"),
        ({"target": "classwise"}, "ece_classwise, ace"),
        ({"classes": ["no", "no"]}, "got 'no' twice"),
        ({"n_bins": 0}, "n_bins must be a whole number of at least 1, got 0"),
        ({"n_bins": 10**6}, "n_bins must be at most 10,000, got 1,000,000"),
        ({"confidence": 95}, "confidence must lie between 0.5 and 0.99, got 95"),
        ({"weights": [1, 1e300]}, "between 0 and 1e.12, got 1e.300 in row 1"),
    ],
)
def test_bad_options_are_refused(options, message):
    with pytest.raises(InputError, match=message):
        evaluate([0, 1], [0.2, 0.7], **options)


def test_results_have_text_and_html_representations(binary):
    text = str(binary[1])
    assert text.splitlines()[0] == binary[1].verdict.text
    assert "a calibrated model gets" in text
    assert "<table>" in binary[1]._repr_html_()
