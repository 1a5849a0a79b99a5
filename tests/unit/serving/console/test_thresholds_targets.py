"""Targets: parsed, numbered, and given their share of the error."""

import math

import pytest
from tests.sentences import refuses

from calibrant.errors import InputError
from calibrant.serving.console.pages.thresholds.targets import (
    ThresholdTarget,
    error_share,
    joint_confidence_after,
    number_targets,
    read_target,
)


def test_targets_are_read_with_and_without_the_class():
    target = read_target("defect: precision>=0.85 and recall>=0.3", of="defect")
    assert target == read_target(" precision >= 0.850 and recall>=.3 ", of="defect")
    assert target.text == "precision>=0.85 and recall>=0.3"
    assert ThresholdTarget.from_dict(target.to_dict()) == target


@pytest.mark.parametrize(
    ("text", "of", "clears", "message"),
    [
        ("precision>=2", "defect", False, "strictly between 0 and 1"),
        ("precision>=1", "defect", False, "strictly between 0 and 1"),
        ("precision>=nan", "defect", False, "strictly between 0 and 1"),
        ("foo>=0.5", "defect", False, ("no rate 'foo'",)),
        ("precison>=0.5", "defect", False, ("mean precision",)),
        ("precision", "defect", False, ("not a target",)),
        ("", "defect", False, ("not a target",)),
        ("precision>=high", "defect", False, ("number",)),
        ("parts: precision>=0.5", "defect", False, ("'parts'", "page shows class")),
        ("parts: accuracy>=0.5", None, False, ("page shows", "predictions of any class")),
        (
            "precision>=0.5 and parts: recall>=0.5",
            "defect",
            False,
            ("'parts'", "without a class", "name it first"),
        ),
        ("accuracy>=0.9", "defect", False, ("predictions of any class",)),
        ("precision>=0.9", None, False, ("about one class",)),
        ("precision>=0.9 and precision>=0.8", "defect", False, ("same condition",)),
        ("recall>=0.9 and fpr>=0.5 and specificity>=0.6", "defect", False, ("contradict",)),
        ("precision>=0.9", "defect", True, ("acted on", "threshold clears")),
        ("cost<=0.5", "defect", False, ("no rate 'cost'",)),
    ],
)
def test_a_target_that_does_not_fit_is_refused(text, of, clears, message):
    with refuses(InputError, *message) as error:
        read_target(text, of=of, clears=clears)
    assert "\n" not in str(error.value)


def test_a_class_may_have_any_name():
    assert read_target("a: b and c: recall>=0.5", of="a: b and c").text == "recall>=0.5"


def test_cleared_rows_can_hold_npv_or_recall():
    assert read_target("npv>=0.99", of="defect", clears=True).clears
    assert read_target("recall>=0.99", of="defect", clears=True).clears


@pytest.mark.parametrize(
    "saved", [{}, {"class": "a"}, {"class": "a", "clears": False, "targets": 3}]
)
def test_an_unknown_record_is_refused(saved):
    with pytest.raises(InputError, match="type it again"):
        ThresholdTarget.from_dict(saved)


def test_different_targets_are_numbered_and_repeats_keep_their_number():
    tried = [
        read_target("precision>=0.9", of="a"),
        read_target("precision>=0.9", of="b"),
        read_target("recall>=0.2 and precision>=0.9", of="a"),
        read_target("precision>=0.9 and recall>=0.2", of="a"),  # the order does not count
        read_target("npv>=0.9", of="a"),
        read_target("npv>=0.9", of="a", clears=True),
        read_target("precision>=0.9", of="a"),
    ]
    assert number_targets(each.to_dict() for each in tried) == [1, 2, 3, 3, 4, 5, 1]


def test_targets_of_other_versions_count_too():
    assert number_targets([{"targets": ["precision>=0.9"]}, {"of": 3}, {}]) == [1, 2, 2]


def test_shares_by_hand():
    # 6 / pi^2 = 0.60793; a quarter of it for the second, a ninth for the third.
    assert error_share(1, 1) == pytest.approx(0.6079271)
    assert error_share(2, 1) == pytest.approx(0.1519818)
    assert error_share(3, 4) == pytest.approx(0.6079271 / 9 / 4)


@pytest.mark.parametrize("promises", [1, 2, 7])
def test_all_shares_together_are_one_promises_part(promises):
    total = math.fsum(error_share(k, promises) for k in range(1, 200_000))
    assert total < 1 / promises
    assert total == pytest.approx(1 / promises, rel=1e-5)


def test_joint_confidence_by_hand():
    # Replaced: the same. Added to one: 1 - 0.05 - 0.05 / 2. Added to none: its own.
    assert joint_confidence_after(0.95, 0.95, promises=1, added=False) == 0.95
    assert joint_confidence_after(0.95, 0.95, promises=2, added=True) == pytest.approx(0.925)
    assert joint_confidence_after(0.925, 0.95, promises=3, added=True) == pytest.approx(
        0.925 - 0.05 / 3
    )
    assert joint_confidence_after(None, 0.9, promises=1, added=True) == pytest.approx(0.9)
    assert joint_confidence_after(0.95, 0.95, promises=0, added=False) is None
    assert joint_confidence_after(0.01, 0.5, promises=1, added=True) == 0.0
