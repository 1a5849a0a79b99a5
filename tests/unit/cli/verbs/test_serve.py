"""`calibrant serve`: what it says when it starts and ends, and what it refuses."""

import json
import signal
import socket
import threading
import urllib.request

import pytest
from tests.sentences import assert_mentions
from tests.unit.bundle.model_parts import image_scorer, know_tiny_images
from tests.unit.serving.bundles import logits_bundle, text_bundle

from calibrant.bundle import pack
from calibrant.store import Store

BODY = json.dumps({"inputs": [{"logits": [9.0, 0.0, 0.0]}]}).encode()


@pytest.fixture(scope="module")
def bundle(tmp_path_factory):
    return logits_bundle(tmp_path_factory.mktemp("serve") / "returns").path


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    return text_bundle(tmp_path_factory.mktemp("serve") / "texts").path


def ask(url, body=None):
    request = urllib.request.Request(url, body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=120) as answer:
        return answer.read().decode()


@pytest.fixture
def started(spawn, tmp_path):
    """Start the service as a process; return it and the JSON object that it prints first."""
    running = []

    def start(*words):
        process = spawn("serve", *words, "--port", 0, "--json", cwd=tmp_path)
        running.append(process)
        lines = iter(process.stdout.readline, "}\n")
        return process, json.loads("".join(lines) + "}")

    yield start
    for process in running:
        if process.poll() is None:
            process.kill()
        process.communicate()


@pytest.mark.verify
def test_several_processes_serve_and_end_together(started, bundle, tmp_path):
    process, told = started(bundle, "--workers", 2)
    assert told["schema"] == 1
    assert told["workers"] == 2
    assert told["keys_needed"] is False
    assert told["db"] == f"sqlite:///{tmp_path}/calibrant.db"
    url = told["url"]
    ids, lock = [], threading.Lock()

    def predict():
        for _ in range(5):
            answer = json.loads(ask(f"{url}/v1/predict", BODY))
            assert answer["bundle"] == {key: told["bundle"][key] for key in ("id", "hash")}
            with lock:
                ids.append(answer["predictions"][0]["id"])

    clients = [threading.Thread(target=predict) for _ in range(8)]
    for each in clients:
        each.start()
    for each in clients:
        each.join()
    assert len(set(ids)) == 40
    # Whichever process is asked, it tells the figures of all.
    for _ in range(4):
        text = ask(f"{url}/metrics")
        assert 'calibrant_requests_total{route="/v1/predict",status="200"} 40.0' in text
        assert 'calibrant_decisions_total{decision="act",label="defect"} 40.0' in text
        assert "calibrant_score_count 40.0" in text
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (0, "", "")
    with Store(tmp_path / "calibrant.db") as store:
        assert sorted(p.id for p in store.predictions.search()) == sorted(ids)


def test_ctrl_c_is_the_usual_end(started, bundle, tmp_path):
    process, told = started(bundle, "--db", "other.db", "--inputs", "hash", "--need-key")
    assert told["db"] == f"sqlite:///{tmp_path}/other.db"
    assert told["keys_needed"] is True
    assert json.loads(ask(f"{told['url']}/readyz"))["bundle"] == told["bundle"]["id"]
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (0, "", "")


