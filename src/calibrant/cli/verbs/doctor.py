"""`calibrant doctor`: check the installation."""

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
from calibrant.cli.output import color, echo, print_json, width
from calibrant.cores import usable_cores
from calibrant.distribution import is_installed, own_requirements, own_version

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
_CONSEQUENCES = dict.fromkeys(("plotly", "jinja2"), "report.html is not written")
"""Effect of a missing package."""


def doctor_command(
    json: Json = False,
    device: Annotated[
        bool, typer.Option("--device", help="Import torch and detect an accelerator.")
    ] = False,
    debug: Debug = False,
) -> None:
    """Show versions, extras, device, data folder and machine.

    Exits with 0 if every core dependency is installed, else with 1.
    """
    report = diagnose(look_for_device=device)
    if json:
        print_json(report)
    else:
        echo(_to_text(report))
    if not report["ok"]:
        raise typer.Exit(1)


def diagnose(*, look_for_device: bool = False) -> dict[str, Any]:
    """Collect the report without importing any dependency."""
    minimums = _minimum_versions()
    core = {name: _dependency(name, minimums.get(name)) for name in CORE}
    extras = {
        extra: {name: _dependency(name, minimums.get(name)) for name in names}
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


def _dependency(name: str, minimum: str | None) -> dict[str, Any]:
    version = _version(name)
    importable = importlib.util.find_spec(_MODULES.get(name, name)) is not None
    if version is None or not importable:
        consequence = f": {_CONSEQUENCES[name]}" if name in _CONSEQUENCES else ""
        return {"ok": False, "version": None, "why": f"not installed{consequence}"}
    if minimum is not None and _version_tuple(version) < _version_tuple(minimum):
        return {"ok": False, "version": version, "why": f"needs {minimum} or newer"}
    return {"ok": True, "version": version}


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _minimum_versions() -> dict[str, str]:
    """Return the minimum versions from the package metadata."""
    matches = (re.match(r"([\w.-]+)\s*>=\s*([\d.]+)", line) for line in own_requirements())
    return {match[1].lower(): match[2] for match in matches if match}


def _version_tuple(version: str) -> tuple[int, ...]:
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
    folders = [folder for folder in value.split(os.pathsep) if folder]
    states = [_describe_folder(Path(folder)) for folder in folders]
    if len(folders) == 1:
        return {"path": value, "state": states[0]}
    lines = (f"{folder}: {state}" for folder, state in zip(folders, states, strict=True))
    return {"path": value, "state": "; ".join(lines)}


def _describe_folder(folder: Path) -> str:
    if not folder.is_dir():
        return "not found"
    try:
        return f"{len(list(folder.iterdir()))} entries"
    except OSError as error:
        return f"not readable: {error.strerror}"


def _memory() -> float | None:
    try:
        return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1)
    except (AttributeError, ValueError, OSError):
        return None


def _to_text(report: dict[str, Any]) -> str:
    missing = [name for name, part in report["dependencies"].items() if not part["ok"]]
    head = (
        f"Missing or too old: {', '.join(missing)}."
        if missing
        else "All core dependencies are fine."
    )
    version = report["calibrant"] + (
        "" if report["installed"] else " (a source checkout, not installed)"
    )
    rows = [("calibrant", version), ("python", report["python"])]
    rows += [(name, _describe_package(part)) for name, part in report["dependencies"].items()]
    for extra, parts in report["extras"].items():
        rows += [(f"{name} [{extra}]", _describe_package(part)) for name, part in parts.items()]
    data, terminal = report["data"], report["terminal"]
    memory = "unknown" if report["memory_gib"] is None else f"{report['memory_gib']} GiB"
    rows += [
        ("device", report["device"]),
        ("data folder", f"{data['path']}: {data['state']}" if data["path"] else data["state"]),
        ("machine", f"{report['platform']}, {report['cores']} cores, {memory}"),
        ("terminal", f"{'interactive' if terminal['interactive'] else 'not interactive'}, "
         f"{terminal['width']} columns, {terminal['encoding']}"),
    ]  # fmt: skip
    name_width = max(len(name) for name, _ in rows)
    return "\n".join([head, "", *(f"{name:<{name_width}} {value}" for name, value in rows)])


def _describe_package(part: dict[str, Any]) -> str:
    version = part["version"] or ""
    return version if part["ok"] else f"{version} {part['why']}".strip()
