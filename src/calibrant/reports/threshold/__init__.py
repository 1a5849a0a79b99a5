"""The report of operating points: text and HTML page."""
