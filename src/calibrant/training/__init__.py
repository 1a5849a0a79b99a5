"""The training loop, read top to bottom, and the estimators on top of it."""

from calibrant.training.batches import Batch, Rows
from calibrant.training.hooks import Hook, Run
from calibrant.training.records import EpochRecord

__all__ = ["Batch", "EpochRecord", "Hook", "Rows", "Run"]
