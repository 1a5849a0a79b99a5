"""The report of a calibration: result, text and HTML page."""
