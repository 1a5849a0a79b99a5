"""Models by name: what a bundle saves of a network is its config and its weights."""

from __future__ import annotations

import difflib
import functools
import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from torch import nn

from calibrant.errors import InputError
from calibrant.models.options import plain

Class = TypeVar("Class", bound="type[nn.Module]")

_MODELS: dict[str, type[nn.Module]] = {}


def register(name: str) -> Callable[[Class], Class]:
    """List a network under a name; use it as a class decorator.

    A listed class has an attribute `config`: {"model": name, ...} with the constructor's
    arguments as JSON values. Its constructor is handed Python's numbers for NumPy's, which a
    search over options passes and JSON does not know.
    """

    def listed(model: Class) -> Class:
        other = _MODELS.get(name, model)
        if (other.__module__, other.__qualname__) != (model.__module__, model.__qualname__):
            raise InputError(f"the model name {name!r} is taken by {other.__name__}.")
        _MODELS[name] = model
        model.__init__ = _with_plain_numbers(model.__init__)  # type: ignore[method-assign]
        return model

    return listed


def _with_plain_numbers(init: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(init)
    def init_plain(self: nn.Module, *arguments: Any, **options: Any) -> None:
        init(self, *plain(arguments), **plain(options))

    return init_plain


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


def build(
    config: Mapping[str, Any], *, model: str = "config['model']", options: str = "config"
) -> nn.Module:
    """Build the network that a config describes, with initial weights.

    Parameters
    ----------
    config : the `config` of a network: "model" and the constructor's arguments
    model, options : names of the network name and its arguments in error messages

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
        raise InputError(f"{model} must name a network, got {name!r}: {_hint(name, known)}")
    taken = inspect.signature(known[name]).parameters
    unknown = [option for option in arguments if option not in taken]
    if unknown and not any(one.kind is one.VAR_KEYWORD for one in taken.values()):
        raise InputError(
            f"{options} names {unknown[0]!r}, which is not an option of the network {name!r}: "
            f"{_hint(unknown[0], taken)}"
        )
    try:
        return known[name](**arguments)
    except TypeError as error:
        raise InputError(f"{options} does not fit the network {name!r}: {error}.") from error


def _hint(name: Any, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(str(name), known, n=1)
    return f"did you mean {near[0]!r}?" if near else f"known are {', '.join(known)}."
