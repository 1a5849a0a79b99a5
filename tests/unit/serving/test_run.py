"""Starting and stopping: a real server on a real port, in this process."""

import http.client
import json
import os
import shutil
import signal
import socket
import threading
import time
import urllib.error
import urllib.request
import weakref
from dataclasses import replace

import pytest
from tests.sentences import refuses
from tests.unit.serving.bundles import logits_bundle

from calibrant.errors import BundleError, InputError, StoreError
from calibrant.serving import scoring
from calibrant.serving.app import SETTINGS
from calibrant.serving.run import serve
from calibrant.serving.settings import Settings
from calibrant.store import Store

BODY = json.dumps({"inputs": [{"logits": [9.0, 0.0, 0.0]}]}).encode()


@pytest.fixture
def folder(tmp_path):
    return logits_bundle(tmp_path / "returns").path


@pytest.fixture
def settings(tmp_path, folder):
    def make(**more):
        chosen = {"bundle": folder, "port": 0, "db": str(tmp_path / "calibrant.db"), **more}
        return Settings(device="cpu", **chosen)

    return make


def ask(url, body=None):
    headers = {} if body is None else {"Content-Type": "application/json"}
    request = urllib.request.Request(url, body, headers)
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.loads(answer.read())


def run(settings, use, sign=signal.SIGTERM):
    """Serve while `use(address)` runs in a thread, then stop by a signal; return what it gave."""
    found, told = [], []

    def using(address):
        try:
            found.append(use(address))
        finally:
            os.kill(os.getpid(), sign)

    def started(service, address):
        told.append((service, address))
        threading.Thread(target=using, args=(address,)).start()

    serve(settings, on_start=started)
    assert len(told) == 1
    (result,) = found
    return result


@pytest.mark.parametrize("sign", [signal.SIGTERM, signal.SIGINT])
def test_it_serves_until_it_is_told_to_stop(settings, tmp_path, sign):
    before = signal.getsignal(sign)
    answer = run(settings(), lambda url: ask(f"{url}/v1/predict", BODY), sign)
    assert signal.getsignal(sign) is before
    with Store(str(tmp_path / "calibrant.db")) as store:
        assert [p.id for p in store.predictions.search()] == [answer["predictions"][0]["id"]]


def test_told_to_stop_at_the_first_moment_it_stops(settings):
    serve(settings(), on_start=lambda *_: os.kill(os.getpid(), signal.SIGTERM))


def test_the_address_answers_from_the_first_moment(settings):
    found = []

    def started(service, address):
        port = int(address.rpartition(":")[2])
        assert service.settings.port == port
        with socket.create_connection(("127.0.0.1", port), timeout=10):  # not refused
            found.append(address)
        os.kill(os.getpid(), signal.SIGTERM)

    serve(settings(), on_start=started)
    assert found[0].startswith("http://127.0.0.1:")


def test_requests_under_way_are_answered_before_it_ends(settings, tmp_path, monkeypatch):
    entered, may_go = threading.Event(), threading.Event()

    def score(batch):
        entered.set()
        assert may_go.wait(60)
        return scoring.score(batch)

    monkeypatch.setattr("calibrant.serving.service.score", score)
    answers, asking = [], []

    def use(url):
        asking.append(
            threading.Thread(target=lambda: answers.append(ask(f"{url}/v1/predict", BODY)))
        )
        asking[0].start()
        assert entered.wait(60)
        threading.Timer(0.3, may_go.set).start()  # after the signal that `run` sends

    run(settings(), use)
    asking[0].join(60)
    assert answers[0]["predictions"][0]["decision"] == "act"
    with Store(str(tmp_path / "calibrant.db")) as store:
        assert store.predictions.count() == 1


def status_of(url):
    try:
        with urllib.request.urlopen(url, timeout=60) as answer:
            return answer.status, ""
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read())["detail"]
    except (OSError, http.client.HTTPException):
        return None, ""  # nobody listens


def test_told_to_stop_it_says_so_and_still_answers_for_a_while(settings, tmp_path):
    """As a load balancer needs it: it hears of the end before connections are refused."""
    answers = []

    def use(url):
        ask(f"{url}/readyz")
        os.kill(os.getpid(), signal.SIGTERM)
        deadline = time.monotonic() + 60
        while status_of(f"{url}/readyz") != (503, "the service is stopping."):
            assert time.monotonic() < deadline
        answers.append(ask(f"{url}/v1/predict", BODY))
        # A person who presses Ctrl-C waits no longer: `run` sends SIGINT.

    run(settings(grace=3000.0), use, signal.SIGINT)
    with Store(str(tmp_path / "calibrant.db")) as store:
        assert [p.id for p in store.predictions.search()] == [answers[0]["predictions"][0]["id"]]


def test_after_the_grace_it_ends_by_itself(settings):
    seen = []

    def use(url):
        ask(f"{url}/readyz")
        os.kill(os.getpid(), signal.SIGTERM)
        while (found := status_of(f"{url}/readyz"))[0] is not None:
            seen.append(found)
            time.sleep(0.01)

    def started(service, address):
        threading.Thread(target=use, args=(address,)).start()

    serve(settings(grace=0.5), on_start=started)
    assert (503, "the service is stopping.") in seen


