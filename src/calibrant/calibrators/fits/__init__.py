"""Optimisers shared by several calibration methods."""
