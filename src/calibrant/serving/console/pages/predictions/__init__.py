"""The Predictions pages."""
