"""Code of user-defined losses and networks, to detect changes."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from types import CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

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
