"""The rows a calibrator learns from: checks, weights, names, and the forms of two classes."""

import warnings

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from tests.sentences import refuses

from calibrant.calibrators import TemperatureScaling
from calibrant.calibrators.base.rows import as_calibration_rows, class_names, two_columns
from calibrant.errors import InputError

LOGITS = [[2.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 3.0], [1.0, 0.0, 0.0]]


def test_counts_and_masses_by_hand():
    rows = as_calibration_rows(LOGITS, [0, 1, 2, 0], [1.0, 2.0, 3.0, 4.0])
    assert (rows.n, rows.k, rows.total, rows.classes) == (4, 3, 10.0, (0, 1, 2))
    assert rows.mass.tolist() == [0.1, 0.2, 0.3, 0.4]
    assert rows.counts.tolist() == [5.0, 2.0, 3.0]


def test_without_weights_each_row_counts_once():
    rows = as_calibration_rows(LOGITS, [0, 1, 2, 0])
    assert rows.weights is None
    assert rows.total == 4.0
    assert rows.mass.tolist() == [0.25] * 4
    assert rows.counts.tolist() == [2.0, 1.0, 1.0]


def test_rows_of_weight_zero_are_not_there():
    rows = as_calibration_rows(LOGITS, [0, 1, 2, 0], [1, 0, 2, 0])
    assert rows.logits.tolist() == [LOGITS[0], LOGITS[2]]
    assert rows.labels.tolist() == [0, 2]
    assert rows.weights.tolist() == [1.0, 2.0]
    assert rows.counts.tolist() == [1.0, 0.0, 2.0]


def test_log_probabilities_and_log_odds_by_hand():
    rows = as_calibration_rows([[np.log(2), 0.0, 0.0]], [0])
    assert np.exp(rows.log_probs) == pytest.approx(np.array([[0.5, 0.25, 0.25]]))
    assert rows.log_odds == pytest.approx(np.array([[0.0, -np.log(3), -np.log(3)]]))


def test_two_classes_have_one_canonical_form():
    odds = np.array([-1.5, 0.0, 2.0])
    one = as_calibration_rows(odds, [0, 1, 1])
    two = as_calibration_rows(np.column_stack([odds + 7, 2 * odds + 7]), [0, 1, 1])
    assert one.k == two.k == 2
    assert one.canonical.tolist() == two.canonical.tolist() == odds.tolist()
    assert one.log_odds.tolist() == two.log_odds.tolist() == odds.tolist()
    assert one.log_probs == pytest.approx(two.log_probs)
    assert two_columns(odds).tolist() == [[0.75, -0.75], [0.0, 0.0], [-1.0, 1.0]]
    wide = np.zeros((2, 3))
    assert two_columns(wide) is wide


def test_taking_rows_keeps_everything_together():
    rows = as_calibration_rows(LOGITS, list("abca"), [1, 2, 3, 4])
    part = rows.take(np.array([3, 1]))
    assert part.logits.tolist() == [LOGITS[3], LOGITS[1]]
    assert part.labels.tolist() == [0, 1]
    assert part.weights.tolist() == [4.0, 2.0]
    assert part.classes == ("a", "b", "c")
    assert rows.take(slice(2)).n == 2
    assert as_calibration_rows(LOGITS, [0, 1, 2, 0]).take(slice(2)).weights is None


def test_user_precision_is_kept_until_it_is_used():
    rows = as_calibration_rows(np.array(LOGITS, dtype=np.float32), [0, 1, 2, 0])
    assert rows.logits.dtype == np.float32
    assert rows.log_probs.dtype == rows.canonical.dtype == np.float64


def test_names_stand_in_sorted_order_if_all_occur():
    labels = ["pear", "apple", "fig", "pear"]
    assert class_names(labels, 3, None) == ["apple", "fig", "pear"]
    assert class_names(np.array(labels), 3, None) == ["apple", "fig", "pear"]
    assert class_names(np.array(labels, dtype=object), 3, None) == ["apple", "fig", "pear"]
    assert class_names(pd.Series(labels), 3, None) == ["apple", "fig", "pear"]
    assert class_names(pd.Series(labels, dtype="category"), 3, None) == ["apple", "fig", "pear"]
    rows = as_calibration_rows(LOGITS, labels)
    assert rows.classes == ("apple", "fig", "pear")
    assert rows.labels.tolist() == [2, 0, 1, 2]


