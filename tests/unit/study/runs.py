"""Small studies that tests share."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv

from calibrant.data import return_reasons
from calibrant.study import StudyConfig

TINY = {"embedding": 8, "hidden": 8, "layers": 1}


def text_files(folder: Path, logs: int = 600, golden: int = 400) -> dict[str, str]:
    """Write a small log file and a small golden set, and return their paths."""
    paths = {"data": folder / "logs.csv", "golden": folder / "golden.csv"}
    return_reasons.draw(logs, source="logs").write(paths["data"])
    return_reasons.draw(golden, source="golden", out_of_scope=0.1).write(paths["golden"])
    return {name: str(path) for name, path in paths.items()}


def text_config(folder: Path, **changes: Any) -> StudyConfig:
    """Return the settings of a study that takes seconds."""
    settings: dict[str, Any] = {
        "text": "message",
        "label": "reason",
        "out_of_scope": "out_of_scope",
        "overlap": "drop",
        "candidates": ("ce", "focal:gamma=3"),
        "model": "bilstm",
        "model_options": TINY,
        "pack_anyway": True,  # two epochs on 500 messages teach little
        "training": {"epochs": 2, "max_length": 32},
        "hold": ("others: precision>=0.15",),
        "jobs": 1,
        **text_files(folder),
        **changes,
    }
    return StudyConfig(**settings)


def table_file(folder: Path, n: int = 1500) -> str:
    """Write a table with two classes, a category, and a missing value now and then."""
    rng = np.random.default_rng(0)
    amount, kind = rng.normal(size=n), rng.integers(0, 3, n)
    logit = 1.5 * amount - 1.5 + 0.8 * (kind == 2)
    fraud = rng.random(n) < 1 / (1 + np.exp(-logit))
    amounts = [None if i % 40 == 0 else float(a) for i, a in enumerate(amount)]
    table = pa.table(
        {
            "amount": amounts,
            "kind": np.array(["shop", "web", "phone"])[kind],
            "customer": [f"c{i % 300}" for i in range(n)],
            "day": np.arange(n) // 10,
            "fraud": np.where(fraud, "yes", "no"),
        }
    )
    path = folder / "table.csv"
    pacsv.write_csv(table, path)
    return str(path)


def table_config(folder: Path, **changes: Any) -> StudyConfig:
    """Return the settings of a study of a table that takes seconds."""
    settings: dict[str, Any] = {
        "data": table_file(folder),
        "label": "fraud",
        "drop": ("customer", "day"),
        "candidates": ("ce",),
        "model": "mlp",
        "model_options": {"hidden": (16,), "dropout": (0.0,)},
        "pack_anyway": True,
        "training": {"epochs": 5},
        "hold": ("yes: precision>=0.2",),
        "jobs": 1,
        **changes,
    }
    return StudyConfig(**settings)
