"""Whether promises are kept, by the labelled rows that their points would act on."""

from datetime import UTC, datetime

import pytest
from tests.sentences import assert_mentions
from tests.unit.bundle.parts import band, point, points_of, temperature, without_promise

from calibrant.bundle import BundlePoint, pack
from calibrant.serving.console.pages.overview.audit import describe_assumption, summarise_acted
from calibrant.serving.console.pages.overview.point_audit import PointAudit
from calibrant.serving.console.pages.overview.promises import check_promises, may_overlap
from calibrant.stats import clopper_pearson, robbins
from calibrant.store import ActedCount
from calibrant.thresholds.rates import accuracy, false_discovery, precision, recall

SINCE = datetime(2026, 3, 2, tzinfo=UTC)


def packed(folder, *points, on="calibrated", classes=None):
    of = {} if classes is None else {"classes": classes}
    chosen = [BundlePoint(each, on) for each in points]
    return pack(folder, calibrator=temperature(2.0, **of), points=chosen)


def checked(folder, *points, acted=(), audits=None, total=1000, **how):
    """Return the promises of a bundle of these points, checked by these counts."""
    summaries = summarise_acted([ActedCount(*each) for each in acted], [], total)
    point_audits = {place: PointAudit(*each, since=SINCE) for place, each in (audits or {}).items()}
    return check_promises(packed(folder, *points), point_audits, summaries, total, **how)


@pytest.mark.parametrize(
    ("right", "verdict", "badge"),
    [(98, "kept", "Kept"), (86, "undecidable", "Undecided"), (70, "broken", "Not kept")],
)
def test_a_promise_is_judged_by_the_labels(tmp_path, right, verdict, badge):
    (promise,) = checked(tmp_path / "b", point("defect"), audits={(0, 0): (100, right, 90.0)})
    (check,) = promise.checks
    assert (check.verdict, check.badge) == (verdict, badge)
    assert promise.state == {"kept": "good", "broken": "bad"}.get(verdict, "unknown")
    assert check.interval == robbins(right, 100)
    assert check.sentences[0].startswith(
        f"Right on {right} of 100 labelled rows that it would act on, since 2026-03-02: {right}.0 %"
    )
    assert ("more labels would decide" in " ".join(check.sentences)) == (verdict == "undecidable")


@pytest.mark.parametrize("n", [1, 7, 40, 150])
def test_a_verdict_is_what_its_interval_says(tmp_path, n):
    bundle = packed(tmp_path / "b", point("defect"))
    for right in range(n + 1):
        counts = {(0, 0): PointAudit(n, right, n * 0.9)}
        ((check,),) = (each.checks for each in check_promises(bundle, counts, (), n))
        span = check.interval
        wanted = "kept" if span.low >= 0.85 else "broken" if span.high <= 0.85 else "undecidable"
        assert check.verdict == wanted, (right, n)


def test_a_broken_promise_stays_broken_until_all_labels_contradict_it(tmp_path):
    for right, verdict in ((70, "broken"), (86, "broken"), (98, "kept")):
        counts = {(0, 0): (100, right, 90.0, 0, True)}
        (promise,) = checked(tmp_path / f"{right}", point("defect"), audits=counts)
        (check,) = promise.checks
        assert check.verdict == verdict
        assert (check.sentences[1] == "Earlier labels showed that it is not kept.") == (right == 86)
        assert check.labels_needed is None


def test_without_labels_only_the_expected_figure_is_shown(tmp_path):
    (promise,) = checked(tmp_path / "b", point("defect"), acted=[("defect", 300, 270.0)])
    (check,) = promise.checks
    assert (check.verdict, check.badge, check.state) == (None, "Not audited yet", "unknown")
    assert check.sentences == ["Expected precision, if calibration still holds: 90.0 %."]
    (none,) = checked(tmp_path / "c", point("defect"))
    assert none.checks[0].sentences == ["No decisions to act in this time."]


