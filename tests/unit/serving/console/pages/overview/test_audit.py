"""Decisions made for a class: expected and audited precision."""

import pytest

from calibrant.serving.console.pages.overview.audit import combine_acted, summarise_acted
from calibrant.stats import robbins
from calibrant.store import ActedCount, AuditedCount


def test_expected_precision_is_the_mean_probability_of_acted_decisions():
    # Three decisions to act at 0.9, 0.8 and 0.7: their mean is 0.8.
    (summary,) = summarise_acted([ActedCount("defect", 3, 2.4)], [], 12)
    assert summary.expected == pytest.approx(0.8)
    assert summary.share == 0.25
    assert (summary.audited, summary.precision, summary.interval) == (0, None, None)


def test_audited_precision_has_an_interval_that_holds_at_any_time():
    (summary,) = summarise_acted(
        [ActedCount("defect", 500, 450.0)], [AuditedCount("defect", 100, 86)], 500
    )
    assert summary.precision == 0.86
    assert summary.interval == robbins(86, 100)
    assert combine_acted([summary], 500).interval == robbins(86, 100)  # one class is all there is


def test_intervals_of_several_classes_and_of_all_together_share_the_error():
    audited = [AuditedCount("a", 100, 86), AuditedCount("b", 50, 40)]
    acted = [ActedCount("a", 200, 180.0), ActedCount("b", 300, 240.0), ActedCount("c", 9, 8.0)]
    summary = summarise_acted(acted, audited, 1000)
    assert [each.name for each in summary] == ["b", "a", "c"]  # the most frequent first
    errors = [1 - each.interval.confidence for each in (*summary[:2], combine_acted(summary, 1000))]
    assert errors == pytest.approx([0.05 / 4] * 3)  # three classes, and all together
    assert summary[1].interval.low < robbins(86, 100).low  # wider than alone
    assert summary[2].interval is None


def test_a_class_with_labels_but_no_decisions_in_the_hours_is_listed():
    (summary,) = summarise_acted([], [AuditedCount("defect", 4, 4)], 0)
    assert (summary.n, summary.share, summary.expected, summary.precision) == (0, 0.0, None, 1.0)


def test_all_classes_together():
    audited = [AuditedCount("a", 10, 9), AuditedCount("b", 30, 20)]
    both = summarise_acted([ActedCount("a", 3, 2.7), ActedCount("b", 1, 0.5)], audited, 8)
    summary = combine_acted(both, 8)
    assert (summary.name, summary.n, summary.share) == (None, 4, 0.5)
    assert summary.expected == pytest.approx(0.8)
    assert (summary.audited, summary.right) == (40, 29)
    assert summary.interval.confidence == pytest.approx(1 - 0.05 / 3)
    assert combine_acted((), 8).expected is None
