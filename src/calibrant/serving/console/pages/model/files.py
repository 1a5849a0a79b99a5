"""Files of the bundle being served, checked against the hashes it was loaded with."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from http import HTTPStatus

from calibrant.serving.bundle_slot import Served
from calibrant.serving.http.problems import Problem

REPORT = "report.html"  # Report of the study that produced the bundle

_REMEDIES: Mapping[str, str] = {
    REPORT: "calibrant train and calibrant demo add it if plotly is installed",
}


def bundle_file(served: Served, name: str) -> bytes:
    """Return a file of the bundle as it was packed.

    Raises a `Problem` if the file is missing or has changed since the bundle was loaded.
    """
    packed = served.manifest["files"].get(name)
    if packed is None:
        more = f": {_REMEDIES[name]}" if name in _REMEDIES else ""
        raise Problem(HTTPStatus.NOT_FOUND, f"this bundle was packed without {name}{more}.")
    content = _content(served, name)
    if hashlib.sha256(content).hexdigest() != packed:
        raise Problem(
            HTTPStatus.CONFLICT,
            f"{name} in the folder is not the file that bundle {served.id}, which is being served, "
            "was packed with: if a newer bundle was just put there, reload this page in a moment; "
            "otherwise restore the file from a copy of the bundle.",
        )
    return content


def _content(served: Served, name: str) -> bytes:
    path = served.bundle.path / name
    remedy = (
        "the bundle in memory is still served. Restore the folder from a copy, or pack the bundle "
        "again"
    )
    try:
        if not path.is_file():
            raise Problem(HTTPStatus.NOT_FOUND, f"{name} is no longer in the folder; {remedy}.")
        return path.read_bytes()
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise Problem(
            HTTPStatus.NOT_FOUND, f"{name} cannot be read ({reason.lower()}); {remedy}."
        ) from None
