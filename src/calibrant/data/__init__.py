"""Data: score files in and out, the built-in example, and encoders of tables and texts."""

from calibrant.data.example import write_example
from calibrant.data.score_files import count_rows
from calibrant.data.scores import Scores, read_scores, scan_scores
from calibrant.data.table_encoder import TableEncoder
from calibrant.data.target_cut import TargetCut
from calibrant.data.text_encoder import TextEncoder

__all__ = [
    "Scores",
    "TableEncoder",
    "TargetCut",
    "TextEncoder",
    "count_rows",
    "read_scores",
    "scan_scores",
    "write_example",
]
