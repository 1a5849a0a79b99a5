"""Connections that are slow, endless, half closed or hardly HTTP: each has a limit or an answer."""

import socket
import time

import pytest
from tests.unit.serving.raw_http import CLOSE, GOOD, answer, answers, chunked, exchange, request
from tests.unit.serving.running import running

from calibrant.serving.http import server as connections


@pytest.fixture(scope="module")
def service(tmp_path_factory, logits_folder):
    db = f"sqlite:///{tmp_path_factory.mktemp('db')}/calibrant.db"
    with running(logits_folder, db) as service:
        service.port = int(service.url.rpartition(":")[2])
        yield service


@pytest.fixture
def port(service):
    """The service's port; it still serves when the test is over."""
    yield service.port
    status, content = answer(service.port, request(extra=CLOSE))
    assert status == 200, content


@pytest.fixture
def hasty(monkeypatch):
    """Give clients a fifth of a second."""
    monkeypatch.setattr(connections, "_TIMEOUT", 0.2)
    monkeypatch.setattr(connections, "_CHECK_EVERY", 0.05)


CHUNKED = b"Transfer-Encoding: chunked\r\n"

NOT_HTTP = {
    "nothing like it": b"\xff" * 100,
    "a handshake of TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"x" * 100,
    "HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "an unknown method": request(method=b"STEAL"),
    "a tunnel": b"CONNECT example.org:443 HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "a tunnel to a path": b"CONNECT / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "both lengths": request(extra=CHUNKED),
    "two lengths": request(extra=b"Content-Length: 5\r\n"),
    "a negative length": request(length=b"-5"),
    "a length with a sign": request(length=b"+35"),
    "a length in hex": request(length=b"0x23"),
    "an endless length": request(length=b"9" * 30),
    "an unknown encoding": request(b"", b"Transfer-Encoding: xchunked\r\n", length=b""),
    "an encoding twice": request(b"", CHUNKED + b"Transfer-Encoding: identity\r\n", length=b""),
    "a chunk without a size": request(b"zz\r\n", CHUNKED, length=b""),
    "NUL in a header": request(extra=b"X-A: a\0b\r\n"),
    "NUL in the name of a header": request(extra=b"X\0A: ab\r\n"),
    "a line end in a header": request(extra=b"X-A: a\rb\r\n"),
    "a header over two lines": request(extra=b"X-A: a\r\n b\r\n"),
    "a header without a colon": request(extra=b"X-A\r\n"),
    "a space before the colon": request(extra=b"X-A : b\r\n"),
    "NUL in the path": request(path=b"/v1/\0"),
    "plain bytes in the path": request(path="/é".encode()),
    "two hosts": request(extra=b"Host: example.org\r\n"),
    "no host": b"GET /healthz HTTP/1.1\r\n\r\n",
}


@pytest.mark.parametrize("name", NOT_HTTP)
def test_what_is_not_http_is_told_so_and_hung_up_on(service, port, name):
    before = service.store.predictions.count()
    status, content = answer(port, NOT_HTTP[name])
    assert status == 400
    assert "HTTP" in content["detail"]
    assert service.store.predictions.count() == before


def test_an_old_client_is_served(port):
    found = exchange(port, b"GET /healthz HTTP/1.0\r\n\r\n")
    assert answers(found) == [(200, {"status": "alive"})]


@pytest.mark.parametrize("protocol", [b"h2c", b"websocket", b"TLS/1.0"])
@pytest.mark.parametrize("parts", [1, 2])
def test_an_offer_to_change_the_protocol_is_passed_over(port, protocol, parts):
    """Java's client, for one, makes it with every first request, and the body must not be lost."""
    offer = b"Connection: Upgrade, HTTP2-Settings, close\r\nHTTP2-Settings: AAMAAABk\r\n"
    whole = request(extra=offer + b"Upgrade: " + protocol + b"\r\n")
    cut = len(whole) - 10
    sent = (whole,) if parts == 1 else (whole[:cut], whole[cut:])
    status, content = answer(port, *sent, pause=0.05)
    assert status == 200
    assert content["predictions"][0]["label"] == "defect"


def test_what_follows_a_body_is_no_header(port):
    trailer = b"Authorization: Bearer cal_x\r\nHost: example.org\r\n"
    status, _ = answer(
        port, request(b"", CHUNKED + CLOSE, length=b""), chunked(GOOD, trailer=trailer)
    )
    assert status == 200


def test_a_client_that_has_no_more_to_send_still_gets_its_answer(port):
    status, _ = answer(port, request(), half=True)
    assert status == 200


def test_a_client_that_goes_in_the_middle_of_a_body_is_hung_up_on(service, port):
    before = service.store.predictions.count()
    assert exchange(port, request(length=b"500"), half=True) == b""
    assert service.store.predictions.count() == before


def test_requests_in_a_row_are_answered_in_a_row(port):
    sent = request() + request(b"{") + request(path=b"/v1/nothing") + request(extra=CLOSE)
    assert [status for status, _ in answers(exchange(port, sent))] == [200, 400, 404, 200]


def test_what_comes_after_a_good_request_does_not_take_its_answer(port):
    assert [status for status, _ in answers(exchange(port, request() + b"\xff" * 50))] == [200]


