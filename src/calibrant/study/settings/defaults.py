"""What a study trains where nothing else is asked for: minutes on a laptop."""

from __future__ import annotations

__all__ = ["SMALL", "TEXT"]

SMALL = {"embedding": 64, "hidden": 64, "layers": 1}
"""The BiLSTM: much smaller than the paper's."""

TEXT = {"epochs": 20, "patience": 4, "learning_rate": 2e-3, "max_length": 128}
"""Training of texts from nothing; tables, images and transformers take what their classifiers
have."""
