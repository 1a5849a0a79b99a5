"""`POST /v1/predict`: the bundle's own answers, on record once, and every bad body turned away."""

import json

import pytest
from tests.sentences import assert_mentions
from tests.unit.bundle.parts import rows
from tests.unit.serving.bundles import CLASSES, TABLE, TEXTS, logits_bundle, rows_of

LOGITS = {"inputs": [{"logits": [9.0, 0.0, 0.0]}]}


def told(answer, status):
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    return answer.json()


def told_by(decisions):
    """Return what `bundle.decide` found in the words of an answer."""
    rows = decisions.to_rows()
    if not decisions.scope_checked:
        return [{**row, "out_of_scope": None} for row in rows]
    return [{**row, "decision": "out_of_scope"} if row["out_of_scope"] else row for row in rows]


def same(predictions, wanted, within):
    for one, other in zip(predictions, wanted, strict=True):
        one, other = dict(one), dict(other)
        assert one.pop("id")
        assert "calibrated_threshold" in one
        del one["calibrated_threshold"]
        assert one.pop("reasons") is None  # nobody asked
        score, wanted_score = one.pop("decision_score"), other.pop("decision_score")
        assert score == (wanted_score and pytest.approx(wanted_score, abs=within))
        assert one.pop("probabilities") == pytest.approx(other.pop("probabilities"), abs=within)
        assert one == other


@pytest.fixture
def client(serving, logits_folder):
    return serving(logits_folder)


def test_an_answer_in_full(client):
    body = {**LOGITS, "unit": "customer-17", "use_case": "returns", "branch": "control"}
    answer = client.post("/v1/predict", json=body)
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "application/json"
    content = answer.json()
    (row,) = content["predictions"]
    bundle = client.service.slot.current
    assert content == {
        "predictions": [row],
        "bundle": {"id": bundle.hash[:12], "hash": bundle.hash},
        "request": content["request"],
        "repeated": False,
    }
    assert row == {
        "id": row["id"],
        "label": "defect",
        "probabilities": row["probabilities"],
        "decision": "act",
        "acted_as": "defect",
        "action": "refund",
        "operating_point": 0,
        "out_of_scope": None,
        "decision_rule": "act on 'defect'",
        # Its points decide on calibrated scores.
        "decision_score": pytest.approx(row["probabilities"]["defect"]),
        "decision_threshold": 0.75,
        "calibrated_threshold": 0.75,
        "reasons": None,
    }
    assert list(row["probabilities"]) == list(CLASSES)
    assert sum(row["probabilities"].values()) == pytest.approx(1)
    stored = client.service.store.predictions.get(row["id"])
    assert (stored.unit, stored.use_case, stored.branch) == ("customer-17", "returns", "control")
    assert stored.request == content["request"]


@pytest.mark.parametrize("kind", ["points", "no calibrator", "two classes", "out of scope"])
def test_logits_are_decided_as_by_the_bundle(serving, tmp_path, kind):
    bundle = logits_bundle(tmp_path / "b", kind)
    logits = rows(40, len(bundle.classes))
    body = {"inputs": [{"logits": row} for row in logits.tolist()]}
    answer = serving(bundle.path).post("/v1/predict", json=body).json()
    same(answer["predictions"], told_by(bundle.decide(logits)), 1e-12)


def test_texts_are_decided_as_by_the_bundle(serving, text_folder):
    client = serving(text_folder)
    bundle = client.service.slot.current.bundle
    body = {"inputs": [{"text": text} for text in TEXTS]}
    answer = client.post("/v1/predict", json=body).json()
    same(answer["predictions"], told_by(bundle.decide(TEXTS)), 1e-6)
    for text in TEXTS:
        alone = client.post("/v1/predict", json={"inputs": [{"text": text}]}).json()
        same(alone["predictions"], told_by(bundle.decide([text])), 1e-6)


def test_rows_are_decided_as_by_the_bundle(serving, table_folder):
    client = serving(table_folder)
    bundle = client.service.slot.current.bundle
    body = {"inputs": [{"row": row} for row in rows_of(TABLE)]}
    answer = client.post("/v1/predict", json=body).json()
    same(answer["predictions"], told_by(bundle.decide(TABLE)), 1e-6)


def test_another_point_decides_where_it_is_asked_for(client):
    bundle = client.service.slot.current.bundle
    logits = [[3.0, 0.0, 0.0]]  # between the thresholds of the points 0 and 2
    for point, decision in ((None, "abstain"), (0, "abstain"), (2, "act")):
        body = {"inputs": [{"logits": logits[0]}], "point": point}
        (row,) = client.post("/v1/predict", json=body).json()["predictions"]
        assert row["decision"] == decision == bundle.decide(logits, point=point).decision[0]
        assert row["operating_point"] == (2 if point == 2 else None)


def test_a_retry_is_answered_as_before_and_on_record_once(client):
    headers = {"Idempotency-Key": "order-17"}
    first, again = (client.post("/v1/predict", json=LOGITS, headers=headers) for _ in range(2))
    assert first.json()["repeated"] is False
    assert again.json() == {**first.json(), "repeated": True}
    assert client.service.store.predictions.count() == 1
    other = {"inputs": [{"logits": [0.0, 9.0, 0.0]}]}
    problem = told(client.post("/v1/predict", json=other, headers=headers), 409)
    assert_mentions(problem["detail"], "used", "another body")
    assert client.service.store.predictions.count() == 1
    client.post("/v1/predict", json=LOGITS)
    assert client.service.store.predictions.count() == 2


