"""The report of a study: text and HTML page."""
