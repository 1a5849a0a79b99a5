"""Built-in example scores: return reasons predicted by an over-confident model."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from calibrant.convert import log_probs_from_logits, probs_from_logits
from calibrant.data.reasons import REASONS
from calibrant.errors import InputError
from calibrant.files.atomic_write import write_atomically

_PRIOR = np.array([0.12, 0.08, 0.15, 0.22, 0.43])
_CHANNELS = ("chat", "email", "phone")
_CHANNEL_SHARE = np.array([0.45, 0.35, 0.20])
_SIGNAL = np.array([2.4, 2.4, 1.5])  # phone transcripts are less informative than text ...
_TEMPERATURE = np.array([0.75, 0.75, 0.40])  # ... and the model ignores that


def write_example(path: str | Path, *, n: int = 4000, seed: int = 0, ideal: bool = False) -> Path:
    r"""Write example scores as `.csv` or `.parquet`, the same for the same seed.

    A reason y is drawn from the prior, a channel c by its share, and features
    :math:`x \sim N(s_c e_y, I)`, so that the true posterior is known:
    :math:`P(y \mid x) \propto \pi_y e^{s_c x_y}`. The model reports this posterior sharpened by a
    temperature :math:`T_c < 1`: it is over-confident, and much more so for phone calls.

    Parameters
    ----------
    path : output file; the suffix selects the format
    n : number of rows
    seed : random seed
    ideal : write the true posterior instead, as a perfectly calibrated model would

    Examples
    --------
    >>> import tempfile
    >>> file = write_example(Path(tempfile.mkdtemp()) / "scores.csv", n=100)
    >>> file.read_text().splitlines()[0]
    '"id","channel","label","prob_item_defective","prob_missing_parts",...
    """
    path = Path(path)
    if path.suffix not in (".csv", ".parquet"):
        raise InputError(f"path must end in .csv or .parquet, got {path}.")
    if n < 1:
        raise InputError(f"n must be at least 1, got {n}.")
    table = _table(n, np.random.default_rng(seed), ideal=ideal)
    with write_atomically(path) as draft:
        if path.suffix == ".csv":
            pacsv.write_csv(table, draft)
        else:
            pq.write_table(table, draft)
    return path


def _table(n: int, rng: np.random.Generator, *, ideal: bool) -> pa.Table:
    labels = rng.choice(len(REASONS), size=n, p=_PRIOR)
    channel = rng.choice(len(_CHANNELS), size=n, p=_CHANNEL_SHARE)
    signal = _SIGNAL[channel][:, None]
    features = rng.standard_normal((n, len(REASONS)))
    features[np.arange(n), labels] += signal[:, 0]
    posterior = log_probs_from_logits(np.log(_PRIOR) + signal * features)
    temperature = 1.0 if ideal else _TEMPERATURE[channel][:, None]
    probs = probs_from_logits(posterior / temperature)
    columns: dict[str, pa.Array] = {
        "id": pa.array(np.arange(1, n + 1)),
        "channel": pa.array([_CHANNELS[c] for c in channel]),
        "label": pa.array([REASONS[k] for k in labels]),
    }
    for k, reason in enumerate(REASONS):
        columns[f"prob_{reason}"] = pa.array(_round_all(probs[:, k]))
    return pa.table(columns)


def _round_all(values: np.ndarray[tuple[int], np.dtype[np.float64]]) -> list[float]:
    """Round to six significant digits, so that small probabilities do not become 0."""
    return [float(f"{value:.6g}") for value in values]
