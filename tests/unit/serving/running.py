"""A real service on a port of its own, in a thread of the tests."""

import socket
import threading
from contextlib import contextmanager

from calibrant.serving.app import make_app
from calibrant.serving.http.server import Server
from calibrant.serving.service import Service
from calibrant.serving.settings import Settings


@contextmanager
def running(bundle, db, **settings):
    """Serve a bundle; what is lent is the service, whose `url` is where it is."""
    service = Service(Settings(bundle, db=db, device="cpu", max_wait=0.0, **settings))
    service.prepare()
    server = Server(make_app(service))
    with socket.create_server(("127.0.0.1", 0)) as listener:
        service.url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        thread = threading.Thread(target=server.run, args=([listener],), daemon=True)
        thread.start()
        try:
            yield service
        finally:
            server.stop()
            thread.join(30)
            assert not thread.is_alive()
