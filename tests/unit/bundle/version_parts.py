"""A bundle whose versions are tested, and how they are made."""

import json
from pathlib import Path

import numpy as np
from tests.unit.bundle.parts import point, rows, temperature

from calibrant.bundle import BundlePoint, CalibRows, Versions, pack

TOLD = {"what": "act on 'parts' at 0.6", "by": "Ann <admin>", "reason": "fewer mistakes\nplease"}
CALIB = CalibRows(rows(30), np.arange(30) % 4 - 1)


def bundle_in(folder):
    """Pack a bundle without a model, in a folder of its own."""
    report = folder / "page.html"
    report.write_text("<p>the study's</p>")
    (folder / "run").mkdir()
    made = pack(
        folder / "run/bundle",
        calibrator=temperature(),
        points=[BundlePoint(point(), "raw"), BundlePoint(point("other"), "calibrated")],
        actions={"defect": "refund"},
        files={"report.html": report},
        calib=CALIB,
        card={"Intended use": "Returns of one shop."},
        provenance={"confidence_together": 0.95},
        metrics={"n": 3},
    )
    return made.path


def content(folder):
    """Return every byte of a folder, and the rights of its files."""
    found = {path.name: (path.read_bytes(), path.stat().st_mode) for path in folder.iterdir()}
    return found, folder.stat().st_mode


def place(bundle):
    return Path(f"{bundle}.versions")


def seal(folder):
    return json.loads((folder / "manifest.json").read_text(encoding="utf-8"))["sha256"]


def save(bundle, *points, change=None, begin=lambda made: None, **more):
    chosen = [BundlePoint(each, "raw") for each in points or (point("parts", 0.6),)]
    base = more.pop("base", None) or seal(bundle)
    more = {"base": base, "change": change or {}, **more}
    return Versions(bundle).save_points(chosen, begin=begin, **more)


def back(bundle, to, begin=lambda made: None, **more):
    return Versions(bundle).restore(to, **{"base": seal(bundle), **more}, begin=begin)
