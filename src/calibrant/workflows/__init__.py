"""Workflows from files to files: calibrate, choose an operating point, decide, predict."""
