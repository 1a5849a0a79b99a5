"""Temperature, then isotonic maps: by hand, as a chain of the two, and against scikit-learn."""

import numpy as np
import pytest
from sklearn.isotonic import IsotonicRegression
from tests.data_sets import data_file

from calibrant.calibrators import IsotonicCalibration, TemperatureScaling
from calibrant.calibrators.methods.isotonic_temperature import IsotonicTemperature
from calibrant.convert import logits_from_probs, probs_from_logits
from calibrant.errors import InputError
from calibrant.metrics import nll
from calibrant.testing import WORLDS, check_calibrator


def test_the_contract():
    check_calibrator(IsotonicTemperature())


def test_by_hand():
    logits, labels = 4 * [2.0] + 4 * [-2.0], [1, 1, 1, 0, 0, 0, 0, 1]
    calibrator = IsotonicTemperature(pseudo_count=0).fit(logits, labels)
    assert calibrator.temperature_ == pytest.approx(2 / np.log(3))
    assert calibrator.predict_proba([2.0, -2.0, 0.0]) == pytest.approx([0.75, 0.25, 0.5])


@pytest.mark.parametrize("world", ["binary", "multiclass", "long_tailed"])
def test_it_is_the_chain_of_its_two_parts(world):
    draw = WORLDS[world].draw(2000, 5)
    logits = logits_from_probs(draw.probs, floor=1e-12)
    whole = IsotonicTemperature().fit(logits[:1000], draw.labels[:1000])
    chain = TemperatureScaling().then(IsotonicCalibration())
    chain.fit(logits[:1000], draw.labels[:1000])
    assert whole.predict_proba(logits[1000:]) == pytest.approx(
        chain.predict_proba(logits[1000:]), abs=1e-9
    )


def test_every_class_has_scikit_learns_map_of_the_scaled_probabilities():
    draw = WORLDS["multiclass"].draw(800, 6)
    logits = np.log(draw.probs)
    ours = IsotonicTemperature(pseudo_count=0).fit(logits, draw.labels)
    scaled = probs_from_logits(logits / ours.temperature_)
    steps = np.column_stack(
        [
            IsotonicRegression().fit(scaled[:, k], draw.labels == k).predict(scaled[:, k])
            for k in range(5)
        ]
    )
    expected = steps / steps.sum(axis=1, keepdims=True)
    assert ours.predict_proba(logits) == pytest.approx(expected, abs=1e-12)


def test_with_two_classes_the_temperature_moves_no_row():
    draw = WORLDS["binary"].draw(700, 7)
    logits = logits_from_probs(draw.probs, floor=1e-12)
    with_it = IsotonicTemperature().fit(logits, draw.labels).predict_proba(logits)
    without = IsotonicCalibration().fit(logits, draw.labels).predict_proba(logits)
    assert with_it == pytest.approx(without, abs=1e-12)


def test_with_more_the_temperature_helps_real_logits():
    with np.load(data_file("logits_resnet110_c10", "resnet110_c10.npz")) as arrays:
        rows = {name: arrays[name] for name in arrays}
    fits = [
        c.fit(rows["val_logits"], rows["val_labels"])
        for c in (IsotonicTemperature(), IsotonicCalibration())
    ]
    with_it, without = (
        nll(rows["test_labels"], c.predict_proba(rows["test_logits"])) for c in fits
    )
    assert with_it < without


def test_a_damaged_file_is_refused():
    saved = IsotonicTemperature().fit([1.0, -1.0, 2.0], [1, 0, 1]).to_dict()
    for value in (0.0, -1.0, float("nan")):
        broken = {**saved, "params": {**saved["params"], "temperature": value}}
        with pytest.raises(InputError, match="incomplete or damaged"):
            IsotonicTemperature.from_dict(broken)
