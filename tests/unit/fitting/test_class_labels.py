"""read_classes: labels of any kind as whole numbers, the missing and the continuous refused."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import torch
from sklearn.exceptions import DataConversionWarning
from tests.sentences import refuses

from calibrant.errors import InputError
from calibrant.fitting.class_labels import encode_labels, read_classes

CONTAINERS = [list, tuple, np.array, pd.Series, pl.Series, pa.array, lambda y: np.array(y, object)]


def test_labels_of_any_kind_are_places_among_the_sorted_classes(subtests):
    for make in CONTAINERS:
        for names in [("ham", "spam"), (3, 7), (False, True), (-1.0, 1.0)]:
            with subtests.test(f"{make}, {names}"):
                codes, classes = read_classes(make([names[1], names[0], names[1]]), n=3)
                assert codes.tolist() == [1, 0, 1]
                assert codes.dtype == np.int64
                assert classes.tolist() == list(names)
                assert classes[codes].tolist() == [names[1], names[0], names[1]]


def test_tensors_and_categories_are_labels_too():
    assert read_classes(torch.tensor([2, 1]), n=2)[1].tolist() == [1, 2]
    coded = pd.Series(["b", "a"], dtype="category")
    assert read_classes(coded, n=2)[1].tolist() == ["a", "b"]


def test_a_column_vector_is_flattened_with_scikit_learns_warning():
    with pytest.warns(DataConversionWarning, match="column-vector y"):
        codes, _ = read_classes(np.array([[0], [1]]), n=2)
    assert codes.tolist() == [0, 1]


@pytest.mark.parametrize(
    ("labels", "sentence"),
    [
        (None, ("requires y", "passed", "target y", "None")),
        ([0, 1], ("got 2", "labels", "3 rows")),
        (["a", None, "b"], ("y row 1 is missing",)),
        (pd.Series([1, 0, None], dtype="Int64"), ("y row 2 is missing",)),
        ([1.0, 0.0, np.nan], ("y row 2 is missing",)),
        ([1.0, 0.0, np.inf], ("y row 2", "inf", "not a class")),
        ([0.5, 1.0, 2.0], ("Unknown label type", "y row 0", "0 is 0.5", "TargetCut")),
        (["a", 1, 2], ("y mixes int", "str")),
        ([True, 2, 3], ("y mixes bool", "int")),
        ([np.True_, 2.0, 3.0], ("y mixes bool", "float")),
        (np.array([True, 2, 3], dtype=object), ("y mixes bool", "int")),
        ([2**63, 5, -1], ("y row 0", "9.22337e+18", "large", "integers", "stay distinct")),
        ([1.0, 0.0, -1e300], ("y row 2", "-1e+300", "large", "name the classes by text")),
        ([0, 0, 0], ("y holds", "class, 0", "3 rows")),
        (np.eye(3), ("not one-hot rows",)),
        (3, ("label for each row",)),
    ],
)
def test_labels_that_name_no_classes_are_refused(labels, sentence):
    with refuses(InputError, *sentence):
        read_classes(labels, n=3)


def test_steer_labels_are_looked_up_among_the_train_classes():
    classes = np.array(["a", "b", "c"])
    assert encode_labels(["c", "a"], classes, n=2).tolist() == [2, 0]
    with refuses(InputError, "steer y row 1", "'d'", "class", "train rows", "not"):
        encode_labels(["c", "d"], classes, n=2)
    with refuses(InputError, "steer y row 0", "missing"):
        encode_labels([None, "c"], classes, n=2)
    with refuses(InputError, "got 1", "labels", "2 rows"):
        encode_labels(["a"], classes, n=2)
