"""Bins of confidence: look-up of tensors."""

import torch

from calibrant.losses.confidence_bins import look_up


def test_look_up_takes_any_shape_and_precision():
    edges = torch.tensor([0.0, 1.0], dtype=torch.float64)
    scores = torch.tensor([[-1.0, 0.0, 0.5], [1.0, 2.0, float("nan")]])
    for dtype in (torch.float32, torch.float64):
        assert look_up(scores.to(dtype), edges).tolist() == [[0, 1, 1], [2, 2, 2]]
    assert look_up(scores.T, edges).shape == (3, 2)
