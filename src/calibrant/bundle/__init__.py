"""The bundle: a folder with all that turns scores into decisions, without any code in it."""

from calibrant.bundle.bundle import Bundle, load_bundle
from calibrant.bundle.decisions import Decisions
from calibrant.bundle.packing import pack
from calibrant.bundle.points import BundlePoint

__all__ = ["Bundle", "BundlePoint", "Decisions", "load_bundle", "pack"]
