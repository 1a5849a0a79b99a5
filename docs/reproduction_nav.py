"""A hook: the page of each reproduction stands in the navigation, under their overview.

Which pages there are depends on the results that this copy has, so they cannot be listed by hand.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # mkdocs starts elsewhere

from reproductions import experiments

OVERVIEW = "reproductions/index.md"


def on_config(config: Any) -> Any:
    """Put the pages that generate.py wrote behind the entry of the overview."""
    folder = Path(config["docs_dir"]) / "reproductions"
    pages = [
        f"reproductions/{name}.md" for name in experiments() if (folder / f"{name}.md").exists()
    ]
    config["nav"] = _with_pages(config["nav"], pages)
    return config


def _with_pages(entry: Any, pages: list[str]) -> Any:
    if isinstance(entry, list):
        return [_with_pages(each, pages) for each in entry]
    if not isinstance(entry, dict):
        return entry
    return {
        title: [{"Overview": OVERVIEW}, *pages]
        if inside == OVERVIEW
        else _with_pages(inside, pages)
        for title, inside in entry.items()
    }
