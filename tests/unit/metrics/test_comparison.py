import json

import numpy as np
import pyarrow as pa
import pytest

from calibrant import metrics
from calibrant.errors import InputError
from calibrant.metrics import compare
from calibrant.stats import mcnemar
from calibrant.testing import WORLDS


@pytest.fixture(scope="module")
def pair():
    draw = WORLDS["multiclass"].draw(2000, 0)
    noise = np.random.default_rng(0).dirichlet(np.ones(5), 2000)
    return draw, 0.8 * draw.posterior + 0.2 * noise


def test_differences_are_those_of_the_public_functions(pair):
    draw, other = pair
    result = compare(draw.labels, draw.probs, other)
    for name, difference in result.differences.items():
        function = getattr(metrics, name)
        a, b = function(draw.labels, draw.probs), function(draw.labels, other)
        assert (difference.a, difference.b) == pytest.approx((a, b)), name
        assert difference.value == pytest.approx(b - a), name


def test_accuracy_carries_mcnemars_test(pair):
    draw, other = pair
    right = [p.argmax(axis=1) == draw.labels for p in (draw.probs, other)]
    expected = mcnemar(int((right[0] & ~right[1]).sum()), int((right[1] & ~right[0]).sum()))
    assert compare(draw.labels, draw.probs, other)["accuracy"].p_value == expected


def test_a_model_compared_with_itself_has_no_differences(pair):
    draw, _ = pair
    result = compare(draw.labels, draw.probs, draw.probs)
    for difference in result.differences.values():
        assert difference.value == 0
        assert difference.interval.low == pytest.approx(0, abs=1e-12)
        assert difference.interval.high == pytest.approx(0, abs=1e-12)
    assert result.verdict.startswith("no difference in log loss detectable between A and B")


def test_swapping_the_models_flips_the_signs(pair):
    draw, other = pair
    one, two = compare(draw.labels, draw.probs, other), compare(draw.labels, other, draw.probs)
    for name in one.differences:
        assert one[name].value == pytest.approx(-two[name].value)
    assert one["nll"].interval.low == pytest.approx(-two["nll"].interval.high)


def test_pairing_makes_intervals_sharper_than_two_separate_ones(pair):
    draw, _ = pair
    near = 0.98 * draw.probs + 0.004
    paired = compare(draw.labels, draw.probs, near)["brier"].interval
    alone = metrics.evaluate(draw.labels, draw.probs)["brier"].interval
    assert paired.high - paired.low < 0.2 * (alone.high - alone.low)


def test_the_better_model_is_named():
    draw = WORLDS["binary"].draw(3000, 0)
    result = compare(draw.labels, draw.probs, draw.posterior, names=("raw", "repaired"))
    assert result.verdict.startswith("the log loss of repaired is lower than that of raw")
    assert result["ece_debiased"].interval.high < 0


def test_with_an_infinite_log_loss_the_verdict_uses_brier():
    labels, a, b = [0, 1, 1, 0] * 20, [0.0, 0.0, 1.0, 0.2] * 20, [0.1, 0.9, 0.9, 0.2] * 20
    result = compare(labels, a, b)
    assert result["nll"].value is None
    assert "infinite" in result["nll"].why
    assert "Brier" in result.verdict
    json.dumps(result.to_dict(), allow_nan=False)


def test_two_tables_may_name_their_columns_in_different_orders():
    draw = WORLDS["multiclass"].draw(300, 0)
    labels, names = np.array(list("abcde"))[draw.labels], list("abcde")
    a, b = (pa.table(dict(zip(names, p.T, strict=True))) for p in (draw.probs, draw.posterior))
    plain = compare(draw.labels, draw.probs, draw.posterior)
    result = compare(labels, a, b.select(list("dbeac")))
    assert result["nll"].value == pytest.approx(plain["nll"].value, rel=1e-12)
    assert result["ece_debiased"].value == plain["ece_debiased"].value
    with pytest.raises(InputError, match="'e', which is not among the classes"):
        compare(labels, a, b.rename_columns(["a", "b", "c", "d", "x"]))


def test_one_class_alone_cannot_be_compared():
    with pytest.raises(InputError, match="all 3 labels are 1"):
        compare([1, 1, 1], [0.9, 0.8, 0.7], [0.6, 0.7, 0.8])


def test_many_bins_need_little_memory():
    draw = WORLDS["binary"].draw(3000, 0)
    result = compare(draw.labels, draw.probs, draw.posterior, n_bins=2000)
    assert result["ece_debiased"].interval is not None


def test_weights_act_as_repetitions_on_values():
    draw = WORLDS["binary"].draw(300, 0)
    times = np.random.default_rng(0).integers(1, 4, 300)
    weighted = compare(draw.labels, draw.probs, draw.posterior, weights=times)
    repeated = compare(*(np.repeat(v, times) for v in (draw.labels, draw.probs, draw.posterior)))
    for name in ("nll", "brier", "auroc", "f1_macro", "accuracy"):
        assert weighted[name].value == pytest.approx(repeated[name].value, abs=1e-12)


def test_results_have_a_text_and_a_json_form(pair):
    draw, other = pair
    result = compare(draw.labels, draw.probs, other)
    assert result.verdict in str(result)
    shape = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert {"schema", "n", "models", "differences", "verdict"} <= set(shape)


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (([0], [0.5], [0.5]), {}, "at least two rows"),
        (([0, 1], [0.5, 0.5], [0.5]), {}, "got 2 labels and 1 rows"),
        (([0, 1], [0.5, 0.5], [0.5, 0.4]), {"target": "classwise"}, "'positive' or 'top-label'"),
    ],
)
def test_misuse_is_refused(arguments, options, message):
    with pytest.raises(InputError, match=message):
        compare(*arguments, **options)
