"""Targets are tried, saved as a new version, and reverted."""

import re
from dataclasses import replace

import pytest
from tests.sentences import assert_mentions
from tests.unit.serving.console.conftest import log_in
from tests.unit.serving.console.thresholds_bundles import (
    NAMES,
    bundle,
    calib_rows,
    certified,
)
from tests.unit.serving.console.thresholds_visits import Visit, text_of

from calibrant.bundle import load_bundle, pack
from calibrant.bundle.calib_rows import CalibRows
from calibrant.bundle.versions.versions import Versions
from calibrant.serving.console.pages.thresholds.rules import find_current, list_choices
from calibrant.serving.console.pages.thresholds.targets import error_share
from calibrant.thresholds import precision
from calibrant.thresholds.labelled_rows import LabelledRows


@pytest.fixture
def visit(serving, tmp_path):
    """Visit the page of a bundle of a kind."""

    def begin(kind="points", **options):
        return Visit(serving(bundle(tmp_path / "returns", kind, **options).path))

    return begin


def points_of(there):
    return load_bundle(there.folder).points


def by_hand(rows, of, hold, *, share, names=("defect", "parts", "other")):
    labelled = LabelledRows(rows.logits, rows.codes, names, rows.weights)
    return labelled.select_point(of, hold, confidence=0.95, share=share)


def test_a_target_is_recorded_then_certified_with_its_share(visit):
    there = visit("points")
    page = there.try_target("precision>=0.75")
    (event,) = there.events("target_tried")
    assert event.details == {"class": "defect", "clears": False, "targets": ["precision>=0.75"]}
    assert event.subject == there.service.slot.current.bundle.calib.unordered_hash
    words = text_of(page)
    assert "Target precision>=0.75: Certified" in words
    assert "target number 1 on these rows" in words
    assert "may spend 30.4 % of the allowed error" in words  # 6 / pi^2, halved
    assert "a safeguard, not a proof" in words
    point = by_hand(calib_rows(), "defect", (precision >= 0.75,), share=error_share(1, 2))
    assert f"at least {point.threshold!r}" in words


def test_a_promise_on_weighted_rows_says_what_no_row_may_weigh(visit):
    rows = calib_rows(3000, weights=True)
    there = visit("one point", rows=rows)
    words = text_of(there.try_target("precision>=0.75"))
    assert "drawn like these 3,000, if no row could weigh more than 2, the largest seen." in words
    assert_mentions(words, "largest weight among these rows, 2,", "sampling design allows")
    assert "largest_weight" not in words  # nothing on the page sets it


def test_rows_bring_the_largest_weight_of_their_design(visit):
    rows = calib_rows(3000, weights=True)
    known = CalibRows(rows.logits, rows.codes, rows.weights, 3.0)
    there = visit("one point", rows=known)
    words = text_of(there.try_target("precision>=0.75"))
    assert "drawn like these 3,000, if no row could weigh more than 3." in words
    labelled = LabelledRows(rows.logits, rows.codes, NAMES, rows.weights, largest_weight=3.0)
    point = labelled.select_point(
        "defect", (precision >= 0.75,), confidence=0.95, share=error_share(1, 1)
    )
    assert f"at least {point.threshold!r}" in words


def test_each_different_target_of_any_class_counts_and_a_repeat_does_not(visit):
    there = visit("points")
    for hold, rule in (("precision>=0.75", "0"), ("precision>=0.75", "1"), ("recall>=0.5", "0")):
        there.try_target(hold, rule)
    assert "target number 3 on" in text_of(there.page)
    assert "target number 1 on" in text_of(there.try_target(" precision >= 0.750 ", "0"))
    assert len(there.events("target_tried")) == 3


def test_the_number_of_a_target_is_kept_over_versions(visit):
    there = visit("points")
    there.try_target("precision>=0.75")
    there.save()
    there.look(rule="0")
    assert "target number 2 on" in text_of(there.try_target("precision>=0.7"))


