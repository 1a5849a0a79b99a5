"""One prediction in full, also one whose bundle or key is not there any more."""

from datetime import timedelta

import pytest
from tests.sentences import assert_mentions
from tests.unit.serving.bundles import logits_bundle
from tests.unit.serving.console.conftest import log_in
from tests.unit.serving.console.predictions_log import START, Page, keep, look, make_prediction

from calibrant.serving.console.pages.predictions.detail import prediction_url
from calibrant.store import Label, Outcome


@pytest.fixture
def client(serving, logits_folder):
    return serving(logits_folder)


def predict_ids(client, **body):
    """Ask the service itself; return the ids."""
    body = {"inputs": [{"logits": [9.0, 0.0, 0.0]}], **body}
    answer = client.post("/v1/predict", json=body).json()
    return [row["id"] for row in answer["predictions"]]


def test_the_full_record_is_shown(client):
    inputs = [{"logits": [0.0, 0.0, 0.0]}, {"logits": {"defect": 9.0, "parts": 0.0, "other": -1.0}}]
    ids = predict_ids(client, inputs=inputs, unit="customer & 17", use_case="returns", branch="b")
    page = look(client, f"/{ids[1]}")
    assert page.status == 200
    served = client.service.slot.current
    prediction = client.service.store.predictions.get(ids[1])
    for words in (
        ids[1], "Acted as defect", "Action: refund",
        "decision score, the calibrated probability of defect, was 0.",
        "at or above the threshold 0.75 of operating point 0, so it was acted on.",
        "Promise of that point: Precision is at least 85 % for class 'defect', with 95 %",
        "customer & 17", "returns", "Branch b", "Out of scope not checked", "input 2",
        f"{served.name}, {served.id}, currently served", "ms from the request",
        prediction.input_hash,
        "Requested by a visitor without a key", "No label or outcome recorded yet.",
        "the request contained these logits", "defect 0.9", "parts 0", "other -1",
    ):  # fmt: skip
        assert words in page.text, words
    assert page.all("a", href="/console/predictions?unit=customer+%26+17")
    assert page.all("a", href=f"/console/predictions?search={prediction.request}")
    assert page.all("a", href=f"/console/predictions?bundle={served.hash}")
    assert look(client, search=prediction.request).ids == sorted(ids, reverse=True)
    assert look(client, unit="customer & 17").ids == sorted(ids, reverse=True)
    assert len(page.all("h1")) == 1


def test_logits_that_came_as_a_list_are_shown_with_their_classes(client):
    (id,) = predict_ids(client, inputs=[{"logits": [4.5, 0.25, -1.5]}])
    page = look(client, f"/{id}")
    shown = page.text[page.text.index("the request contained these logits") :]
    assert "logits. Class Logit defect 4.5 parts 0.25 other -1.5 Probabilities" in shown
    hash = client.service.slot.current.hash
    (id,) = keep(
        client, make_prediction(hash, input={"logits": [7.0, 8.0]})
    )  # by hand: not one of each
    assert "Class Logit 0 7 1 8 Probabilities" in look(client, f"/{id}").text


def test_probabilities_of_all_classes_have_bars(client):
    hash = client.service.slot.current.hash
    (id,) = keep(client, make_prediction(hash, probs=[0.2, 0.7, 0.1], label="parts"))
    page = look(client, f"/{id}")
    bars = [each["style"] for each in page.all("span", **{"class": "bar"})]
    assert bars == ["width: 70.00%", "width: 20.00%", "width: 10.00%"]
    assert "The most probable class is parts, with a calibrated probability of 0.700." in page.text


def test_a_prediction_that_was_left_to_a_person(client):
    (id,) = predict_ids(client, inputs=[{"logits": [0.0, 0.0, 0.0]}])
    page = look(client, f"/{id}")
    assert "Left to a person" in page.text
    assert "No rule would act on it" in page.text
    assert page.all("details", open=None)  # the rules can be seen at once


def test_out_of_scope(serving, tmp_path):
    client = serving(logits_bundle(tmp_path / "b", "out of scope").path)
    (id,) = predict_ids(client, inputs=[{"logits": [0.5, 0.0, 0.0]}])
    page = look(client, f"/{id}")
    assert "Out of scope yes" in page.text
    assert "negative largest logit is -0.5, above the limit -2" in page.text
    assert "withheld: out of scope" in page.text


@pytest.mark.parametrize("kind", ["no points", "out of scope, no points"])
def test_a_bundle_that_decides_nothing(serving, tmp_path, kind):
    client = serving(logits_bundle(tmp_path / "b", kind).path)
    (id,) = predict_ids(client)
    page = look(client, f"/{id}")
    assert "No decision" in page.text
    assert "has no operating point" in page.text


