"""Redaction of personal numbers in texts."""
