"""The bundle: a folder with all that turns rows or scores into decisions, without any code."""

from calibrant.bundle.bundle import Bundle
from calibrant.bundle.decisions import Decisions
from calibrant.bundle.loading import load_bundle
from calibrant.bundle.packing import pack
from calibrant.bundle.points import BundlePoint

__all__ = ["Bundle", "BundlePoint", "Decisions", "load_bundle", "pack"]
