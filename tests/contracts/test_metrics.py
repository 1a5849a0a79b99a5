"""Every public metric follows the contract of calibrant.testing.check_metric."""

import numpy as np
import pyarrow as pa
import pytest

from calibrant import metrics
from calibrant.testing import WORLDS, check_metric

WITH_WEIGHTS = [
    "accuracy", "ace", "auprc", "auroc", "brier", "confusion_matrix", "ece",
    "ece_classwise", "ece_smooth", "ece_sweep", "f1", "f1_macro", "ks", "matthews",
    "mce", "nll", "precision", "precision_macro", "recall", "recall_macro", "sce",
]  # fmt: skip
# For these a weight is not a repetition, because the number of rows matters.
WITHOUT_REPETITION = ["aurc", "ece_debiased", "spiegelhalter"]
NOT_METRICS = {
    "Decomposition", "calibration_test", "compare", "decompose", "evaluate", "measure", "true_ce",
}  # fmt: skip


def test_every_public_name_is_listed_here():
    assert set(metrics.__all__) == {*WITH_WEIGHTS, *WITHOUT_REPETITION, *NOT_METRICS}


@pytest.mark.parametrize("name", WITH_WEIGHTS)
def test_metric_keeps_the_contract(name):
    check_metric(getattr(metrics, name))


@pytest.mark.parametrize("name", WITHOUT_REPETITION)
def test_metric_without_repetition_keeps_the_rest_of_the_contract(name):
    check_metric(getattr(metrics, name), weights=False)


def test_the_decomposition_keeps_the_contract():
    def parts(labels, probs, **options):
        return list(vars(metrics.decompose(labels, probs, **options)).values())

    check_metric(parts)


@pytest.mark.parametrize("name", [*WITH_WEIGHTS, *WITHOUT_REPETITION, "decompose", "measure"])
def test_columns_named_after_the_classes_may_be_in_any_order(name):
    draw = WORLDS["multiclass"].draw(200, 0)
    labels = np.array(list("abcde"))[draw.labels]
    table = pa.table({name: draw.probs[:, k] for k, name in enumerate("abcde")})
    metric = getattr(metrics, name)
    reordered = metric(labels, table.select(list("dbeac")), classes=list("abcde"))
    assert str(reordered) == str(metric(draw.labels, draw.probs))


def test_a_metric_that_depends_on_row_order_is_caught():
    def first_score(labels, probs, *, weights=None, classes=None):
        return float(np.asarray(probs).ravel()[0])

    with pytest.raises(AssertionError, match="order of rows"):
        check_metric(first_score)


def test_a_metric_that_accepts_nan_is_caught():
    def mean_score(labels, probs, *, weights=None, classes=None):
        p = np.asarray(probs, dtype=np.float64)
        return float(np.average(p if p.ndim == 1 else p[:, 1], weights=weights))

    with pytest.raises(AssertionError, match="NaN"):
        check_metric(mean_score)