def test_models_that_were_chosen_by_the_same_rows_share_the_error_too(serving, tmp_path):
    rows = calib_rows()
    first = replace(certified(rows, "defect"), candidates=10)
    packed = pack(tmp_path / "returns", points=[first], classes=NAMES, calib=rows)
    there = Visit(serving(packed.path))
    words = text_of(there.try_target("precision>=0.7"))
    assert "chosen among 10 models" in words
    alone = by_hand(rows, "defect", (precision >= 0.7,), share=error_share(1, 1) / 10)
    assert f"at least {alone.threshold!r}" in words


def test_an_unreachable_target_says_why_and_how_many_labels_are_missing(visit):
    there = visit("one point")
    page = there.try_target("precision>=0.97")
    words = text_of(page)
    assert "Not reached" in words
    assert "Best value proved" in words
    assert "Labelled rows needed" in words
    assert "Save this threshold" not in words
    (event,) = there.events("target_tried")
    sent = there.send("save", tried=event.id)
    assert sent.status_code == 409
    assert "No threshold holds that target" in text_of(sent)
    assert [each.kind for each in there.events()] == ["target_tried"]


def test_saving_writes_and_serves_a_version_and_records_who_and_why(visit):
    there = visit("points")
    before = there.look()
    base = there.hash
    old = points_of(there)
    there.try_target("precision>=0.75")
    page = there.save(reason="more <b>parts</b>")
    words = text_of(page)
    assert_mentions(words, "new threshold", "saved and in use")
    assert there.service.slot.current.hash == there.hash != base
    new = points_of(there)
    assert new[1] == old[1]  # the other class is as it was
    assert new[0].result == by_hand(
        calib_rows(), "defect", (precision >= 0.75,), share=error_share(1, 2)
    )
    assert new[0].decides_on == "raw"
    (event,) = there.events("point_saved")
    assert (event.before, event.after, event.key) == (base, there.hash, None)
    assert event.subject == there.service.slot.current.name
    assert event.details["reason"] == "more <b>parts</b>"
    assert event.details["number_of_target"] == 1
    assert "<b>parts</b>" not in page.text
    assert "Reason: more <b>parts</b>" in words
    assert before.status_code == 200


def test_replacing_keeps_the_joint_confidence_and_adding_lowers_it(visit):
    there = visit("points")
    words = text_of(there.try_target("precision>=0.75"))
    assert "hold jointly with 95 % confidence" in words
    assert "That is less" not in words
    there.save()
    assert load_bundle(there.folder).provenance["confidence_together"] == 0.95
    there.look(rule="2")
    words = text_of(there.try_target("precision>=0.7", "2"))
    # 1 - 0.05 - 0.05 / 3
    assert "That is less than the current 95 %" in words
    assert "with 93.33 % confidence" in words
    there.save()
    loaded = load_bundle(there.folder)
    assert loaded.provenance["confidence_together"] == pytest.approx(0.95 - 0.05 / 3)
    assert [each.result.of for each in loaded.points] == ["defect", "parts", "other"]
    card = (there.folder / "card.md").read_text()
    assert "All promises of all points hold together, with 93.33 % confidence." in card


def test_the_first_point_of_a_bundle_can_be_saved(visit):
    there = visit("no points")
    there.try_target("precision>=0.75", "1")
    there.save()
    loaded = load_bundle(there.folder)
    assert loaded.provenance["confidence_together"] == 0.95
    assert [each.decides_on for each in loaded.points] == ["raw"]
    there.look(rule="any")
    assert "Not found" not in text_of(there.page)


