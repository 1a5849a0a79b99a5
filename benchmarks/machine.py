"""What a result was measured on."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from typing import Any

from reproductions.machine import machine as described

from benchmarks.harness import cores

__all__ = ["machine"]

_PACKAGES = ("numpy", "scipy", "pyarrow", "torch", "torchmetrics", "netcal", "relplot")


def machine() -> dict[str, Any]:
    """Describe the machine and the versions, as JSON-ready values."""
    return {
        **described(packages=_PACKAGES),
        "cores": cores(),
        "omp_num_threads": os.environ.get("OMP_NUM_THREADS") or "unset",
        "date": datetime.now(UTC).date().isoformat(),
    }