def test_inputs_that_were_hashed_or_redacted(serving, logits_folder, text_folder):
    hashed = serving(logits_folder, inputs="hash")
    (id,) = predict_ids(hashed)
    assert "Only the hash of the input was stored" in look(hashed, f"/{id}").text
    redacted = serving(text_folder, inputs="redacted")
    (id,) = predict_ids(redacted, inputs=[{"text": "write to jo@example.com"}])
    page = look(redacted, f"/{id}")
    assert "write to _email_" in page.text
    assert "jo@example.com" not in page.text
    assert "stores redacted inputs" in page.text


def test_a_row_of_a_table_is_a_table(client):
    hash = client.service.slot.current.hash
    row = {"weight": 2.5, "colour": "deep red", "fat": None, "new": True}
    (id,) = keep(client, make_prediction(hash, input={"row": row}))
    assert (
        "Column Value weight 2.5 colour deep red fat (empty) new true"
        in look(client, f"/{id}").text
    )


def test_a_table_bundle_end_to_end(serving, table_folder):
    from tests.unit.serving.bundles import TABLE, rows_of

    client = serving(table_folder)
    row = rows_of(TABLE)[0]
    (id,) = predict_ids(client, inputs=[{"row": row}])
    page = look(client, f"/{id}")
    assert all(name in page.text for name in row)


@pytest.mark.parametrize(
    "input", [{"text": ""}, {"text": 3}, {"logits": "x"}, {"row": None}, {}, {"a": 1, "b": [2]}]
)
def test_inputs_of_unexpected_shape(client, input):
    (id,) = keep(client, make_prediction(client.service.slot.current.hash, input=input))
    assert look(client, f"/{id}").status == 200
    assert look(client).ids == [id]


def test_the_reasons_are_those_of_the_bundle_that_decided(serving, tmp_path):
    folder = tmp_path / "changing"
    logits_bundle(folder)
    client = serving(folder)
    (id,) = predict_ids(client)
    logits_bundle(folder, "no points")
    client.service.reload()
    page = look(client, f"/{id}")
    assert "threshold 0.75 of operating point 0" in page.text
    assert "no longer served" in page.text


def test_a_bundle_whose_record_this_version_cannot_read(client):
    client.service.store.bundles.record(
        hash="f" * 64, name="newer", classes=["a", "b", "c"], manifest={"format": 99}, at=START
    )
    (id,) = keep(client, make_prediction("f" * 64, label="a"))
    page = look(client, f"/{id}")
    assert page.status == 200
    assert "the reasons are unknown" in page.text


def test_labels_and_outcomes_are_shown_with_who_and_when(client):
    store = client.service.store
    key, _ = store.keys.add("desk", "label")
    gone, _ = store.keys.add("old desk", "label")
    store.keys.revoke(gone.id)
    (id,) = keep(client, make_prediction(client.service.slot.current.hash, key=gone.id))
    later = START + timedelta(days=1)
    store.outcomes.add(
        [Outcome("o", later, id, "refunded", 12.5, "two\nlines", "aaaaaaaaaaaa")],
        [Label("a", START, id, "parts", "agent", key.id), Label("b", later, id, "x", None, None)],
        other=["b"],
    )
    page = look(client, f"/{id}")
    for words in (
        "parts, source: agent 1 Mar 2026, 12:00:00 UTC, entered by desk",
        "x 2 Mar 2026, 12:00:00 UTC, entered by a visitor without a key",
        "refunded: 12.5 2 Mar 2026, 12:00:00 UTC, entered by key aaaaaaaaaaaa",
        "two lines", "The newest counts", "Requested by old desk (revoked)",
    ):  # fmt: skip
        assert words in page.text, words


@pytest.mark.parametrize("id", ["nobody", "0199d0f2-7a3c-7c1e-9a51-3f2f6c1b8e77", "%00", "a%0Ab"])
def test_an_unknown_id(client, id):
    page = look(client, f"/{id}")
    assert page.status == 404
    assert_mentions(page.text, "no prediction", "prediction with this id")
    assert page.all("a", href="/console/predictions")


def test_a_key_without_the_label_role_sees_no_form(guarded):
    (id,) = keep(guarded, make_prediction(guarded.service.slot.current.hash))
    log_in(guarded, guarded.tokens["predict"])
    page = look(guarded, f"/{id}")
    assert page.status == 200
    assert_mentions(page.text, "key that has the role label or admin", "yours has the role predict")
    assert not page.all("input", name="once")
    for role in ("label", "admin"):
        log_in(guarded, guarded.tokens[role])
        assert len(look(guarded, f"/{id}").all("input", name="once")) == 2


def test_a_stranger_is_sent_to_the_login_page(guarded):
    answer = guarded.get("/console/predictions/x", follow_redirects=False)
    assert answer.status_code == 303
    assert Page(answer).text == ""


def test_example_of_prediction_url():
    assert prediction_url("0199d0f2") == "/console/predictions/0199d0f2"
