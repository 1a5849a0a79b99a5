"""A machine with little on it, for tests: copied as `sitecustomize.py`, Python imports it first.

Packages that ALLOWED does not list are not there, whatever is installed, and neither is an
installed Calibrant: what runs is the checkout that CHECKOUT names. Processes that are started
inherit all of that.
"""

import os
import sys
from importlib.machinery import PathFinder
from pathlib import Path

ALLOWED = {"calibrant", *sys.stdlib_module_names, *os.environ.get("ALLOWED", "").split()}


class Bare(PathFinder):
    """Finds what is on the path, as always, but for what is hidden."""

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if path is None and name not in ALLOWED and not name.startswith("_sysconfigdata"):
            return None
        return super().find_spec(name, path, target)

    @classmethod
    def find_distributions(cls, *context):
        for found in super().find_distributions(*context):
            if found.name != "calibrant":
                yield found


def of_another_checkout(place):
    return place != os.environ["CHECKOUT"] and (Path(place) / "calibrant").is_dir()


if __name__ == "sitecustomize":  # not where tests are collected
    sys.meta_path[:] = [Bare if finder is PathFinder else finder for finder in sys.meta_path]
    sys.path[:] = [place for place in sys.path if not of_another_checkout(place)]
