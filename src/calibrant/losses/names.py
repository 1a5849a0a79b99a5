"""Losses by name: `focal:gamma=3`, `0.5*ce + 0.5*soft_f1`, `mypackage.losses:MyLoss`."""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib.util import find_spec
from typing import Any, TypeVar

from torch import Tensor, nn

from calibrant.errors import InputError
from calibrant.fitting.loss_text import (
    parse_options,
    refuse_missing,
    refuse_unknown,
    split_terms,
)

LossLike = str | nn.Module | Callable[[Tensor, Tensor], Tensor]
Class = TypeVar("Class", bound="type[nn.Module]")

_LOSSES: dict[str, type[nn.Module]] = {}
_COUNTS = "class_counts"  # the parameter by which a loss asks for the counts of the train split


def register(name: str) -> Callable[[Class], Class]:
    """Register a loss under a name; use it as a class decorator."""

    def decorate(loss: Class) -> Class:
        other = _LOSSES.get(name, loss)
        if (other.__module__, other.__qualname__) != (loss.__module__, loss.__qualname__):
            raise InputError(f"the loss name {name!r} is taken by {other.__name__}.")
        _LOSSES[name] = loss
        setattr(loss, "name", name)  # noqa: B010  # a Module has no such attribute
        return loss

    return decorate


def losses() -> dict[str, type[nn.Module]]:
    """Return every registered loss, by name.

    Examples
    --------
    >>> from calibrant.losses import losses
    >>> losses()["focal"].__name__
    'FocalLoss'
    """
    import calibrant.losses  # noqa: F401  # importing the package registers its losses

    return dict(sorted(_LOSSES.items()))


def as_loss(loss: LossLike, *, class_counts: Sequence[int] | Tensor | None = None) -> nn.Module:
    """Convert a name, a function or a Module to a loss Module.

    Parameters
    ----------
    loss : a Module or a function of `(logits, labels)`, or text: a registered name with options
        (`focal:gamma=3,reduction=sum`), `package.module:Name` for a custom loss, or a sum of such
        terms (`0.5*ce + 0.5*soft_f1`)
    class_counts : rows of each class in the train split, for losses that need them
        (`balanced_softmax`) and for `weight=balanced` or `weight=class_balanced`

    Examples
    --------
    >>> from calibrant.losses import as_loss
    >>> as_loss("focal:gamma=3").gamma
    3
    >>> as_loss("0.5*ce + 0.5*soft_f1").factors
    (0.5, 0.5)
    """
    if isinstance(loss, nn.Module):
        return loss
    if isinstance(loss, str):
        return _parse_text(loss, class_counts)
    if isinstance(loss, type) and issubclass(loss, nn.Module):
        return _construct(loss, {}, loss.__name__, class_counts)
    if callable(loss):
        from calibrant.losses.function import FunctionLoss

        return FunctionLoss(loss)  # type: ignore[arg-type]
    raise InputError(
        "a loss must be a name like 'focal:gamma=3', a function of (logits, labels) or a "
        f"torch Module, got {type(loss).__name__}."
    )


def _parse_text(text: str, class_counts: Any) -> nn.Module:
    terms = [(factor, _parse_loss(term, class_counts)) for factor, term in split_terms(text)]
    if len(terms) == 1 and terms[0][0] == 1.0:
        return terms[0][1]
    from calibrant.losses.sums import LossSum

    return LossSum([loss for _, loss in terms], [factor for factor, _ in terms])


def _parse_loss(text: str, class_counts: Any) -> nn.Module:
    name, _, rest = (part.strip() for part in text.partition(":"))
    known = losses()
    if name not in known and _is_module(name, rest):
        place, _, options = (part.strip() for part in rest.partition(":"))
        return _load_custom(name, place, parse_options(options, text), class_counts)
    if name not in known:
        near = difflib.get_close_matches(name, known, n=1)
        hint = f" (did you mean {near[0]!r}?)" if near else ""
        raise InputError(
            f"there is no loss {name!r}{hint}: choose one of {', '.join(known)}, "
            "or name your own as package.module:Name."
        )
    return _construct(known[name], parse_options(rest, text), name, class_counts)


def _is_module(name: str, rest: str) -> bool:
    """Whether text like `mylosses:Mine` names a custom loss rather than a misspelt one."""
    if "." in name:
        return True
    is_name = rest.partition(":")[0].strip().isidentifier() and name.isidentifier()
    return is_name and find_spec(name) is not None


def _load_custom(
    module: str, name: str, options: Mapping[str, Any], class_counts: Any
) -> nn.Module:
    text = f"{module}:{name}"
    if not name:
        raise InputError(f"a loss of your own is named as package.module:Name, got {module!r}.")
    try:
        namespace = importlib.import_module(module)
    except Exception as error:  # a user's module may raise anything on import
        what = f"{type(error).__name__}: {error}"
        raise InputError(f"the loss {text!r} cannot be imported ({what}).") from error
    loss = getattr(namespace, name, None)
    if loss is None:
        near = difflib.get_close_matches(name, dir(namespace), n=1)
        hint = f" (did you mean {near[0]!r}?)" if near else ""
        raise InputError(f"the module {module!r} has no loss {name!r}{hint}.")
    if isinstance(loss, type) and issubclass(loss, nn.Module):
        return _construct(loss, options, text, class_counts)
    if isinstance(loss, nn.Module) and not options:
        return loss
    if callable(loss) and not isinstance(loss, (type, nn.Module)):
        from calibrant.losses.function import FunctionLoss

        refuse_unknown(options, partial(loss, None, None), text)  # (logits, labels) come later
        return FunctionLoss(loss, **options)
    raise InputError(
        f"the loss {text!r} must be a function of (logits, labels) or a torch Module class, "
        f"got {type(loss).__name__}{' with options' if options else ''}."
    )


def _construct(
    loss: type[nn.Module], options: Mapping[str, Any], name: str, class_counts: Any
) -> nn.Module:
    """Construct a loss from its options, with the class counts of the train split if needed."""
    arguments = dict(options)
    accepted = refuse_unknown(arguments, loss, name)
    if isinstance(arguments.get("weight"), str):
        arguments["weight"] = _make_weights(arguments["weight"], name, class_counts)
    if _COUNTS in accepted and _COUNTS not in arguments:
        arguments[_COUNTS] = _require_counts(class_counts, name)
    refuse_missing(arguments, loss, name)
    try:
        return loss(**arguments)
    except (TypeError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"the loss {name!r} cannot be made ({error}).") from error


def _make_weights(kind: str, name: str, class_counts: Any) -> Tensor:
    from calibrant.losses.class_weights import balanced_weights, class_balanced_weights

    makers = {"balanced": balanced_weights, "class_balanced": class_balanced_weights}
    if kind not in makers:
        raise InputError(
            f"weight of the loss {name!r} must be 'balanced', 'class_balanced' or one number per "
            f"class like [1,4], got {kind!r}."
        )
    return makers[kind](_require_counts(class_counts, name))


def _require_counts(class_counts: Any, name: str) -> Any:
    if class_counts is None:
        raise InputError(
            f"the loss {name!r} needs the counts of the classes: pass class_counts, "
            "the rows of each class in the train split."
        )
    return class_counts
