"""The training loop, read top to bottom, and the estimators on top of it."""

from calibrant.training.array_rows import ArrayRows
from calibrant.training.batches import Batch, Rows
from calibrant.training.bin_trace import BinTrace
from calibrant.training.hooks import Hook, Run
from calibrant.training.image import ImageClassifier
from calibrant.training.image_rows import ImageRows
from calibrant.training.loop import train
from calibrant.training.options import TrainingOptions
from calibrant.training.records import EpochRecord, Trained
from calibrant.training.scoring import predict_logits
from calibrant.training.tabular import TabularClassifier
from calibrant.training.text import TextClassifier
from calibrant.training.text_rows import TextRows

__all__ = [
    "ArrayRows",
    "Batch",
    "BinTrace",
    "EpochRecord",
    "Hook",
    "ImageClassifier",
    "ImageRows",
    "Rows",
    "Run",
    "TabularClassifier",
    "TextClassifier",
    "TextRows",
    "Trained",
    "TrainingOptions",
    "predict_logits",
    "train",
]
