"""Web console: pages about promises, thresholds and individual decisions."""

from calibrant.serving.console.shell.console import Console

__all__ = ["Console"]
