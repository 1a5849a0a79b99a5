"""Tables of scores: columns called after the classes may come in any order."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from tests.sentences import refuses

from calibrant.errors import InputError
from calibrant.testing import WORLDS
from calibrant.thresholds import accuracy, check_transfer, precision, select, select_each

DRAW = WORLDS["multiclass"].draw(3000, 0)
NAMES = list("abcde")
LABELS = np.array(NAMES)[DRAW.labels]
TURNED = list("dbeac")


def table_of(values, prefix, kind):
    columns = {prefix + name: values[:, NAMES.index(name)] for name in TURNED}
    return {"pandas": pd.DataFrame, "polars": pl.DataFrame, "arrow": pa.table}[kind](columns)


@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow"])
@pytest.mark.parametrize("prefix", ["", "prob_"])
def test_a_point_is_the_same_in_any_order_of_columns(kind, prefix):
    table = table_of(DRAW.probs, prefix, kind)
    asked = {"hold": precision >= 0.7, "positive": "b"}
    plain = select(LABELS, DRAW.probs, classes=NAMES, **asked)
    assert select(LABELS, table, classes=NAMES, **asked).threshold == plain.threshold
    assert select(LABELS, table, **asked).threshold == plain.threshold
    assert plain.act(table).tolist() == plain.act(DRAW.probs).tolist()


def test_logits_and_predictions_of_any_class():
    logits = np.log(DRAW.probs)
    table = table_of(logits, "logit_", "pandas")
    plain = select(LABELS, logits=logits, classes=NAMES, hold=accuracy >= 0.6)
    found = select(LABELS, logits=table, classes=NAMES, hold=accuracy >= 0.6)
    assert found.threshold == plain.threshold
    told = [check_transfer(plain, LABELS, logits=each).checks for each in (logits, table)]
    assert told[0] == told[1]


def test_one_threshold_for_each_class():
    table = table_of(DRAW.probs, "", "pandas")
    plain = select_each(LABELS, DRAW.probs, classes=NAMES, hold={"a": precision >= 0.7})
    found = select_each(LABELS, table, hold={"a": precision >= 0.7})
    assert found["a"].threshold == plain["a"].threshold


def test_columns_of_other_classes_are_refused():
    point = select(LABELS, DRAW.probs, classes=NAMES, positive="b", hold=precision >= 0.7)
    table = table_of(DRAW.probs, "", "pandas").rename(columns={"a": "x"})
    with refuses(InputError, "'x'", "'c'", "classes are a, b", "b, c", "c, d", "d, e"):
        point.act(table)
