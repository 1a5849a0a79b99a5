"""The list of predictions: filters, pages, and what is said where nothing can be shown."""

from datetime import timedelta

import pytest
from tests.sentences import assert_mentions
from tests.unit.serving.bundles import logits_bundle
from tests.unit.serving.console.conftest import log_in
from tests.unit.serving.console.predictions_log import (
    START,
    keep,
    look,
    make_prediction,
)

from calibrant.store import Label, Outcome


@pytest.fixture
def client(serving, logits_folder):
    return serving(logits_folder)


@pytest.fixture
def bundle(client):
    return client.service.slot.current.hash


def of_another_bundle(client):
    """Put a second bundle on record and return its hash."""
    other = "f" * 64
    client.service.store.bundles.record(
        hash=other, name="older", classes=["defect", "parts", "lost"], manifest={}, at=START
    )
    return other


def test_without_predictions_the_page_says_what_to_do(client):
    page = look(client)
    assert page.status == 200
    assert "No predictions yet." in page.text
    assert page.all("a", href="/console/try")


def test_predictions_are_listed_newest_first_with_what_matters(client, bundle):
    acted = {"decision": "act", "acted_as": "defect", "operating_point": 0, "score": 0.9}
    ids = keep(
        client,
        make_prediction(
            bundle, 0, **acted, use_case="returns", input={"row": {"weight": 2.5, "fat": None}}
        ),
        make_prediction(bundle, 1, decision="clear", input=None),
        make_prediction(bundle, 2, decision="out_of_scope", label="parts"),
        make_prediction(bundle, 3, decision=None, input={"text": "a" * 200}),
        make_prediction(bundle, 4),
    )
    client.service.store.outcomes.add(
        [Outcome("o", START, ids[1], "refund", None, None, None)],
        [
            Label("a", START, ids[0], "parts", None, None),
            Label("b", START + timedelta(days=1), ids[0], "truly other", None, None),
        ],
        other=["b"],
    )
    page = look(client)
    assert page.ids == ids[::-1]
    for words in (
        "acted as defect", "cleared", "out of scope", "no decision", "left to a person",
        "weight: 2.5, fat: (empty)", "only its hash was stored", "a" * 119 + "…", "returns",
        "0.900", "2026-03-01 12:04:00", "truly other", "All predictions, newest first.",
        "5 on this page, which is all of them.",
    ):  # fmt: skip
        assert words in page.text, words
    assert "a" * 120 not in page.text
    assert page.text.count("not labelled") == 4  # an outcome is no label


def test_the_predictions_of_the_service_itself_are_listed(client):
    body = {"inputs": [{"logits": [9.0, 0.0, 0.0]}], "unit": "customer-17"}
    answer = client.post("/v1/predict", json=body).json()
    page = look(client, unit="customer-17")
    assert page.ids == [answer["predictions"][0]["id"]]
    assert "acted as defect" in page.text


FILTERS = [
    ({"label": "parts"}, [1], "of class “parts”"),
    ({"decision": "act"}, [1, 3], "acted on"),
    ({"decision": "abstain", "label": "defect"}, [0, 2], "left to a person"),
    ({"min_score": "0.8"}, [2, 3], "with a probability of at least 0.8"),
    ({"max_score": "0.8"}, [0, 1, 2], "with a probability of at most 0.8"),
    ({"min_score": "0.8", "max_score": "0.8"}, [2], "with a probability of at least 0.8, with"),
    ({"since": "2026-03-01T12:01"}, [1, 2, 3], "made from 2026-03-01 12:01 UTC"),
    ({"until": "2026-03-01T12:01"}, [0], "made before 2026-03-01 12:01 UTC"),
    ({"since": "2026-03-01T13:01:30+01:00"}, [2, 3], "made from 2026-03-01 12:01:30 UTC"),
    ({"unit": "u-1"}, [0, 3], "about unit “u-1”"),
    ({"unit": "u-1", "decision": "act"}, [3], "acted on, about unit “u-1”"),
    ({"use_case": "shop"}, [2], "for use case “shop”"),
    ({"search": " u-1 "}, [0, 3], "unit id “u-1”"),
    ({"search": ":order-2"}, [2], "unit id “:order-2”"),
    ({"search": ":order-2", "label": "parts"}, [], "of class “parts”"),
    ({"search": ":order-2", "min_score": "0.81"}, [], "at least 0.81"),
    ({"search": ":order-2", "since": "2026-03-01T12:02", "until": "2026-03-01T12:03"}, [2], ""),
    ({"search": "u-1", "unit": "u-2"}, [], "about unit “u-2”"),
    ({"label": "", "decision": "", "search": "  ", "min_score": ""}, [0, 1, 2, 3], "All pred"),
]  # fmt: skip


