"""Models by name: what a bundle saves of a network is its config and its weights."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from torch import nn

from calibrant.errors import InputError

__all__ = ["build", "models", "register"]

Class = TypeVar("Class", bound="type[nn.Module]")

_MODELS: dict[str, type[nn.Module]] = {}


def register(name: str) -> Callable[[Class], Class]:
    """List a network under a name; use it as a class decorator.

    A listed class has an attribute `config`: {"model": name, ...} with the constructor's
    arguments as JSON values.
    """

    def listed(model: Class) -> Class:
        other = _MODELS.get(name, model)
        if (other.__module__, other.__qualname__) != (model.__module__, model.__qualname__):
            raise InputError(f"the model name {name!r} is taken by {other.__name__}.")
        _MODELS[name] = model
        return model

    return listed


def models() -> dict[str, type[nn.Module]]:
    """Return every registered network, by name.

    Examples
    --------
    >>> from calibrant.models import models
    >>> models()["mlp"].__name__
    'MLP'
    """
    import calibrant.models  # noqa: F401  # importing the folder registers its networks

    return dict(sorted(_MODELS.items()))


def build(config: Mapping[str, Any]) -> nn.Module:
    """Make the network that a config describes, with fresh weights.

    Parameters
    ----------
    config : what a network's `config` says: "model" and the constructor's arguments

    Examples
    --------
    >>> from calibrant.models import build
    >>> model = build({"model": "mlp", "n_features": 3, "n_classes": 2})
    >>> build(model.config).config == model.config
    True
    """
    known = models()
    arguments = dict(config)
    name = arguments.pop("model", None)
    if name not in known:
        near = difflib.get_close_matches(str(name), known, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"known are {', '.join(known)}."
        raise InputError(f"config['model'] must name a network, got {name!r}: {hint}")
    try:
        return known[name](**arguments)
    except TypeError as error:
        raise InputError(f"config does not fit the network {name!r}: {error}.") from error
