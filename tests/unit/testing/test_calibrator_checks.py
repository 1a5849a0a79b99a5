"""check_calibrator: its test data and its error messages."""

import warnings

import numpy as np
import pytest
from tests.sentences import assert_mentions

from calibrant.calibrators import Identity, TemperatureScaling
from calibrant.errors import InputError
from calibrant.testing import check_calibrator
from calibrant.testing.calibrator_cases import (
    as_two_columns,
    degenerate_cases,
    draw_case,
    expect_close,
    expect_equal,
    expect_refusal,
    expect_valid,
    fit_copy,
    with_bad_labels,
)
from calibrant.testing.calibrator_rules import RULES


@pytest.mark.parametrize("world", ["binary", "multiclass"])
def test_adding_integers_to_logits_is_exact(world):
    case = draw_case(world, 50, 0)
    assert case.n == len(case.fresh) == len(case.fresh_labels) == 50
    assert case.k == (2 if world == "binary" else 5)
    assert np.array_equal((case.logits + 59) - 59, case.logits)


def test_degenerate_cases_match_their_names():
    case = draw_case("multiclass", 200, 0)
    result = {rows.name.split(", ")[1]: rows for rows in degenerate_cases(case, 0)}
    assert set(result) == {
        "random labels",
        "anti-correlated",
        "constant scores",
        "perfect separation",
    }
    assert not result["constant scores"].logits.any()
    separated = result["perfect separation"]
    assert np.array_equal(separated.logits.argmax(axis=1), separated.labels)
    two = draw_case("binary", 200, 0)
    separated = next(rows for rows in degenerate_cases(two, 0) if "separation" in rows.name)
    assert np.array_equal(separated.logits > 0, two.labels == 1)
    assert [rows.k for rows in with_bad_labels(two, 0)] == [2, 2]


def test_failed_expectations_name_both_values():
    expect_close(np.array([0.5]), np.array([0.5 + 1e-9]))
    with pytest.raises(AssertionError, match=r"0.5 became 0.6"):
        expect_close(np.array([0.1, 0.5]), np.array([0.1, 0.6]))
    with pytest.raises(AssertionError, match="nan"):
        expect_close(np.array([0.1, 0.5]), np.array([0.1, np.nan]))
    with pytest.raises(AssertionError, match=r"shape \(2,\) became \(1,\)"):
        expect_close(np.zeros(2), np.zeros(1))
    expect_equal(np.array([0.1]), np.array([0.1]))
    with pytest.raises(AssertionError, match=r"0.1.* became .*0.30000000000000004"):
        expect_equal(np.array([0.1]), np.array([0.1 + 0.2]))
    with pytest.raises(AssertionError, match="shape"):
        expect_equal(np.zeros((2, 2)), np.zeros(2))


def test_a_refusal_is_an_input_error_and_nothing_else():
    def refuse():
        raise InputError("no.")

    def stumble():
        raise KeyError("x")

    expect_refusal("a thing", refuse)
    with pytest.raises(AssertionError, match="a thing raised KeyError"):
        expect_refusal("a thing", stumble)
    with pytest.raises(AssertionError, match="a thing was accepted"):
        expect_refusal("a thing", lambda: None)


def test_invalid_probabilities_are_detected():
    case = draw_case("multiclass", 20, 0)
    identity = fit_copy(Identity(), case)
    expect_valid(identity, case.fresh)
    expect_valid(fit_copy(Identity(), draw_case("binary", 20, 0)), np.array([-800.0, 0.0, 800.0]))
    assert as_two_columns(np.array([2.0])).tolist() == [[-1.0, 1.0]]

    class Off(Identity):
        shift = 0.0

        def predict_log_proba(self, logits):
            return super().predict_log_proba(logits) + self.shift

    for shift, message in ((0.5, "outside"), (-0.5, "sums to"), (np.nan, "not finite")):
        broken = fit_copy(Off(), case)
        broken.shift = shift
        with pytest.raises(AssertionError, match=message):
            expect_valid(broken, case.fresh)


def test_the_calibrator_is_not_fitted_and_warning_filters_are_restored():
    calibrator = TemperatureScaling()
    before = list(warnings.filters)
    check_calibrator(calibrator, seed=3)
    assert not hasattr(calibrator, "temperature_")
    assert warnings.filters == before


def test_a_failure_names_the_rule_the_rows_and_the_cause():
    class Fails(TemperatureScaling):
        def _learn(self, rows):
            if rows.k > 2:
                raise ZeroDivisionError("by accident")
            super()._learn(rows)

    class Warns(TemperatureScaling):
        def _learn(self, rows):
            warnings.warn("nearly singular", RuntimeWarning, stacklevel=2)
            super()._learn(rows)

    first = next(iter(RULES))
    with pytest.raises(AssertionError) as caught:
        check_calibrator(Fails(), multiclass=False)  # refused only because it is not registered
    assert_mentions(caught.value, "saved calibrator", "load (binary)", "InputError")
    with pytest.raises(AssertionError, match="RuntimeWarning: nearly singular") as caught:
        check_calibrator(Warns())
    assert str(caught.value).startswith(f"{first} (binary): ")
    assert isinstance(caught.value.__cause__, RuntimeWarning)
