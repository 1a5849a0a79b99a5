"""Routes of the console, in the order of its navigation."""

from calibrant.serving.console.pages.model import route as model
from calibrant.serving.console.pages.overview import route as overview
from calibrant.serving.console.pages.predictions import route as predictions
from calibrant.serving.console.pages.thresholds import route as thresholds
from calibrant.serving.console.pages.try_it import route as try_it
from calibrant.serving.console.shell import assets, login

ROUTERS = (
    overview.router,
    predictions.router,
    model.router,
    thresholds.router,
    try_it.router,
    login.router,
    assets.router,
)
