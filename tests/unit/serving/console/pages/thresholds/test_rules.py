"""Which thresholds a bundle has, and what its points are after one of them changed."""

from dataclasses import replace

import pytest
from tests.unit.bundle.parts import band, point, points_of, temperature, without_promise
from tests.unit.serving.console.thresholds_bundles import bundle, calib_rows

from calibrant.bundle import BundlePoint, pack
from calibrant.errors import InputError
from calibrant.serving.console.pages.thresholds.rules import (
    ThresholdChoice,
    certification_confidence,
    count_promises,
    describe_positions,
    find_current,
    joint_confidence,
    list_choices,
    replace_threshold,
)

NAMES = ("defect", "parts", "other")
DEFECT, PARTS, OTHER = (ThresholdChoice(place, name) for place, name in enumerate(NAMES))
ANY = ThresholdChoice(None, None)


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
    original = packed([point("parts"), point("defect", 0.5)])
    assert [each.code for each in list_choices(original)] == ["1", "0", "2"]


def test_without_points_every_threshold_is_offered_and_of_two_classes_the_second_first(packed):
    original = packed([], calibrator=temperature())
    assert [each.code for each in list_choices(original)] == ["0", "1", "2", "any"]
    original = packed(
        [], classes=("no", "yes"), calibrator=temperature(2.0, ("no", "yes")), force=True
    )
    assert list_choices(original)[0].title == "yes"


def test_a_band_has_two_thresholds(packed):
    original = packed([band()], classes=("no", "yes"))
    assert [(each.code, each.title) for each in list_choices(original)] == [
        ("1", "yes"), ("1c", "yes (cleared)"), ("0", "no"),
    ]  # fmt: skip


def test_of_alternatives_the_first_decides(packed):
    original = packed([point("defect", 0.7), point("defect", 0.6)])
    assert find_current(original, DEFECT).rule.point.threshold == 0.7
    assert find_current(original, PARTS) is None


def test_classes_are_compared_as_text(packed):
    original = packed([point(1, classes=(0, 1, 2))], classes=("0", "1", "2"))
    assert find_current(original, ThresholdChoice(1, "1")).rule.point.of == 1


def test_a_point_is_replaced_in_its_place_and_alternatives_stay(packed):
    original = packed([point("defect", 0.7), point("parts", 0.6), point("defect", 0.5)])
    after = replace_threshold(original, DEFECT, point("defect", 0.9), "raw")
    assert acted(after) == [[("defect", 0.9)], [("parts", 0.6)], [("defect", 0.5)]]


def test_a_new_class_comes_last(packed):
    original = packed([point("defect", 0.7)])
    after = replace_threshold(original, OTHER, point("other", 0.9), "raw")
    assert acted(after) == [[("defect", 0.7)], [("other", 0.9)]]
    assert describe_positions(original, OTHER, "raw") == ""


def test_one_of_several_classes_changes_inside_its_point(packed):
    several = points_of(point("defect", 0.7), point("parts", 0.6), unreachable=["other"])
    original = packed([several, point("parts", 0.5)])
    after = replace_threshold(original, DEFECT, point("defect", 0.9), "raw")
    assert acted(after) == [[("defect", 0.9), ("parts", 0.6)], [("parts", 0.5)]]
    assert set(after[0].result.unreachable) == {"other"}
    assert after[0].result.confidence == 0.95
    assert describe_positions(original, DEFECT, "raw") == ""
    new = packed(after, force=True)
    assert find_current(new, DEFECT).rule.point.threshold == 0.9
    assert new.is_alternative(1)


def test_of_two_classes_that_flag_a_row_the_more_probable_one_decides_as_before(tmp_path):
    rows = calib_rows()
    low = [replace(point(of, 0.2), n=len(rows)) for of in NAMES]
    original = pack(tmp_path / "b", points=[points_of(*low)], classes=NAMES, calib=rows)
    after = replace_threshold(original, DEFECT, point("defect", 0.25), "raw")
    new = pack(tmp_path / "c", points=after, classes=NAMES, calib=rows)
    before, now = (each.decide(logits=rows.logits) for each in (original, new))
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
def test_the_joint_confidence_of_several_classes_counts_an_added_promise(
    packed, old, new, together
):
    original = packed([points_of(point("defect", 0.7), old)])
    (after,) = replace_threshold(original, PARTS, new, "raw")
    assert after.result.confidence == pytest.approx(together)


def test_several_classes_without_any_promise_have_no_confidence(packed):
    original = packed([points_of(without_promise("defect", 0.7), point("parts", 0.6))])
    (after,) = replace_threshold(original, PARTS, without_promise("parts", 0.9), "raw")
    assert after.result.confidence is None


def test_a_class_on_other_scores_is_moved_to_a_new_last_point(packed):
    several = BundlePoint(points_of(point("defect", 0.7), point("parts", 0.6)), "calibrated")
    original = packed([several, raw("other", 0.5)], calibrator=temperature(2.0))
    after = replace_threshold(original, PARTS, point("parts", 0.9), "raw")
    assert acted(after) == [[("defect", 0.7)], [("other", 0.5)], [("parts", 0.9)]]
    assert [each.decides_on for each in after] == ["calibrated", "raw", "raw"]
    assert describe_positions(original, PARTS, "calibrated") == ""
    assert describe_positions(original, PARTS, "raw") == (
        "point 0 no longer acts on class “parts”; the new threshold is point 2"
    )


