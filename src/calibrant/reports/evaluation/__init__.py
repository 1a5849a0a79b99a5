"""The report of an evaluation: text and HTML page."""