@pytest.mark.parametrize(("query", "places", "phrase"), FILTERS)
def test_a_filter_selects_matches_and_is_described(client, bundle, query, places, phrase):
    acted = {"decision": "act", "operating_point": 0}
    ids = keep(
        client,
        make_prediction(bundle, 0, unit="u-1"),
        make_prediction(bundle, 1, **acted, acted_as="parts", label="parts"),
        make_prediction(bundle, 2, score=0.8, use_case="shop"),
        make_prediction(bundle, 3, **acted, acted_as="defect", score=0.95, unit="u-1"),
    )
    page = look(client, **query)
    assert page.status == 200
    assert page.ids == [ids[i] for i in reversed(places)]
    assert phrase in page.text
    for name, typed in query.items():
        shown = "2026-03-01T12:01:30" if "+01:00" in typed else typed
        assert page.field(name).get("value", shown) == shown


def test_versions_of_bundles_are_separated_even_if_they_alternate(client, bundle):
    other = of_another_bundle(client)
    served = [0, 1, 30, 31, 60 * 24 * 3, 60 * 24 * 3 + 61, 60 * 24 * 9]
    ids = keep(
        client, *(make_prediction(other if i % 2 else bundle, at) for i, at in enumerate(served))
    )
    for version, own in ((bundle, ids[::2]), (other, ids[1::2])):
        page = look(client, bundle=version)
        assert page.ids == own[::-1]
        assert f"by bundle version “{version[:12]}”" in page.text
        assert page.all("option", value=version)[0].keys() >= {"selected"}
    assert look(client, bundle=other[:12], since="2026-03-02T00:00").ids == [ids[5]]
    assert look(client, bundle=other, until="2026-03-01T12:20").ids == [ids[1]]
    assert look(client, bundle=other, before=ids[5]).ids == [ids[3], ids[1]]
    assert look(client, bundle=other, decision="act").ids == []


def test_pages_follow_each_other_and_lead_back(client, bundle):
    ids = keep(client, *(make_prediction(bundle, i, unit="u&1") for i in range(101)))[::-1]
    first = look(client, unit="u&1")
    assert first.ids == ids[:50]
    (older,) = (a["href"] for a in first.all("a", rel="next"))
    assert older == f"/console/predictions?unit=u%261&before={ids[49]}"
    second = look(client, unit="u&1", before=ids[49])
    assert second.ids == ids[50:100]
    assert second.all("a", href="/console/predictions?unit=u%261")
    last = look(client, unit="u&1", before=ids[99])
    assert last.ids == ids[100:]
    assert not last.all("a", rel="next")
    end = look(client, unit="u&1", before=ids[100])
    assert "There are no older predictions." in end.text
    assert end.all("a", href="/console/predictions?unit=u%261")


def test_a_page_of_exactly_fifty_is_the_last(client, bundle):
    keep(client, *(make_prediction(bundle, i) for i in range(50)))
    page = look(client)
    assert len(page.ids) == 50
    assert not page.all("a", rel="next")


def test_pages_of_a_long_request(client, bundle):
    rows = [make_prediction(bundle, 0, request="r", position=i) for i in range(60)]
    keep(client, *rows)
    ids = sorted((each.id for each in rows), reverse=True)
    first = look(client, search="r")
    assert first.ids == ids[:50]
    (older,) = (a["href"] for a in first.all("a", rel="next"))
    assert look(client, older.removeprefix("/console/predictions")).ids == ids[50:]


