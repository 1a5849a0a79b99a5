"""Routers of the console, one module per page."""

from calibrant.serving.console.pages import (
    assets,
    login,
    model,
    overview,
    predictions,
    thresholds,
    try_it,
)

__all__ = ["ROUTERS"]

ROUTERS = (
    overview.router,
    predictions.router,
    model.router,
    thresholds.router,
    try_it.router,
    login.router,
    assets.router,
)
