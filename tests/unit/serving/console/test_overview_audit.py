"""Expected and audited precision, and whether promises are kept."""

import pytest
from tests.unit.bundle.parts import band, point, points_of, temperature, without_promise

from calibrant.bundle import BundlePoint, pack
from calibrant.serving.console.overview_audit import (
    acted_of,
    added,
    believed,
    may_overlap,
    promises_of,
)
from calibrant.store import ActedCount, AuditedCount
from calibrant.thresholds.rates import accuracy, false_discovery, precision, recall


def packed(folder, *points, on="calibrated", classes=None):
    of = {} if classes is None else {"classes": classes}
    chosen = [BundlePoint(each, on) for each in points]
    return pack(folder, calibrator=temperature(2.0, **of), points=chosen)


def checked(folder, *points, acted=(), audited=(), total=1000, **how):
    """Return the promises of a bundle of these points, checked by these counts."""
    found = acted_of([ActedCount(*a) for a in acted], [AuditedCount(*a) for a in audited], total)
    return promises_of(packed(folder, *points), found, total, **how)


def test_expected_precision_is_the_mean_probability_of_acted_decisions():
    # Three decisions to act at 0.9, 0.8 and 0.7: their mean is 0.8.
    (found,) = acted_of([ActedCount("defect", 3, 2.4)], [], 12)
    assert found.expected == pytest.approx(0.8)
    assert found.share == 0.25
    assert (found.audited, found.precision, found.interval) == (0, None, None)
    assert found.audit_words == "No label yet."


def test_audited_precision_has_an_exact_interval():
    (found,) = acted_of([ActedCount("defect", 500, 450.0)], [AuditedCount("defect", 100, 86)], 500)
    assert found.precision == 0.86
    # Clopper and Pearson's interval of 86 in 100.
    assert (found.interval.low, found.interval.high) == pytest.approx((0.7763, 0.9213), abs=1e-4)
    assert found.audit_words == (
        "86 of 100 labelled decisions right, 86.0 % (95 % interval 77.6 % to 92.1 %)."
    )


def test_intervals_of_several_classes_hold_together():
    told = [AuditedCount("a", 100, 86), AuditedCount("b", 50, 40)]
    acted = [ActedCount("a", 200, 180.0), ActedCount("b", 300, 240.0), ActedCount("c", 9, 8.0)]
    found = acted_of(acted, told, 1000)
    assert [each.name for each in found] == ["b", "a", "c"]  # the most frequent first
    assert found[0].interval.confidence == pytest.approx(0.975)
    assert found[1].interval.low < 0.7763  # wider than alone
    assert found[2].interval is None
    assert "97.5 % interval" in found[0].audit_words


def test_a_class_with_labels_but_no_decisions_in_the_hours_is_listed():
    (found,) = acted_of([], [AuditedCount("defect", 4, 4)], 0)
    assert (found.n, found.share, found.expected, found.precision) == (0, 0.0, None, 1.0)


def test_all_classes_together():
    told = [AuditedCount("a", 10, 9), AuditedCount("b", 30, 20)]
    both = acted_of([ActedCount("a", 3, 2.7), ActedCount("b", 1, 0.5)], told, 8)
    found = added(both, 8)
    assert (found.name, found.n, found.share) == (None, 4, 0.5)
    assert found.expected == pytest.approx(0.8)
    assert (found.audited, found.right) == (40, 29)
    assert found.interval.confidence == 0.95
    assert added((), 8).expected is None


@pytest.mark.parametrize(
    ("right", "verdict", "badge"),
    [(95, "kept", "Kept"), (86, "undecidable", "Cannot be told yet"), (70, "broken", "Not kept")],
)
def test_a_promise_is_judged_by_the_labels(tmp_path, right, verdict, badge):
    acted, told = [("defect", 300, 270.0)], [("defect", 100, right)]
    (found,) = checked(tmp_path / "b", point("defect"), acted=acted, audited=told)
    (check,) = found.checks
    assert (check.verdict, check.badge) == (verdict, badge)
    assert found.state == {"kept": "good", "broken": "bad"}.get(verdict, "unknown")
    assert check.sentences[0].startswith(f"{right} of 100 labelled decisions right")
    assert ("more labels would decide" in " ".join(check.sentences)) == (verdict == "undecidable")


@pytest.mark.parametrize("n", [1, 7, 40, 150])
def test_a_verdict_is_what_its_interval_says(tmp_path, n):
    bundle = packed(tmp_path / "b", point("defect"))
    for right in range(n + 1):
        found = acted_of([ActedCount("defect", n, n * 0.9)], [AuditedCount("defect", n, right)], n)
        ((check,),) = (each.checks for each in promises_of(bundle, found, n))
        span = check.acted.interval
        wanted = "kept" if span.low >= 0.85 else "broken" if span.high <= 0.85 else "undecidable"
        assert check.verdict == wanted, (right, n)


def test_without_labels_only_the_expected_figure_is_told(tmp_path):
    (found,) = checked(tmp_path / "b", point("defect"), acted=[("defect", 300, 270.0)])
    (check,) = found.checks
    assert (check.verdict, check.badge, check.state) == (None, "Not audited yet", "unknown")
    assert check.sentences == ["Expected precision, if calibration still holds: 90.0 %."]
    (none,) = checked(tmp_path / "c", point("defect"))
    assert none.checks[0].sentences == ["Nothing was acted on in this time."]


def test_an_expected_figure_below_the_promise_is_told_where_it_is_no_chance(tmp_path):
    (few,) = checked(tmp_path / "a", point("defect"), acted=[("defect", 1, 0.8)])
    (many,) = checked(tmp_path / "b", point("defect"), acted=[("defect", 3000, 2400.0)])
    assert "does not meet" not in few.checks[0].sentences[0]
    assert many.checks[0].sentences[0].endswith("80.0 %, which does not meet the promise.")