def test_pages_of_a_bundle_version(client, bundle):
    ids = keep(client, *(make_prediction(bundle, 30 * i) for i in range(60)))[::-1]
    first = look(client, bundle=bundle)
    assert first.ids == ids[:50]
    (older,) = (a["href"] for a in first.all("a", rel="next"))
    assert look(client, older.removeprefix("/console/predictions")).ids == ids[50:]


def test_the_id_of_a_prediction_leads_to_it(client, bundle):
    (id,) = keep(client, make_prediction(bundle))
    response = client.get(f"/console/predictions?search=+{id}+", follow_redirects=False)
    assert (response.status_code, response.headers["location"]) == (
        303,
        f"/console/predictions/{id}",
    )


def test_no_match_offers_to_drop_each_filter(client, bundle):
    keep(client, make_prediction(bundle))
    page = look(client, label="parts", unit="n o&body", min_score="0.5")
    assert page.status == 200
    assert "No predictions found." in page.text
    assert (
        "of class “parts”, with a probability of at least 0.5, about unit “n o&body”." in page.text
    )
    for left in (
        "min_score=0.5&unit=n+o%26body", "label=parts&unit=n+o%26body", "label=parts&min_score=0.5"
    ):  # fmt: skip
        assert page.all("a", href=f"/console/predictions?{left}"), left
    assert page.all("a", href="/console/predictions")


WRONG = [
    ({"min_score": "7"}, "min_score", "from 0 to 1"),
    ({"max_score": "-0.1"}, "max_score", "from 0 to 1"),
    ({"min_score": "nan"}, "min_score", "from 0 to 1"),
    ({"min_score": "abc"}, "min_score", "from 0 to 1"),
    (
        {"min_score": "0.9", "max_score": "0.1"},
        "min_score",
        "lowest probability, 0.9, is above",
    ),
    ({"since": "2026-03-02T00:00", "until": "2026-03-01T00:00"}, "since", "must be before"),
    ({"since": "2026-03-02T00:00", "until": "2026-03-02T00:00"}, "since", "must be before"),
    ({"since": "yesterday"}, "since", "like 2026-01-31T12:30"),
    ({"until": "0001-01-01T00:00+14:00"}, "until", "like 2026-01-31T12:30"),
    ({"until": "2026-13-01T00:00"}, "until", "like 2026-01-31T12:30"),
    ({"decision": "maybe"}, "decision", "Unknown decision"),
    ({"bundle": "zzz"}, "bundle", "No version starts with"),
    ({"unit": "u" * 201}, "unit", "at most 200 characters"),
    ({"unit": "a\0b"}, "unit", "no control characters"),
    ({"search": "a\nb"}, "search", "no control characters"),
]


@pytest.mark.parametrize(("query", "name", "phrase"), WRONG)
def test_an_invalid_filter_is_reported_at_its_field_and_kept(client, bundle, query, name, phrase):
    keep(client, make_prediction(bundle))
    page = look(client, **query)
    assert page.status == 422
    assert page.wrong(name)
    assert phrase in page.text
    assert page.ids == []
    assert "No search was run" in page.text
    for each, typed in query.items():
        shown = page.field(each)
        text = shown.get("value") or page.all("option", value=typed)[0]["value"]
        assert text == typed
        if each == name and "value" in shown and each not in ("unit", "search"):
            assert shown["type"] == "text"  # others would be emptied by the browser


def test_several_invalid_filters_are_reported_at_once(client):
    page = look(client, min_score="7", since="x", decision="y", label="defect")
    assert page.status == 422
    assert all(page.wrong(name) for name in ("min_score", "since", "decision"))
    assert page.all("option", value="defect")[0].keys() >= {"selected"}


