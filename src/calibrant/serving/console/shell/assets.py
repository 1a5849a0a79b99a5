"""Scripts and styles of the console: files of our packages and of plotly's, and no others."""

from __future__ import annotations

import gzip
import hashlib
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable

from starlette.responses import Response

__all__ = ["address_of", "asset_response"]

_KINDS = {".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8"}
_OF_REPORTS = ("charts.js", "threshold.js", "report.css")
_KEPT = {"Cache-Control": "public, max-age=31536000, immutable"}
"""An address holds the hash of the content, so what is at it never changes."""


def address_of(name: str) -> str:
    """Return where an asset is; KeyError where there is none of that name.

    Examples
    --------
    >>> address_of("console.css").startswith("/console/static/")
    True
    """
    return f"/console/static/{_version(name)}/{name}"


def asset_response(version: str, name: str, *, zipped: bool) -> Response | None:
    """Return an asset as an answer; None where there is none of that name and version."""
    if name not in _sources() or version != _version(name):
        return None
    headers = {**_KEPT, "Vary": "Accept-Encoding"}
    if zipped:
        headers["Content-Encoding"] = "gzip"
    content = _zipped(name) if zipped else _content(name)
    return Response(content, headers=headers, media_type=_KINDS[name[name.rindex(".") :]])


@cache
def console_folders() -> tuple[Traversable, ...]:
    """Return the folders that hold templates, scripts and styles: the shell, and every page."""
    console = files("calibrant.serving.console")
    pages = (folder for folder in console.joinpath("pages").iterdir() if folder.is_dir())
    return (console.joinpath("shell"), *sorted(pages, key=lambda folder: folder.name))


@cache
def _sources() -> dict[str, Traversable]:
    """Return every asset by its name: no other file can be asked for."""
    found = {
        file.name: file
        for folder in console_folders()
        for file in folder.iterdir()
        if file.name.endswith((".js", ".css"))
    }
    reports = files("calibrant.reports").joinpath("templates")
    found |= {name: reports.joinpath(name) for name in _OF_REPORTS}
    return {**found, "plotly.js": files("plotly").joinpath("package_data", "plotly.min.js")}


@cache
def _content(name: str) -> bytes:
    return _sources()[name].read_bytes()


@cache
def _zipped(name: str) -> bytes:
    return gzip.compress(_content(name), compresslevel=6, mtime=0)


@cache
def _version(name: str) -> str:
    return hashlib.sha256(_content(name)).hexdigest()[:16]
