"""Data: score files in (csv, parquet, jsonl, npz), and the built-in example out."""

from calibrant.data.example import write_example
from calibrant.data.score_files import count_rows
from calibrant.data.scores import Scores, read_scores, scan_scores

__all__ = ["Scores", "count_rows", "read_scores", "scan_scores", "write_example"]