def test_an_expected_figure_below_the_promise_is_noted_beyond_chance(tmp_path):
    (few,) = checked(tmp_path / "a", point("defect"), acted=[("defect", 1, 0.8)])
    (many,) = checked(tmp_path / "b", point("defect"), acted=[("defect", 3000, 2400.0)])
    assert "does not meet" not in few.checks[0].sentences[0]
    assert many.checks[0].sentences[0].endswith("80.0 %, which does not meet the promise.")


def test_a_false_discovery_rate_counts_wrong_decisions(tmp_path):
    operating_point = point("defect", hold=(false_discovery <= 0.15,))
    (promise,) = checked(tmp_path / "b", operating_point, audits={(0, 0): (100, 70, 90.0)})
    assert promise.checks[0].verdict == "broken"
    assert_mentions(promise.checks[0].sentences[-1], "Expected false discovery", "rate")
    assert "10.0 %;" in promise.checks[0].sentences[-1]


def test_recall_cannot_be_estimated_from_decisions_to_act(tmp_path):
    operating_point = point("defect", hold=(precision >= 0.85, recall >= 0.3))
    (promise,) = checked(tmp_path / "b", operating_point, audits={(0, 0): (100, 99, 90.0)})
    assert [check.verdict for check in promise.checks] == ["kept"]
    assert promise.unchecked == ("recall is at least 30 %",)
    assert promise.state == "unknown"  # one half is kept, of the other nothing is known


def test_a_promise_about_any_class_is_expected_of_all_decisions(tmp_path):
    operating_point = point(None, 0.7, hold=(accuracy >= 0.8,))
    acted = [("defect", 100, 90.0), ("parts", 300, 240.0)]
    (promise,) = checked(tmp_path / "b", operating_point, acted=acted)
    assert promise.checks[0].acted.expected == pytest.approx(330 / 400)
    (promise,) = checked(
        tmp_path / "c", operating_point, acted=acted, audits={(0, 0): (200, 170, 165.0)}
    )
    assert promise.checks[0].interval == robbins(170, 200)


def test_of_a_band_only_the_upper_end_is_judged(tmp_path):
    bundle = pack(tmp_path / "b", points=[band()])
    (promise,) = check_promises(bundle, {(0, 0): PointAudit(300, 299, 290.0)}, (), 20)
    assert promise.sentence.startswith("Above the band precision is at least 85 %")
    assert [check.verdict for check in promise.checks] == ["kept"]
    assert promise.unchecked == ("negative predictive value is at least 95 %",)


def test_points_of_several_classes_have_a_sentence_each(tmp_path):
    points = points_of(point("defect", 0.75), point("parts", 0.6))
    promises = checked(tmp_path / "b", points, audits={(0, 1): (80, 40, 70.0)})
    assert [each.state for each in promises] == ["bad", "unknown"]  # what is not kept comes first
    assert "'parts'" in promises[0].sentence


def test_every_promise_has_its_share_of_the_error_before_any_label(tmp_path):
    """Shares that grew smaller as labels come in would add up to more than is allowed."""
    points = (point("defect", 0.75), point("parts", 0.6), without_promise("other", 0.9))
    promises = checked(tmp_path / "b", *points, audits={(0, 0): (100, 90, 90.0)})
    (check,) = promises[0].checks
    assert check.interval == robbins(90, 100, confidence=0.975)


def test_the_verdict_is_withheld_if_logits_are_missing(tmp_path):
    (promise,) = checked(tmp_path / "b", point("defect"), audits={(0, 0): (100, 20, 90.0, 3)})
    (check,) = promise.checks
    assert (check.verdict, check.badge, promise.state) == (None, "Unknown", "unknown")
    assert check.sentences[0].startswith(
        "3 labelled predictions of this point were stored without the logits of all classes"
    )


def test_with_overlapping_points_decisions_do_not_judge_a_promise(tmp_path):
    points = (point("defect", 0.3), point("parts", 0.3))
    first, _ = checked(tmp_path / "b", *points, acted=[("defect", 3000, 2400.0)])
    assert first.checks[0].sentences == ["No labels yet."]
    counts = {(0, 0): (1000, 960, 950.0)}
    first, _ = checked(tmp_path / "c", *points, acted=[("defect", 3000, 2400.0)], audits=counts)
    assert first.checks[0].verdict == "kept"
    assert first.checks[0].sentences[-1].endswith("95.0 %.")


