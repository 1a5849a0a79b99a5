"""Experiments of papers: data, methods, options and published results."""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.resources import files
from typing import Any, Literal, get_args

from calibrant.errors import InputError

__all__ = ["Experiment", "Method", "Size", "experiment_named", "experiments"]

Size = Literal["full", "small", "toy"]
"""As in the paper; minutes on two cores; seconds."""

Kind = Literal["text", "image", "table"]
ChooseOn = Literal["steer", "calib"]

_TOY = "Made-up rows and a tiny network: this shows that all of it works, and nothing of the paper."


@dataclass(frozen=True)
class Method:
    """One way of training, such as a loss.

    Parameters
    ----------
    name : for the command line and for files
    label : as tables call it, which is the paper's name where it has one
    options : arguments of the classifier, over those of the experiment

    Examples
    --------
    >>> Method("fl3", "FL-3", {"loss": "focal:gamma=3"}).label
    'FL-3'
    """

    name: str
    label: str
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Experiment:
    """A row of a paper's tables, or several that share their models.

    Parameters
    ----------
    name : for the command line and for files
    title : as pages call it
    paper : which document, table and figure
    kind : "text", "image" or "table": which classifier is trained
    data : the loader of its rows; see `reproductions.loaders`
    needs : data sets that the loader reads at full size; see `reproductions.data_sets`
    methods : ways of training
    training : arguments of the classifier that all methods share
    seeds : that the full size is run with
    sizes : what is other at size "small" and "toy": `training` and `reading` to merge, `seeds`,
        `methods` by name, `needs`, `why`; or other `data`, which are read with that `reading`
        alone. A toy size is held against no paper
    reading : options of the loader
    extras : names of further figures; see `reproductions.extras`
    once : names of what is computed once for all runs; see `reproductions.extras`
    own_choice : whether half of the steer rows are kept for comparing methods, so that nothing
        which training follows has a say in it; see `Parts.with_choice`
    choose_on : "steer", or the choice rows where they are kept; "calib" where held-back rows are
        too few to be cut in three, so that calibrators and the choice share theirs; see
        `choose_recipe`
    look_every : epochs from one look at the test rows to the next, for the chart over epochs
    published : figures of the paper in percent, by method: `ece_em`, `ece_em_scaled`, ...
    published_rows : test rows of the paper, where they are not as many as ours
    reach : figures to reach, such as `ece_em`, in percent
    minutes : that a run of one method and seed takes, by hardware
    faithful : whether it is trained on the paper's schedule: only then orders can be compared
    size : that it is at; see `at`
    run : whether its data could be had; if not, `why`
    why : it was not run, or what a reader must know

    Examples
    --------
    >>> from reproductions import experiment_named
    >>> one = experiment_named("bigmart")
    >>> one.kind, one.methods[0].label, one.at("toy").seeds
    ('table', 'CE', (0,))
    """

    name: str
    title: str
    paper: str
    kind: Kind
    data: str
    methods: tuple[Method, ...]
    training: Mapping[str, Any]
    needs: tuple[str, ...] = ()
    seeds: tuple[int, ...] = (0, 1, 2)
    sizes: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    reading: Mapping[str, Any] = field(default_factory=dict)
    extras: tuple[str, ...] = ()
    once: tuple[str, ...] = ()
    own_choice: bool = False
    choose_on: ChooseOn = "steer"
    look_every: int = 1
    published: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    published_rows: int | None = None
    reach: Mapping[str, float] = field(default_factory=dict)
    minutes: Mapping[str, float] = field(default_factory=dict)
    faithful: bool = True
    size: Size = "full"
    run: bool = True
    why: str = ""

    def at(self, size: Size) -> Experiment:
        """Return the experiment at a size: merged training and reading, other seeds, methods."""
        if size not in get_args(Size):
            raise InputError(f"size must be 'full', 'small' or 'toy', got {size!r}.")
        if size == "full":
            return self
        other = self.sizes.get(size)
        if other is None:
            raise InputError(
                f"{self.name} has no size {size!r}: it has {_listed(['full', *self.sizes])}."
            )
        training = _merged(self.training, other.get("training", {}))
        methods = self.chosen(other["methods"]) if "methods" in other else self.methods
        return replace(
            self,
            size=size,
            data=other.get("data", self.data),
            training=training,
            reading={**({} if "data" in other else self.reading), **other.get("reading", {})},
            seeds=tuple(other.get("seeds", self.seeds)),
            # What a size says goes for all methods, those with an option of their own too.
            methods=tuple(_without(each, other.get("training", {})) for each in methods),
            needs=tuple(other.get("needs", self.needs)),
            published={} if size == "toy" else self.published,
            why=other.get("why", _TOY if size == "toy" else self.why),
        )

    def options_of(
        self, method: Method, overrides: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """Return the classifier arguments: common ones, those of the method, `overrides`."""
        return {**self.training, **method.options, **(overrides or {})}

    def chosen(self, names: Sequence[str] | None) -> tuple[Method, ...]:
        """Return the methods of these names, or all."""
        if names is None:
            return self.methods
        known = {method.name: method for method in self.methods}
        what = "method" if self.size == "full" else f"method at size {self.size}"
        return tuple(_one(known, name, what, "methods") for name in names)


@cache
def experiments() -> Mapping[str, Experiment]:
    """Return every experiment by name, in the order of their files.

    A file is one experiment, or has several as its `[rows.NAME]`. A row is what the file says of
    all rows, then the tables `[parts.NAME]` that the row lists as `parts`, then the row itself;
    each is merged key by key over those before. `use` lists the methods of a row in their order.

    Examples
    --------
    >>> experiments()["newsgroups-cnn"].title
    '20 Newsgroups, global-pooling CNN'
    """
    folder = files("reproductions") / "configs"
    paths = sorted(
        (path for path in folder.iterdir() if path.name.endswith(".toml")),
        key=lambda path: path.name,
    )
    read = (_read(path.name, path.read_text(encoding="utf-8")) for path in paths)
    return {each.name: each for in_file in read for each in in_file}


def experiment_named(name: str) -> Experiment:
    """Return an experiment; an unknown name is answered with the nearest one.

    Examples
    --------
    >>> experiment_named("bigmart").needs
    ('bigmart',)
    """
    known = dict(experiments())
    experiment: Experiment = _one(
        known, name, "reproduction", "python -m reproductions --list shows them"
    )
    return experiment


def _read(file: str, text: str) -> list[Experiment]:
    """Return the experiments of a file: one, or one of each row."""
    saved = tomllib.loads(text)
    rows, parts = saved.pop("rows", None), saved.pop("parts", {})
    if rows is None:
        return [_experiment(file, saved)]
    read = []
    for name, row in rows.items():
        listed = row.pop("parts", ())
        fields = {"name": name, **saved}
        for part in listed:
            fields = _over(fields, _one(parts, part, "part", f"the config {file} has"))
        read.append(_experiment(file, _over(fields, row)))
    return read


def _over(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Put the options of one table over those of another, key by key at every depth."""
    both = {**below, **above}
    for name in below.keys() & above.keys():
        if isinstance(below[name], dict) and isinstance(above[name], dict):
            both[name] = _over(below[name], above[name])
    return both


def _experiment(file: str, saved: Mapping[str, Any]) -> Experiment:
    fields = {name: value for name, value in saved.items() if name not in ("methods", "use")}
    methods = {
        name: Method(name, each.get("label", name), {k: each[k] for k in each if k != "label"})
        for name, each in saved["methods"].items()
    }
    where, used = f"the config {file} has", saved.get("use", methods)
    fields["methods"] = tuple(_one(methods, name, "method", where) for name in used)
    for name in ("needs", "extras", "once", "seeds"):
        if name in fields:
            fields[name] = tuple(fields[name])
    try:
        return Experiment(**fields)
    except TypeError as error:
        raise InputError(f"the config {file} is not an experiment: {error}.") from None


def _merged(of_all: Mapping[str, Any], of_size: Mapping[str, Any]) -> dict[str, Any]:
    """Put options of a size over those of all sizes; those of the network one by one."""
    both = {**of_all, **of_size}
    same = of_all.get("model") == both.get("model")
    if same and "model_options" in of_all and "model_options" in of_size:
        both["model_options"] = {**of_all["model_options"], **of_size["model_options"]}
    return both


def _without(method: Method, options: Mapping[str, Any]) -> Method:
    own = {name: value for name, value in method.options.items() if name not in options}
    return replace(method, options=own)


def _one(known: Mapping[str, Any], name: str, what: str, where: str) -> Any:
    if name in known:
        return known[name]
    near = difflib.get_close_matches(name.lower(), known, n=1)
    hint = f"did you mean {near[0]!r}? " if near else ""
    raise InputError(f"there is no {what} {name!r}: {hint}{where}: {_listed(list(known))}.")


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names)
