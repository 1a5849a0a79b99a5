"""Promises are checked on all labelled rows that their point would act on."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from sqlalchemy import delete, update
from tests.sentences import assert_mentions
from tests.unit.bundle.parts import point, temperature, without_promise
from tests.unit.serving.console.pages.overview.test_view import labelled, open_page, sent, text_of

from calibrant.bundle import BundlePoint, Versions, pack
from calibrant.ood import OodRule
from calibrant.serving.console.pages.overview import point_audit as overview_point_audit
from calibrant.serving.console.pages.overview.point_audit import audit_points
from calibrant.store.schema import predictions, tallies
from calibrant.thresholds.rates import accuracy, precision

CLASSES = ("A", "B", "C")
MORE_A, MORE_B = [0.60, 0.35, 0.05], [0.36, 0.59, 0.05]
"""Probabilities of rows that both points would act on; the first is decided as A."""


def logits(*probs):
    """Return logits that the bundles here turn into these probabilities."""
    return (2 * np.log(np.array(probs))).tolist()


def make_point(of, least, threshold=0.3):
    """Return a point that promises some precision."""
    text = f"Precision is at least {100 * least:g} % for class {of!r}, with 95 % confidence."
    hold = (precision >= least,)
    return point(of, threshold, classes=CLASSES, hold=hold, guarantee=text)


def packed(folder, *points, **parts):
    """Pack a bundle of points on calibrated scores."""
    chosen = [BundlePoint(each, "calibrated") for each in points]
    return pack(folder, calibrator=temperature(2.0, CLASSES), points=chosen, **parts)


def audited(client):
    """Return rows and right of each rule, and check that counting from scratch gives the same."""
    store, bundle = client.service.store, client.service.slot.current.bundle
    audits = audit_points(store, bundle)
    overview_point_audit._CACHE.pop(bundle)
    recounted = audit_points(store, bundle)
    assert recounted.keys() == audits.keys()
    for place, each in audits.items():
        assert replace(recounted[place], prob=0.0) == replace(each, prob=0.0)
        assert recounted[place].prob == pytest.approx(each.prob)
    return {place: (each.rows, each.right) for place, each in audits.items()}


def send_labelled(client, probs, label, n, **body):
    """Have rows decided and say what they truly were; return their predictions."""
    rows = sent(client, *(logits(probs) * n), **body)
    labelled(client, rows, label)
    return rows


@pytest.fixture
def both(serving, tmp_path):
    """A service whose two points act on the same rows."""
    return serving(packed(tmp_path / "b", make_point("A", 0.5), make_point("B", 0.3)).path)


def test_a_broken_promise_is_not_hidden_by_the_rows_that_another_point_decided(both):
    """Of what was done as A 70 % are right, of what its point would act on 40 %."""
    send_labelled(both, MORE_A, "A", 350)
    send_labelled(both, MORE_A, "C", 150)
    send_labelled(both, MORE_B, "A", 50)
    send_labelled(both, MORE_B, "B", 450)
    assert audited(both) == {(0, 0): (1000, 400), (1, 0): (1000, 450)}
    text = text_of(open_page(both))
    assert "2 promises: 1 kept, 1 not kept." in text
    assert "Not kept Right on 400 of 1,000 labelled rows that it would act on" in text
    assert "70.0 % 350 of 500" in text.partition("By class")[2]


def test_kept_promises_are_not_called_broken_by_the_decisions_made(both):
    """Of what was done as A 40 % are right, of what its point would act on 60 %."""
    send_labelled(both, MORE_A, "A", 200)
    send_labelled(both, MORE_A, "B", 300)
    send_labelled(both, MORE_B, "A", 400)
    send_labelled(both, MORE_B, "B", 100)
    assert audited(both) == {(0, 0): (1000, 600), (1, 0): (1000, 400)}
    assert "2 promises: 2 kept." in text_of(open_page(both))


def test_rows_count_whichever_point_decided(both):
    """A request that asks for a point is decided by that one alone."""
    send_labelled(both, MORE_A, "A", 3, point=0)
    send_labelled(both, MORE_A, "B", 2, point=1)
    send_labelled(both, MORE_A, "A", 1)
    assert audited(both) == {(0, 0): (6, 4), (1, 0): (6, 2)}
    text = text_of(open_page(both))
    assert "Acted on as A 1 16.7 % of the predictions." in text
    assert "5 more were acted on at a point that the request named." in text
    assert_mentions(text, "labels count", "promise whose point would act")


def test_later_labels_are_added_and_corrections_replace_labels(both):
    rows = send_labelled(both, MORE_A, "A", 5)
    assert audited(both)[0, 0] == (5, 5)
    audit_points(both.service.store, both.service.slot.current.bundle)
    labelled(both, rows[:2], "C")
    labelled(both, rows[1:2], "B")
    send_labelled(both, MORE_B, "B", 3)
    send_labelled(both, [0.05, 0.05, 0.9], "C", 2)
    assert audited(both) == {(0, 0): (8, 3), (1, 0): (8, 4)}
    labelled(both, rows[:1], "A")
    assert audited(both)[0, 0] == (8, 4)


def test_erased_predictions_do_not_count(both):
    send_labelled(both, MORE_A, "A", 3, unit="ada")
    send_labelled(both, MORE_A, "C", 1, unit="bob")
    assert audited(both)[0, 0] == (4, 3)
    both.service.store.forget("ada")
    assert audited(both)[0, 0] == (1, 0)


def test_labels_are_not_read_again_while_nothing_changes(both, monkeypatch):
    send_labelled(both, MORE_A, "A", 3)
    open_page(both)

    def read(*_, **__):
        raise AssertionError("labels were read again")

    monkeypatch.setattr(both.service.store.audits, "labelled", read)
    assert "Right on 3 of 3 labelled rows" in text_of(open_page(both))


def test_the_hours_that_are_chosen_do_not_change_the_verdict(both):
    send_labelled(both, MORE_A, "A", 300)
    with both.service.store._database.write() as connection:
        connection.execute(update(predictions).values(at=datetime.now(UTC) - timedelta(days=3)))
        connection.execute(delete(tallies))
    text = text_of(open_page(both))
    assert "No predictions by this version in the last 24 hours" in text
    assert "Kept Right on 300 of 300 labelled rows" in text


def test_saving_another_threshold_does_not_clear_an_audit(both):
    send_labelled(both, MORE_A, "C", 60)
    send_labelled(both, MORE_A, "B", 60)
    before = audited(both)
    assert before == {(0, 0): (120, 0), (1, 0): (120, 60)}
    folder, now = both.service.settings.bundle, both.service.slot.current
    points = [now.bundle.points[0], BundlePoint(without_promise("B", 0.25, classes=CLASSES), "raw")]
    Versions(folder).save_points(points, base=now.hash, change={"what": "moved"}, begin=str)
    both.service.reload()
    assert both.service.slot.current.hash != now.hash
    assert audited(both) == {(0, 0): (120, 0), (1, 0): (0, 0)}
    text = text_of(open_page(both))
    assert "Not kept Right on 0 of 120 labelled rows" in text
    send_labelled(both, MORE_A, "C", 5)
    assert audited(both) == {(0, 0): (125, 0), (1, 0): (5, 0)}


def test_rows_out_of_scope_are_acted_on_by_no_point(serving, tmp_path):
    rule = OodRule("max_logit", 1.5, 0.95, 100)  # flags rows whose largest logit is below -1.5
    client = serving(packed(tmp_path / "b", make_point("A", 0.5), ood=rule).path)
    inside, outside = [0.6, 0.35, 0.05], [0.4, 0.3, 0.3]
    assert max(logits(outside)[0]) < -1.5 < max(logits(inside)[0])
    send_labelled(client, inside, "A", 2)
    send_labelled(client, outside, "A", 2)
    assert audited(client) == {(0, 0): (2, 2)}


def test_a_point_for_any_class_is_right_where_the_predicted_class_is(serving, tmp_path):
    any_class = point(None, 0.5, classes=CLASSES, hold=(accuracy >= 0.8,))
    client = serving(packed(tmp_path / "b", any_class).path)
    send_labelled(client, MORE_A, "A", 3)
    send_labelled(client, MORE_B, "B", 2)
    send_labelled(client, MORE_B, "A", 1)
    send_labelled(client, [0.4, 0.3, 0.3], "A", 4)  # not sure enough
    assert audited(client) == {(0, 0): (6, 5)}


def test_a_verdict_is_withheld_if_logits_are_missing(both):
    rows = send_labelled(both, MORE_A, "C", 100)
    with both.service.store._database.write() as connection:
        lost = update(predictions).where(predictions.c.id == rows[0]["id"]).values(logits=[])
        connection.execute(lost)
    assert audited(both)[0, 0] == (99, 0)
    text = text_of(open_page(both))
    assert "Unknown 1 labelled prediction of this point was stored without" in text
    assert "Not kept" not in text


def test_a_breach_is_not_forgotten_by_later_labels(both):
    send_labelled(both, MORE_A, "C", 40)
    assert "Not kept Right on 0 of 40 labelled rows" in text_of(open_page(both))
    send_labelled(both, MORE_A, "A", 45)
    assert audited(both)[0, 0] == (85, 45)
    text = text_of(open_page(both))
    assert "Not kept Right on 45 of 85 labelled rows that it would act on" in text
    assert "Earlier labels showed that it is not kept." in text
    send_labelled(both, MORE_A, "A", 300)  # all of that time together is what the promise is about
    text = text_of(open_page(both))
    assert "Kept Right on 345 of 385 labelled rows that it would act on" in text
    assert "Earlier labels" not in text


def test_a_breach_does_not_depend_on_when_labels_are_counted(both):
    for _ in range(6):
        send_labelled(both, MORE_A, "C", 7)
        send_labelled(both, MORE_A, "A", 1)
    store, bundle = both.service.store, both.service.slot.current.bundle
    send_labelled(both, MORE_A, "A", 45)
    overview_point_audit._CACHE.pop(bundle, None)
    recounted = audit_points(store, bundle)[0, 0]  # none of the labels was counted before
    assert recounted.broken
    assert recounted.right > 0.5 * recounted.rows