@pytest.fixture
def refused(cli, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def refuse(*words):
        result = cli("serve", *words)
        assert result.exit_code == 2, result.output
        assert result.stdout == ""
        assert result.stderr.count("\n") == 1
        assert not (tmp_path / "calibrant.db").exists()
        told = cli("serve", *words, "--json")
        assert f"error: {json.loads(told.stdout)['error']['message']}\n" == result.stderr
        return result.stderr

    return refuse


def test_a_port_in_use(refused, bundle):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        said = refused(bundle, "--port", port)
    assert f"cannot listen on http://127.0.0.1:{port}: " in said
    assert "choose another --port" in said


@pytest.mark.parametrize(
    ("words", "mentions"),
    [
        (("--host", "no.such.host.invalid"), ("'no.such.host.invalid'", "address")),
        (("--host", "192.0.2.1"), ("cannot listen on http://192.0.2.1:0",)),
        (("--port", "70000"), ("port", "0 to 65535", "got 70000")),
        (("--workers", "0"), ("workers", "at least 1", "got 0")),
        (("--inputs", "some"), ("inputs", "keep, redacted or hash", "got 'some'")),
        (("--max-wait", "2"), ("max_wait", "0 to 1", "got 2.0")),
        (("--grace", "-1"), ("grace", "0 to 3600", "got -1.0")),
        (("--max-inputs", "5000"), ("max_inputs (5000)", "max_queue (4096)")),
        (("--device", "abacus"), ("abacus",)),
        (("--db", "no/such/folder/x.db"), ("no/such/folder",)),
        (("--db", "mysql://u:secret@h/d"), ("mysql",)),
    ],
)  # fmt: skip
def test_what_it_cannot_be_started_with(refused, texts, words, mentions):
    said = refused(texts, "--port", 0, *words)
    assert_mentions(said, *mentions)
    assert "secret" not in said


def test_bundles_that_are_none(refused, tmp_path, monkeypatch):
    assert "nowhere" in refused(tmp_path / "nowhere", "--port", 0)
    know_tiny_images(monkeypatch)
    images = pack(tmp_path / "images", scorer=image_scorer()).path
    assert_mentions(refused(images, "--port", 0), "images", "cannot be served")
    (tmp_path / "damaged").mkdir()
    (tmp_path / "damaged/manifest.json").write_text("{}")
    assert "damaged" in refused(tmp_path / "damaged", "--port", 0)


def test_what_it_says_to_people(cli, bundle, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    asked = []

    def run(settings, *, on_start):
        from calibrant.serving.service import Service

        asked.append(settings)
        service = Service(settings)
        service.prepare()
        on_start(service, "http://127.0.0.1:8000")
        service.store.close()

    monkeypatch.setattr("calibrant.serving.run.serve", run)
    result = cli("serve", bundle, "--max-body", 5, "--timeout", 2, "--drain", 3, "--max-text", 4,
                 "--max-batch", 6, "--max-queue", 2000, "--max-inputs", 7,
                 "--grace", 8)  # fmt: skip
    assert result.exit_code == 0
    id = json.loads((bundle / "manifest.json").read_text())["sha256"][:12]
    assert result.stdout == (
        f"Serving bundle {id} (returns) on http://127.0.0.1:8000, described at "
        "http://127.0.0.1:8000/docs.\n"
        "For people: http://127.0.0.1:8000/console\n"
        f"Predictions go on record in sqlite:///{tmp_path}/calibrant.db. No key is needed here.\n"
        "Ctrl-C stops it.\n"
    )
    (made,) = asked
    assert (made.max_body, made.timeout, made.drain, made.max_text) == (5, 2.0, 3.0, 4)
    assert made.grace == 8.0
    assert (made.max_batch, made.max_queue, made.max_inputs) == (6, 2000, 7)
    said = cli("serve", bundle, "--need-key").stdout
    assert_mentions(said, "needs a key", "none", "calibrant keys add")
    with Store(tmp_path / "calibrant.db") as store:
        store.keys.add("shop", "predict")
    assert_mentions(cli("serve", bundle, "--need-key").stdout, "needs a key.")


def test_flags_and_settings_have_the_same_defaults(cli, bundle, tmp_path, monkeypatch):
    from calibrant.serving.settings import Settings

    monkeypatch.chdir(tmp_path)
    asked = []
    monkeypatch.setattr("calibrant.serving.run.serve", lambda given, on_start: asked.append(given))
    assert cli("serve", bundle).exit_code == 0
    assert asked == [Settings(bundle)]
    assert cli("serve", bundle, env={"CALIBRANT_DB": "postgresql://h/d"}).exit_code == 0
    assert asked[1] == Settings(bundle, db="postgresql://h/d")


def test_where_keys_are_needed_it_says_how_to_make_one(bundle, tmp_path):
    from calibrant.cli.verbs.serve import _about_keys
    from calibrant.serving.service import Service
    from calibrant.serving.settings import Settings

    service = Service(Settings(bundle, db=str(tmp_path / "c.db"), host="0.0.0.0"))
    service.prepare()
    assert_mentions(_about_keys(service), "none", "calibrant keys add")
    key, _ = service.store.keys.add("shop", "predict")
    assert_mentions(_about_keys(service), "needs a key.")
    service.store.keys.revoke(key.id)
    assert "there is none" in _about_keys(service)
    service.store.close()
