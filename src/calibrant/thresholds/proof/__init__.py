"""The proof behind a threshold: which positions keep a target with confidence 1 - delta."""
