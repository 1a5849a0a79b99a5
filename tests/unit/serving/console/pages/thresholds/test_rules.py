"""Which thresholds a bundle has, and what its points are after one of them changed."""

from dataclasses import replace

import pytest
from tests.unit.bundle.parts import band, point, points_of, temperature, without_promise
from tests.unit.serving.console.thresholds_bundles import bundle, calib_rows

from calibrant.bundle import BundlePoint, pack
from calibrant.errors import InputError
from calibrant.serving.console.pages.thresholds.rules import (
    Choice,
    choices_of,
    confidence_of,
    current_of,
    points_after,
    positions_told,
    promised,
    together_of,
)

NAMES = ("defect", "parts", "other")
DEFECT, PARTS, OTHER = (Choice(place, name) for place, name in enumerate(NAMES))
ANY = Choice(None, None)


@pytest.fixture
def packed(tmp_path):
    def make(points, **more):
        return pack(tmp_path / "b", points=points, **{"classes": NAMES, **more})

    return make


def acted(points):
    """Return for each point the classes it acts on and its thresholds."""
    return [[(each.point.of, each.point.threshold) for each in entry.rules] for entry in points]


def raw(of, threshold):
    return BundlePoint(point(of, threshold), "raw")


def test_thresholds_that_decide_come_first(packed):
    made = packed([point("parts"), point("defect", 0.5)])
    assert [each.code for each in choices_of(made)] == ["1", "0", "2"]


def test_without_points_any_threshold_could_be_and_of_two_classes_the_second_is_usual(packed):
    made = packed([], calibrator=temperature())
    assert [each.code for each in choices_of(made)] == ["0", "1", "2", "any"]
    made = packed([], classes=("no", "yes"), calibrator=temperature(2.0, ("no", "yes")), force=True)
    assert choices_of(made)[0].title == "yes"


def test_a_band_has_two_thresholds(packed):
    made = packed([band()], classes=("no", "yes"))
    assert [(each.code, each.title) for each in choices_of(made)] == [
        ("1", "yes"), ("1c", "yes (cleared)"), ("0", "no"),
    ]  # fmt: skip


def test_of_alternatives_the_first_decides(packed):
    made = packed([point("defect", 0.7), point("defect", 0.6)])
    assert current_of(made, DEFECT).rule.point.threshold == 0.7
    assert current_of(made, PARTS) is None


def test_classes_are_compared_as_text(packed):
    made = packed([point(1, classes=(0, 1, 2))], classes=("0", "1", "2"))
    assert current_of(made, Choice(1, "1")).rule.point.of == 1


def test_a_point_is_replaced_in_its_place_and_alternatives_stay(packed):
    made = packed([point("defect", 0.7), point("parts", 0.6), point("defect", 0.5)])
    after = points_after(made, DEFECT, point("defect", 0.9), "raw")
    assert acted(after) == [[("defect", 0.9)], [("parts", 0.6)], [("defect", 0.5)]]


def test_a_new_class_comes_last(packed):
    made = packed([point("defect", 0.7)])
    after = points_after(made, OTHER, point("other", 0.9), "raw")
    assert acted(after) == [[("defect", 0.7)], [("other", 0.9)]]
    assert positions_told(made, OTHER, "raw") == ""


def test_one_of_several_classes_changes_inside_its_point(packed):
    several = points_of(point("defect", 0.7), point("parts", 0.6), unreachable=["other"])
    made = packed([several, point("parts", 0.5)])
    after = points_after(made, DEFECT, point("defect", 0.9), "raw")
    assert acted(after) == [[("defect", 0.9), ("parts", 0.6)], [("parts", 0.5)]]
    assert set(after[0].result.unreachable) == {"other"}
    assert after[0].result.confidence == 0.95
    assert positions_told(made, DEFECT, "raw") == ""
    new = packed(after, force=True)
    assert current_of(new, DEFECT).rule.point.threshold == 0.9
    assert new.is_alternative(1)


