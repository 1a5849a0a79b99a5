"""Evaluate with less resampling, for tests that look at anything but intervals and floors."""

from contextlib import contextmanager
from dataclasses import replace
from unittest.mock import patch

from calibrant.metrics.calibration_figures import checked_options


def _fewer(n_bins, confidence):
    return replace(checked_options(n_bins, confidence), replicates=200, draws=199)


@contextmanager
def few_draws():
    """Resample rarely: every value and test stays what it is, its interval and floor are rougher.

    Most of the time of `evaluate` goes into resampling.
    """
    with (
        patch("calibrant.metrics.evaluation.checked_options", _fewer),
        patch("calibrant.metrics.streaming.checked_options", _fewer),
        patch("calibrant.metrics.calibration_figures._REDRAWS", 20),
    ):
        yield
