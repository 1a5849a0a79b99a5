"""The Try it page."""
