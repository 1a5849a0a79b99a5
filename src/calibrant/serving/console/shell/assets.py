"""Static assets: scripts and styles of the console, of the reports and of plotly."""

from __future__ import annotations

import gzip
import hashlib
from functools import cache
from http import HTTPStatus
from importlib.resources import files
from importlib.resources.abc import Traversable

from fastapi import APIRouter, Request
from starlette.responses import Response

from calibrant.serving.http.problems import Problem

router = APIRouter(prefix="/console/static", include_in_schema=False)


@router.get("/{version}/{name}")
def asset(request: Request, version: str, name: str) -> Response:
    """Return a script or style, which needs no login."""
    gzipped = "gzip" in request.headers.get("accept-encoding", "")
    response = asset_response(version, name, gzipped=gzipped)
    if response is None:
        raise Problem(HTTPStatus.NOT_FOUND, "file not found: reload the page.")
    return response


_MEDIA_TYPES = {".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8"}
_REPORT_ASSETS = ("charts.js", "threshold.js", "report.css")
_CACHE_FOREVER = {"Cache-Control": "public, max-age=31536000, immutable"}
"""URLs contain a hash of the content, so responses never change."""


def asset_url(name: str) -> str:
    """Return the URL of an asset; raise KeyError for an unknown name."""
    return f"/console/static/{_version(name)}/{name}"


def asset_response(version: str, name: str, *, gzipped: bool) -> Response | None:
    """Return an asset as a response, or None for an unknown name or version."""
    if name not in _sources() or version != _version(name):
        return None
    headers = {**_CACHE_FOREVER, "Vary": "Accept-Encoding"}
    if gzipped:
        headers["Content-Encoding"] = "gzip"
    content = _gzip_content(name) if gzipped else _content(name)
    return Response(content, headers=headers, media_type=_MEDIA_TYPES[name[name.rindex(".") :]])


@cache
def console_folders() -> tuple[Traversable, ...]:
    """Return the folders that hold templates, scripts and styles: the shell, and every page."""
    console = files("calibrant.serving.console")
    pages = (folder for folder in console.joinpath("pages").iterdir() if folder.is_dir())
    return (console.joinpath("shell"), *sorted(pages, key=lambda folder: folder.name))


@cache
def _sources() -> dict[str, Traversable]:
    """Return every asset by name; no other file can be requested."""
    assets = {
        file.name: file
        for folder in console_folders()
        for file in folder.iterdir()
        if file.name.endswith((".js", ".css"))
    }
    reports = files("calibrant.reports").joinpath("templates")
    assets |= {name: reports.joinpath(name) for name in _REPORT_ASSETS}
    return {**assets, "plotly.js": files("plotly").joinpath("package_data", "plotly.min.js")}


@cache
def _content(name: str) -> bytes:
    return _sources()[name].read_bytes()


@cache
def _gzip_content(name: str) -> bytes:
    return gzip.compress(_content(name), compresslevel=6, mtime=0)


@cache
def _version(name: str) -> str:
    return hashlib.sha256(_content(name)).hexdigest()[:16]
