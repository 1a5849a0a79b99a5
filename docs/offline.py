"""A hook: nothing on the site is loaded from another place.

The theme fetches a helper for search from a CDN; ours, which does the same, comes with the site.
"""

from __future__ import annotations

from typing import Any

_THEIRS = "https://unpkg.com/iframe-worker/shim"
_OURS = "assets/search-from-folder.js"


def on_post_page(output: str, *, page: Any, **_: Any) -> str:
    """Put our helper in the place of theirs."""
    return output.replace(_THEIRS, "../" * page.url.count("/") + _OURS)


def on_post_template(output: str, **_: Any) -> str:
    """Do the same for pages without a source, such as 404."""
    return output.replace(_THEIRS, f"/{_OURS}")