def test_a_page_after_an_erased_prediction(client, bundle):
    (id,) = keep(client, make_prediction(bundle, unit="gone", decision="abstain"))
    keep(client, make_prediction(bundle, 1))
    client.service.store.forget("gone")
    page = look(client, before=id, decision="abstain")
    assert page.status == 404
    assert "it may have been erased" in page.text
    assert page.all("a", href="/console/predictions?decision=abstain")
    assert look(client, before="x\0y").status == 422


def test_it_may_be_erased_while_the_page_is_made(client, bundle, monkeypatch):
    (id,) = keep(client, make_prediction(bundle, unit="gone"))
    store = client.service.store
    get = store.predictions.get

    def got(id):
        prediction = get(id)
        store.forget("gone")
        return prediction

    monkeypatch.setattr(store.predictions, "get", got)
    assert look(client, before=id).status == 404


def test_a_repeated_query_field_is_refused(client):
    page = client.get("/console/predictions?label=a&label=b")
    assert page.status_code == 400
    assert "occurs twice" in page.text


def test_classes_of_all_versions_can_be_chosen_and_unknown_ones_stay(client, bundle):
    of_another_bundle(client)
    page = look(client, label="never seen")
    names = [each["value"] for each in page.all("option")]
    assert {"defect", "parts", "other", "lost", "never seen"} <= set(names)
    assert names.count("defect") == 1
    assert page.all("option", value="never seen")[0].keys() >= {"selected"}


def test_every_field_has_a_label_and_the_page_one_heading(client, bundle):
    keep(client, make_prediction(bundle))
    page = look(client)
    labelled = {each["for"] for each in page.all("label")}
    fields = [a for tag, a in page.tags if tag in ("input", "select") and a.get("type") != "hidden"]
    assert len(fields) == 10
    assert all(each["id"] in labelled for each in fields)
    assert len(page.all("h1")) == 1
    assert_mentions(page.text, "Input texts", "not searched")


@pytest.mark.parametrize("role", ["predict", "label", "admin"])
def test_every_key_may_see_the_list(guarded, role):
    assert guarded.get("/console/predictions", follow_redirects=False).status_code == 303
    log_in(guarded, guarded.tokens[role])
    assert look(guarded).status == 200


def test_an_unreachable_store_is_reported_as_a_page(client, bundle, monkeypatch):
    from calibrant.errors import StoreUnavailable

    def away(**query):
        raise StoreUnavailable("the database is away.")

    monkeypatch.setattr(client.service.store.bundles, "all", away)
    page = look(client)
    assert page.status == 503
    assert_mentions(page.text, "database is unavailable", "try again")


def test_another_bundle_of_the_same_service(serving, tmp_path):
    folder = tmp_path / "changing"
    logits_bundle(folder, warmth=2.0)
    client = serving(folder)
    body = {"inputs": [{"logits": [9.0, 0.0, 0.0]}]}
    old = client.post("/v1/predict", json=body).json()
    logits_bundle(folder, warmth=1.5)
    client.service.reload()
    new = client.post("/v1/predict", json=body).json()
    assert old["bundle"] != new["bundle"]
    for answer in (old, new):
        page = look(client, bundle=answer["bundle"]["hash"])
        assert page.ids == [answer["predictions"][0]["id"]]


def test_the_decision_score_stands_beside_its_threshold(serving, tmp_path):
    client = serving(logits_bundle(tmp_path / "b", "other scale", warmth=0.5).path)
    inputs = [{"logits": [0.0, 0.85]}, {"logits": [0.85, 0.0]}]
    client.post("/v1/predict", json={"inputs": inputs})
    page = look(client)
    # Doubled log-odds make 0.70 a calibrated 0.85, and 0.75 is not reached.
    assert "yes 0.846 left to a person 0.7006 threshold 0.75 " in page.text
    assert "no 0.846 left to a person 0.2994 threshold 0.75 for yes " in page.text
    assert "Calibrated probability Decision Decision score" in page.text


def test_a_prediction_of_a_bundle_without_a_manifest_has_no_decision_score(client):
    keep(client, make_prediction(of_another_bundle(client), 0))
    assert "0.700 left to a person – " in look(client).text
