"""Bundles: self-contained folders that turn rows or scores into decisions."""

from calibrant.bundle.bundle import Bundle
from calibrant.bundle.calib_rows import CalibRows
from calibrant.bundle.decisions import Decisions
from calibrant.bundle.loading import load_bundle
from calibrant.bundle.packing import pack
from calibrant.bundle.points import BundlePoint
from calibrant.bundle.versions.versions import Version, Versions

__all__ = [
    "Bundle",
    "BundlePoint",
    "CalibRows",
    "Decisions",
    "Version",
    "Versions",
    "load_bundle",
    "pack",
]
