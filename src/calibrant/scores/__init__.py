"""Score files: the predictions of any model beside the labels, as csv, jsonl, parquet or npz."""

from calibrant.scores.files import count_rows
from calibrant.scores.read import Scores, read_scores, scan_scores

__all__ = ["Scores", "count_rows", "read_scores", "scan_scores"]
