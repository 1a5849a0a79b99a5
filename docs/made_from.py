"""Remember what the site was made from: `make docs` ends with it.

The tests of the site then look at that one where nothing has changed since, and build no other.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

__all__ = ["SITE", "digest", "is_up_to_date", "remember"]

ROOT = Path(__file__).resolve().parents[1]
SITE = ROOT / "site"
_NAME = "made-from.sha256"  # a build that fails leaves none: mkdocs empties the folder first
_SOURCES = ("docs", "src", "reproductions", "benchmarks/results", "mkdocs.yml", "pyproject.toml")


def digest(root: Path = ROOT) -> str:
    """Return a sum over the names and contents of all that the site is made from."""
    whole = hashlib.sha256()
    for name in _SOURCES:
        path = root / name
        for file in [path] if path.is_file() else sorted(path.rglob("*")):
            if file.is_file() and "__pycache__" not in file.parts:
                content = hashlib.sha256(file.read_bytes()).hexdigest()
                whole.update(f"{file.relative_to(root)} {content}\n".encode())
    return whole.hexdigest()


def remember(site: Path = SITE, root: Path = ROOT) -> None:
    """Write down what a site was just made from."""
    (site / _NAME).write_text(digest(root), encoding="utf-8")


def is_up_to_date(site: Path = SITE, root: Path = ROOT) -> bool:
    """Whether a site is there that was made from all that is there now."""
    known = site / _NAME
    return known.is_file() and known.read_text(encoding="utf-8") == digest(root)


if __name__ == "__main__":
    remember()
