"""The training loop and the estimators built on it."""

from calibrant.fitting.epoch_record import EpochRecord
from calibrant.training.array_rows import ArrayRows
from calibrant.training.batches import Batch, BatchRows
from calibrant.training.bin_trace import BinTrace
from calibrant.training.frozen import FrozenTransformerClassifier
from calibrant.training.hooks import Hook, Run
from calibrant.training.image import ImageClassifier
from calibrant.training.image_rows import ImageRows
from calibrant.training.linear import LinearClassifier, LinearImageClassifier
from calibrant.training.linear_path import LinearPath, PathRecord, fit_linear_path
from calibrant.training.linear_solver import LinearLayer, fit_linear
from calibrant.training.loop import train
from calibrant.training.ngrams import NgramClassifier
from calibrant.training.options import TrainingOptions
from calibrant.training.records import AverageRecord, TrainingResult
from calibrant.training.scoring import predict_logits
from calibrant.training.tabular import TabularClassifier
from calibrant.training.text import TextClassifier
from calibrant.training.text_rows import TextRows

__all__ = [
    "ArrayRows",
    "AverageRecord",
    "Batch",
    "BatchRows",
    "BinTrace",
    "EpochRecord",
    "FrozenTransformerClassifier",
    "Hook",
    "ImageClassifier",
    "ImageRows",
    "LinearClassifier",
    "LinearImageClassifier",
    "LinearLayer",
    "LinearPath",
    "NgramClassifier",
    "PathRecord",
    "Run",
    "TabularClassifier",
    "TextClassifier",
    "TextRows",
    "TrainingOptions",
    "TrainingResult",
    "fit_linear",
    "fit_linear_path",
    "predict_logits",
    "train",
]
