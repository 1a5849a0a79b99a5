"""What the tests of the service share: small bundles, and services that are stopped again."""

from contextlib import ExitStack

import pytest
from fastapi.testclient import TestClient
from tests.databases import copy_store
from tests.unit.serving.bundles import logits_bundle, table_bundle, text_bundle


@pytest.fixture(scope="session")
def logits_folder(tmp_path_factory):
    """A bundle without a model, for reading only."""
    return logits_bundle(tmp_path_factory.mktemp("logits") / "returns").path


@pytest.fixture(scope="session")
def text_folder(tmp_path_factory):
    return text_bundle(tmp_path_factory.mktemp("texts") / "texts").path


@pytest.fixture(scope="session")
def table_folder(tmp_path_factory):
    return table_bundle(tmp_path_factory.mktemp("tables") / "tables").path


@pytest.fixture
def serving(tmp_path):
    """Start services by their bundles and settings; return clients, whose `service` is at hand."""
    from calibrant.serving.app import make_app
    from calibrant.serving.service import Service
    from calibrant.serving.settings import Settings

    with ExitStack() as stack:

        def start(bundle, base_url="http://127.0.0.1", **settings):
            file = tmp_path / "calibrant.db"
            if "db" not in settings and not file.exists():
                copy_store(file)
            chosen = {"db": f"sqlite:///{file}", "max_wait": 0.0, **settings}
            service = Service(Settings(bundle, device="cpu", **chosen))
            service.prepare()
            client = TestClient(make_app(service), base_url=base_url, raise_server_exceptions=False)
            client.service = service
            return stack.enter_context(client)

        yield start
