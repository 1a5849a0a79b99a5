"""Base classes of calibrators, their rows and their registry."""