def test_a_false_discovery_rate_counts_what_is_wrong(tmp_path):
    made = point("defect", hold=(false_discovery <= 0.15,))
    told = {"acted": [("defect", 300, 270.0)], "audited": [("defect", 100, 70)]}
    (found,) = checked(tmp_path / "b", made, **told)
    assert found.checks[0].verdict == "broken"
    assert "Expected false discovery rate" in found.checks[0].sentences[-1]
    assert "10.0 %;" in found.checks[0].sentences[-1]


def test_recall_cannot_be_told_from_decisions_to_act(tmp_path):
    made = point("defect", hold=(precision >= 0.85, recall >= 0.3))
    told = {"acted": [("defect", 300, 270.0)], "audited": [("defect", 100, 99)]}
    (found,) = checked(tmp_path / "b", made, **told)
    assert [check.verdict for check in found.checks] == ["kept"]
    assert found.unchecked == ("recall is at least 30 %",)
    assert found.state == "unknown"  # one half is kept, of the other nothing is known


def test_a_promise_about_any_class_is_judged_by_all_decisions(tmp_path):
    made = point(None, 0.7, hold=(accuracy >= 0.8,))
    acted = [("defect", 100, 90.0), ("parts", 300, 240.0)]
    told = [("defect", 100, 90), ("parts", 100, 80)]
    (found,) = checked(tmp_path / "b", made, acted=acted, audited=told)
    (check,) = found.checks
    assert (check.acted.audited, check.acted.right) == (200, 170)
    assert check.acted.expected == pytest.approx(330 / 400)
    assert check.acted.interval.confidence == 0.95


def test_of_a_band_only_the_upper_end_is_judged(tmp_path):
    bundle = pack(tmp_path / "b", points=[band()])
    acted = acted_of([ActedCount("yes", 9, 8.5)], [AuditedCount("yes", 300, 299)], 20)
    (found,) = promises_of(bundle, acted, 20)
    assert found.sentence.startswith("Above the band precision is at least 85 %")
    assert [check.verdict for check in found.checks] == ["kept"]
    assert found.unchecked == ("negative predictive value is at least 95 %",)


def test_points_of_several_classes_have_a_sentence_each(tmp_path):
    made = points_of(point("defect", 0.75), point("parts", 0.6))
    told = {"acted": [("parts", 90, 80.0)], "audited": [("parts", 80, 40)]}
    found = checked(tmp_path / "b", made, **told)
    assert [each.state for each in found] == ["bad", "unknown"]  # what is not kept comes first
    assert "'parts'" in found[0].sentence


def test_points_on_request_are_not_judged(tmp_path):
    made = (point("defect", 0.75), point("defect", 0.5))
    told = {"acted": [("defect", 90, 80.0)], "audited": [("defect", 80, 40)]}
    first, second = checked(tmp_path / "b", *made, **told)
    assert (first.on_request, first.state) == (False, "bad")
    assert (second.on_request, second.checks, second.unchecked) == (True, (), ())


def test_decisions_of_other_bundles_judge_nothing(tmp_path):
    told = {"acted": [("defect", 90, 80.0)], "audited": [("defect", 80, 40)]}
    (found,) = checked(tmp_path / "b", point("defect"), comparable=False, **told)
    assert (found.checks, found.unchecked, found.state) == ((), (), "unknown")


def test_where_nothing_is_promised_nothing_is_judged(tmp_path):
    told = {"acted": [("defect", 90, 80.0)], "audited": [("defect", 80, 40)]}
    (found,) = checked(tmp_path / "b", without_promise("defect"), **told)
    assert not found.promised
    assert found.checks == ()
    assert found.sentence.startswith("No promise: ")


def test_what_is_expected_rests_on_the_calibrator_or_on_the_model(tmp_path):
    assert believed(packed(tmp_path / "a", point())) == "calibration still holds"
    plain = pack(tmp_path / "b", points=[point()])
    assert believed(plain) == "the model's own probabilities hold"
    (found,) = promises_of(plain, acted_of([ActedCount("defect", 1, 0.9)], [], 1), 1)
    assert found.checks[0].sentences == [
        "Expected precision, if the model's own probabilities hold: 90.0 %."
    ]


def test_points_above_one_half_of_the_same_scores_never_meet(tmp_path):
    above = packed(tmp_path / "a", point("defect", 0.75), point("parts", 0.6))
    below = packed(tmp_path / "b", point("defect", 0.75), point("parts", 0.4))
    other = pack(
        tmp_path / "c",
        calibrator=temperature(2.0),
        points=[
            BundlePoint(point("defect", 0.75), "calibrated"),
            BundlePoint(point("parts", 0.6), "raw"),
        ],
    )
    any_class = packed(tmp_path / "d", point("defect", 0.75), point(None, 0.7))
    alone = packed(tmp_path / "e", point("defect", 0.1), point("defect", 0.05))
    found = [may_overlap(each) for each in (above, below, other, any_class, alone)]
    assert found == [False, True, True, True, False]


def test_labels_that_contradict_what_was_expected_are_told(tmp_path):
    acted, told = [("defect", 3000, 2400.0)], [("defect", 200, 199)]
    (found,) = checked(tmp_path / "b", point("defect"), acted=acted, audited=told)
    (check,) = found.checks
    assert check.acted.belied
    assert check.sentences[-1] == (
        "Expected precision, if calibration still holds: 80.0 %; the labels say otherwise, so it "
        "does not hold."
    )
    (alike,) = acted_of([ActedCount("a", 10, 9.0)], [AuditedCount("a", 10, 9)], 10)
    assert not alike.belied
