"""The console: pages about the promise, the thresholds and every decision, for people."""

from calibrant.serving.console.shell.console import Console

__all__ = ["Console"]
