"""The Model page."""
