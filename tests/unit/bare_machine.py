"""Simulate a machine with few packages: copied as `sitecustomize.py`, which Python imports first.

Packages that ALLOWED does not list cannot be imported, nor can an installed Calibrant: the checkout
that CHECKOUT names is used. Child processes inherit this.
"""

import os
import sys
from importlib.machinery import PathFinder
from pathlib import Path

ALLOWED = {"calibrant", *sys.stdlib_module_names, *os.environ.get("ALLOWED", "").split()}


class RestrictedFinder(PathFinder):
    """Find modules on the path, except the hidden ones."""

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if path is None and name not in ALLOWED and not name.startswith("_sysconfigdata"):
            return None
        return super().find_spec(name, path, target)

    @classmethod
    def find_distributions(cls, *context):
        for distribution in super().find_distributions(*context):
            if distribution.name != "calibrant":
                yield distribution


def is_other_checkout(path):
    return path != os.environ["CHECKOUT"] and (Path(path) / "calibrant").is_dir()


if __name__ == "sitecustomize":  # not during test collection
    sys.meta_path[:] = [
        RestrictedFinder if finder is PathFinder else finder for finder in sys.meta_path
    ]
    sys.path[:] = [path for path in sys.path if not is_other_checkout(path)]
