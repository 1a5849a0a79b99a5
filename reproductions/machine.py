"""Hardware and software on which a run was measured."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from calibrant.cores import usable_cores
from calibrant.distribution import own_version

__all__ = ["machine"]

_PACKAGES = ("numpy", "scipy", "scikit-learn", "pyarrow", "torch", "transformers")


def machine(device: str = "auto", packages: Sequence[str] = _PACKAGES) -> dict[str, Any]:
    """Describe processor, GPU and versions as plain values.

    Parameters
    ----------
    device : device of the run; an unused GPU is not reported
    packages : whose versions count, besides our own
    """
    versions = {"calibrant": own_version(), **{name: _version(name) for name in packages}}
    return {
        "cpu": _cpu(),
        "cores": usable_cores(),
        "gpu": None if device == "cpu" else _gpu(),
        "system": platform.system(),
        "python": platform.python_version(),
        "packages": versions,
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
        import torch
    except ImportError:
        return None
    return str(torch.cuda.get_device_name()) if torch.cuda.is_available() else None


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None
