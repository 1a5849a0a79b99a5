"""What all calibrators share: shapes, names, errors, and the saved form."""

import json
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import torch
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from tests.sentences import refuses
from threadpoolctl import threadpool_info

from calibrant import calibrators
from calibrant.calibrators import (
    Calibrator,
    Identity,
    IsotonicCalibration,
    MatrixScaling,
    PlattScaling,
    PooledIsotonic,
    PriorCorrection,
    SplineCalibration,
    TemperatureScaling,
    from_dict,
)
from calibrant.calibrators.base import calibrator as base
from calibrant.errors import CalibrantError, InputError, NotFitted

ODDS = np.array([-2.0, -1.0, 0.5, 1.0, 3.0])
LABELS = np.array([0, 1, 0, 1, 1])
WIDE = np.array([[2.0, 0.0, 1.0], [0.0, 3.0, 0.0], [1.0, 1.0, 4.0], [2.0, 2.5, 0.0]])
CODES = np.array([0, 1, 2, 0])


def binary():
    return TemperatureScaling().fit(ODDS, LABELS)


def three():
    return TemperatureScaling().fit(WIDE, CODES)


# What goes in and what comes out


def test_identity_by_hand():
    identity = Identity().fit(ODDS, LABELS)
    assert identity.predict_proba([0.0, np.log(3)]) == pytest.approx([0.5, 0.75])
    assert identity.predict_proba([[0.0, np.log(3)]]) == pytest.approx(np.array([[0.25, 0.75]]))
    wide = Identity().fit(WIDE, CODES).predict_proba(np.log([[0.5, 0.2, 0.3]]))
    assert wide == pytest.approx(np.array([[0.5, 0.2, 0.3]]))


def test_answer_has_the_shape_of_the_question():
    for calibrator in (binary(), TemperatureScaling().fit(np.column_stack([-ODDS, ODDS]), LABELS)):
        assert calibrator.predict_proba(ODDS).shape == (5,)
        assert calibrator.predict_proba(np.column_stack([-ODDS, ODDS])).shape == (5, 2)
        assert calibrator.n_classes == 2
    assert three().predict_proba(WIDE).shape == (4, 3)
    assert three().n_classes == 3


def test_log_probabilities_are_exact_where_probabilities_round():
    identity = Identity().fit(ODDS, LABELS)
    assert identity.predict_proba([-800.0, 800.0]).tolist() == [0.0, 1.0]
    assert identity.predict_log_proba([-800.0])[0] == pytest.approx(-800.0)
    both = identity.predict_log_proba([[0.0, 40.0]])[0]
    assert both[0] == pytest.approx(-40.0)
    assert both[1] == pytest.approx(-np.exp(-40.0), rel=1e-9)


def test_predict_names_the_most_probable_class():
    named = TemperatureScaling().fit(ODDS, np.array(["no", "yes"])[LABELS])
    assert named.predict([-1.0, 1.0]).tolist() == ["no", "yes"]
    assert named.predict([[0.0, -1.0], [0.0, 1.0]]).tolist() == ["no", "yes"]
    assert named.predict([0.0]).tolist() == ["no"]  # a tie goes to the first, in both forms
    assert named.predict([[0.0, 0.0]]).tolist() == ["no"]
    assert three().predict(WIDE).tolist() == [0, 1, 2, 1]


def test_blocks_do_not_show(monkeypatch):
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(103, 3))
    whole = three().predict_proba(logits)
    monkeypatch.setattr(base, "_BLOCK_ENTRIES", 30)
    assert np.array_equal(three().predict_proba(logits), whole)
    monkeypatch.setattr(base, "_BLOCK_ENTRIES", 1)
    assert np.array_equal(three().predict_proba(logits), whole)


