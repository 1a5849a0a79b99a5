"""The automatic choice of a calibrator by cross-validation."""