def test_a_broken_request_in_a_row_does_not_take_the_answers_of_others(port):
    broken = request(b"zz\r\n", CHUNKED, length=b"")
    assert [status for status, _ in answers(exchange(port, request() + broken))] == [200]


@pytest.mark.parametrize("read", [True, False])
def test_requests_in_an_endless_row_wait_with_their_sender(service, port, read):
    row, sent = request() * 500, 0
    with socket.create_connection(("127.0.0.1", port), timeout=0.1) as wire:
        until = time.monotonic() + 0.8
        while time.monotonic() < until:
            try:
                sent += wire.send(row)
                if read:
                    wire.recv(1 << 20)
            except TimeoutError:
                pass
        (connection,) = _connections()
        assert sent > len(row)
        assert len(connection.pipeline) < 4_000  # as much as is read at once


def _connections():
    import gc

    found = [each for each in gc.get_objects() if type(each) is connections.Connection]
    return [each for each in found if not each.transport.is_closing()]


def test_bodies_may_come_in_any_pieces(port):
    whole = request(extra=CLOSE)
    assert answer(port, *(whole[i : i + 3] for i in range(0, len(whole), 3)))[0] == 200
    pieces = chunked(GOOD, size=7)
    assert answer(port, request(b"", CHUNKED + CLOSE, length=b""), pieces)[0] == 200
    assert answer(port, b"\r\n" * 100 + whole)[0] == 200


def test_a_client_may_ask_whether_to_send_its_body(port):
    assert answer(port, request(extra=b"Expect: 100-continue\r\n" + CLOSE))[0] == 200


@pytest.mark.parametrize(
    "start",
    [
        b"GET /" + b"a" * 1_000_000,
        b"GET / HTTP/1.1\r\nX: " + b"a" * 1_000_000,
        b"GET / HTTP/1.1\r\n" + b"".join(b"X%d: a\r\n" % i for i in range(100_000)),
        b"\r\n" * 500_000,
        request(b"", CHUNKED, length=b"") + chunked(GOOD)[:-2] + b"X: " + b"a" * 1_000_000,
        request(b"", CHUNKED, length=b"") + b"1\r\n \r\n" * 100_000,
    ],
    ids=["address", "header", "headers", "line ends", "after the body", "tiny chunks"],
)
def test_endless_heads_are_cut_off(port, start):
    status, content = answer(port, start)
    assert status == 431
    assert "65,536 bytes" in content["detail"]


@pytest.mark.parametrize(
    "start",
    [
        b"",
        b"GET /healthz",
        b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n",
        request(length=b"500"),
        request(b"5\r\n", CHUNKED, length=b""),
    ],
    ids=["silence", "half a line", "half a head", "half a body", "half a chunk"],
)
def test_who_is_too_slow_is_told_so(hasty, port, start):
    status, content = answer(port, start)
    assert status == 408
    assert "did not arrive in time" in content["detail"]


def test_a_drip_does_not_keep_a_connection(hasty, port):
    status, _ = answer(port, b"GET /healthz HTTP/1.1\r\nX: ", *[b"a"] * 20, pause=0.03)
    assert status == 408


def test_line_ends_between_requests_do_not_keep_a_connection(hasty, port):
    first, second = answers(exchange(port, request(), b"\r\n", pause=0.1))
    assert (first[0], second[0]) == (200, 408)


def test_a_large_body_has_more_time(hasty, monkeypatch, port):
    monkeypatch.setattr(connections, "_MIN_RATE", 100)
    body = b" " * 200 + GOOD
    parts = [body[i : i + 20] for i in range(0, len(body), 20)]
    assert answer(port, request(b"", CLOSE, length=b"%d" % len(body)), *parts, pause=0.05)[0] == 200


def test_who_does_not_take_an_answer_is_hung_up_on(hasty, service, port):
    many = b'{"inputs": [%s]}' % b",".join([b'{"logits":[9,0,0]}'] * 1_000)
    with socket.socket() as wire:
        wire.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        wire.settimeout(0.05)
        wire.connect(("127.0.0.1", port))
        assert _is_hung_up_on(wire, request(many))


def _is_hung_up_on(wire, sent):
    """Send without reading, for half a minute at most."""
    until = time.monotonic() + 30
    while time.monotonic() < until:
        try:
            wire.send(sent)
        except TimeoutError:
            continue
        except ConnectionError:
            return True
    return False


def test_connections_beyond_the_limit_are_told_to_come_again(monkeypatch, port):
    monkeypatch.setattr(connections, "max_connections", lambda: 3)
    held = [socket.create_connection(("127.0.0.1", port), timeout=30) for _ in range(3)]
    try:
        found = exchange(port, request(extra=CLOSE))
        assert b"retry-after: 1\r\n" in found
        ((status, content),) = answers(found)
        assert (status, content["detail"]) == (503, connections._TOO_MANY)
    finally:
        for wire in held:
            wire.close()
    until = time.monotonic() + 10
    while _connections() and time.monotonic() < until:
        time.sleep(0.01)


def test_files_are_left_for_the_database(monkeypatch):
    import resource

    monkeypatch.setattr(resource, "getrlimit", lambda kind: (1_000, 5_000))
    assert connections.max_connections() == 800