def test_of_two_classes_that_flag_a_row_the_more_probable_one_decides_as_before(tmp_path):
    rows = calib_rows()
    low = [replace(point(of, 0.2), n=len(rows)) for of in NAMES]
    made = pack(tmp_path / "b", points=[points_of(*low)], classes=NAMES, calib=rows)
    after = points_after(made, DEFECT, point("defect", 0.25), "raw")
    new = pack(tmp_path / "c", points=after, classes=NAMES, calib=rows)
    before, now = (each.decide(logits=rows.logits) for each in (made, new))
    both = now.acts.sum(axis=1) > 1
    assert both.sum() > 10
    assert (now.acted_as[both] == before.acted_as[both]).all()
    assert (now.acted_as[both] == now.label[both]).all()
    assert now.rules == before.rules


@pytest.mark.parametrize(
    ("old", "new", "together"),
    [
        (without_promise("parts", 0.6), point("parts", 0.9), 0.925),
        (point("parts", 0.6), point("parts", 0.9), 0.95),
        (point("parts", 0.6), without_promise("parts", 0.9), 0.95),
    ],
)
def test_what_several_classes_promise_together_counts_a_promise_that_is_added(
    packed, old, new, together
):
    made = packed([points_of(point("defect", 0.7), old)])
    (after,) = points_after(made, PARTS, new, "raw")
    assert after.result.confidence == pytest.approx(together)


def test_several_classes_without_any_promise_have_no_confidence(packed):
    made = packed([points_of(without_promise("defect", 0.7), point("parts", 0.6))])
    (after,) = points_after(made, PARTS, without_promise("parts", 0.9), "raw")
    assert after.result.confidence is None


def test_a_class_that_looks_at_other_scores_is_taken_out_and_comes_last(packed):
    several = BundlePoint(points_of(point("defect", 0.7), point("parts", 0.6)), "calibrated")
    made = packed([several, raw("other", 0.5)], calibrator=temperature(2.0))
    after = points_after(made, PARTS, point("parts", 0.9), "raw")
    assert acted(after) == [[("defect", 0.7)], [("other", 0.5)], [("parts", 0.9)]]
    assert [each.decides_on for each in after] == ["calibrated", "raw", "raw"]
    assert positions_told(made, PARTS, "calibrated") == ""
    assert positions_told(made, PARTS, "raw") == (
        "point 0 does not act on class “parts” any more; the new threshold is point 2"
    )


def test_a_class_that_is_taken_out_comes_before_its_alternatives_and_that_is_told(packed):
    several = BundlePoint(points_of(point("defect", 0.7), point("parts", 0.6)), "calibrated")
    points = [several, raw("other", 0.5), raw("parts", 0.5), raw("other", 0.4)]
    made = packed(points, calibrator=temperature(2.0))
    after = points_after(made, PARTS, point("parts", 0.9), "raw")
    assert acted(after)[:3] == [[("defect", 0.7)], [("other", 0.5)], [("parts", 0.9)]]
    assert after[3:] == list(made.points[2:])
    told = positions_told(made, PARTS, "raw")
    assert "the new threshold is point 2; what was point 2 is point 3, and so on" in told
    new = packed(after, calibrator=temperature(2.0), force=True)
    assert current_of(new, PARTS).rule.point.threshold == 0.9
    assert [new.is_alternative(i) for i in range(5)] == [False, False, False, True, True]


def test_classes_in_another_order_are_not_mixed(packed):
    other = ("parts", "defect", "other")
    several = points_of(point("defect", 0.7, classes=other), point("parts", 0.6, classes=other))
    made = packed([several])
    after = points_after(made, PARTS, point("parts", 0.9), "raw")
    assert [each.classes for each in after] == [other, NAMES]


def test_the_last_of_several_classes_leaves_nothing_behind(packed):
    made = packed([points_of(point("defect", 0.7))])
    after = points_after(made, DEFECT, point("defect", 0.9), "raw")
    assert acted(after) == [[("defect", 0.9)]]


