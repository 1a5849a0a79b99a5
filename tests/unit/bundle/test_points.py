"""The operating points of a bundle: one, several classes together, or a band."""

import json

import pytest
from tests.sentences import assert_mentions, refuses
from tests.unit.bundle.parts import band, point, points_of, temperature, without_promise

from calibrant.bundle import BundlePoint
from calibrant.errors import InputError

KINDS = {
    "one": lambda: point(),
    "top-label": lambda: point(None, on="probs"),
    "several": lambda: points_of(point(), point("parts"), unreachable=["other"]),
    "band": lambda: band(),
    "no promise": lambda: without_promise(),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("side", ["raw", "calibrated"])
def test_every_kind_is_saved_and_loaded(kind, side):
    made = BundlePoint(KINDS[kind](), side)
    saved = json.loads(json.dumps(made.to_dict()))
    again = BundlePoint.from_dict(saved)
    assert again.to_dict() == made.to_dict()
    assert type(again.result) is type(made.result)
    assert again.decides_on == side
    assert len(again.rules) == (2 if kind in ("several", "band") else 1)


def test_promises_and_their_confidence():
    assert BundlePoint(point(), "raw").promises == (point().guarantee,)
    nothing = BundlePoint(without_promise(), "raw")
    assert nothing.confidence is None
    assert_mentions(nothing.promises[0], "No promise:", "trained")
    both = BundlePoint(points_of(point(), point("parts")), "raw")
    assert (len(both.promises), both.confidence) == (2, 0.95)
    assert both.acts_on == {"defect", "parts"}
    (said,) = BundlePoint(band(), "raw").promises
    assert_mentions(said, "Above", "precision", "at least 85 %", "below")
    assert BundlePoint(point(None), "raw").acts_on == {None}


def test_what_is_not_a_point_is_refused():
    with refuses(InputError, "operating point", "got BundleCalibration"):
        BundlePoint(temperature(), "raw")
    with refuses(InputError, "'raw' or 'calibrated', got 'cooked'"):
        BundlePoint(point(), "cooked")
    with refuses(InputError, "operating points", "empty"):
        BundlePoint(points_of(unreachable=["other"]), "raw")
    with refuses(InputError, "'raw' or 'calibrated', got None"):
        BundlePoint.from_dict(point().to_dict())
