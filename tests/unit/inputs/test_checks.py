import decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse
import torch

from calibrant import metrics
from calibrant.errors import InputError
from calibrant.inputs import (
    as_labels,
    as_logits,
    as_probs,
    as_scored_rows,
    as_weights,
    resolve_target,
)


@pytest.mark.parametrize(
    ("probs", "message"),
    [
        ([0.5, np.nan], r"probs must lie in \[0, 1\], got nan in row 1: drop or fix that row"),
        ([0.5, np.inf], "got inf in row 1: drop or fix"),
        ([0.5, -0.1], "got -0.1 in row 1: convert logits or percentages to probabilities first"),
        ([50.0, 20.0], "got 50 in row 0"),
        ([[0.5, 0.6]], r"row 0 sums to 1.1, but each row must sum to 1 \(within 0.001\)"),
        ([[0.2, np.nan], [0.5, 0.5]], "got nan in row 0, column 1"),
        ([], "probs is empty"),
        ([[0.5], [0.2]], r"shape \(2, 1\) has one column"),
        (np.zeros((2, 2, 2)), r"shape \(n,\) or \(n, K\), got \(2, 2, 2\)"),
        (["a", "b"], "probs must be numbers"),
        ([0.5, None], "missing value in row 1"),
        (np.array(["x", 1.0], dtype=object), "mixes float and str"),
        ([[0.5], [0.2, 0.3]], "cannot be read as an array"),
    ],
)
def test_bad_probabilities_get_one_sentence(probs, message):
    with pytest.raises(InputError, match=message) as caught:
        as_probs(probs)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("labels", "options", "message"),
    [
        ([0, 2], {"n_classes": 2}, "labels row 1 is 2, but labels must be whole numbers 0..1"),
        ([0, -1], {"n_classes": 2}, "labels row 1 is -1"),
        ([0.5, 1.0], {"n_classes": 2}, "labels row 0 is 0.5"),
        ([0, np.nan], {"n_classes": 2}, "labels has a missing value in row 1"),
        ([7, np.nan], {"n_classes": 2, "classes": [5, 7]}, "labels has a missing value in row 1"),
        (["no", "yes"], {"n_classes": 2}, r"labels are names \(first: 'no'\): pass classes"),
        (["no", "maybe"], {"n_classes": 2, "classes": ["no", "yes"]}, "row 1 is 'maybe'"),
        (["a"], {"n_classes": 3, "classes": ["a", "b"]}, "each of the 3 columns, got 2"),
        (["a"], {"n_classes": 2, "classes": ["a", "a"]}, "got 'a' twice"),
        ([[0, 1]], {"n_classes": 2}, "not one-hot rows"),
        ([], {"n_classes": 2}, "labels is empty"),
    ],
)
def test_bad_labels_get_one_sentence(labels, options, message):
    with pytest.raises(InputError, match=message):
        as_labels(labels, **options)


@pytest.mark.parametrize(
    "labels",
    [
        pd.Series([0, None, 1], dtype="Int64"),
        pd.Series(["a", None, "b"], dtype="string"),
        pd.Series(["a", None, "b"], dtype="category"),
        ["a", pd.NA, "b"],
        ["a", pd.NaT, "b"],
        ["a", decimal.Decimal("nan"), "b"],
        pl.Series(["a", None, "b"]),
        pl.Series([0, None, 1]),
        pa.array(["a", None, "b"]),
        pa.array([0, None, 1]),
        np.ma.masked_array([0, 1, 1], mask=[False, True, False]),
        np.ma.masked_array(["a", "b", "b"], mask=[False, True, False]),
    ],
)
@pytest.mark.parametrize("classes", [None, ["a", "b"]])
def test_a_missing_label_is_called_missing(labels, classes):
    with pytest.raises(InputError, match=r"labels has a missing value in row 1: drop or fill"):
        as_labels(labels, n_classes=2, classes=classes)


def test_masked_numbers_are_missing_and_an_empty_mask_is_ignored():
    rows = np.ma.masked_array([[0.5, 0.5], [0.2, 0.8]], mask=[[0, 0], [0, 1]])
    with pytest.raises(InputError, match="probs has a missing value in row 1, column 1"):
        as_probs(rows)
    with pytest.raises(InputError, match="weights has a missing value in row 0"):
        as_weights(np.ma.masked_array([1.0, 2.0], mask=[1, 0]), 2)
    assert as_probs(np.ma.masked_array([0.5, 0.2])).tolist() == [0.5, 0.2]


def test_a_cell_that_holds_an_array_is_not_a_label():
    cells = np.empty(2, dtype=object)
    cells[:] = [np.array([0, 1]), np.array([1, 0])]
    with pytest.raises(InputError, match="labels mixes ndarray"):
        as_labels(cells, n_classes=2)


