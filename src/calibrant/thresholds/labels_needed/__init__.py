"""Unreachable targets: the best value that can be proved, and the labels that are missing."""
