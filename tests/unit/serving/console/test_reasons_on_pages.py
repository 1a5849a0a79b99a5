"""Reasons of the model on the pages Try it and Prediction, or one sentence why there are none."""

import html
import re
import shutil

import numpy as np
import pytest
from tests.sentences import assert_mentions
from tests.unit.boosting.models import TABLE as SHELVES
from tests.unit.bundle.explained import (
    UNEXPLAINED,
    explained_bundle,
    ngram_scorer,
    wet_scorer,
)
from tests.unit.bundle.model_parts import TABLE, TEXTS
from tests.unit.serving.bundles import rows_of
from tests.unit.serving.console.predictions_log import keep, look, make_prediction
from tests.unit.serving.console.test_try_page import seen, send

from calibrant.data import TableEncoder
from calibrant.data.linear_scorer import LinearScorer
from calibrant.serving.console.pages.predictions import contributions

HEADING = "Reasons of the model"


def bars_of(answer):
    """Return part, words, left end and width of each bar of a page."""
    section = answer.text[answer.text.index('id="reasons"') :]
    section = section[: section.index("</section>")]
    rows = re.findall(
        r"<bdi>([^\n]*?)</bdi><span class=\"sides\".*?margin-left: ([\d.]+)%; width: ([\d.]+)%"
        r".*?<td>([^<]*)</td>",
        section,
        re.DOTALL,
    )
    clean = (html.unescape(part.replace("<wbr>", "")) for part, *_ in rows)
    return [
        (part, words, float(left), float(width))
        for part, (_, left, width, words) in zip(clean, rows, strict=True)
    ]


