"""Input files of a study, and results without their paths."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from calibrant.study.result import StudyResult

if TYPE_CHECKING:
    from calibrant.study.settings.config import StudyConfig


def input_files(config: StudyConfig) -> dict[str, Path]:
    """Return the input files of a study, and the folder of a pretrained model."""
    settings = {"data": config.data, "golden": config.golden, "model": config.model}
    paths = {role: Path(path or "") for role, path in settings.items()}
    return {
        role: path
        for role, path in paths.items()
        if path.name and (role != "model" or path.is_dir())
    }


def strip_paths(result: StudyResult, config: StudyConfig, out: Path) -> StudyResult:
    """Return a result whose settings and messages contain file names instead of paths.

    Reports and bundles are shared and should not reveal local folders. Only `study.toml` keeps the
    paths, so that the study can be run again.
    """
    sources = input_files(config)
    names = _path_spellings(Path.home(), "~")
    for path in (*sources.values(), out):
        names |= _path_spellings(path, _name(path))
    notes = tuple(_replace_paths(note, names) for note in result.notes)
    candidates = tuple(
        each if each.failed is None else replace(each, failed=_replace_paths(each.failed, names))
        for each in result.candidates
    )
    settings = {**result.config, **{role: _name(path) for role, path in sources.items()}}
    return replace(result, notes=notes, candidates=candidates, config=settings)


def _name(path: Path) -> str:
    return path.name or path.resolve().name  # "." has no name


def _path_spellings(path: Path, name: str) -> dict[str, str]:
    """Map each spelling of a path to its name."""
    spellings = {str(path), str(path.absolute()), str(path.resolve())}
    return {text: name for text in spellings if len(Path(text).parts) > 1}  # not "/", not "name"


def _replace_paths(text: str, names: dict[str, str]) -> str:
    """Replace paths by names, the longest first: one path may contain another."""
    paths = "|".join(re.escape(path) for path in sorted(names, key=len, reverse=True))
    return re.sub(rf"(?<![\w./-])(?:{paths})(?![\w-])", lambda match: names[match[0]], text)
