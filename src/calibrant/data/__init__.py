"""Data: files in and out, splits of rows, redaction, and encoders of tables, texts and images."""

from calibrant.data import return_reasons
from calibrant.data.example import write_example
from calibrant.data.image_encoder import ImageEncoder
from calibrant.data.image_files import ImageSet, read_images, scan_images
from calibrant.data.redaction import redact
from calibrant.data.resampling import Resampled, resampled, smote
from calibrant.data.row_files import read_rows, scan_rows
from calibrant.data.score_files import count_rows
from calibrant.data.scores import Scores, read_scores, scan_scores
from calibrant.data.splits import Splits
from calibrant.data.splitting import split_rows
from calibrant.data.table_encoder import TableEncoder
from calibrant.data.target_cut import TargetCut
from calibrant.data.text_encoder import TextEncoder

__all__ = [
    "ImageEncoder",
    "ImageSet",
    "Resampled",
    "Scores",
    "Splits",
    "TableEncoder",
    "TargetCut",
    "TextEncoder",
    "count_rows",
    "read_images",
    "read_rows",
    "read_scores",
    "redact",
    "resampled",
    "return_reasons",
    "scan_images",
    "scan_rows",
    "scan_scores",
    "smote",
    "split_rows",
    "write_example",
]
