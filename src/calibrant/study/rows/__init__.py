"""Rows of a study: read, checked, and divided into splits."""
