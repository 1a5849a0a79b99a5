"""One-line descriptions of losses, so that a resumed run uses the same loss."""

from __future__ import annotations

import re
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from functools import partial
from types import BuiltinFunctionType, CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from calibrant.losses.base import Loss

_SHIPPED = frozenset({"calibrant", "torch", "numpy", "transformers"}) | sys.stdlib_module_names
_BOUND = (MethodType, staticmethod, classmethod)
_PLAIN = (bool, int, float, complex, str, bytes, tuple, frozenset)


def is_user_code(named: Any) -> bool:
    """Whether a function or class is user-defined, not part of a known package."""
    return _package(named) not in _SHIPPED


def collect_code(own: FunctionType | type) -> list[Any]:
    """Return the code of a function or class, and of everything in its package that it uses.

    This covers compiled code, defaults, closures, and constants (numbers, strings) that the code
    reads from its module. It is the code in memory, not that of the file, which may have changed
    since; comments and line numbers do not matter. Values in lists and dicts of a module, other
    packages, and names resolved only at run time are not covered.
    """
    home = _package(own)
    queue: list[Any] = [own]
    seen: dict[int, Any] = {}  # keeps references, so that ids are not reused
    parts: list[Any] = []
    while queue:
        current = queue.pop()
        if id(current) in seen:
            continue
        seen[id(current)] = current
        named = list(_members(current) if isinstance(current, type) else _globals(current))
        parts += [(name, value) for name, value in named if isinstance(value, _PLAIN)]
        if isinstance(current, FunctionType):
            parts.append(
                (
                    current.__code__,
                    current.__defaults__,
                    current.__kwdefaults__,
                    _closure_values(current),
                )
            )
        values = [_unwrap(value) for _, value in named]
        queue += [
            target for value in values for target in value
            if isinstance(target, FunctionType | type) and _package(target) == home
        ]  # fmt: skip
    return parts


def _closure_values(function: FunctionType) -> list[Any]:
    """Return the closure of a function, except for the class of `super()`."""
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    return [_content(cell) for name, cell in cells if name != "__class__"]


