"""Rule comparisons and turning points, checked against bundles with other thresholds."""

from dataclasses import replace

import numpy as np
import pytest
from tests.unit.bundle.parts import band, point, points_of, rows, temperature
from tests.unit.serving.bundles import logits_bundle, served

from calibrant.bundle import BundlePoint, load_bundle, pack
from calibrant.ood import OodRule
from calibrant.serving.console.pages.predictions.reasons import UNJUDGED
from calibrant.serving.console.pages.try_it.rules import RowDecision, check_scope, compare_rules
from calibrant.serving.console.pages.try_it.view import (
    distance_words,
    outcome_words,
    scope_words,
    turning_point_words,
)
from calibrant.serving.scoring import ScoreRequest, score

TURNED = ("other", "defect", "parts")


def kinds(folder):
    """Yield bundles of every kind of rule."""
    for kind in ("points", "no calibrator", "two classes", "out of scope"):
        yield kind, logits_bundle(folder / kind, kind)
    each = points_of(point("defect", 0.5), point("parts", 0.4), point("other", 0.6))
    yield "each", pack(folder / "each", points=[each], calibrator=None)
    others = [
        BundlePoint(point("parts", 0.45, on="probs", classes=TURNED), "raw"),
        BundlePoint(point("defect", 0.4, on="probs"), "calibrated"),
        BundlePoint(point(None, 0.7), "calibrated"),
    ]
    yield "others", pack(folder / "others", points=others, calibrator=temperature(0.7))
    yield "band", pack(folder / "band", points=[band(lower=0.4, upper=0.6)])


@pytest.fixture(scope="module")
def bundles(tmp_path_factory):
    return dict(kinds(tmp_path_factory.mktemp("rules")))


def scored(bundle, logits, chosen=None):
    """Return what the service says about rows of logits."""
    slot = served(bundle.path)
    slot = replace(slot, bundle=bundle)
    query = ScoreRequest(slot, logits.tolist(), [], b"", "", 0.0, point=chosen)
    return score([query])[0][1]


def with_threshold(bundle, reading, prob, odds):
    """Return a bundle in which one rule has another threshold."""

    def moved(old):
        return replace(old, threshold=prob, logit=odds, both_kinds=True)

    each, rule = bundle.points[reading.position], reading.rule
    result = each.result
    if isinstance(result, type(band())):
        end = "lower" if rule.clears else "upper"
        result = replace(result, **{end: moved(getattr(result, end))})
    elif hasattr(result, "points"):
        result = replace(result, points={**result.points, rule.point.of: moved(rule.point)})
    else:
        result = moved(result)
    points = list(bundle.points)
    points[reading.position] = BundlePoint(result, each.decides_on)
    return replace(bundle, points=tuple(points))


def outcome_of(row):
    return RowDecision(row.decision, row.acted_as, row.action)


KINDS = ["points", "no calibrator", "two classes", "out of scope", "each", "others", "band"]


@pytest.mark.parametrize("kind", KINDS)
def test_comparisons_agree_with_the_bundle_and_with_bundles_of_other_thresholds(bundles, kind):
    bundle = bundles[kind]
    logits = rows(25, len(bundle.classes), seed=3) / 2
    decisions = bundle.decide(logits=logits)
    turned = set()
    for i, row in enumerate(scored(bundle, logits)):
        comparisons = compare_rules(bundle, row)
        assert [str(each.rule) for each in comparisons] == list(decisions.rules)
        for each, acts in zip(comparisons, decisions.acts[i], strict=True):
            if not row.out_of_scope:
                assert (each.reached != each.rule.clears) == acts
            assert outcome_of(row) == (each.at_most if each.reached else each.above)
            step = 1e-6 * max(1.0, abs(each.odds))
            for sign, expected in ((-1, each.at_most), (1, each.above)):
                odds = each.odds + sign * step
                prob = each.prob * (1 + sign * 1e-6)
                other = with_threshold(bundle, each, prob, odds)
                assert outcome_of(scored(other, logits[i : i + 1])[0]) == expected
            turned.add(each.turns)
    assert True in turned  # the rows reach both sides