def test_a_fixed_sample_interval_would_decide_earlier(tmp_path):
    """93 of 100 are enough for one check at a fixed size, and not for daily checks."""
    assert clopper_pearson(93, 100).low > 0.85
    (promise,) = checked(tmp_path / "b", point("defect"), audits={(0, 0): (100, 93, 90.0)})
    assert promise.checks[0].verdict == "undecidable"


@pytest.mark.parametrize(("right", "rows"), [(93, 100), (80, 100), (3, 3), (0, 1)])
def test_the_stated_number_of_further_labels_decides(right, rows, tmp_path):
    (promise,) = checked(
        tmp_path / "b", point("defect"), audits={(0, 0): (rows, right, 0.9 * rows)}
    )
    (check,) = promise.checks
    assert check.verdict == "undecidable"
    for more, decided in ((check.labels_needed, True), (check.labels_needed - 1, False)):
        span = robbins(right / rows * (rows + more), rows + more)
        assert (span.low >= 0.85 or span.high <= 0.85) == decided


def test_a_share_equal_to_the_target_is_never_decided(tmp_path):
    (promise,) = checked(tmp_path / "b", point("defect"), audits={(0, 0): (100, 85, 90.0)})
    assert (promise.checks[0].verdict, promise.checks[0].labels_needed) == ("undecidable", None)


def test_points_on_request_are_not_judged(tmp_path):
    points = (point("defect", 0.75), point("defect", 0.5))
    counts = {"acted": [("defect", 90, 80.0)], "audits": {(0, 0): (80, 40, 70.0)}}
    first, second = checked(tmp_path / "b", *points, **counts)
    assert (first.on_request, first.state) == (False, "bad")
    assert (second.on_request, second.checks, second.unchecked) == (True, (), ())


def test_decisions_of_other_bundles_judge_nothing(tmp_path):
    counts = {"acted": [("defect", 90, 80.0)], "audits": {(0, 0): (80, 40, 70.0)}}
    (promise,) = checked(tmp_path / "b", point("defect"), comparable=False, **counts)
    assert (promise.checks, promise.unchecked, promise.state) == ((), (), "unknown")


def test_points_without_a_promise_are_not_judged(tmp_path):
    counts = {"acted": [("defect", 90, 80.0)], "audits": {(0, 0): (80, 40, 70.0)}}
    (promise,) = checked(tmp_path / "b", without_promise("defect"), **counts)
    assert not promise.promised
    assert promise.checks == ()
    assert promise.sentence.startswith("No promise: ")


def test_expected_figures_rest_on_the_calibrator_or_on_the_model(tmp_path):
    assert describe_assumption(packed(tmp_path / "a", point())) == "calibration still holds"
    plain = pack(tmp_path / "b", points=[point()])
    assert describe_assumption(plain) == "the model's own probabilities hold"
    (promise,) = check_promises(
        plain, {}, summarise_acted([ActedCount("defect", 1, 0.9)], [], 1), 1
    )
    assert promise.checks[0].sentences == [
        "Expected precision, if the model's own probabilities hold: 90.0 %."
    ]


def test_points_above_one_half_of_the_same_scores_never_overlap(tmp_path):
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
    promise = [may_overlap(each) for each in (above, below, other, any_class, alone)]
    assert promise == [False, True, True, True, False]


def test_labels_that_contradict_the_expected_figure_are_reported(tmp_path):
    (promise,) = checked(tmp_path / "b", point("defect"), audits={(0, 0): (200, 199, 160.0)})
    assert_mentions(
        promise.checks[0].sentences[-1],
        "Expected precision",
        "calibration still",
        "80.0 %",
        "labels contradict",
        "not hold",
    )
    (alike,) = checked(tmp_path / "c", point("defect"), audits={(0, 0): (200, 199, 198.0)})
    assert alike.checks[0].sentences[-1].endswith("99.0 %.")