@pytest.mark.parametrize(
    "table",
    [
        pd.DataFrame(WIDE, columns=["logit_a", "logit_b", "logit_c"]),
        pl.DataFrame(WIDE, schema=["logit_a", "logit_b", "logit_c"]),
        pa.table({f"logit_{c}": WIDE[:, i] for i, c in enumerate("abc")}),
        torch.tensor(WIDE),
        WIDE.astype(">f8"),
        np.asfortranarray(WIDE),
        WIDE.tolist(),
    ],
    ids=["pandas", "polars", "arrow", "torch", "big-endian", "fortran", "list"],
)
def test_tables_tensors_and_lists_are_taken(table):
    calibrator = TemperatureScaling().fit(table, CODES)
    # Sums over columns may run in the order of memory.
    assert calibrator.temperature_ == pytest.approx(three().temperature_, rel=1e-12)
    assert calibrator.predict_proba(table) == pytest.approx(three().predict_proba(WIDE), abs=1e-12)


def test_columns_called_probabilities_are_refused_by_name():
    message = ("column 'prob_a'", "probs", "calibrant.convert.logits_from")
    table = pd.DataFrame(WIDE, columns=["prob_a", "prob_b", "prob_c"])
    for refused in (table, pl.from_pandas(table), pa.Table.from_pandas(table)):
        with refuses(InputError, *message):
            TemperatureScaling().fit(refused, CODES)
        with refuses(InputError, *message):
            three().predict_proba(refused)
    with pytest.raises(InputError, match="column 'prob'"):
        binary().predict_proba(pd.Series(ODDS, name="prob"))


# Labels and class names


@pytest.mark.parametrize(
    "labels",
    [LABELS.astype(bool), LABELS.astype(float), LABELS.tolist(), pd.Series(LABELS)],
    ids=["bool", "float", "list", "series"],
)
def test_numbers_and_booleans_need_no_names(labels):
    calibrator = TemperatureScaling().fit(ODDS, labels)
    assert calibrator.temperature_ == binary().temperature_
    assert calibrator.classes_.tolist() == [0, 1]


def test_names_follow_the_sorted_rule_of_scikit_learn():
    words = np.array(["spam", "ham"])[LABELS]  # class 1 is "ham", which sorts first
    calibrator = TemperatureScaling().fit(-ODDS, words)
    assert calibrator.classes_.tolist() == ["ham", "spam"]
    assert calibrator.temperature_ == pytest.approx(binary().temperature_)
    kept = TemperatureScaling().fit(ODDS, words, classes=["spam", "ham"])
    assert kept.classes_.tolist() == ["spam", "ham"]
    assert kept.temperature_ == binary().temperature_


def test_names_must_be_given_if_one_does_not_occur():
    with pytest.raises(InputError, match="pass classes="):
        TemperatureScaling().fit(WIDE, ["a", "b", "b", "a"])
    given = TemperatureScaling().fit(WIDE, ["a", "b", "b", "a"], classes=["a", "b", "c"])
    assert given.classes_.tolist() == ["a", "b", "c"]


def test_a_label_without_a_column_is_named():
    with refuses(InputError, "labels row 2", "'d'", "not among", "classes"):
        TemperatureScaling().fit(WIDE, ["a", "b", "d", "a"], classes=["a", "b", "c"])
    with refuses(InputError, "labels row 0", "0 is 3", "whole numbers 0..2"):
        TemperatureScaling().fit(WIDE, [3, 0, 1, 2])


def test_class_names_of_several_types_stay_what_they_are():
    calibrator = TemperatureScaling().fit(WIDE[:, :2], [7, 7, 7, 7], classes=[7, "other"])
    assert calibrator.classes_.tolist() == [7, "other"]
    assert from_dict(json.loads(json.dumps(calibrator.to_dict()))).classes_.tolist() == [7, "other"]


def test_a_class_that_must_occur_is_named():
    with refuses(InputError, "PlattScaling needs rows", "class", "none"):
        PlattScaling().fit(WIDE, ["a", "b", "b", "a"], classes=["a", "b", "c"])
    with refuses(InputError, "label 'b'", "1 more"):
        PlattScaling().fit(WIDE, ["a"] * 4, classes=["a", "b", "c"])


def test_too_few_rows_are_counted_after_weights():
    with refuses(InputError, "TemperatureScaling needs", "at least 2 rows", "got 1"):
        TemperatureScaling().fit(ODDS, LABELS, weights=[0, 0, 0, 1, 0])


