"""The client and the real service, over a real port: what is asked is on record, once."""

import re
import shutil
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
from tests.sentences import refuses
from tests.unit.bundle.parts import rows
from tests.unit.serving.bundles import CLASSES, logits_bundle
from tests.unit.serving.running import running

from calibrant.bundle import load_bundle
from calibrant.client import transport as client_transport
from calibrant.client.client import Client
from calibrant.client.transport import RequestRefused
from calibrant.errors import InputError, ServiceError

PAGE = Path(__file__).resolve().parents[3] / "docs/client.md"


@pytest.fixture(autouse=True)
def no_key(monkeypatch):
    monkeypatch.delenv("CALIBRANT_KEY", raising=False)


@pytest.fixture(scope="module")
def service(logits_folder, tmp_path_factory):
    db = f"sqlite:///{tmp_path_factory.mktemp('db')}/calibrant.db"
    with running(logits_folder, db, max_inputs=300) as made:
        yield made


@pytest.fixture
def client(service):
    with Client(service.url) as made:
        yield made


def test_decisions_are_those_of_the_bundle(service, client, logits_folder):
    bundle, logits = load_bundle(logits_folder), rows(40)
    for point in (None, 2):
        found = client.predict(logits=logits, point=point)
        made = bundle.decide(logits=logits, point=point)
        assert [row.decision for row in found.predictions] == made.decision.tolist()
        assert [row.action for row in found.predictions] == made.action.tolist()
        probs = [[row.probabilities[name] for name in CLASSES] for row in found.predictions]
        assert np.array(probs) == pytest.approx(made.probabilities)
    named = dict(zip(CLASSES, logits[0].tolist(), strict=True))
    by_name = client.predict(logits=[dict(reversed(named.items()))], point=2)
    assert by_name.predictions[0].probabilities == found.predictions[0].probabilities
    assert found.bundle.hash == bundle.manifest["sha256"]


def test_the_bundle_is_described(client, logits_folder):
    served = client.bundle()
    assert (served.input, served.classes, served.name) == ("logits", CLASSES, logits_folder.name)
    assert served.columns["numbers"] == tuple(f"logit_{name}" for name in CLASSES)
    assert len(served.points) == 3
    assert served.actions["defect"] == "refund"
    assert served.loaded_at <= datetime.now(UTC)
    assert client.reload() == served
    assert client.ready() is True


def test_a_request_is_on_record_once_however_often_it_is_sent(service, client):
    before = service.store.predictions.count()
    first = client.predict(logits=rows(3), idempotency_key="order-17")
    again = client.predict(logits=rows(3), idempotency_key="order-17")
    assert (first.repeated, again.repeated) == (False, True)
    assert again.predictions == first.predictions
    assert service.store.predictions.count() == before + 3
    with pytest.raises(RequestRefused) as caught:
        client.predict(logits=rows(2), idempotency_key="order-17")
    assert caught.value.status == 409


def test_lost_answers_do_not_double_records(service, monkeypatch):
    """Throw answers away after they came, as a line that breaks would."""
    real, lost = client_transport.Transport._send, set()

    def losing(self, method, path, content, headers, timeout):
        reply = real(self, method, path, content, headers, timeout)
        if method == "POST" and headers["Idempotency-Key"] not in lost:
            lost.add(headers["Idempotency-Key"])
            raise client_transport.httpx2.ReadError("lost")
        return reply

    monkeypatch.setattr(client_transport.Transport, "_send", losing)
    monkeypatch.setattr(client_transport, "_backoff", lambda *about: 0.0)
    before = service.store.predictions.count()
    with Client(service.url) as client, ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda i: client.predict(logits=rows(2, seed=i)), range(20)))
        assert all(answer.repeated for answer in found)
        told = client.outcomes([{"prediction": found[0].predictions[0].id, "label": "parts"}])
    assert service.store.predictions.count() == before + 40
    assert (told.added, told.repeated) == (0, 1)
    assert len({row.id for answer in found for row in answer.predictions}) == 40


def test_outcomes_and_the_prediction_in_full(client):
    row = client.predict(
        logits=rows(1), unit="customer-17", use_case="returns", branch="control"
    ).predictions[0]
    told = client.outcomes(
        [
            {"prediction": row.id, "label": "other", "source": "agent"},
            {"prediction": row.id, "outcome": "refund", "value": 12.5, "text": "by hand"},
        ]
    )
    assert (told.added, told.repeated) == (2, 0)
    found = client.prediction(row.id)
    assert (found.id, found.label, found.decision) == (row.id, row.label, row.decision)
    assert found.probabilities == pytest.approx(dict(row.probabilities))
    assert (found.unit, found.use_case, found.branch) == ("customer-17", "returns", "control")
    assert list(found.logits) == list(CLASSES)
    assert list(found.logits.values()) == pytest.approx(rows(1)[0])
    assert (found.labels[0].label, found.labels[0].source) == ("other", "agent")
    assert (found.outcomes[0].outcome, found.outcomes[0].value) == ("refund", 12.5)
    assert found.at.utcoffset() is not None
    with pytest.raises(InputError, match="nothing was recorded"):
        client.outcomes([{"prediction": "0199", "label": "other"}])


