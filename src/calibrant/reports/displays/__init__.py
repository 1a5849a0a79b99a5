"""Matplotlib displays: compute, keep, draw."""