def test_another_number_of_classes_is_refused():
    message = ("fitted", "3 classes", "logits", "shape (5,)", "(5,) have 2")
    with refuses(InputError, *message):
        three().predict_proba(ODDS)
    with refuses(InputError, "fitted", "2 classes", "logits", "shape (4", "(4, 3"):
        binary().predict(WIDE)


# Before fit


@pytest.mark.parametrize("method", ["predict_proba", "predict_log_proba", "predict"])
def test_unfitted_is_both_errors(method):
    with refuses(NotFitted, "Identity", "not fitted yet", "call fit") as caught:
        getattr(Identity(), method)(ODDS)
    assert isinstance(caught.value, NotFittedError)
    assert isinstance(caught.value, CalibrantError)


def test_clone_and_parameters():
    calibrator = TemperatureScaling(highest=5.0).fit(ODDS, LABELS)
    copied = clone(calibrator)
    assert copied.get_params() == calibrator.get_params()
    assert not hasattr(copied, "temperature_")
    assert copied.set_params(highest=7.0) is copied
    assert calibrator.highest == 5.0
    with pytest.raises(ValueError, match="Invalid parameter 'warmth'"):
        copied.set_params(warmth=1)


# Saving


def test_the_saved_form_by_hand():
    calibrator = TemperatureScaling(highest=50.0).fit(ODDS, np.array(["no", "yes"])[LABELS])
    assert calibrator.to_dict() == {
        "format": 1,
        "method": "temperature",
        "classes": ["no", "yes"],
        "params": {"temperature": calibrator.temperature_},
        "settings": {"highest": 50.0},
        "fitted_on": calibrator.fitted_on_.to_dict(),
    }


def test_the_smallest_file_of_format_1_loads_for_ever():
    text = '{"format": 1, "method": "temperature", "classes": [0, 1], "params": {"temperature": 2}}'
    loaded = from_dict(json.loads(text))
    assert isinstance(loaded, TemperatureScaling)
    assert loaded.predict_proba([2 * np.log(3)]) == pytest.approx([0.75])


def test_from_dict_of_a_method_takes_only_its_own():
    saved = binary().to_dict()
    assert TemperatureScaling.from_dict(saved).temperature_ == binary().temperature_
    assert Calibrator.from_dict(saved).temperature_ == binary().temperature_
    assert calibrators.from_dict(saved).temperature_ == binary().temperature_
    with refuses(InputError, "method 'temperature'", "Identity loads 'ident"):
        Identity.from_dict(saved)


def without(key):
    return {k: v for k, v in binary().to_dict().items() if k != key}


def changed(**values):
    return {**binary().to_dict(), **values}


DAMAGED = [
    ([1, 2], ("not a saved calibrator",)),
    ("temperature", ("not a saved calibrator",)),
    ({}, ("not a saved calibrator",)),
    (without("format"), ("not a saved calibrator",)),
    (without("method"), ("not a saved calibrator",)),
    (without("classes"), ("no list 'classes'",)),
    (without("params"), ("no 'params'",)),
    (changed(format=2), ("format 2", "reads formats", "formats up to 1", "upgrade calibrant")),
    (changed(format="1"), ('has format "1"',)),
    (changed(format=True), ("has format true",)),
    (changed(format=0), ("has format 0",)),
    (changed(format=None), ("has format null",)),
    (changed(method="tempera"), ("you mean 'temperature'",)),
    (changed(classes="ab"), ("no list 'classes'",)),
    (changed(classes=["a"]), ("at least two names",)),
    (changed(classes=["a", "a"]), ("at least two names",)),
    (changed(params=[2.0]), ("no 'params'",)),
    (changed(params={}), ("damaged", "missing 'temperature'")),
    (changed(params={"temperature": None}), ("incomplete or damaged",)),
    (changed(params={"temperature": "2.0"}), ("incomplete or damaged",)),
    (changed(params={"temperature": float("nan")}), ("temperature", "not finite")),
    (changed(params={"temperature": float("inf")}), ("temperature", "not finite")),
    (changed(params={"temperature": [[1.0], [2.0, 3.0]]}), ("incomplete or damaged",)),
    (changed(settings={"warmth": 1}), ("unexpected keyword argument", "'warmth'")),
    (changed(settings=[1]), ("incomplete or damaged",)),
    (changed(settings=None), ("incomplete or damaged",)),
]