def test_names_are_asked_for_if_one_is_absent():
    assert class_names(["pear", "apple"], 3, None) is None
    with refuses(InputError, "labels", "names (first: 'pear')", "pass classes"):
        as_calibration_rows(LOGITS[:2], ["pear", "apple"])
    rows = as_calibration_rows(LOGITS[:2], ["pear", "apple"], classes=["apple", "fig", "pear"])
    assert rows.labels.tolist() == [2, 0]


def test_given_classes_decide_the_columns():
    order = ["pear", "fig", "apple"]
    assert class_names(["apple"], 3, order) is order
    rows = as_calibration_rows(LOGITS, ["pear", "apple", "fig", "pear"], classes=order)
    assert rows.labels.tolist() == [0, 2, 1, 0]


def test_numbers_are_positions_and_never_sorted():
    assert class_names([0, 2, 2, 0], 3, None) is None
    assert as_calibration_rows(LOGITS, [0, 2, 2, 0]).labels.tolist() == [0, 2, 2, 0]
    assert as_calibration_rows(LOGITS, [5, 9, 7, 5], classes=[9, 7, 5]).labels.tolist() == [
        2,
        0,
        1,
        2,
    ]


@pytest.mark.parametrize(
    ("logits", "labels", "weights", "message"),
    [
        (LOGITS, [0, 1, 2], None, ("got 3", "labels", "4 rows", "logits")),
        (LOGITS, [0, 1, 2, 3], None, ("whole numbers 0..2",)),
        (LOGITS, ["a", "b", "c", None], None, ("missing value", "row 3")),
        (LOGITS, [0, 1, 2, 0], [1, 1, 1], ("weights", "shape (4,)", "got (3,)")),
        (LOGITS, [0, 1, 2, 0], [0, 0, 0, 0], ("all zero",)),
        ([[np.nan, 0.0]], [0], None, ("finite", "got nan", "row 0", "column 0")),
        ([[1.0]], [0], None, ("K >= 2",)),
        ([], [], None, ("empty",)),
    ],
)
def test_bad_rows_get_one_sentence(logits, labels, weights, message):
    with refuses(InputError, *message) as caught:
        as_calibration_rows(logits, labels, weights)
    assert "\n" not in str(caught.value)


def test_the_columns_of_a_table_name_the_classes():
    rng = np.random.default_rng(0)
    z = rng.normal(size=300)
    y = np.where(rng.random(300) < 1 / (1 + np.exp(-z)), "yes", "no")
    table = pd.DataFrame({"logit_yes": z / 2, "logit_no": -z / 2})
    calibrator = TemperatureScaling().fit(table, y)
    assert calibrator.classes_.tolist() == ["yes", "no"]
    assert 0.5 < calibrator.temperature_ < 2
    turned = calibrator.predict_proba(table[["logit_no", "logit_yes"]])
    assert turned == pytest.approx(calibrator.predict_proba(table))
    same = TemperatureScaling().fit(table, y, classes=["no", "yes"])
    assert same.predict_proba(table)[:, ::-1] == pytest.approx(calibrator.predict_proba(table))
    bare = table.rename(columns=lambda name: name.removeprefix("logit_"))
    assert TemperatureScaling().fit(bare, y).classes_.tolist() == ["yes", "no"]
    with refuses(InputError, "'logit_maybe'", "classes", "yes, no"):
        calibrator.predict_proba(table.rename(columns={"logit_no": "logit_maybe"}))


def test_arrow_names_are_taken():
    labels = pa.array(["no", "yes", "no", "yes"])
    assert TemperatureScaling().fit([-1.0, 1.0, 0.5, 2.0], labels).classes_.tolist() == [
        "no",
        "yes",
    ]


def test_probabilities_in_the_place_of_logits_are_warned_of():
    rng = np.random.default_rng(0)
    probs, labels = rng.dirichlet(np.ones(3), 50), rng.integers(0, 3, 50)
    with pytest.warns(UserWarning, match=r"as probabilities do: .*logits_from_probs"):
        as_calibration_rows(probs, labels)
    with pytest.warns(UserWarning, match="as probabilities do"):
        TemperatureScaling().fit(probs.astype(np.float32), labels)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        as_calibration_rows(np.log(probs), labels)
        as_calibration_rows(2 * probs, labels)
        as_calibration_rows(probs[:5], labels[:5])  # too few to tell
        as_calibration_rows(np.eye(3)[labels], labels)  # made by hand
