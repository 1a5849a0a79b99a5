"""Data sets of the reproductions, and the search for their files.

Files are looked for in each folder that CALIBRANT_DATA names, then among earlier downloads; what
has a public address is downloaded. No network is needed where the files are there.
"""

from __future__ import annotations

import difflib
import os
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from typing import Any

from calibrant.errors import InputError
from reproductions.downloads import NotDownloaded, cache_folder, download

__all__ = ["DATA_SETS", "DataFile", "DataSet", "data_set_named", "find", "have"]


@dataclass(frozen=True)
class DataFile:
    """A file of a data set, or a folder of it.

    Parameters
    ----------
    name : in the folder of the data set
    checksum : such as "sha256:..." or "md5:...", or "" where none is known; checked on download
    address : where it can be downloaded, or ""
    """

    name: str
    checksum: str = ""
    address: str = ""


@dataclass(frozen=True)
class DataSet:
    """A data set of the reproductions.

    Parameters
    ----------
    name : of the folder that holds it, and in the `needs` of an experiment
    title : as pages call it
    licence : of the data
    where : it comes from, to be read after "get it from"
    forms : ways to hold it, the preferred one first; each is all the files that it takes
    folders : other names of its folder
    variable : of the environment, that may name its folder
    package : "package/folder" of an installed Python package that may hold it
    """

    name: str
    title: str
    licence: str
    where: str
    forms: tuple[tuple[DataFile, ...], ...]
    folders: tuple[str, ...] = ()
    variable: str = ""
    package: str = ""

    @property
    def address(self) -> str:
        """Where it can be downloaded, or ""."""
        return next((file.address for form in self.forms for file in form if file.address), "")

    @property
    def remedy(self) -> str:
        """Return how to get a missing data set.

        Examples
        --------
        >>> data_set_named("bigmart").remedy.endswith("a folder bigmart under CALIBRANT_DATA")
        True
        """
        if any(all(file.address for file in form) for form in self.forms):
            return f"it is downloaded when it is needed (from {self.where})"
        return (
            f"get it from {self.where}, and put it into a folder {self.name} under CALIBRANT_DATA"
        )


def _read(name: str, saved: Mapping[str, Any]) -> DataSet:
    forms = tuple(
        tuple(DataFile(file, **fields) for file, fields in form.items()) for form in saved["forms"]
    )
    return DataSet(
        name=name, **{**saved, "forms": forms, "folders": tuple(saved.get("folders", ()))}
    )


def _all() -> Mapping[str, DataSet]:
    text = (files("reproductions") / "data_sets.toml").read_text(encoding="utf-8")
    return MappingProxyType(
        {name: _read(name, fields) for name, fields in tomllib.loads(text).items()}
    )


DATA_SETS: Mapping[str, DataSet] = _all()
"""Every data set by name."""


def data_set_named(name: str) -> DataSet:
    """Return a data set; the error for an unknown name suggests the nearest one.

    Examples
    --------
    >>> data_set_named("cifar10").licence
    'none stated; for research'
    """
    if name not in DATA_SETS:
        near = difflib.get_close_matches(name, DATA_SETS, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"choose one of {', '.join(DATA_SETS)}."
        raise InputError(f"there is no data set {name!r}: {hint}")
    return DATA_SETS[name]


def find(name: str, *wanted: str) -> list[Path]:
    """Return the files of a data set, downloading missing public files.

    Parameters
    ----------
    name : of the data set
    wanted : names of files, all of one form; without any, all files of the first form that is
        there, or else of the one that can be downloaded: their names tell which form it is
    """
    data_set = data_set_named(name)
    forms = _forms(data_set, wanted)
    here = _here(data_set, forms)
    if here is not None:
        return here
    why = ""
    for form in forms:
        if all(file.address for file in form):
            try:
                return [download(file.address, file.checksum, name, file.name) for file in form]
            except NotDownloaded as error:
                why = str(error)
    raise InputError(_missing(data_set, forms, why))


def have(name: str) -> bool:
    """Return whether the files of a data set are available without download."""
    data_set = data_set_named(name)
    return _here(data_set, data_set.forms) is not None or _is_cached(data_set)


def _forms(data_set: DataSet, wanted: tuple[str, ...]) -> tuple[tuple[DataFile, ...], ...]:
    """Return the forms to look for, each cut down to the wanted files."""
    if not wanted:
        return data_set.forms
    for form in data_set.forms:
        known = {file.name: file for file in form}
        if known.keys() >= set(wanted):
            return (tuple(known[each] for each in wanted),)
    listed = "; or ".join(_listed(form) for form in data_set.forms)
    raise InputError(
        f"{data_set.name} has no form with {', '.join(wanted)}: its files are {listed}."
    )


def _here(data_set: DataSet, forms: tuple[tuple[DataFile, ...], ...]) -> list[Path] | None:
    """Return the files of the first form that one folder holds in full, or None."""
    places = list(_places(data_set))
    for form in forms:
        for place in places:
            paths = [place / file.name for file in form]
            if all(_is_there(path) for path in paths):
                return paths
    return None


def _is_there(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # a folder that may not be looked into holds nothing for us
        return False


def _is_cached(data_set: DataSet) -> bool:
    """Return whether all files of a form are in the download cache."""
    if not data_set.address:
        return False
    cache = cache_folder()
    return cache is not None and any(
        all(file.address and (cache / data_set.name / file.name).is_file() for file in form)
        for form in data_set.forms
    )


def _places(data_set: DataSet) -> Iterator[Path]:
    """Yield each folder that may hold a data set."""
    named = os.environ.get(data_set.variable) if data_set.variable else None
    if named:
        yield Path(named)
    for root in _roots():
        for folder in (data_set.name, *data_set.folders):
            yield root / folder
    if data_set.package:
        package, _, folder = data_set.package.partition("/")
        spec = find_spec(package)
        for place in (spec.submodule_search_locations or []) if spec else []:
            yield Path(place) / folder


def _roots() -> list[Path]:
    named = os.environ.get("CALIBRANT_DATA", "").split(os.pathsep)
    return [Path(os.path.expanduser(each)) for each in named if each]


def _missing(data_set: DataSet, forms: tuple[tuple[DataFile, ...], ...], why: str) -> str:
    listed = ", or ".join(_listed(form) for form in forms)
    roots = os.pathsep.join(map(str, _roots()))
    looked = f"in CALIBRANT_DATA={roots}" if roots else "here, and CALIBRANT_DATA is not set"
    reason = f", and {why}" if why else ""
    return (
        f"{data_set.title}: it is not {looked}{reason}; get it from {data_set.where}; put {listed} "
        f"into a folder {data_set.name}, and name the folder above that in CALIBRANT_DATA."
    )


def _listed(form: tuple[DataFile, ...]) -> str:
    return " and ".join(file.name for file in form)
