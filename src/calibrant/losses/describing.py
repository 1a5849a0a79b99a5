"""What makes a loss this loss, in one line: for runs that must go on with the loss they began."""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Iterable, Mapping, Set
from functools import partial
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from calibrant.losses.base import Loss
from calibrant.losses.own_code import code_of, is_own

__all__ = ["describe", "describe_code"]

# Bookkeeping that every Module carries, or every compiled one.
_TORCHS_OWN = frozenset(vars(nn.Module())) | {"_compile_kwargs", "_is_torch_compile"}
_SHOWN = 16  # numbers written out; of longer tables only a checksum


def describe(loss: nn.Module) -> str:
    """Name a loss's class and all that it was told: the same text for the same loss.

    It holds every attribute, buffer, weight and inner Module, but for what a `Loss` names in
    `learned`. Of functions and classes it holds the name. Of the user's own it also holds a
    checksum of their code as Python has compiled it, with defaults, what they enclose, and the
    functions, classes and plain values of the same package that they name (see `code_of`). A
    function written in C is known by its name alone.

    Examples
    --------
    >>> from calibrant.losses import as_loss
    >>> from calibrant.losses.describing import describe
    >>> print(describe(as_loss("focal:gamma=3")))
    calibrant.losses.focal.FocalLoss(gamma=3, ignore_index=-100, reduction='mean', weight=None)
    """
    return _told(loss, ())


def describe_code(kinds: Iterable[type]) -> str:
    """Name the user's own among some classes, each with a checksum of its code; "" without any.

    It changes where what they do has changed (see `code_of`), whatever their objects were told.

    Examples
    --------
    >>> describe_code([nn.Linear])
    ''
    """
    return ", ".join(sorted({_class(kind, ()) for kind in kinds if is_own(kind)}))


def _told(value: Any, inside: tuple[int, ...]) -> str:
    """Write a value out, without addresses in memory; `inside` are the objects that hold it."""
    if id(value) in inside:
        return "..."
    inside = (*inside, id(value))
    for kind, write in _KINDS.items():
        if isinstance(value, kind):
            return write(value, inside)
    if getattr(type(value), "__repr__", None) is object.__repr__:
        return _object(value, getattr(value, "__dict__", {}), inside)
    return re.sub(r" at 0x[0-9a-fA-F]+", "", repr(value))


def _module(module: nn.Module, inside: tuple[int, ...]) -> str:
    module = getattr(module, "_orig_mod", module)  # what torch.compile has wrapped
    own = {name: value for name, value in vars(module).items() if name not in _TORCHS_OWN}
    own |= module._buffers | module._parameters | module._modules
    learned = module.learned if isinstance(module, Loss) else ()
    return _object(module, {name: own[name] for name in own if name not in learned}, inside)


def _object(value: Any, own: Mapping[str, Any], inside: tuple[int, ...]) -> str:
    options = ", ".join(f"{name}={_told(own[name], inside)}" for name in sorted(own))
    return f"{_class(type(value), inside)}({options})"


def _function(function: FunctionType, inside: tuple[int, ...]) -> str:
    function = getattr(function, "_torchdynamo_orig_callable", function)
    path = _path(function)
    if "<" not in path and not is_own(function) and not function.__closure__:
        return path
    return f"{path} {_checksum(_told(code_of(function), inside).encode())}"


def _class(kind: type, inside: tuple[int, ...]) -> str:
    path = _path(kind)
    return f"{path} {_checksum(_told(code_of(kind), inside).encode())}" if is_own(kind) else path


def _code(code: CodeType, inside: tuple[int, ...]) -> str:
    return _told([code.co_code.hex(), code.co_names, code.co_consts], inside)


def _tensor(tensor: Tensor, _: tuple[int, ...]) -> str:
    values = tensor.detach().cpu()
    if values.numel() <= _SHOWN:
        return f"{tuple(values.shape)} {_rounded(values.flatten().tolist())}"
    raw = values.contiguous().flatten().view(torch.uint8).numpy().tobytes()
    return f"{tuple(values.shape)} {_checksum(raw)}"


def _array(array: NDArray[Any], inside: tuple[int, ...]) -> str:
    if array.dtype.hasobject:
        return _told(array.tolist(), inside)
    return f"{array.shape} {_checksum(array.tobytes())}"


def _rounded(numbers: list[Any]) -> str:
    """Write numbers with the digits that single precision has on every machine."""
    shown = (f"{one:.6g}" if isinstance(one, float) else repr(one) for one in numbers)
    return f"[{', '.join(shown)}]"


def _path(named: Any) -> str:
    name = getattr(named, "__qualname__", None) or getattr(named, "__name__", "")
    return f"{getattr(named, '__module__', None) or ''}.{name}"


def _checksum(raw: bytes) -> str:
    return f"{zlib.crc32(raw):08x}"


def _listed(values: Any, inside: tuple[int, ...]) -> str:
    return f"[{', '.join(_told(value, inside) for value in values)}]"


def _mapping(values: Mapping[Any, Any], inside: tuple[int, ...]) -> str:
    return _listed(sorted(values.items(), key=lambda pair: str(pair[0])), inside)


def _set(values: Set[Any], inside: tuple[int, ...]) -> str:
    return f"{{{', '.join(sorted(_told(value, inside) for value in values))}}}"


_KINDS: dict[type, Callable[[Any, tuple[int, ...]], str]] = {
    nn.Module: _module,
    Tensor: _tensor,
    np.ndarray: _array,
    FunctionType: _function,
    CodeType: _code,
    BuiltinFunctionType: lambda function, _: _path(function),
    MethodType: lambda method, inside: _listed([method.__func__, method.__self__], inside),
    partial: lambda part, inside: _listed([part.func, part.args, part.keywords], inside),
    type: _class,
    float: lambda number, _: float.__repr__(number).removesuffix(".0"),  # 3.0 is the gamma 3
    list: _listed,
    tuple: _listed,
    Mapping: _mapping,
    Set: _set,
}
