"""The model card of a bundle."""
