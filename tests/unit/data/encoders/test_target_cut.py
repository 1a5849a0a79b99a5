"""TargetCut: the median is that of the train rows, and nothing is cut before it is known."""

import json

import numpy as np
import pandas as pd
import polars as pl
import pytest
from tests.sentences import refuses

from calibrant.data import TargetCut
from calibrant.errors import InputError, NotFitted


def test_the_cut_by_hand():
    cut = TargetCut().fit([1.0, 2.0, 3.0, 10.0])
    assert cut.median_ == 2.5
    assert cut.transform([2.5, 2.6, -1.0]).tolist() == ["low", "high", "low"]


def test_other_rows_do_not_move_the_cut():
    cut = TargetCut().fit([1.0, 2.0, 3.0])
    assert cut.transform([100.0, 200.0]).tolist() == ["high", "high"]
    assert cut.median_ == 2.0


def test_train_classes_are_of_equal_size_without_ties():
    values = np.random.default_rng(0).normal(size=1001)
    assert np.count_nonzero(TargetCut().fit(values).transform(values) == "high") == 500


def test_an_increasing_map_of_the_target_changes_no_class():
    values = np.random.default_rng(1).normal(size=101)
    plain, bent = TargetCut().fit(values), TargetCut().fit(np.exp(values))
    assert np.array_equal(plain.transform(values), bent.transform(np.exp(values)))


@pytest.mark.parametrize("make", [list, np.array, pd.Series, pl.Series, tuple])
def test_columns_of_any_kind_are_cut(make):
    cut = TargetCut(names=(0, 1)).fit(make([1, 2, 3]))
    assert cut.transform(make([1, 2, 3])).tolist() == [0, 0, 1]


def test_the_cut_survives_json():
    cut = TargetCut(names=("few", "many")).fit([0.1, 0.2, 0.4])
    again = TargetCut.from_dict(json.loads(json.dumps(cut.to_dict())))
    assert again.to_dict() == cut.to_dict()
    assert again.transform([0.3]).tolist() == ["many"]


def test_nothing_is_cut_before_the_train_rows_were_seen():
    with refuses(NotFitted, "is not fitted yet"):
        TargetCut().transform([1.0])
    with pytest.raises(NotFitted):
        TargetCut().to_dict()


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ([1.0, None], ("missing value", "row 1")),
        ([1.0, np.inf], ("target row 1", "inf")),
        (["low", "high"], ("number per row",)),
        (np.zeros((2, 2)), ("number per row",)),
        ([], ("target is empty",)),
        ([1.0, 5.0, 5.0], ("cannot be cut", "median 5")),
    ],
)
def test_targets_that_cannot_be_cut_are_refused(values, sentence):
    with refuses(InputError, *sentence):
        TargetCut().fit(values)


@pytest.mark.parametrize("names", ["ab", ("low",), ("low", "low")])
def test_two_different_names_are_needed(names):
    with refuses(InputError, "names must be two different classes"):
        TargetCut(names).fit([1.0, 2.0])


def test_another_file_is_not_taken_for_a_cut():
    with refuses(InputError, "not a target cut"):
        TargetCut.from_dict({"format": 1, "kind": "table"})
