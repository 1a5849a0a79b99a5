"""Versions of a bundle: replaced atomically, earlier ones kept."""
