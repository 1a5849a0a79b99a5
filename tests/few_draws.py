"""Evaluate with less resampling, for tests that do not depend on intervals and floors."""

from contextlib import contextmanager
from dataclasses import replace
from unittest.mock import patch

from calibrant.metrics.calibration_figures import check_options


def _few_draw_options(n_bins, confidence):
    return replace(check_options(n_bins, confidence), replicates=200, draws=199)


@contextmanager
def few_draws():
    """Reduce resampling: values and tests are unchanged, intervals and floors are less precise.

    `evaluate` spends most of its time on resampling.
    """
    with (
        patch("calibrant.metrics.evaluation.check_options", _few_draw_options),
        patch("calibrant.metrics.streaming.check_options", _few_draw_options),
        patch("calibrant.metrics.calibration_figures._REDRAWS", 20),
    ):
        yield
