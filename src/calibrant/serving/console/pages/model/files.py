"""Files of the bundle that serves: what stands in the folder now must be what was loaded."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from http import HTTPStatus

from calibrant.serving.bundle_slot import Served
from calibrant.serving.http.problems import Problem

__all__ = ["REPORT", "bundle_file"]

REPORT = "report.html"
"""The report of the study that made a bundle."""

_LACKING: Mapping[str, str] = {
    REPORT: "calibrant train and calibrant demo write bundles with one, where plotly is installed",
}


def bundle_file(served: Served, name: str) -> bytes:
    """Return a file of the bundle that serves, as it was packed.

    The folder may have changed since it was loaded: a file that is gone, or another one by now, is
    refused in a sentence.
    """
    packed = served.manifest["files"].get(name)
    if packed is None:
        more = f": {_LACKING[name]}" if name in _LACKING else ""
        raise Problem(HTTPStatus.NOT_FOUND, f"this bundle was packed without {name}{more}.")
    found = _content(served, name)
    if hashlib.sha256(found).hexdigest() != packed:
        raise Problem(
            HTTPStatus.CONFLICT,
            f"{name} in the folder is not the one that the bundle {served.id}, which serves, was "
            "packed with: where a newer bundle was put there, load this page again in a moment; "
            "else put the file back from a copy of the bundle.",
        )
    return found


def _content(served: Served, name: str) -> bytes:
    path = served.bundle.path / name
    gone = (
        "the bundle in memory still serves. Put the folder back from a copy, or pack the bundle "
        "again"
    )
    try:
        if not path.is_file():
            raise Problem(HTTPStatus.NOT_FOUND, f"{name} is not in the folder any more; {gone}.")
        return path.read_bytes()
    except OSError as error:
        said = error.strerror or type(error).__name__
        raise Problem(
            HTTPStatus.NOT_FOUND, f"{name} cannot be read ({said.lower()}); {gone}."
        ) from None
