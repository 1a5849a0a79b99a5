"""The pages of the console, one file each."""

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