def test_one_deadline_for_the_connections_and_the_service(settings, monkeypatch):
    """What a slow sender takes of the drain is not given to the service once more."""
    left = []

    async def stop(batcher, seconds):
        left.append(seconds)
        return True

    monkeypatch.setattr("calibrant.serving.batching.Batcher.stop", stop)
    head = b"POST /v1/predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    held = []

    def use(url):
        held.append(socket.create_connection(("127.0.0.1", int(url.rpartition(":")[2]))))
        held[0].sendall(head + b"Content-Length: 1000\r\n\r\n{")
        assert status_of(f"{url}/healthz")[0] == 200

    run(settings(drain=2.0), use)
    held[0].close()
    run(settings(drain=20.0), lambda url: None)
    short, long = left
    assert short == 1.0  # enough to end what has nothing to do
    assert 10.0 < long <= 20.0


def test_the_first_of_several_processes_does_not_keep_the_model(settings, monkeypatch):
    kept = []

    def started(service, address):
        kept.append(weakref.ref(service.slot.current))
        kept.append(weakref.ref(service.slot.current.bundle))

    class Nobody:
        def __init__(self, count, target, listener, *, stop_timeout):
            assert (count, stop_timeout) == (2, 45.0)

        def stop(self):
            pass

        def run(self):
            kept.append([each() for each in kept])

    monkeypatch.setattr("calibrant.serving.run.Workers", Nobody)
    monkeypatch.setenv("PROMETHEUS_MULTIPROC_DIR", "")
    monkeypatch.setenv(SETTINGS, "")
    serve(settings(workers=2, grace=5.0, drain=40.0), on_start=started)
    assert kept[2] == [None, None]


def test_a_device_that_is_not_here_is_told_before_processes_start(settings, text_folder):
    chosen = replace(settings(bundle=text_folder, workers=2), device="abacus")
    with pytest.raises(InputError, match="abacus"):
        serve(chosen, on_start=pytest.fail)


def test_a_newer_bundle_is_loaded_on_sighup(settings, folder, tmp_path, monkeypatch):
    monkeypatch.setattr("calibrant.serving.service._CHECK_EVERY", 3600.0)
    newer = logits_bundle(tmp_path / "newer", "no points")

    def use(url):
        before = ask(f"{url}/v1/bundle")["hash"]
        shutil.rmtree(folder)
        shutil.copytree(newer.path, folder)
        os.kill(os.getpid(), signal.SIGHUP)
        deadline = time.monotonic() + 60
        while ask(f"{url}/v1/bundle")["hash"] == before:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        with urllib.request.urlopen(f"{url}/metrics", timeout=60) as answer:
            assert b"calibrant_bundle_swaps_total 1.0" in answer.read()
        return ask(f"{url}/v1/bundle")["hash"]

    assert run(settings(), use) == newer.manifest["sha256"]


def test_a_client_that_leaves_in_the_middle_of_its_body_is_no_fault(settings, tmp_path, caplog):
    head = b"POST /v1/predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"

    def use(url):
        with socket.create_connection(("127.0.0.1", int(url.rpartition(":")[2]))) as client:
            client.sendall(head + b"Content-Length: 1000\r\n\r\n" + BODY)
        text, deadline = "", time.monotonic() + 60
        while "/v1/predict" not in text:
            assert time.monotonic() < deadline
            with urllib.request.urlopen(f"{url}/metrics", timeout=60) as answer:
                text = answer.read().decode()
        return text

    assert 'calibrant_requests_total{route="/v1/predict",status="400"} 1.0' in run(settings(), use)
    assert caplog.text == ""
    with Store(str(tmp_path / "calibrant.db")) as store:
        assert store.predictions.count() == 0


def test_answers_do_not_say_what_serves_them(settings):
    def use(url):
        with pytest.raises(urllib.error.HTTPError) as caught:
            urllib.request.urlopen(f"{url}/nowhere", timeout=60)
        return caught.value

    answer = run(settings(), use)
    assert answer.code == 404
    assert "server" not in answer.headers


def test_a_port_in_use_is_told_before_anything_is_made(settings, tmp_path):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with refuses(InputError, "cannot listen", f"http://127.0.0.1:{port}"):
            serve(settings(port=port), on_start=pytest.fail)
    assert not (tmp_path / "calibrant.db").exists()


@pytest.mark.parametrize(
    "host", ["no.such.host.invalid", "256.1.1.1", "bad host", "x" * 300, "\udc80"]
)
def test_a_host_that_is_none_is_told(settings, host):
    with pytest.raises(InputError, match="--host"):
        serve(settings(host=host), on_start=pytest.fail)


def test_an_address_of_another_machine_cannot_be_served_on(settings):
    with refuses(InputError, "cannot listen", "http://192.0.2.1"):
        serve(settings(host="192.0.2.1"), on_start=pytest.fail)


def test_what_cannot_be_opened_is_told_and_the_port_is_free_again(settings, tmp_path):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with pytest.raises(BundleError):
        serve(settings(bundle=tmp_path / "nowhere", port=port), on_start=pytest.fail)
    with pytest.raises(StoreError):
        serve(settings(db=str(tmp_path / "no/folder/x.db"), port=port), on_start=pytest.fail)
    with socket.socket() as again:
        again.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        again.bind(("127.0.0.1", port))


def test_an_ipv6_address_stands_in_brackets(settings):
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
    except OSError:
        with pytest.raises(InputError, match=r"--host|cannot listen on"):
            serve(settings(host="::1"), on_start=pytest.fail)
        return
    assert run(settings(host="::1"), lambda url: ask(f"{url}/readyz"))["status"] == "ready"
