"""What was done in the name of a class: expected and audited precision."""

import pytest

from calibrant.serving.console.pages.overview.audit import acted_of, added
from calibrant.stats import robbins
from calibrant.store import ActedCount, AuditedCount


def test_expected_precision_is_the_mean_probability_of_acted_decisions():
    # Three decisions to act at 0.9, 0.8 and 0.7: their mean is 0.8.
    (found,) = acted_of([ActedCount("defect", 3, 2.4)], [], 12)
    assert found.expected == pytest.approx(0.8)
    assert found.share == 0.25
    assert (found.audited, found.precision, found.interval) == (0, None, None)


def test_audited_precision_has_an_interval_that_holds_at_any_time():
    (found,) = acted_of([ActedCount("defect", 500, 450.0)], [AuditedCount("defect", 100, 86)], 500)
    assert found.precision == 0.86
    assert found.interval == robbins(86, 100)
    assert added([found], 500).interval == robbins(86, 100)  # one class is all there is


def test_intervals_of_several_classes_and_of_all_together_share_the_error():
    told = [AuditedCount("a", 100, 86), AuditedCount("b", 50, 40)]
    acted = [ActedCount("a", 200, 180.0), ActedCount("b", 300, 240.0), ActedCount("c", 9, 8.0)]
    found = acted_of(acted, told, 1000)
    assert [each.name for each in found] == ["b", "a", "c"]  # the most frequent first
    errors = [1 - each.interval.confidence for each in (*found[:2], added(found, 1000))]
    assert errors == pytest.approx([0.05 / 4] * 3)  # three classes, and all together
    assert found[1].interval.low < robbins(86, 100).low  # wider than alone
    assert found[2].interval is None


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
    assert found.interval.confidence == pytest.approx(1 - 0.05 / 3)
    assert added((), 8).expected is None