def test_damaged_or_newer_files_get_one_sentence(subtests):
    for saved, message in DAMAGED:
        with subtests.test(f"{saved}"):
            with refuses(InputError, *message) as caught:
                from_dict(saved)
            assert "\n" not in str(caught.value)


def test_parameters_of_the_wrong_length_are_refused():
    saved = PriorCorrection().fit(WIDE, CODES).to_dict()
    saved["params"]["source"] = [0.5, 0.5]
    with refuses(InputError, "'prior_correction'", "incomplete", "damaged"):
        from_dict(saved)


def test_plain_values():
    value = {"a": np.float32(0.5), 2: (np.int64(1), [np.array([True])]), "n": None}
    assert base.to_json_values(value) == {"a": 0.5, "2": [1, [[True]]], "n": None}
    assert json.dumps(base.to_json_values(value))


@pytest.mark.parametrize("value", [-2.0, 0.0, True, [1.0, 2.0], [3.0], None, "2", {"t": 1}])
def test_a_temperature_that_cannot_have_been_learned_is_refused(value):
    saved = TemperatureScaling().fit([-1.0, 1.0, 2.0, -2.0], [0, 1, 0, 1]).to_dict()
    saved["params"] = {"temperature": value}
    with pytest.raises(InputError, match="incomplete or damaged"):
        Calibrator.from_dict(saved)


def test_a_fit_that_fails_leaves_what_was_learned():
    class Fragile(TemperatureScaling):
        def _learn(self, rows):
            super()._learn(rows)
            if rows.k == 3:
                raise InputError("no")

    calibrator = Fragile().fit([-1.0, 1.0, 2.0, -2.0], [0, 1, 0, 1])
    before = calibrator.predict_proba([0.3])
    with pytest.raises(InputError):
        calibrator.fit(np.eye(3), [0, 1, 2])
    assert calibrator.predict_proba([0.3]) == before


@pytest.mark.parametrize(
    ("method", "change"),
    [
        (TemperatureScaling, {"temperature": 10**400}),
        (IsotonicCalibration, {"maps": [{"scores": [0.0, 1.0], "probs": [5.0, -1.0]}]}),
        (PlattScaling, {"maps": [{"slope": ["1"], "intercept": 0.0}]}),
        (PlattScaling, {"maps": [{"slope": True, "intercept": 0.0}]}),
        (SplineCalibration, {"scores": [0.1, 0.9], "values": [-3.0, 7.0]}),
        (PooledIsotonic, {"scores": [-1.0, 1.0], "probs": [5.0, 9.0]}),
    ],
)
def test_numbers_that_cannot_have_been_learned_are_refused(method, change):
    saved = method().fit([-1.0, 1.0, 2.0, -2.0], [0, 1, 0, 1]).to_dict()
    saved["params"] = change
    with pytest.raises(InputError, match="incomplete or damaged"):
        Calibrator.from_dict(saved)


def test_a_file_nested_without_end_is_refused():
    saved = TemperatureScaling().fit([-1.0, 1.0, 2.0, -2.0], [0, 1, 0, 1]).to_dict()
    for _ in range(3000):
        saved = {**saved, "method": "chain", "params": {"steps": [saved]}}
    with pytest.raises(InputError, match="incomplete or damaged"):
        Calibrator.from_dict(saved)


def test_fits_in_threads_leave_the_number_of_blas_threads():
    before = [lib["num_threads"] for lib in threadpool_info() if lib["user_api"] == "blas"]
    rng = np.random.default_rng(0)
    logits, labels = rng.normal(size=(400, 5)), rng.integers(0, 5, 400)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: MatrixScaling().fit(logits, labels), range(12)))
    after = [lib["num_threads"] for lib in threadpool_info() if lib["user_api"] == "blas"]
    assert after == before