def test_keys_for_retries_are_those_of_an_api_key(serving, logits_folder):
    client = serving(logits_folder, need_key=True)
    tokens = [client.service.store.keys.add(name, "predict")[1] for name in ("shop", "bank")]
    found = []
    for token in (*tokens, *tokens):
        headers = {"Idempotency-Key": "1", "Authorization": f"Bearer {token}"}
        found.append(client.post("/v1/predict", json=LOGITS, headers=headers).json())
    assert [each["repeated"] for each in found] == [False, False, True, True]
    ids = [each["predictions"][0]["id"] for each in found]
    assert ids[:2] == ids[2:]
    assert len(set(ids)) == 2
    keys = {client.service.store.predictions.get(id).key for id in ids}
    assert keys == {key.id for key in client.service.store.keys.all()}


SECRET = "write to jane.doe@example.org"


@pytest.mark.parametrize(
    ("policy", "kept"),
    [
        ("keep", {"text": SECRET}),
        ("redacted", {"text": "write to _email_"}),
        ("hash", None),
    ],
)
def test_what_is_kept_of_an_input(serving, text_folder, tmp_path, policy, kept):
    client = serving(text_folder, inputs=policy)
    asked = {"inputs": [{"text": SECRET}, {"text": "x"}, {"text": SECRET}]}
    answer = client.post("/v1/predict", json=asked).json()
    found = [client.get(f"/v1/predictions/{row['id']}").json() for row in answer["predictions"]]
    assert found[0]["input"] == kept
    # The hash tells equal inputs, whatever is kept of them.
    assert found[0]["input_hash"] == found[2]["input_hash"] != found[1]["input_hash"]
    written = b"".join(file.read_bytes() for file in tmp_path.glob("calibrant.db*"))
    assert (b"jane.doe" in written) is (policy == "keep")


@pytest.mark.parametrize(
    ("body", "status", "says"),
    [
        (b"", 400, "the body is not valid UTF-8 JSON"),
        (b"{", 400, "the body is not valid UTF-8 JSON"),
        (b'{"inputs": [{"text": "\xff\xfe"}]}', 400, "the body is not valid UTF-8 JSON"),
        (b"[" * 100_000, 400, "the body is not valid UTF-8 JSON"),
        (b"null", 422, ""),
        (b'{"inputs": []}', 422, "inputs: at least one is required"),
        (b'{"inputs": [{"logits": [NaN, 0, 0]}]}', 422, "inputs[0].logits"),
        (b'{"inputs": [{"logits": [1e999, 0, 0]}]}', 422, "inputs[0].logits"),
        (b'{"inputs": [{"logits": [1e308, -1e308, 0]}]}', 422, "a logit is too large"),
        (b'{"inputs": [{"logits": [1, 0]}]}', 422, "3 logits are required"),
        (b'{"inputs": [{"logits": [%s, 0, 0]}]}' % (b"9" * 5000), 400, "number out of range"),
        (b'{"inputs": [{"text": "<b>"}]}', 422, "the bundle has no model"),
        (b'{"inputs": [{"logits": [1, 0, 0]}], "colour": 1}', 422, "colour: unknown field"),
        (b'{"inputs": [{"tenure": 3}]}', 422, "inputs[0].tenure: unknown field"),
        (b'{"inputs": [{"tenure": 3}]}', 422, "columns go into row"),
        (b'{"inputs": [{"logits": [1, 0, 0]}], "point": 9}', 422, "operating points 0 to 2, got 9"),
        (b'{"inputs": [{"logits": [1, 0, 0]}], "unit": "a\\u0000"}', 422, "unit: "),
        (b'{"inputs": [%s]}' % b",".join([b"{}"] * 5000), 422, "give exactly one of"),
        (b'{"inputs": [%s]}' % b",".join([b'{"logits":[1,2,3]}'] * 1001), 413, "1,001 inputs"),
        (b" " * 1_048_577, 413, "exceeds 1,048,576 bytes"),
    ],
)  # fmt: skip
def test_bad_bodies_are_turned_away_in_one_sentence(client, body, status, says):
    headers = {"Content-Type": "application/json"}
    problem = told(client.post("/v1/predict", content=body, headers=headers), status)
    assert says in problem["detail"]
    assert len(problem["detail"]) < 500
    assert client.service.store.predictions.count() == 0


def test_bad_headers_are_turned_away(client):
    text = json.dumps(LOGITS)
    told(client.post("/v1/predict", content=text, headers={"Content-Type": "text/plain"}), 415)
    for bad in ("", "a b", "x" * 129):
        headers = {"Content-Type": "application/json", "Idempotency-Key": bad}
        told(client.post("/v1/predict", content=text, headers=headers), 400)
    assert client.service.store.predictions.count() == 0


HOSTILE = [
    "'; DROP TABLE predictions; --",
    "<script>alert(1)</script>",
    "../../etc/passwd",
    "{{7*7}} ${jndi:ldap://x} %s %n",
    "\u202egnp.exe \u200b\ufeff 😀 ﷽",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_texts_are_texts(serving, text_folder, text):
    client = serving(text_folder)
    body = {"inputs": [{"text": text}], "unit": text, "use_case": text, "branch": text}
    (row,) = client.post("/v1/predict", json=body).json()["predictions"]
    found = client.get(f"/v1/predictions/{row['id']}").json()
    assert found["input"] == {"text": text}
    assert (found["unit"], found["use_case"], found["branch"]) == (text, text, text)
    assert client.service.store.predictions.count() == 1


def test_texts_have_a_longest_length(serving, text_folder):
    client = serving(text_folder, max_text=10)
    assert client.post("/v1/predict", json={"inputs": [{"text": "ä" * 10}]}).status_code == 200
    problem = told(client.post("/v1/predict", json={"inputs": [{"text": "x" * 11}]}), 422)
    assert problem["errors"] == [
        {
            "where": "inputs[0].text",
            "message": "the text has 11 characters, at most 10 are allowed",
        }
    ]
