"""Registry of calibration methods by name, open to plugins."""

from __future__ import annotations

import difflib
import warnings
from functools import cache
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, TypeVar

from calibrant.errors import InputError

if TYPE_CHECKING:
    from calibrant.calibrators.base.calibrator import Calibrator

Class = TypeVar("Class", bound="type[Calibrator]")

_METHODS: dict[str, type[Calibrator]] = {}
_PLUGINS = "calibrant.plugins"


def register(calibrator: Class) -> Class:
    """Register a calibrator under its `method`; use it as a class decorator.

    A package that names its module in the entry-point group `calibrant.plugins` is imported on
    the first lookup, so that its calibrators can be saved, loaded and chosen by name.
    """
    other = _METHODS.setdefault(calibrator.method, calibrator)
    if _origin(other) != _origin(calibrator):
        raise InputError(
            f"the method name {calibrator.method!r} is taken by {other.__name__}: choose another."
        )
    _METHODS[calibrator.method] = calibrator
    return calibrator


def list_methods() -> dict[str, type[Calibrator]]:
    """Return every registered method, by name.

    Examples
    --------
    >>> from calibrant.calibrators import list_methods
    >>> list_methods()["temperature"].__name__
    'TemperatureScaling'
    """
    import calibrant.calibrators  # noqa: F401  # importing the package registers its methods

    _load_plugins()
    return dict(sorted(_METHODS.items()))


def find_method(name: str) -> type[Calibrator]:
    """Return the method called `name`, or raise an error that lists the names."""
    known = list_methods()
    if name not in known:
        near = difflib.get_close_matches(name, known, n=1)
        hint = f" (did you mean {near[0]!r}?)" if near else ""
        raise InputError(
            f"there is no calibration method {name!r}{hint}: choose one of {', '.join(known)}."
        )
    return known[name]


@cache
def _load_plugins() -> None:
    for plugin in entry_points(group=_PLUGINS):
        try:
            plugin.load()
        except Exception as error:  # an error in a plugin must not break the package
            warnings.warn(
                f"the plugin {plugin.name!r} cannot be loaded ({error}): update or remove it.",
                stacklevel=2,
            )


def _origin(calibrator: type[Calibrator]) -> tuple[str, str]:
    # Reloading a module creates a new class of the same origin.
    return calibrator.__module__, calibrator.__qualname__