def predict_id(client, **body):
    answer = client.post("/v1/predict", json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()["predictions"][0]["id"]


@pytest.fixture(scope="module")
def boosted(tmp_path_factory):
    return explained_bundle(tmp_path_factory.mktemp("boosted") / "bundle", decides=True).path


def test_two_words_by_hand(serving, tmp_path):
    client = serving(explained_bundle(tmp_path / "b", scorer=wet_scorer()).path)
    page = send(client, text="dry wet")
    three, two = 3 * np.sqrt(0.5), 2 * np.sqrt(0.5)
    found = bars_of(page)
    assert [each[:2] for each in found] == [("dry", f"{three:+.4f}"), ("wet", f"{-two:+.4f}")]
    assert [each[2:] for each in found] == [(50.0, 50.0), (pytest.approx(50 - 33.33), 33.33)]
    assert "log-odds of yes against no" in seen(page)
    stored = client.get(f"/console/predictions/{predict_id(client, inputs=[{'text': 'dry wet'}])}")
    assert bars_of(stored) == found


def test_both_pages_show_what_the_service_answers(serving, boosted):
    client = serving(boosted)
    row = rows_of({name: column[1:2] for name, column in SHELVES.items()})[0]
    body = {"inputs": [{"row": row}], "reasons": 10}
    (answer,) = client.post("/v1/predict", json=body).json()["predictions"]
    wanted = [(one["part"], f"{one['contribution']:+.4f}") for one in answer["reasons"]]
    assert wanted
    typed = {f"value_{i}": "" if value is None else str(value)
             for i, value in enumerate(row.values())}  # fmt: skip
    page = send(client, **typed)
    assert [each[:2] for each in bars_of(page)] == wanted
    assert "each other class, on average" in seen(page)
    stored = client.get(f"/console/predictions/{answer['id']}")
    assert [each[:2] for each in bars_of(stored)] == wanted


def test_only_the_strongest_are_shown(serving, tmp_path):
    client = serving(explained_bundle(tmp_path / "b", "ngrams").path)
    assert len(bars_of(send(client, text=" ".join(TEXTS)))) == contributions._MOST


def test_an_input_that_cannot_be_judged_has_one_sentence(serving, tmp_path):
    client = serving(explained_bundle(tmp_path / "b", scorer=wet_scorer()).path)
    page = send(client, text="lost")
    assert_mentions(seen(page), HEADING, "cannot judge", "no reasons")
    assert bars_of(page) == []
    id = predict_id(client, inputs=[{"text": "lost"}])
    assert_mentions(look(client, f"/{id}").text, HEADING, "cannot judge")


@pytest.mark.parametrize("kind", UNEXPLAINED)
def test_models_without_reasons_say_so(serving, tmp_path, kind):
    client = serving(explained_bundle(tmp_path / "b", scorer=UNEXPLAINED[kind]()).path)
    if kind == "network":
        page, input = send(client, text=TEXTS[0]), {"text": TEXTS[0]}
    else:
        page = send(client, value_0="1", value_1="top")
        input = {"row": rows_of(TABLE)[0]}
    words = ("ensemble" if kind == "ensemble" else "gives no reasons", "boosting")
    assert page.status_code == 200
    assert_mentions(seen(page), HEADING, *words)
    id = predict_id(client, inputs=[input])
    assert_mentions(look(client, f"/{id}").text, HEADING, *words)


def test_a_bundle_without_a_model_says_nothing_of_it(serving, logits_folder):
    client = serving(logits_folder)
    assert HEADING not in seen(send(client, value_0="4", value_1="0", value_2="0"))
    id = predict_id(client, inputs=[{"logits": [9.0, 0.0, 0.0]}])
    assert HEADING not in look(client, f"/{id}").text


def test_an_input_of_which_only_the_hash_is_stored(serving, boosted):
    client = serving(boosted, inputs="hash")
    page = look(client, f"/{predict_id(client, inputs=[{'row': rows_of(SHELVES)[1]}])}")
    assert page.status == 200
    assert_mentions(page.text, HEADING, "only the hash of the input was stored")


def test_an_input_that_was_redacted_for_the_store(serving, tmp_path):
    text = "write to missing@arrival.com, it broke"
    reads_all = explained_bundle(tmp_path / "all", scorer=ngram_scorer([*TEXTS, text])).path
    client = serving(reads_all, inputs="redacted")
    page = look(client, f"/{predict_id(client, inputs=[{'text': text}])}")
    assert_mentions(page.text, HEADING, "not what the model read")
    page = look(client, f"/{predict_id(client, inputs=[{'text': TEXTS[0]}])}")
    assert_mentions(page.text, HEADING, "broken")  # nothing in it was redacted


def test_a_redacted_text_that_the_model_read_redacted(serving, tmp_path):
    text = "write to missing@arrival.com, it broke"
    scorer = ngram_scorer([*TEXTS, text], redact=True)
    folder = explained_bundle(tmp_path / "b", scorer=scorer).path
    client = serving(folder, inputs="redacted")
    stored = client.get(f"/console/predictions/{predict_id(client, inputs=[{'text': text}])}")
    assert bars_of(stored)
    assert "missing@" not in stored.text
    tried = send(client, text=text)
    assert bars_of(tried) == bars_of(stored)
    parts = " ".join(part for part, *_ in bars_of(tried))
    assert "arrival" not in parts


def test_a_prediction_of_a_bundle_that_is_no_longer_served(serving, tmp_path):
    folder = explained_bundle(tmp_path / "b", "linear").path
    client = serving(folder)
    id = predict_id(client, inputs=[{"row": rows_of(TABLE)[0]}])
    shutil.rmtree(folder)
    explained_bundle(folder, "linear", decides=True)
    assert client.post("/v1/bundle/reload").status_code == 200
    page = look(client, f"/{id}")
    assert page.status == 200
    assert_mentions(page.text, HEADING, "no longer served")


@pytest.mark.parametrize("input", [
    {"text": "a table is read"}, {"row": {"price": 1.0}}, {"row": {"price": "x", "shelf": [1]}},
    {"logits": [1.0]}, {"other": 1}, {}, {"row": {"price": 1.0, "shelf": "top"}},
])  # fmt: skip
def test_a_damaged_record_does_not_break_the_page(serving, boosted, input):
    client = serving(boosted)
    hash = client.service.slot.current.hash
    logits = [1.0, 2.0, 3.0]
    (id,) = keep(client, make_prediction(hash, input=input, logits=logits, label="gone"))
    page = look(client, f"/{id}")
    assert page.status == 200
    assert_mentions(page.text, HEADING, "not what the model read")


def test_hostile_names_are_escaped(serving, tmp_path):
    name = "<script>alert(1)</script>"
    encoder = TableEncoder().fit({name: [1.0, 2.0, 5.0]})
    scorer = LinearScorer(encoder, [[1.0, -1.0]], [0.0, 0.0], name="linear", classes=("a", "<b>"))
    page = send(serving(explained_bundle(tmp_path / "b", scorer=scorer).path), **{"value_0": "3"})
    assert bars_of(page)[0][0] == name
    assert name not in page.text
    assert "<b>" not in page.text.split('id="reasons"')[1].split("</section>")[0].replace(
        "<b><bdi>", ""
    )
