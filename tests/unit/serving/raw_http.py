"""Bytes on a socket, for what no well-behaved client sends."""

import json
import socket
import time

GOOD = b'{"inputs": [{"logits": [9, 0, 0]}]}'
CLOSE = b"Connection: close\r\n"


def request(body=GOOD, extra=b"", *, path=b"/v1/predict", method=b"POST", length=None):
    """Return a request as bytes; `length` is what it announces, b"" for nothing."""
    announced = b"%d" % len(body) if length is None else length
    lines = [method + b" " + path + b" HTTP/1.1", b"Host: localhost"]
    lines += [b"Content-Type: application/json"]
    lines += [b"Content-Length: " + announced] if announced else []
    return b"\r\n".join(lines) + b"\r\n" + extra + b"\r\n" + body


def chunked(body, *, trailer=b"", size=16_384):
    """Return a body in chunks."""
    parts = [body[i : i + size] for i in range(0, len(body), size)]
    return b"".join(b"%x\r\n%s\r\n" % (len(p), p) for p in parts) + b"0\r\n" + trailer + b"\r\n"


def exchange(port, *parts, pause=0.0, half=False):
    """Send parts and return all that comes until the other side hangs up."""
    with socket.create_connection(("127.0.0.1", port), timeout=30) as wire:
        try:
            for part in parts:
                wire.sendall(part)
                time.sleep(pause)
            if half:
                wire.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # it hung up before it had all, and may have said why
        return _rest(wire)


def _rest(wire):
    found = b""
    try:
        while part := wire.recv(65_536):
            found += part
    except ConnectionError:
        pass
    return found


def answers(found):
    """Return the status and the content of each answer."""
    made = []
    while found:
        head, _, rest = found.partition(b"\r\n\r\n")
        lines = head.decode().split("\r\n")
        fields = dict(line.lower().split(": ", 1) for line in lines[1:])
        if " 100 " in lines[0]:
            found = rest
            continue
        size = int(fields["content-length"])
        content = json.loads(rest[:size])
        if int(lines[0].split()[1]) >= 400:
            assert fields["content-type"] == "application/problem+json"
            assert content["detail"].endswith(".")
        made.append((int(lines[0].split()[1]), content))
        found = rest[size:]
    return made


def answer(port, *parts, **options):
    """Return the status and the content of the only answer."""
    (only,) = answers(exchange(port, *parts, **options))
    return only
