"""Data: files in and out, splits of rows, redaction, and encoders of tables and texts."""

from calibrant.data import return_reasons
from calibrant.data.example import write_example
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
    "Resampled",
    "Scores",
    "Splits",
    "TableEncoder",
    "TargetCut",
    "TextEncoder",
    "count_rows",
    "read_rows",
    "read_scores",
    "redact",
    "resampled",
    "return_reasons",
    "scan_rows",
    "scan_scores",
    "smote",
    "split_rows",
    "write_example",
]