def test_a_class_that_only_an_alternative_acts_on_gets_a_point_that_decides(packed):
    made = packed([point("defect", 0.7), points_of(point("defect", 0.6), point("parts", 0.6))])
    assert current_of(made, PARTS) is None
    told = positions_told(made, PARTS, "raw")
    assert told == "the new threshold is point 1; what was point 1 is point 2"
    new = packed(points_after(made, PARTS, point("parts", 0.9), "raw"), force=True)
    assert current_of(new, PARTS).rule.point.threshold == 0.9
    assert current_of(new, DEFECT).rule.point.threshold == 0.7


def test_rows_that_several_classes_flag_are_counted_anew(tmp_path):
    rows = calib_rows()
    made = bundle(tmp_path / "b", "several classes", rows=rows)
    low = [replace(point(of, 0.2), n=len(rows)) for of in NAMES]
    made = pack(tmp_path / "c", points=[points_of(*low)], classes=NAMES, calib=rows)
    changed = [*low[:2], replace(point("other", 0.4), n=len(rows))]
    after = points_after(made, OTHER, changed[2], "raw")
    acts = sum(each.act(logits=rows.logits).astype(int) for each in changed)
    assert after[0].result.flagged_twice == int((acts > 1).sum()) > 0
    apart = points_after(made, OTHER, changed[2], "calibrated")
    acts = sum(each.act(logits=rows.logits).astype(int) for each in low[:2])
    assert apart[0].result.flagged_twice == int((acts > 1).sum()) > 0


def test_predictions_of_any_class_have_one_threshold(packed):
    made = packed([point(None, 0.7)])
    assert [each.code for each in choices_of(made)] == ["any", "0", "1", "2"]
    assert acted(points_after(made, ANY, point(None, 0.9), "raw")) == [[(None, 0.9)]]


@pytest.mark.parametrize(("clears", "ends"), [(False, (0.9, 0.2)), (True, (0.8, 0.1))])
def test_one_end_of_a_band_is_replaced(packed, clears, ends):
    made = packed([band()], classes=("no", "yes"))
    new = point("yes", 0.1 if clears else 0.9, classes=("no", "yes"))
    (after,) = points_after(made, Choice(1, "yes", clears), new, "raw")
    assert (after.result.upper.threshold, after.result.lower.threshold) == ends
    assert after.result.confidence == 0.95


def test_an_end_of_a_band_without_a_promise_says_why(packed):
    made = packed([band()], classes=("no", "yes"))
    new = without_promise("yes", 0.1, classes=("no", "yes"))
    (after,) = points_after(made, Choice(1, "yes", clears=True), new, "raw")
    assert after.promises == (f"No promise: {new.why}.",)
    assert promised([after]) == 1


@pytest.mark.parametrize(("clears", "threshold"), [(False, 0.1), (True, 0.9)])
def test_ends_of_a_band_must_not_cross(packed, clears, threshold):
    made = packed([band()], classes=("no", "yes"))
    new = point("yes", threshold, classes=("no", "yes"))
    with pytest.raises(InputError, match="would overlap"):
        points_after(made, Choice(1, "yes", clears), new, "raw")


def test_a_band_on_calibrated_scores_is_not_mixed_with_others(packed):
    warm = temperature(2.0, ("no", "yes"))
    made = packed([BundlePoint(band(), "calibrated")], classes=("no", "yes"), calibrator=warm)
    with pytest.raises(InputError, match="looks at calibrated scores"):
        points_after(made, Choice(1, "yes"), point("yes", 0.9, classes=("no", "yes")), "raw")


def test_promises_are_counted_by_threshold(packed):
    made = packed([points_of(point("defect"), point("parts")), without_promise("other")])
    assert promised(made.points) == 2
    assert confidence_of(made) == 0.95


def test_what_holds_together_is_told_by_the_bundle_or_counted(packed):
    points = [point("defect"), point("parts", confidence=0.9)]
    assert together_of(packed(points)) == pytest.approx(0.85)
    told = {"confidence_together": 0.9}
    assert together_of(packed(points, provenance=told, force=True)) == 0.9
    assert together_of(packed([without_promise()], provenance=told, force=True)) is None


def test_a_bundle_without_promises_is_certified_with_the_usual_confidence(packed):
    assert confidence_of(packed([without_promise()])) == 0.95
