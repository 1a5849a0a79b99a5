"""HTTP routes of the service, one module per resource."""

from calibrant.serving.routes import bundle, health, outcomes, predict, predictions, units

__all__ = ["ROUTERS"]

ROUTERS = (
    predict.router,
    outcomes.router,
    predictions.router,
    bundle.router,
    units.router,
    health.router,
)
