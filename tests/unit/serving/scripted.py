"""A server that answers as a script says, for tests of clients: it fails whenever it is told to."""

import json
import socket
import struct
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PROBLEM = "application/problem+json"
BUNDLE = {"id": "0123456789ab", "hash": "0123456789ab" + "c" * 52}
ROW = {
    "id": "0199d0f2-7a3c-7c1e-9a51-3f2f6c1b8e77",
    "label": "defect",
    "probabilities": {"defect": 0.75, "other": 0.25},
    "decision": "act",
    "acted_as": "defect",
    "action": "refund",
    "operating_point": 0,
    "out_of_scope": None,
}
SERVED = {
    **BUNDLE,
    "name": "returns",
    "classes": ["defect", "other"],
    "input": "text",
    "columns": {"numbers": [], "texts": ["message"]},
    "points": [["Precision is at least 85 %."]],
    "actions": {"defect": "refund"},
    "loaded_at": "2025-07-01T12:00:00Z",
    "refused": None,
}


def answer(n=1, **changes):
    rows = [{**ROW, "id": f"id-{i}"} for i in range(n)]
    return {"predictions": rows, "bundle": BUNDLE, "request": "r", "repeated": False, **changes}


def good(content=None, status=200, **headers):
    """Answer with JSON."""
    kind = headers.pop("kind", "application/json")

    def step(handler):
        body = json.dumps(answer() if content is None else content).encode()
        raw(body, status, kind, **headers)(handler)

    return step


def raw(body, status=200, kind="application/json", **headers):
    """Answer with these bytes."""

    def step(handler):
        handler.send_response(status)
        handler.send_header("Content-Type", kind)
        handler.send_header("Content-Length", str(len(body)))
        for name, value in headers.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.end_headers()
        handler.wfile.write(body)

    return step


def problem(status, detail="so it is.", errors=None, **headers):
    """Answer with a problem."""
    content = {"type": "about:blank", "title": "No", "status": status, "detail": detail}
    if errors is not None:
        content["errors"] = errors
    return good(content, status, kind=PROBLEM, **headers)


def dropped(handler):
    """Hang up without an answer."""
    linger = struct.pack("ii", 1, 0)  # a reset, as from a process that was killed
    handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
    handler.close_connection = True
    handler.connection.close()


def cut(handler):
    """Announce more than is sent."""
    handler.send_response(200)
    handler.send_header("Content-Type", "application/json")
    handler.send_header("Content-Length", "1000")
    handler.end_headers()
    handler.wfile.write(b'{"predictions": [')
    handler.close_connection = True


class Scripted:
    """Takes a step of the script for each request, and remembers the requests."""

    def __init__(self):
        self.steps, self.seen = [], []
        self.always = good()
        self.lock = threading.Lock()
        self.held = threading.Event()  # lets go of requests that hang

    def hang(self, handler):
        """Say nothing until the test is over."""
        self.held.wait(30)
        handler.close_connection = True

    def handle(self, handler):
        size = int(handler.headers.get("Content-Length", 0))
        handler.body = body = handler.rfile.read(size)
        with self.lock:
            self.seen.append((handler.command, handler.path, dict(handler.headers), body))
            step = self.steps.pop(0) if self.steps else self.always
        step(handler)

    @property
    def names(self):
        """The idempotency keys that came."""
        return [headers.get("Idempotency-Key") for _, _, headers, _ in self.seen]


@contextmanager
def scripted():
    """Run such a server; its `url` is where it is."""
    script = Scripted()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1  # headers and body in one piece: two would wait for each other

        def _any(self):
            script.handle(self)

        do_GET = do_POST = do_DELETE = _any  # noqa: N815

        def log_message(self, *words):
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *about):
            pass  # clients of these tests hang up in all ways

    server = Server(("127.0.0.1", 0), Handler)
    script.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield script
    finally:
        script.held.set()
        server.shutdown()
        server.server_close()
        thread.join()
