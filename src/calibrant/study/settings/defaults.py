"""Default network and training options of a study: minutes on a laptop."""

from __future__ import annotations

SMALL = {"embedding": 64, "hidden": 64, "layers": 1}
"""BiLSTM options, much smaller than the paper's."""

TEXT = {"epochs": 20, "patience": 4, "learning_rate": 2e-3, "max_length": 128}
"""Training options of text networks trained from scratch; tables, images and transformers use the
defaults of their classifiers."""
