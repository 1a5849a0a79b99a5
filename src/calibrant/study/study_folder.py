"""The input files and the output folder of a study: checks, drafts and publication of files."""

from __future__ import annotations

import json
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from calibrant.bundle.files import check_folder, write_folder_atomically
from calibrant.errors import InputError
from calibrant.files.atomic_write import write_atomically
from calibrant.study.result import StudyResult
from calibrant.study.settings.config_file import read_config

if TYPE_CHECKING:
    from calibrant.study.settings.config import StudyConfig

BUNDLE, CANDIDATE_FOLDERS = "bundle", "candidates"
_HEAD_BYTES = 4096
_REPORT_MARK = b"default-src 'none'; script-src 'unsafe-inline'"
"""Text near the top of every report."""


def output_folder(out: str | Path) -> Path:
    """Return the output folder.

    An empty text, which an unset shell variable gives, is an error rather than the current folder,
    which is named ".".

    Examples
    --------
    >>> output_folder("")
    Traceback (most recent call last):
    ...
    calibrant.errors.InputError: --out is empty: name a folder, like --out runs/mine.
    """
    if isinstance(out, str) and not out.strip():
        raise InputError("--out is empty: name a folder, like --out runs/mine.")
    return Path(out)


def check_output_folder(folder: Path) -> None:
    """Raise `InputError`, before training, for a folder with files that must not be replaced.

    Files of an earlier study and hand-written settings may be replaced; other files with these
    names may not.
    """
    if (folder / CANDIDATE_FOLDERS).exists() and not (folder / CANDIDATE_FOLDERS).is_dir():
        raise InputError(
            f"--out {folder}: it contains a file named {CANDIDATE_FOLDERS} where a folder is "
            "needed: choose another folder."
        )
    for name, is_ours in _OUTPUT_FILES.items():
        path = folder / name
        if path.is_dir():
            raise InputError(
                f"--out {folder}: it contains a folder named {name} where a file is needed: choose "
                "another folder."
            )
        if path.exists() and not is_ours(path):
            raise InputError(
                f"--out {folder} contains a file {name} that was not written by a study and would "
                "be replaced: move it away, or choose another folder."
            )
    check_folder(folder / BUNDLE, force=True, name="--out")


def make_candidates_folder(folder: Path) -> None:
    """Create the folder of the candidates."""
    try:
        (folder / CANDIDATE_FOLDERS).mkdir(exist_ok=True)
    except OSError as error:
        raise InputError(
            f"--out {folder} cannot be created ({error.strerror or error}): choose another folder."
        ) from None


@contextmanager
def draft_folder(folder: Path) -> Iterator[Path]:
    """Yield a temporary folder for drafts; write errors name the study's folder instead."""
    draft: Path | None = None
    try:
        with tempfile.TemporaryDirectory(prefix=".draft-", dir=folder) as name:
            draft = Path(name)
            yield draft
    except InputError as error:
        if draft is None or str(draft) not in str(error):
            raise
        raise InputError(str(error).replace(str(draft), str(folder))) from error
    except OSError as error:
        raise InputError(
            f"--out {folder} cannot be written ({error.strerror or error}): free some space or "
            "choose another folder."
        ) from error


def publish_outputs(draft: Path, folder: Path) -> None:
    """Move the bundle and the files from the draft folder to the output folder.

    They replace those of an earlier study, whose report is removed if there is no new one.
    """
    if (draft / BUNDLE).exists():
        with write_folder_atomically(folder / BUNDLE, force=True, name="--out") as bundle:
            for file in (draft / BUNDLE).iterdir():
                shutil.move(file, bundle)
    elif (folder / BUNDLE).exists():  # that of an earlier study, which the report no longer shows
        shutil.rmtree(folder / BUNDLE)
    (folder / "report.html").unlink(missing_ok=True)
    for name in _OUTPUT_FILES:
        if (draft / name).exists():
            (draft / name).replace(folder / name)


def write_json(content: Any, path: Path) -> None:
    """Write JSON atomically."""
    with write_atomically(path, name="--out") as draft:
        text = json.dumps(content, allow_nan=False, ensure_ascii=False, indent=1)
        draft.write_text(f"{text}\n", encoding="utf-8", errors="backslashreplace")


def _is_settings(path: Path) -> bool:
    try:
        read_config(path)
    except InputError:
        return False
    return True


def _is_report(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return _REPORT_MARK in file.read(_HEAD_BYTES)
    except OSError:
        return False


def _json_with(*keys: str) -> Callable[[Path], bool]:
    """Return a check that a file is a JSON object with these keys."""

    def has_keys(path: Path) -> bool:
        try:
            content = json.loads(path.read_bytes())
        except (OSError, ValueError, RecursionError):
            return False
        return isinstance(content, dict) and set(keys) <= set(content)

    return has_keys


_OUTPUT_FILES: dict[str, Callable[[Path], bool]] = {
    "study.toml": _is_settings,
    "splits.json": _json_with("format", "splits"),
    "result.json": _json_with("schema", "candidates"),
    "report.html": _is_report,
}
"""Output files of a study, each with a check that a study wrote it."""


def input_files(config: StudyConfig) -> dict[str, Path]:
    """Return the input files of a study, and the folder of a pretrained model."""
    paths = {"data": Path(config.data)}
    if config.golden is not None:
        paths["golden"] = Path(config.golden)
    folders = [Path(model) for model in config.models if Path(model).is_dir()]
    return paths | {
        f"model {i}" if i > 1 else "model": path for i, path in enumerate(folders, start=1)
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
    settings = dict(result.config)
    for role, path in sources.items():
        if role in settings and not role.startswith("model"):
            settings[role] = _name(path)
    if config.model is not None:
        settings["model"] = _replace_paths(config.model, names)
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
