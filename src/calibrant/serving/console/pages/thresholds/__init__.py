"""The Thresholds page."""