@pytest.mark.parametrize("make", [scipy.sparse.csr_matrix, scipy.sparse.coo_array])
def test_a_sparse_matrix_is_refused_with_the_remedy(make):
    with pytest.raises(InputError, match=r"probs is a sparse matrix: pass probs.toarray\(\)"):
        as_probs(make(np.eye(3)))


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1, np.nan], "got nan in row 1"),
        ([1, -2], "got -2.0 in row 1"),
        ([0, 0], "all zero"),
        ([1, 2, 3], r"shape \(2,\), got \(3,\)"),
    ],
)
def test_bad_weights_get_one_sentence(weights, message):
    with pytest.raises(InputError, match=message):
        as_weights(weights, 2)


@pytest.mark.parametrize(
    ("logits", "message"),
    [
        ([0.0, np.inf], "logits must be finite, got inf in row 1"),
        ([0.0, 1e300], r"logits must lie between -1e\+100 and 1e\+100, got 1e\+300 in row 1"),
        ([[1.0]], "K >= 2"),
        ([], "empty"),
    ],
)
def test_bad_logits_get_one_sentence(logits, message):
    with pytest.raises(InputError, match=message):
        as_logits(logits)


@pytest.mark.parametrize(
    "make",
    [
        list,
        tuple,
        np.array,
        pa.array,
        lambda v: pa.chunked_array([v]),
        torch.tensor,
        lambda v: torch.tensor(v, requires_grad=True),
        lambda v: [decimal.Decimal(str(x)) for x in v],
        lambda v: __import__("pandas").Series(v),
        lambda v: __import__("polars").Series(v),
    ],
)
def test_every_kind_of_column_is_accepted(make):
    assert as_probs(make([0.25, 0.75])).tolist() == [0.25, 0.75]


def test_tables_of_all_libraries_are_accepted():
    import pandas as pd
    import polars as pl

    table = {"a": [0.25, 0.5], "b": [0.75, 0.5]}
    for frame in (pd.DataFrame(table), pl.DataFrame(table), pa.table(table)):
        assert as_probs(frame).tolist() == [[0.25, 0.75], [0.5, 0.5]]


def test_bfloat16_tensors_are_widened():
    assert as_probs(torch.tensor([0.5, 0.25], dtype=torch.bfloat16)).tolist() == [0.5, 0.25]


def test_float32_is_not_copied():
    probs = np.array([0.5, 0.25], dtype=np.float32)
    assert as_probs(probs) is probs


@pytest.mark.parametrize("dtype", [">f8", ">f4", np.longdouble, np.float16])
def test_any_float_dtype_and_byte_order_is_accepted(dtype):
    from calibrant.metrics import measure

    probs = np.array([[0.25, 0.75], [0.5, 0.5], [0.875, 0.125]])
    plain = measure([0, 1, 1], probs)
    assert measure([0, 1, 1], probs.astype(dtype)) == pytest.approx(plain)


def test_labels_of_any_numeric_kind_become_positions():
    for labels in ([True, False], [1.0, 0.0], np.array([1, 0], dtype=np.uint8)):
        assert as_labels(labels, n_classes=2)[0].tolist() == [1, 0]


def test_numeric_class_names_are_looked_up():
    codes, names = as_labels([10, 20, 10], n_classes=2, classes=[20, 10])
    assert codes.tolist() == [1, 0, 1]
    assert names == (20, 10)


def test_rounded_files_and_half_precision_rows_pass_the_sum_check():
    assert as_probs([[0.3333, 0.3333, 0.3333]]).shape == (1, 3)
    half = np.random.default_rng(0).dirichlet(np.ones(5), 100).astype(np.float16)
    assert as_probs(half).dtype == np.float32


def test_lengths_must_agree():
    with pytest.raises(InputError, match="got 3 labels and 2 rows"):
        as_scored_rows([0, 1, 1], [0.5, 0.6])


def test_the_default_target_follows_the_number_of_classes():
    assert resolve_target(None, 2) == "positive"
    assert resolve_target(None, 3) == "top-label"
    with pytest.raises(InputError, match="needs two classes, got 3"):
        resolve_target("positive", 3)


@pytest.mark.parametrize("call", [
    lambda y, p: metrics.evaluate(None, p),
    lambda y, p: metrics.evaluate(y, None),
    lambda y, p: metrics.compare(y, p, None),
])  # fmt: skip
def test_none_instead_of_an_array_is_refused(call):
    with pytest.raises(InputError, match="is missing: pass an array, got None"):
        call([0, 1, 1], [0.2, 0.7, 0.9])
