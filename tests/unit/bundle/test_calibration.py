"""The calibrator of a bundle."""

from types import SimpleNamespace

import numpy as np
import pytest
from tests.sentences import refuses
from tests.unit.bundle.parts import rows, temperature

from calibrant.bundle.calibration import LEAST_LOG_PROB, BundleCalibration
from calibrant.calibrators import TemperatureScaling, VectorScaling
from calibrant.errors import InputError


def giving(*log_probs):
    """Return a calibrator that gives these for every input."""
    stub = SimpleNamespace(method="stub", predict_log_proba=lambda logits: np.array(log_probs))
    return BundleCalibration(stub, 1e-12)


def test_it_is_saved_and_loaded():
    for made in (temperature(), temperature(zero_as=0.02)):
        again = BundleCalibration.from_dict(made.to_dict())
        assert again.to_dict() == made.to_dict()
        assert (again.method, again.zero_as) == ("temperature", made.zero_as)
        assert again.classes == ["defect", "parts", "other"]
    assert "zero_as" not in temperature().to_dict()


def test_another_temperature_and_another_zero_are_not_the_same():
    assert temperature().same_as(temperature())
    assert not temperature().same_as(temperature(1.5))
    assert not temperature().same_as(temperature(zero_as=0.02))
    assert not temperature().same_as(temperature(classes=("defect", "other", "parts")))


def test_what_a_calibrator_remembers_of_its_rows_stays_with_it():
    logits, labels = rows(), np.arange(200) % 3
    chain = TemperatureScaling().then(VectorScaling()).fit(logits, labels)
    made = BundleCalibration(chain, 1e-12)
    again = BundleCalibration.from_dict(made.to_dict())
    assert again.calibrator.has_seen(logits, labels)
    bare = made.to_dict()
    for step in bare["params"]["steps"]:
        del step["fitted_on"]
    older = BundleCalibration.from_dict(bare)
    assert not older.calibrator.has_seen(logits, labels)
    assert older.same_as(made)  # the same probabilities, whatever taught them


def test_the_logarithm_of_zero_is_a_number():
    found = giving([-np.inf, 0.0]).log_probs(np.zeros((1, 2)))
    assert found.tolist() == [[LEAST_LOG_PROB, 0.0]]


def test_what_is_no_probability_is_refused():
    with refuses(InputError, "stub", "row 1"):
        giving([-0.5, -0.9], [np.nan, 0.0]).log_probs(np.zeros((2, 2)))


@pytest.mark.parametrize("value", [0, 0.5, "a", True, None])
def test_a_zero_that_counts_as_nonsense_is_refused(value):
    with refuses(InputError, "zero_as"):
        temperature(zero_as=value)


def test_zeros_of_both_shapes_are_raised():
    made = temperature(zero_as=0.1)
    assert made.logits(np.array([[0.0, 0.3, 0.7]])) == pytest.approx(np.log([[0.1, 0.3, 0.7]]))
    odds = np.log(0.1 / 0.9)
    assert made.logits(np.array([0.0, 0.5, 1.0])) == pytest.approx([odds, 0.0, -odds])
