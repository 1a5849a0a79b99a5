"""Device, precision and processes of a run, through Lightning Fabric."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from calibrant.errors import InputError
from calibrant.training.options import TrainingOptions


def planned_world(options: TrainingOptions) -> int:
    """Return the number of processes that a run will have."""
    if "LOCAL_WORLD_SIZE" not in os.environ:
        return options.devices
    return int(os.environ.get("WORLD_SIZE", os.environ["LOCAL_WORLD_SIZE"]))


def check_device(device: str) -> None:
    """Raise `InputError` for a device that is unknown or not available.

    Examples
    --------
    >>> check_device("cpu")
    """
    _parse_device(device)


def make_fabric(options: TrainingOptions) -> Any:
    """Return Fabric for these options, with its processes started.

    Under `torchrun` the number of processes is that of `torchrun`. Otherwise `devices=2` starts the
    running script a second time, as Fabric does.
    """
    accelerator, which = _parse_device(options.device)
    local = int(os.environ.get("LOCAL_WORLD_SIZE", options.devices))
    world = planned_world(options)
    if accelerator == "cpu" and options.precision in ("16-mixed", "16-true"):
        raise InputError(
            f"precision {options.precision!r} needs a GPU: choose 'bf16-mixed' or '32-true'."
        )
    _check_gpus(accelerator, local)
    many = world > 1
    if many:
        _check_startable(options.devices)
    from lightning_fabric import Fabric  # imports torch.compile's machinery: seconds

    with _quiet():
        fabric = Fabric(
            accelerator=accelerator,
            devices=local if many or which is None else [which],
            num_nodes=max(world // local, 1),
            strategy="ddp" if many else "auto",
            precision=options.precision,
        )
        fabric.launch()
    return fabric


def _check_gpus(accelerator: str, devices: int) -> None:
    """Raise `InputError` for more processes than GPUs: each process uses one."""
    available = torch.cuda.device_count()
    if accelerator == "cuda" and devices > available:
        raise InputError(
            f"devices={devices} needs {devices} GPUs, but torch sees {available}: use at most "
            f"{available}, or device='cpu'."
        )


def _check_startable(devices: int) -> None:
    """Raise `InputError` if there is no script to restart: a notebook, a prompt, `python -c`."""
    main = sys.modules.get("__main__")
    has_file = getattr(main, "__file__", None) or getattr(main, "__spec__", None)
    if "LOCAL_RANK" not in os.environ and not has_file:
        raise InputError(
            f"devices={devices} starts the running script again, but there is no script file: save "
            "this as a file and run that, or use torchrun."
        )


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence Fabric's messages about precision."""
    logger = logging.getLogger("lightning_fabric")
    level = logger.level
    logger.setLevel(logging.WARNING)
    try:
        yield
    finally:
        logger.setLevel(level)


def _parse_device(device: str) -> tuple[str, int | None]:
    """Parse "auto", "cpu", "cuda", "cuda:1" or "mps"."""
    kind, _, number = device.partition(":")
    if kind == "auto":
        return ("cuda" if torch.cuda.is_available() else "cpu"), None
    if kind not in ("cpu", "cuda", "mps") or (number and not number.isdigit()):
        raise InputError(
            f"device must be 'auto', 'cpu', 'cuda', 'cuda:1' or 'mps', got {device!r}."
        )
    if kind == "cuda":
        available = torch.cuda.device_count()
        if int(number or 0) >= available:
            raise InputError(
                f"device {device!r} is not available, torch sees {available} GPUs: choose 'auto' "
                "or 'cpu'."
            )
    return kind, int(number) if number else None