def _content(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # an unbound variable
        return None


def _package(named: Any) -> str:
    return str(getattr(named, "__module__", None) or "").partition(".")[0]


def _members(kind: type) -> Iterator[tuple[str, Any]]:
    """Yield the methods, constants and bases of a class."""
    for name, value in vars(kind).items():
        if not name.startswith("__") or callable(value):
            yield name, value
    yield from ((base.__name__, base) for base in kind.__bases__)


def _globals(function: FunctionType) -> Iterator[tuple[str, Any]]:
    """Yield the globals that a function uses, also as attributes of modules of its package."""
    names = list(_names(function.__code__))
    home = _package(function)
    for name in names:
        value = function.__globals__.get(name)
        yield name, value
        if isinstance(value, ModuleType) and value.__name__.partition(".")[0] == home:
            yield from ((part, vars(value).get(part)) for part in names)  # nothing is imported


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for part in code.co_consts:
        if isinstance(part, CodeType):
            yield from _names(part)


def _unwrap(value: Any) -> Iterable[Any]:
    """Return a value, and the functions that it wraps."""
    if isinstance(value, property):
        return (value.fget, value.fset)
    inner = value.__func__ if isinstance(value, _BOUND) else value
    return (inner, dict(getattr(inner, "__dict__", {})).get("__wrapped__"))


# Attributes of every Module, or of every compiled one.
_MODULE_ATTRIBUTES = frozenset(vars(nn.Module())) | {"_compile_kwargs", "_is_torch_compile"}
_SHOWN = 16  # longer tensors are described by a checksum


def describe(loss: nn.Module) -> str:
    """Describe a loss by its class and all its options: equal losses have equal descriptions.

    It includes every attribute, buffer, weight and submodule except those in `Loss.learned`.
    Functions and classes are included by name; those of the user also by a checksum of their
    compiled code, defaults, closures, and the functions, classes and constants of the same package
    that they use (see `collect_code`). Functions written in C are included by name only.
    """
    return _format(loss, ())


def describe_code(kinds: Iterable[type]) -> str:
    """Return the names and code checksums of user-defined classes among `kinds`, or "".

    It changes if their code changes (see `collect_code`), not with the options of their instances.
    """
    return ", ".join(sorted({_class(kind, ()) for kind in kinds if is_user_code(kind)}))


def _format(value: Any, inside: tuple[int, ...]) -> str:
    """Format a value without memory addresses; `inside` are the ids of its containers."""
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
    module = getattr(module, "_orig_mod", module)  # wrapped by torch.compile
    own = {name: value for name, value in vars(module).items() if name not in _MODULE_ATTRIBUTES}
    own |= module._buffers | module._parameters | module._modules
    learned = module.learned if isinstance(module, Loss) else ()
    return _object(module, {name: own[name] for name in own if name not in learned}, inside)


def _object(value: Any, own: Mapping[str, Any], inside: tuple[int, ...]) -> str:
    options = ", ".join(f"{name}={_format(own[name], inside)}" for name in sorted(own))
    return f"{_class(type(value), inside)}({options})"


def _function(function: FunctionType, inside: tuple[int, ...]) -> str:
    function = getattr(function, "_torchdynamo_orig_callable", function)
    path = _path(function)
    if "<" not in path and not is_user_code(function) and not function.__closure__:
        return path
    return f"{path} {_checksum(_format(collect_code(function), inside).encode())}"


def _class(kind: type, inside: tuple[int, ...]) -> str:
    path = _path(kind)
    return (
        f"{path} {_checksum(_format(collect_code(kind), inside).encode())}"
        if is_user_code(kind)
        else path
    )


def _code(code: CodeType, inside: tuple[int, ...]) -> str:
    return _format([code.co_code.hex(), code.co_names, code.co_consts], inside)


def _tensor(tensor: Tensor, _: tuple[int, ...]) -> str:
    values = tensor.detach().cpu()
    if values.numel() <= _SHOWN:
        return f"{tuple(values.shape)} {_rounded(values.flatten().tolist())}"
    raw = values.contiguous().flatten().view(torch.uint8).numpy().tobytes()
    return f"{tuple(values.shape)} {_checksum(raw)}"


def _array(array: NDArray[Any], inside: tuple[int, ...]) -> str:
    if array.dtype.hasobject:
        return _format(array.tolist(), inside)
    return f"{array.shape} {_checksum(array.tobytes())}"


def _rounded(numbers: list[Any]) -> str:
    """Format numbers with the digits of single precision."""
    shown = (f"{one:.6g}" if isinstance(one, float) else repr(one) for one in numbers)
    return f"[{', '.join(shown)}]"


def _path(named: Any) -> str:
    name = getattr(named, "__qualname__", None) or getattr(named, "__name__", "")
    return f"{getattr(named, '__module__', None) or ''}.{name}"


def _checksum(raw: bytes) -> str:
    return f"{zlib.crc32(raw):08x}"


def _sequence(values: Any, inside: tuple[int, ...]) -> str:
    return f"[{', '.join(_format(value, inside) for value in values)}]"


def _mapping(values: Mapping[Any, Any], inside: tuple[int, ...]) -> str:
    return _sequence(sorted(values.items(), key=lambda pair: str(pair[0])), inside)


def _set(values: Set[Any], inside: tuple[int, ...]) -> str:
    return f"{{{', '.join(sorted(_format(value, inside) for value in values))}}}"


_KINDS: dict[type, Callable[[Any, tuple[int, ...]], str]] = {
    nn.Module: _module,
    Tensor: _tensor,
    np.ndarray: _array,
    FunctionType: _function,
    CodeType: _code,
    BuiltinFunctionType: lambda function, _: _path(function),
    MethodType: lambda method, inside: _sequence([method.__func__, method.__self__], inside),
    partial: lambda part, inside: _sequence([part.func, part.args, part.keywords], inside),
    type: _class,
    float: lambda number, _: float.__repr__(number).removesuffix(".0"),  # 3.0 is the gamma 3
    list: _sequence,
    tuple: _sequence,
    Mapping: _mapping,
    Set: _set,
}
