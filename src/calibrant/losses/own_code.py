"""The code of a user's own loss or network, and of what it calls, so that a change is seen."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from types import CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

__all__ = ["code_of", "is_own"]

_SHIPPED = frozenset({"calibrant", "torch", "numpy", "transformers"}) | sys.stdlib_module_names
_BOUND = (MethodType, staticmethod, classmethod)
_PLAIN = (bool, int, float, complex, str, bytes, tuple, frozenset)


def is_own(named: Any) -> bool:
    """Whether a function or class is the user's: not of a package that others keep.

    Examples
    --------
    >>> from torch.nn.functional import cross_entropy
    >>> is_own(cross_entropy)
    False
    """
    return _package(named) not in _SHIPPED


def code_of(own: FunctionType | type) -> list[Any]:
    """Return what a function or class is made of, and what it names of the same package.

    These are the code as Python has compiled it, defaults, what it encloses, and plain values
    (numbers, texts) that the code reads from its module. The code in memory is taken, not that of
    the file, which may have been changed since. Comments and line numbers do not count. Not seen
    are values in lists and dicts of a module, other packages, and what is found by its name only
    while it runs.

    Examples
    --------
    >>> def twice(logits, labels):
    ...     return 2 * logits.sum()
    >>> code_of(twice)[0][0].co_name
    'twice'
    """
    home = _package(own)
    waiting: list[Any] = [own]
    seen: dict[int, Any] = {}  # holds them, so that no id is given to another object
    found: list[Any] = []
    while waiting:
        one = waiting.pop()
        if id(one) in seen:
            continue
        seen[id(one)] = one
        named = list(_members(one) if isinstance(one, type) else _globals(one))
        found += [(name, value) for name, value in named if isinstance(value, _PLAIN)]
        if isinstance(one, FunctionType):
            found.append((one.__code__, one.__defaults__, one.__kwdefaults__, _enclosed_by(one)))
        values = [_unwrapped(value) for _, value in named]
        waiting += [
            each for value in values for each in value
            if isinstance(each, FunctionType | type) and _package(each) == home
        ]  # fmt: skip
    return found


def _enclosed_by(function: FunctionType) -> list[Any]:
    """Return what a function has from those around it, but for the class of `super()`."""
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    return [_content(cell) for name, cell in cells if name != "__class__"]


def _content(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # a name that was never given a value
        return None


def _package(named: Any) -> str:
    return str(getattr(named, "__module__", None) or "").partition(".")[0]


def _members(kind: type) -> Iterator[tuple[str, Any]]:
    """Yield the methods and plain values of a class, and its bases."""
    for name, value in vars(kind).items():
        if not name.startswith("__") or callable(value):
            yield name, value
    yield from ((base.__name__, base) for base in kind.__bases__)


def _globals(function: FunctionType) -> Iterator[tuple[str, Any]]:
    """Yield what the code of a function names, by itself or as a part of a module of its own."""
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


def _unwrapped(value: Any) -> Iterable[Any]:
    """Return a value, and the functions that it wraps."""
    if isinstance(value, property):
        return (value.fget, value.fset)
    inner = value.__func__ if isinstance(value, _BOUND) else value
    return (inner, dict(getattr(inner, "__dict__", {})).get("__wrapped__"))
