"""HTTP service for bundles; every prediction is recorded before it is returned."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from calibrant.client.client import Client
    from calibrant.serving.app import make_app
    from calibrant.serving.service import Service
    from calibrant.serving.settings import Settings

__all__ = ["Client", "Service", "Settings", "make_app"]

_MODULES = {
    "Client": "calibrant.client",
    "Service": "calibrant.serving.service",
    "Settings": "calibrant.serving.settings",
    "make_app": "calibrant.serving.app",
}


def __getattr__(name: str) -> Any:
    """Import a name on first use, so that the client does not import the server."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)
