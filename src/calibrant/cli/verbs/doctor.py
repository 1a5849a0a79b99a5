"""`calibrant doctor`: whether everything is here that Calibrant needs."""

from __future__ import annotations

import importlib.util
import os
import platform
import re
import sys
from importlib import import_module, metadata
from pathlib import Path
from typing import Annotated, Any

import typer

from calibrant.cli.options import Debug, Json
from calibrant.cli.output import color, print_json, say, width
from calibrant.cores import usable_cores
from calibrant.distribution import is_installed, own_requirements, own_version

__all__ = ["doctor"]

NAME = "doctor"
EXAMPLE = "calibrant doctor --json"

CORE = (
    "numpy",
    "scipy",
    "scikit-learn",
    "threadpoolctl",
    "pyarrow",
    "typer",
    "rich",
    "matplotlib",
    "plotly",
    "jinja2",
)
EXTRAS: dict[str, tuple[str, ...]] = {
    "torch": ("torch", "lightning-fabric", "safetensors", "tokenizers"),
    "transformers": ("transformers",),
    "reproductions": ("pillow", "pooch"),
}
_MODULES = {"scikit-learn": "sklearn", "lightning-fabric": "lightning_fabric", "pillow": "PIL"}
_WITHOUT = dict.fromkeys(("plotly", "jinja2"), "without it no report.html is written")
"""What does not work where a package is missing, if only that."""


def doctor(
    json: Json = False,
    device: Annotated[
        bool, typer.Option("--device", help="Import torch and look for an accelerator.")
    ] = False,
    debug: Debug = False,
) -> None:
    """Show versions, extras, device, data folder and machine.

    Leaves with 0 when every core dependency is fine, else with 1.
    """
    found = diagnosis(look_for_device=device)
    if json:
        print_json(found)
    else:
        say(_as_text(found))
    if not found["ok"]:
        raise typer.Exit(1)


def diagnosis(*, look_for_device: bool = False) -> dict[str, Any]:
    """Gather the facts without importing any dependency."""
    floors = _floors()
    core = {name: _dependency(name, floors.get(name)) for name in CORE}
    extras = {
        extra: {name: _dependency(name, floors.get(name)) for name in names}
        for extra, names in EXTRAS.items()
    }
    return {
        "ok": all(part["ok"] for part in core.values()),
        "calibrant": own_version(),
        "installed": is_installed(),
        "python": platform.python_version(),
        "platform": platform.platform(),
        "dependencies": core,
        "extras": extras,
        "device": _device(extras["torch"]["torch"]["ok"], look=look_for_device),
        "data": _data_folder(),
        "cores": usable_cores(),
        "memory_gib": _memory(),
        "terminal": {
            "interactive": sys.stdout.isatty(),
            "width": width(),
            "color": color(),
            "encoding": getattr(sys.stdout, "encoding", None),
        },
    }


def _dependency(name: str, floor: str | None) -> dict[str, Any]:
    version = _version(name)
    found = importlib.util.find_spec(_MODULES.get(name, name)) is not None
    if version is None or not found:
        lost = f": {_WITHOUT[name]}" if name in _WITHOUT else ""
        return {"ok": False, "version": None, "why": f"not installed{lost}"}
    if floor is not None and _parts(version) < _parts(floor):
        return {"ok": False, "version": version, "why": f"needs {floor} or newer"}
    return {"ok": True, "version": version}


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _floors() -> dict[str, str]:
    """Read the lowest versions out of what the package says that it needs."""
    found = (re.match(r"([\w.-]+)\s*>=\s*([\d.]+)", line) for line in own_requirements())
    return {match[1].lower(): match[2] for match in found if match}


def _parts(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version.split("+")[0])[:3])


def _device(installed: bool, *, look: bool) -> str:
    if not installed:
        return "not checked: torch is not installed"
    if not look:
        return "not checked: run with --device"
    torch = import_module("torch")
    if torch.cuda.is_available():
        names = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
        return f"cuda: {', '.join(names)}"
    return "mps" if torch.backends.mps.is_available() else "cpu only"


def _data_folder() -> dict[str, Any]:
    value = os.environ.get("CALIBRANT_DATA")
    if not value:
        return {"path": None, "state": "CALIBRANT_DATA is not set"}
    folders = [each for each in value.split(os.pathsep) if each]
    states = [_state_of(Path(each)) for each in folders]
    if len(folders) == 1:
        return {"path": value, "state": states[0]}
    told = (f"{folder}: {state}" for folder, state in zip(folders, states, strict=True))
    return {"path": value, "state": "; ".join(told)}


def _state_of(folder: Path) -> str:
    if not folder.is_dir():
        return "no such folder"
    try:
        return f"{len(list(folder.iterdir()))} entries"
    except OSError as error:
        return f"not readable: {error.strerror}"


def _memory() -> float | None:
    try:
        return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1)
    except (AttributeError, ValueError, OSError):
        return None


def _as_text(found: dict[str, Any]) -> str:
    missing = [name for name, part in found["dependencies"].items() if not part["ok"]]
    head = f"Not fine: {', '.join(missing)}." if missing else "All core dependencies are fine."
    own = found["calibrant"] + ("" if found["installed"] else " (a source checkout, not installed)")
    rows = [("calibrant", own), ("python", found["python"])]
    rows += [(name, _state(part)) for name, part in found["dependencies"].items()]
    for extra, parts in found["extras"].items():
        rows += [(f"{name} [{extra}]", _state(part)) for name, part in parts.items()]
    data, terminal = found["data"], found["terminal"]
    memory = "unknown" if found["memory_gib"] is None else f"{found['memory_gib']} GiB"
    rows += [
        ("device", found["device"]),
        ("data folder", f"{data['path']}: {data['state']}" if data["path"] else data["state"]),
        ("machine", f"{found['platform']}, {found['cores']} cores, {memory}"),
        ("terminal", f"{'interactive' if terminal['interactive'] else 'not interactive'}, "
         f"{terminal['width']} columns, {terminal['encoding']}"),
    ]  # fmt: skip
    wide = max(len(name) for name, _ in rows)
    return "\n".join([head, "", *(f"{name:<{wide}} {value}" for name, value in rows)])


def _state(part: dict[str, Any]) -> str:
    version = part["version"] or ""
    return version if part["ok"] else f"{version} {part['why']}".strip()
