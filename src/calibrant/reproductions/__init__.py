"""The papers' figures beside ours: reference conventions now, whole rows later."""

from calibrant.reproductions import parity

__all__ = ["parity"]