def test_a_moved_class_comes_before_its_alternatives_and_positions_are_described(packed):
    several = BundlePoint(points_of(point("defect", 0.7), point("parts", 0.6)), "calibrated")
    points = [several, raw("other", 0.5), raw("parts", 0.5), raw("other", 0.4)]
    original = packed(points, calibrator=temperature(2.0))
    after = replace_threshold(original, PARTS, point("parts", 0.9), "raw")
    assert acted(after)[:3] == [[("defect", 0.7)], [("other", 0.5)], [("parts", 0.9)]]
    assert after[3:] == list(original.points[2:])
    words = describe_positions(original, PARTS, "raw")
    assert "the new threshold is point 2; the former point 2 is point 3, and so on" in words
    new = packed(after, calibrator=temperature(2.0), force=True)
    assert find_current(new, PARTS).rule.point.threshold == 0.9
    assert [new.is_alternative(i) for i in range(5)] == [False, False, False, True, True]


def test_classes_in_another_order_are_not_mixed(packed):
    other = ("parts", "defect", "other")
    several = points_of(point("defect", 0.7, classes=other), point("parts", 0.6, classes=other))
    original = packed([several])
    after = replace_threshold(original, PARTS, point("parts", 0.9), "raw")
    assert [each.classes for each in after] == [other, NAMES]


def test_replacing_the_only_class_leaves_no_empty_point(packed):
    original = packed([points_of(point("defect", 0.7))])
    after = replace_threshold(original, DEFECT, point("defect", 0.9), "raw")
    assert acted(after) == [[("defect", 0.9)]]


def test_a_class_that_only_an_alternative_acts_on_gets_a_point_that_decides(packed):
    original = packed([point("defect", 0.7), points_of(point("defect", 0.6), point("parts", 0.6))])
    assert find_current(original, PARTS) is None
    words = describe_positions(original, PARTS, "raw")
    assert words == "the new threshold is point 1; the former point 1 is point 2"
    new = packed(replace_threshold(original, PARTS, point("parts", 0.9), "raw"), force=True)
    assert find_current(new, PARTS).rule.point.threshold == 0.9
    assert find_current(new, DEFECT).rule.point.threshold == 0.7


def test_rows_that_several_classes_flag_are_recounted(tmp_path):
    rows = calib_rows()
    original = bundle(tmp_path / "b", "several classes", rows=rows)
    low = [replace(point(of, 0.2), n=len(rows)) for of in NAMES]
    original = pack(tmp_path / "c", points=[points_of(*low)], classes=NAMES, calib=rows)
    changed = [*low[:2], replace(point("other", 0.4), n=len(rows))]
    after = replace_threshold(original, OTHER, changed[2], "raw")
    acts = sum(each.act(logits=rows.logits).astype(int) for each in changed)
    assert after[0].result.flagged_twice == int((acts > 1).sum()) > 0
    apart = replace_threshold(original, OTHER, changed[2], "calibrated")
    acts = sum(each.act(logits=rows.logits).astype(int) for each in low[:2])
    assert apart[0].result.flagged_twice == int((acts > 1).sum()) > 0


def test_predictions_of_any_class_have_one_threshold(packed):
    original = packed([point(None, 0.7)])
    assert [each.code for each in list_choices(original)] == ["any", "0", "1", "2"]
    assert acted(replace_threshold(original, ANY, point(None, 0.9), "raw")) == [[(None, 0.9)]]


@pytest.mark.parametrize(("clears", "ends"), [(False, (0.9, 0.2)), (True, (0.8, 0.1))])
def test_one_end_of_a_band_is_replaced(packed, clears, ends):
    original = packed([band()], classes=("no", "yes"))
    new = point("yes", 0.1 if clears else 0.9, classes=("no", "yes"))
    (after,) = replace_threshold(original, ThresholdChoice(1, "yes", clears), new, "raw")
    assert (after.result.upper.threshold, after.result.lower.threshold) == ends
    assert after.result.confidence == 0.95


def test_an_end_of_a_band_without_a_promise_says_why(packed):
    original = packed([band()], classes=("no", "yes"))
    new = without_promise("yes", 0.1, classes=("no", "yes"))
    (after,) = replace_threshold(original, ThresholdChoice(1, "yes", clears=True), new, "raw")
    assert after.promises == (f"No promise: {new.why}.",)
    assert count_promises([after]) == 1


@pytest.mark.parametrize(("clears", "threshold"), [(False, 0.1), (True, 0.9)])
def test_ends_of_a_band_must_not_cross(packed, clears, threshold):
    original = packed([band()], classes=("no", "yes"))
    new = point("yes", threshold, classes=("no", "yes"))
    with pytest.raises(InputError, match="would overlap"):
        replace_threshold(original, ThresholdChoice(1, "yes", clears), new, "raw")


def test_a_band_on_calibrated_scores_is_not_mixed_with_others(packed):
    warm = temperature(2.0, ("no", "yes"))
    original = packed([BundlePoint(band(), "calibrated")], classes=("no", "yes"), calibrator=warm)
    with pytest.raises(InputError, match="uses calibrated scores"):
        replace_threshold(
            original, ThresholdChoice(1, "yes"), point("yes", 0.9, classes=("no", "yes")), "raw"
        )


def test_promises_are_counted_by_threshold(packed):
    original = packed([points_of(point("defect"), point("parts")), without_promise("other")])
    assert count_promises(original.points) == 2
    assert certification_confidence(original) == 0.95


def test_the_joint_confidence_is_recorded_or_computed(packed):
    points = [point("defect"), point("parts", confidence=0.9)]
    assert joint_confidence(packed(points)) == pytest.approx(0.85)
    provenance = {"confidence_together": 0.9}
    assert joint_confidence(packed(points, provenance=provenance, force=True)) == 0.9
    assert joint_confidence(packed([without_promise()], provenance=provenance, force=True)) is None


def test_a_bundle_without_promises_is_certified_at_the_default_confidence(packed):
    assert certification_confidence(packed([without_promise()])) == 0.95
