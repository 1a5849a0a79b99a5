"""A promise on calibrated scores may not be packed with the rows that taught the calibrator."""

import numpy as np
import pytest
from tests.sentences import refuses

from calibrant.bundle import BundlePoint, CalibRows, load_bundle, pack
from calibrant.calibrators import TemperatureScaling, VectorScaling
from calibrant.errors import SplitMisuse
from calibrant.thresholds import LabelUse, accuracy, npv, precision, select, select_band


def draw(n=1000, k=3, seed=0):
    """Return logits that tell the classes apart, and codes."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, k, n)
    return rng.normal(3.0 * np.eye(k)[codes], 1.0), codes


def chosen(calibrator, logits, codes, **options):
    options = {"hold": precision >= 0.7, "positive": 0, **options}
    classes = list(range(logits.shape[1]))
    log_probs = calibrator.predict_log_proba(logits)
    return select(codes, logits=log_probs, classes=classes, **options)


def packed(folder, calibrator, point, rows, decides_on="calibrated"):
    points = [BundlePoint(point, decides_on)]
    return pack(folder, calibrator=calibrator, points=points, calib=CalibRows(*rows))


@pytest.mark.parametrize("hold", [{}, {"hold": accuracy >= 0.7, "positive": None}])
def test_one_set_of_rows_for_both_is_refused(tmp_path, hold):
    rows = draw()
    fitted = VectorScaling().fit(*rows)
    point = chosen(fitted, *rows, **hold)
    assert point.guarantee is not None  # bare arrays cannot tell
    with pytest.raises(SplitMisuse, match=r"point 0 .*promise.* vector was"):
        packed(tmp_path / "b", fitted, point, rows)
    assert not (tmp_path / "b").exists()
    honest = chosen(fitted, *rows, **hold, label_use=LabelUse.from_calibrator(fitted, *rows))
    assert honest.guarantee is None
    assert packed(tmp_path / "b", fitted, honest, rows).calibration.calibrator.has_seen(*rows)


def test_a_band_is_refused_too(tmp_path):
    rows = draw()
    fitted = VectorScaling().fit(*rows)
    scores = {"logits": fitted.predict_log_proba(rows[0]), "classes": [0, 1, 2], "positive": 0}
    band = select_band(rows[1], act=precision >= 0.7, clear=npv >= 0.8, **scores)
    with refuses(SplitMisuse, "point 0"):
        packed(tmp_path / "b", fitted, band, rows)


def test_a_point_of_other_rows_may_go_along_with_those_of_the_calibrator(tmp_path):
    rows, others = draw(), draw(seed=1)
    fitted = VectorScaling().fit(*rows)
    packed(tmp_path / "b", fitted, chosen(fitted, *others), rows)
    kept = load_bundle(tmp_path / "b")
    assert kept.points[0].confidence == 0.95
    assert kept.calibration.calibrator.has_seen(*rows)
    assert not kept.calibration.calibrator.has_seen(*others)


def test_what_cannot_harm_is_packed(tmp_path):
    """The model's own scores, other rows, and an order that no calibrator changed."""
    rows, others, two = draw(), draw(seed=1), draw(k=2)
    fitted = VectorScaling().fit(*rows)
    own = select(rows[1], logits=rows[0], hold=precision >= 0.7, positive=0, classes=[0, 1, 2])
    packed(tmp_path / "raw", fitted, own, rows, "raw")
    packed(tmp_path / "others", fitted, chosen(fitted, *others), others)
    cooled = TemperatureScaling().fit(*two)
    packed(tmp_path / "two", cooled, chosen(cooled, *two), two)
