"""Data files, row splits, redaction, and encoders for tables, texts and images."""

from calibrant.data import return_reasons
from calibrant.data.encoders.image_encoder import ImageEncoder
from calibrant.data.encoders.ngram_encoder import NgramEncoder
from calibrant.data.encoders.table_encoder import TableEncoder
from calibrant.data.encoders.target_cut import TargetCut
from calibrant.data.encoders.text_encoder import TextEncoder
from calibrant.data.example import write_example
from calibrant.data.images.files import ImageSet, read_images, scan_images
from calibrant.data.redaction.redactor import redact
from calibrant.data.resampling import ResampledRows, resample_rows, smote
from calibrant.data.row_files import read_rows, scan_rows
from calibrant.data.splits import Splits
from calibrant.data.splitting import split_rows

__all__ = [
    "ImageEncoder",
    "ImageSet",
    "NgramEncoder",
    "ResampledRows",
    "Splits",
    "TableEncoder",
    "TargetCut",
    "TextEncoder",
    "read_images",
    "read_rows",
    "redact",
    "resample_rows",
    "return_reasons",
    "scan_images",
    "scan_rows",
    "smote",
    "split_rows",
    "write_example",
]
