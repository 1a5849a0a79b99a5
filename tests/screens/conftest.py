"""Fixtures of the recorded screens."""

import pytest
from tests.unit.cli.conftest import cli  # noqa: F401
from tests.unit.serving.conftest import logits_folder, serving  # noqa: F401


@pytest.fixture
def here(tmp_path, monkeypatch):
    """Work in an empty folder, on a terminal of 80 columns."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    return tmp_path
