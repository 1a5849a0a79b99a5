"""What a result was measured on."""

from __future__ import annotations

import os
import platform
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

from benchmarks.harness import cores

__all__ = ["machine"]

_PACKAGES = ("calibrant", "numpy", "scipy", "pyarrow", "torch", "torchmetrics", "netcal", "relplot")


def machine() -> dict[str, Any]:
    """Describe the machine and the versions, as JSON-ready values."""
    return {
        "cpu": _cpu(),
        "cores": cores(),
        "gpu": _gpu(),
        "system": platform.system(),
        "omp_num_threads": os.environ.get("OMP_NUM_THREADS") or "unset",
        "python": platform.python_version(),
        "packages": {name: _version(name) for name in _PACKAGES},
        "date": datetime.now(UTC).date().isoformat(),
    }


def _cpu() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def _gpu() -> str | None:
    try:
        from benchmarks.gpu import gpu_name

        return gpu_name()
    except ImportError:
        return None


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None
