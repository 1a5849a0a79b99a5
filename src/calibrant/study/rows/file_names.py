"""Files of a study by their names: what is handed on does not tell where they lay."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from calibrant.study.result import StudyResult

if TYPE_CHECKING:
    from calibrant.study.settings.config import StudyConfig

__all__ = ["names_only", "sources_of"]


def sources_of(config: StudyConfig) -> dict[str, Path]:
    """Return the input files of a study, and the folder of a pretrained model."""
    told = {"data": config.data, "golden": config.golden, "model": config.model}
    paths = {role: Path(path or "") for role, path in told.items()}
    return {
        role: path
        for role, path in paths.items()
        if path.name and (role != "model" or path.is_dir())
    }


def names_only(result: StudyResult, config: StudyConfig, out: Path) -> StudyResult:
    """Return a result whose settings and sentences name files and folders without their places.

    Reports and bundles are handed on, and whoever reads them should not learn how a computer is
    arranged. Only `study.toml` keeps the paths, by which the study can be run again.
    """
    sources = sources_of(config)
    names = _written(Path.home(), "~")
    for path in (*sources.values(), out):
        names |= _written(path, _name(path))
    notes = tuple(_named(note, names) for note in result.notes)
    candidates = tuple(
        one if one.failed is None else replace(one, failed=_named(one.failed, names))
        for one in result.candidates
    )
    told = {**result.config, **{role: _name(path) for role, path in sources.items()}}
    return replace(result, notes=notes, candidates=candidates, config=told)


def _name(path: Path) -> str:
    return path.name or path.resolve().name  # "." has none


def _written(path: Path, name: str) -> dict[str, str]:
    """Return the ways in which a path may be written, with its name."""
    ways = {str(path), str(path.absolute()), str(path.resolve())}
    return {way: name for way in ways if len(Path(way).parts) > 1}  # neither "/" nor a bare word


def _named(text: str, names: dict[str, str]) -> str:
    """Put names in the place of paths, the longest first: one may lie within another."""
    paths = "|".join(re.escape(path) for path in sorted(names, key=len, reverse=True))
    return re.sub(rf"(?<![\w./-])(?:{paths})(?![\w-])", lambda found: names[found[0]], text)
