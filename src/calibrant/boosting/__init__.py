"""Boosted trees (LightGBM) with the focal family as objectives."""