@pytest.mark.parametrize("kind", KINDS)
def test_one_rule_at_most_decides(bundles, kind):
    bundle = bundles[kind]
    for row in scored(bundle, rows(40, len(bundle.classes), seed=5)):
        deciding = [each for each in compare_rules(bundle, row) if each.decided]
        assert len(deciding) == (row.decision in ("act", "clear"))
        if row.decision == "act":
            assert str(deciding[0].rule.point.of) in (row.acted_as, "None")


def test_an_alternative_is_compared_if_it_is_requested(bundles):
    bundle = bundles["points"]
    row = scored(bundle, np.array([[2.5, 1.0, 0.0]]), chosen=2)[0]
    (comparisons,) = compare_rules(bundle, row, 2)
    assert (comparisons.position, comparisons.decided, row.acted_as) == (2, True, "defect")
    assert len(compare_rules(bundle, row)) == 2


def test_scores_are_on_the_scale_that_the_rule_decides_on(bundles):
    logits = np.array([[2.0, 1.0, 0.5]])
    (row,) = scored(bundles["no calibrator"], logits)
    (own,) = compare_rules(bundles["no calibrator"], row)
    raw = np.exp(logits[0]) / np.exp(logits[0]).sum()
    assert own.prob == pytest.approx(raw[0])
    (row,) = scored(bundles["points"], logits)
    first = compare_rules(bundles["points"], row)[0]
    assert first.calibrated
    assert first.prob == pytest.approx(row.probs[0])
    assert first.prob < own.prob  # a temperature of 2 flattens


def test_no_threshold_changes_an_out_of_scope_row(bundles):
    bundle = bundles["out of scope"]
    inside, outside = scored(bundle, np.array([[5.0, 0.0, 0.0], [1.0, 0.0, 0.0]]))
    assert check_scope(bundle, inside).outside is False
    comparisons = check_scope(bundle, outside)
    assert (comparisons.name, comparisons.score, comparisons.limit, comparisons.outside) == (
        "max_logit",
        -1.0,
        -2.0,
        True,
    )
    (reading,) = compare_rules(bundle, outside)
    assert not reading.turns
    assert "out-of-scope rows are always left to a person" in turning_point_words(reading)
    assert check_scope(bundles["points"], inside) is None


def test_a_row_that_the_model_cannot_judge_is_not_described_by_its_score(bundles, tmp_path):
    rule = OodRule("energy", 9.0, 0.95, 100, equal=True)
    bundle = pack(tmp_path / "equal", points=[point("defect", 0.5)], ood=rule)
    blank, plain = scored(bundle, np.array([[0.0, 0.0, 0.0], [0.0, 0.0, 1.0]]))
    assert scope_words(check_scope(bundle, blank)) == UNJUDGED
    assert scope_words(check_scope(bundle, plain)).startswith("It is in scope")


def test_words_are_true_at_the_number_they_name(bundles):
    """A threshold as the sentence gives it decides as the sentence says."""
    bundle = bundles["points"]
    logits = rows(60, 3, seed=11) / 2
    for i, row in enumerate(scored(bundle, logits)):
        for each in compare_rules(bundle, row):
            words = turning_point_words(each)
            if not each.turns:
                assert words.startswith("No threshold of this rule changes the decision")
                continue
            expected = float(words.split(" or less")[0].split(",")[0].split()[-1])
            beyond = expected if "or less" in words else np.nextafter(expected, 2)
            odds = np.log(beyond) - np.log1p(-beyond)
            other = with_threshold(bundle, each, beyond, odds)
            now = outcome_of(scored(other, logits[i : i + 1])[0])
            assert f"the bundle would {outcome_words(now)} instead." in words
            assert now != outcome_of(row)


def test_saturated_probabilities_are_shown_as_log_odds(tmp_path):
    sure = point("defect", 0.5, logit=40.0, both_kinds=False)
    bundle = pack(tmp_path / "b", points=[sure])
    (row,) = scored(load_bundle(bundle.path), np.array([[41.0, 0.0, 0.0]]))
    (comparisons,) = compare_rules(bundle, row)
    assert not comparisons.resolved_by_probs
    assert distance_words(comparisons).endswith("log-odds above")
    assert "log-odds, the bundle would leave it to a person instead" in turning_point_words(
        comparisons
    )