@pytest.mark.parametrize("unit", ["customer-18", "a/b c?d#e", "..", "ü%2F"])
def test_units_are_forgotten_whatever_their_names(service, client, unit):
    found = client.predict(logits=rows(2), unit=unit)
    before = service.store.predictions.count()
    erased = client.forget(unit)
    assert (erased.predictions, erased.labels, erased.outcomes) == (2, 0, 0)
    assert service.store.predictions.count() == before - 2
    with pytest.raises(RequestRefused, match="does not exist"):
        client.prediction(found.predictions[0].id)


@pytest.mark.parametrize(
    ("given", "status", "words"),
    [
        ({"texts": ["a"]}, 422, ("inputs[0]", "bundle", "no model")),
        ({"logits": [[1.0, 2.0, 3.0], [1.0, 2.0]]}, 422, ("inputs[1].logits: 3 logits",)),
        ({"logits": [{"defect": 1.0}]}, 422, ("'parts' is missing",)),
        ({"logits": rows(301)}, 413, ("exceed", "limit of 300")),
        ({"logits": rows(1), "unit": "a\x00"}, 422, ("unit",)),
        ({"logits": rows(1), "point": 9}, 422, ("operating points", "0 to 2", "got 9")),
    ],
)
def test_what_the_service_refuses_is_told_in_its_words(service, client, given, status, words):
    before = service.store.predictions.count()
    with refuses(RequestRefused, *words) as caught:
        client.predict(**given)
    assert caught.value.status == status
    assert service.store.predictions.count() == before


def test_a_body_beyond_the_limit_is_refused_and_not_taken_for_a_broken_line(service):
    names = {f"class {i}" * 10: 0.5 for i in range(50_000)}
    with Client(service.url, retries=0) as client, pytest.raises(RequestRefused) as caught:
        client.predict(logits=[names])
    assert caught.value.status == 413


def test_keys_and_roles(logits_folder, tmp_path):
    with running(logits_folder, f"sqlite:///{tmp_path}/calibrant.db", need_key=True) as service:
        keys = service.store.keys
        token = {role: keys.add(role, role)[1] for role in ("predict", "label", "admin")}
        with Client(service.url) as client, refuses(RequestRefused, "no key", "sent"):
            client.predict(logits=rows(1))
        with (
            Client(service.url, "cal_abcdefghijkl_" + "0" * 64) as client,
            pytest.raises(RequestRefused, match="unknown or revoked"),
        ):
            client.predict(logits=rows(1))
        with Client(service.url, token["predict"]) as client:
            found = client.predict(logits=rows(1), unit="17").predictions[0]
            with pytest.raises(RequestRefused, match="has role 'predict'") as caught:
                client.forget("17")
            assert caught.value.status == 403
        with Client(service.url, token["label"]) as client:
            assert client.outcomes([{"prediction": found.id, "label": "other"}]).added == 1
        with Client(service.url, token["admin"]) as client:
            assert client.forget("17").predictions == 1


def test_a_swapped_bundle_is_named_and_a_damaged_one_refused(tmp_path):
    folder = logits_bundle(tmp_path / "bundle").path
    with (
        running(folder, f"sqlite:///{tmp_path}/calibrant.db") as service,
        Client(service.url) as client,
    ):
        old = client.bundle()
        shutil.rmtree(folder)
        logits_bundle(folder, warmth=1.0)
        new = client.reload()
        assert new.hash != old.hash
        assert client.predict(logits=rows(1)).bundle.hash == new.hash
        (folder / "manifest.json").write_text("{}")
        with refuses(RequestRefused, "old bundle stays") as caught:
            client.reload()
        assert caught.value.status == 409
        assert client.bundle().refused is not None
        assert client.predict(logits=rows(1)).bundle.hash == new.hash


def test_a_service_that_stops_is_told_so(logits_folder, tmp_path, monkeypatch):
    monkeypatch.setattr(client_transport, "_backoff", lambda *about: 0.0)
    with running(logits_folder, f"sqlite:///{tmp_path}/calibrant.db") as service:
        client = Client(service.url)
        assert client.ready() is True
    assert client.ready() is False
    with refuses(ServiceError, "cannot be reached", "check", "calibrant serve"):
        client.predict(logits=rows(1))
    client.close()


def test_the_code_of_the_page_runs(text_folder, tmp_path, capsys):
    """Run what the guide shows, which needs a service that reads texts."""
    text = PAGE.read_text(encoding="utf-8")
    code = re.findall(r"^```py-no-run\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    names = {}
    with running(text_folder, f"sqlite:///{tmp_path}/calibrant.db") as service:
        for part in code:
            exec(part.replace("http://127.0.0.1:8000", service.url), names)
        assert service.store.predictions.count() == 4
    *_, first, second = capsys.readouterr().out.splitlines()
    assert (first.split()[0], second.split()[0]) == ("False", "True")
    assert first.split()[1] == second.split()[1]
