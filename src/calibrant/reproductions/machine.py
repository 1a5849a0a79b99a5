"""What a run was measured on."""

from __future__ import annotations

import os
import platform
from importlib import metadata
from pathlib import Path
from typing import Any

from calibrant.distribution import own_version

__all__ = ["machine"]

_PACKAGES = ("numpy", "scipy", "scikit-learn", "pyarrow", "torch", "transformers")


def machine(device: str = "auto") -> dict[str, Any]:
    """Describe processor, GPU and versions as plain values.

    Parameters
    ----------
    device : the run's; a GPU that it did not use is not told of
    """
    packages = {"calibrant": own_version(), **{name: _version(name) for name in _PACKAGES}}
    return {
        "cpu": _cpu(),
        "cores": len(os.sched_getaffinity(0))
        if hasattr(os, "sched_getaffinity")
        else os.cpu_count(),
        "gpu": None if device == "cpu" else _gpu(),
        "system": platform.system(),
        "python": platform.python_version(),
        "packages": packages,
    }


def _cpu() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def _gpu() -> str | None:
    import torch

    return str(torch.cuda.get_device_name()) if torch.cuda.is_available() else None


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None