@pytest.mark.parametrize(
    ("kind", "hold", "rule"),
    [
        ("alternatives", "precision>=0.75", "0"),
        ("several classes", "precision>=0.75", "1"),
        ("top label", "accuracy>=0.75", "any"),
        ("calibrated", "precision>=0.75", "0"),
        ("out of scope", "precision>=0.75 and recall>=0.2", "0"),
        ("band", "precision>=0.85", "1"),
        ("band", "npv>=0.85", "1c"),
    ],
)
def test_a_certified_threshold_of_every_kind_of_bundle_decides_after_it_was_saved(
    visit, kind, hold, rule
):
    there = visit(kind)
    there.look(rule=rule)
    words = text_of(there.try_target(hold, rule))
    assert "Certified" in words
    assert "Compared with the current threshold" in words
    there.save()
    loaded = load_bundle(there.folder)
    choice = next(each for each in list_choices(loaded) if each.code == rule)
    current = find_current(loaded, choice)
    assert (current.promised, current.decides_on) == (True, "raw")
    assert " and ".join(map(str, current.rule.point.hold)) == hold
    assert there.look(rule=rule).status_code == 200


def test_a_band_whose_ends_would_cross_cannot_be_saved(visit):
    there = visit("band")
    there.look(rule="1")
    there.try_target("precision>=0.1", "1")
    assert_mentions(
        text_of(there.page), "cannot be saved", "rows to act", "rows to clear would overlap"
    )
    (event,) = there.events()
    base = there.hash
    sent = there.send("save", tried=event.id, base=base)
    assert sent.status_code == 409
    assert there.hash == base


def test_an_earlier_version_is_restored(visit):
    there = visit("points")
    first = there.hash
    there.try_target("precision>=0.75")
    there.save()
    saved = there.hash
    assert f"Restore version {first[:12]}" in text_of(there.page)
    sent = there.send("restore", version=first, reason="too many mistakes")
    assert sent.status_code == 303
    page = there.client.get(sent.headers["location"])
    assert_mentions(text_of(page), "earlier version", "restored and in use")
    assert there.hash == there.service.slot.current.hash == first
    (event,) = there.events("version_restored")
    assert (event.before, event.after) == (saved, first)
    assert event.details["reason"] == "too many mistakes"
    assert {each.hash for each in Versions(there.folder).all()} == {first, saved}
    there.page = page
    assert there.send("restore", version=saved).status_code == 303  # and forth again
    assert there.hash == saved


def test_a_threshold_set_by_hand_promises_nothing(visit):
    there = visit("points")
    there.look(rule="0")
    page = there.save(rule="0", threshold="0.9", on="raw", unit="probability", reason="campaign")
    point = points_of(there)[0].result
    assert (point.threshold, point.guarantee, point.why) == (0.9, None, "it was set by hand")
    assert_mentions(text_of(page), "carries no promise", "set by hand")
    rows = calib_rows()
    acts = point.act(logits=rows.logits)
    assert point["precision"].value == pytest.approx((rows.codes[acts] == 0).mean())
    assert load_bundle(there.folder).provenance["confidence_together"] == 0.95
    (event,) = there.events()
    assert_mentions(event.details["what"], "set", "hand", "carries no promise")


def test_manual_thresholds_may_be_log_odds_on_calibrated_scores(visit):
    there = visit("calibrated")
    there.look()
    there.save(rule="0", threshold="1.5", on="calibrated", unit="log-odds")
    (entry,) = points_of(there)
    assert (entry.decides_on, entry.result.logit) == ("calibrated", 1.5)
    bundle = load_bundle(there.folder)
    acts = bundle.decide(logits=bundle.calib.logits).acts[:, 0]
    assert entry.result["coverage"].value == pytest.approx(acts.mean())


def test_a_change_names_the_admin(serving, tmp_path):
    client = serving(bundle(tmp_path / "returns").path, need_key=True)
    key, token = client.service.store.keys.add("Berta", "admin")
    log_in(client, token)
    there = Visit(client)
    there.try_target("precision>=0.75")
    page = there.save()
    assert there.events("point_saved")[0].key == key.id
    assert re.search("by Berta", text_of(page))
