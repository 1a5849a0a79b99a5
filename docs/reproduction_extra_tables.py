"""Tables of figures that only some reproductions have, by the name of the extra."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from docs.reproduction_records import ExperimentRuns, data_set, extra, extras, mean
from docs.reproduction_tables import NONE, percent
from docs.tables import dense, table

COLUMNS = {
    "accuracy": "accuracy", "precision": "precision", "recall": "recall", "f1": "F1",
    "nll": "log loss", "ece": "ECE", "mce": "MCE",
}  # fmt: skip

_FEW = 3  # promises of a method that get a line each


def out_of_scope(outcome: ExperimentRuns) -> str:
    """Return how well other data sets are detected, beside the paper's figures."""
    having = _having(outcome, "ood")
    if not having:
        return ""
    sets = list(next(iter(having.values()))[0])
    noise = " Noise is laid over the test images themselves." if "noise" in sets else ""
    rows = []
    for name, runs in having.items():
        printed = outcome.summary[name].published
        cells = []
        for one in sets:
            for way, end in (("raw", ""), ("temperature", "_scaled")):
                ours = percent(mean(run[one]["entropy"][way] for run in runs))
                theirs = printed.get(f"auroc_{one}{end}")
                cells.append(ours if theirs is None else f"{ours} ({theirs:.2f})")
        rows.append((outcome.labels[name], *cells))
    head = (
        "method",
        *(f"{data_set(one)}, {way}" for one in sets for way in ("as trained", "temperature")),
    )
    return (
        "## Detecting other data sets\n\nAUROC in %: how often a row of another data set gets "
        f"a larger entropy (a less certain answer) than a test row.{noise} Means over seeds, the "
        "paper's in brackets where it printed one."
        f"\n\n{dense(table(head, rows))}\n"
    )


def paper_columns(outcome: ExperimentRuns) -> str:
    """Return the columns of the paper's tables, theirs and ours, on as many rows as theirs."""
    having = _having(outcome, "paper_columns")
    if not having:
        return ""
    rows: list[tuple[str, ...]] = []
    for name, runs in having.items():
        printed, label = outcome.summary[name].published, outcome.labels[name]
        if any(column in printed for column in COLUMNS):
            rows.append((label, "paper", *(_theirs(printed, column) for column in COLUMNS), ""))
        for way, words in (("raw", "as trained"), ("temperature", "temperature")):
            ours = [run["golden"][way] for run in runs]
            cells = (_ours(ours, column) for column in COLUMNS)
            few = mean(one["mce_rows"] for one in ours)
            rows.append((label, words, *cells, f"{few:,.0f}"))
    n = next(iter(having.values()))[0]["golden"]["rows"]
    head = ("method", "", *COLUMNS.values(), "rows of the worst bin")
    return (
        f"## The paper's own columns\n\nOn the first {n:,} test rows, as many as the calibration "
        "part has; all in % but the log loss, means over seeds. Precision, recall and F1 are means "
        "over classes. MCE is the error of the worst of ten bins: where few rows are in it, it is "
        f"chance.\n\n{dense(table(head, rows))}\n"
    )


def true_error(outcome: ExperimentRuns) -> str:
    """Return the calibration error that is known because the world is made."""
    having = {
        name: [run for run in runs if "raw" in run]
        for name, runs in _having(outcome, "true_ce").items()
    }
    rows = [
        (outcome.labels[name], *(percent(mean(run[way] for run in runs))
                               for way in ("raw", "temperature", "auto")))
        for name, runs in having.items() if runs
    ]  # fmt: skip
    if not rows:
        return ""
    one = next(runs[0] for runs in having.values() if runs)
    return (
        "## The true calibration error\n\nThe messages are made, so it is known how likely each "
        f"class is for each of them. On {one['rows']:,} fresh messages this gives the calibration "
        "error itself, in %, without chance in labels. The best possible accuracy there is "
        f"{percent(one['best_accuracy'], 1)} %.\n\n"
        f"{table(('method', 'as trained', 'temperature', 'automatic choice'), rows)}\n"
    )


def promises(outcome: ExperimentRuns) -> str:
    """Return which thresholds were issued, and whether their promises held on fresh rows."""
    having = _having(outcome, "promise")
    if not having:
        return ""
    rows, sets = [], []
    for name, runs in having.items():
        for what, same in _alike([run["promises"] for run in runs]):
            label = (outcome.labels[name], what)
            rows.append(
                (*label, *_threshold_cells(same, "certified"), *_threshold_cells(same, "naive"))
            )
            sets += _many(label, [one["golden_sets"] for one in same if one.get("golden_sets")])
    one = next(iter(having.values()))[0]
    where = "known from how the messages are made" if one["known"] else "counted on the test rows"
    head = (
        "method",
        "promise",
        "certified: given",
        "kept",
        "recall",
        "by hand: given",
        "kept",
        "recall",
    )
    shown = (
        f"## Thresholds with a promise\n\nA threshold is chosen on the {one['calib']:,} "
        f"calibration rows, and then fresh rows tell whether the promise is kept ({where}; "
        f"{one['fresh']:,} rows). *Certified* thresholds promise it with {one['confidence']:.0%} "
        "confidence ([how](../thresholds.md)), or are not given; *by hand* takes the smallest that "
        "looks good enough, as the paper does. Given and kept are counted over seeds, and below "
        "*given* is where the thresholds lie; recall is "
        f"the mean share, in %, of what should be acted on.\n\n{dense(table(head, rows))}\n"
    )
    if not sets:
        return shown
    columns = ("method", "promise", "certified: given", "broken", "by hand: given", "broken")
    return (
        f"{shown}One calibration set shows one threshold. Therefore many sets of the same size "
        "were cut from fresh messages, over all seeds: how often is a threshold given, and in how "
        "many of all sets is a promise broken (a certified one in 5 % at most)?\n\n"
        f"{dense(table(columns, sets))}\n"
    )


def class_report(outcome: ExperimentRuns) -> str:
    """Return the classification report, which calibrating by temperature cannot change."""
    recipe = outcome.summary.recipe
    having = _having(outcome, "report")
    name = recipe.method if recipe is not None and recipe.method in having else None
    name = name or next(iter(having), None)
    one = None if name is None else extra(outcome.methods[name], "report")
    if name is None or one is None:
        return ""
    after, sentence = one["after"], one["told"]
    both = {"class": "mean of the classes", **after["macro"], "support": after["support"]}
    rows = [
        (each["class"], *(percent(each[key], 1) for key in ("precision", "recall", "f1")),
         f"{each['support']:,}")
        for each in (*after["classes"], both)
    ]  # fmt: skip
    return (
        f"## Classification report\n\n{outcome.labels[name]}, first seed, in %; accuracy "
        f"{percent(after['accuracy'], 1)} %. {sentence}\n\n"
        f"{table(('class', 'precision', 'recall', 'F1', 'rows'), rows)}\n"
    )


def rare_class(outcome: ExperimentRuns) -> str:
    """Return the figures of the rare class's own probability."""
    having = _having(outcome, "rare_class")
    if not having:
        return ""
    from reproductions.rare_class_words import rare_class_words

    one = next(iter(having.values()))[0]
    place = outcome.runs[0]["classes"].index(one["class"])
    sentences = "".join(f"- {sentence}\n" for sentence in rare_class_words(outcome.runs))
    rows = []
    for name, runs in having.items():
        raw, platt = ([run[way] for run in runs] for way in ("raw", "platt"))
        rows.append((
            outcome.labels[name], _percents(each["mean_score"] for each in raw),
            _percents(each["recall"][place] for each in raw),
            _percents(each["f1_macro"] for each in raw),
            *(_percents(each["ece_em"]["value"] for each in way) for way in (raw, platt)),
            _percents((each["ece_em"]["floor"] or {}).get("mean") for each in platt),
            *(_percents(each[name]["value"] for each in raw) for name in ("auroc", "auprc")),
        ))  # fmt: skip
    head = ("method", "mean probability", "recall", "F1, both classes", "ECE, as trained",
            "ECE, Platt", "chance alone", "AUROC", "AUPRC")  # fmt: skip
    return (
        f"## The rare class\n\nIts own probability, class *{one['class']}*, in %; "
        f"{_percents([one['raw']['event_rate']])} % of the test rows are of it. Platt scaling is a "
        "calibrator with an offset, so it can take back what moved class frequencies did; "
        "temperature cannot. AUROC and AUPRC say how well rows are ranked.\n\n"
        f"{sentences}\n"
        f"{dense(table(head, rows))}\n"
    )


def tutorial(outcome: ExperimentRuns) -> str:
    """Return what the tutorial's own recipe would have reported."""
    note = outcome.notes.get("tutorial")
    if not note:
        return ""
    sentence = note["told"]
    rows = [
        (run["seed"], percent(run["accuracy"], 1), percent(run["ece_before"]),
         f"{run['printed']['temperature']:.3f}", percent(run["printed"]["ece"]),
         f"{run['honest']['temperature']:.3f}", percent(run["honest"]["ece"]),
         percent((run["honest"].get("floor") or {}).get("mean")))
        for run in note["runs"]
    ]  # fmt: skip
    head = ("seed", "accuracy", "ECE before", "its temperature", "its ECE after",
            "honest temperature", "honest ECE after", "chance alone")  # fmt: skip
    return (
        f"## The tutorial's own recipe\n\n{sentence}\n\nIn %, ECE with {note['bins']} bins of "
        f"equal width:\n\n{dense(table(head, rows))}\n"
    )


EXTRA_TABLES: tuple[Callable[[ExperimentRuns], str], ...] = (
    paper_columns, true_error, promises, class_report, tutorial, rare_class, out_of_scope,
)  # fmt: skip


def _having(outcome: ExperimentRuns, name: str) -> dict[str, list[Mapping[str, Any]]]:
    every = {method: extras(runs, name) for method, runs in outcome.methods.items()}
    return {method: each for method, each in every.items() if each}


def _percents(values: Iterable[float | None]) -> str:
    return percent(mean(values))


def _theirs(printed: Mapping[str, float], column: str) -> str:
    if column not in printed:
        return NONE
    return f"{printed[column]:.3f}" if column == "nll" else f"{printed[column]:.1f}"


def _ours(runs: Sequence[Mapping[str, Any]], column: str) -> str:
    value = mean(run[column] for run in runs)
    return f"{value:.3f}" if column == "nll" else percent(value, 1)


def _promise_words(promise: Mapping[str, Any]) -> str:
    """Write a promise with its class, which it may already name."""
    hold, of = str(promise["hold"]).replace(">=", " ≥ "), promise.get("class")
    return hold if of is None or hold.startswith(f"{of}:") else f"{of}: {hold}"


def _alike(promises: Sequence[Sequence[Mapping[str, Any]]]) -> list[tuple[str, list[Any]]]:
    """Return each promise with that of every seed; many promises are put together."""
    each = [list(same) for same in zip(*promises, strict=True)]
    if len(each) <= _FEW:
        return [(_promise_words(same[0]), same) for same in each]
    holds = dict.fromkeys(same[0]["hold"].rpartition(":")[2].strip() for same in each)
    what = f"{len(each)} classes: {', '.join(holds).replace('>=', ' ≥ ')}"
    return [(what, [one for same in each for one in same])]


def _threshold_cells(same: Sequence[Mapping[str, Any]], way: str) -> tuple[str, ...]:
    issued = [one[way]["fresh"] for one in same if one[way]["reached"]]
    if not issued:
        return _out_of(0, len(same)), NONE, NONE
    held = sum(bool(one["held"]) for one in issued)
    recall = percent(mean(one["recall"] for one in issued), 1)
    places = [one[way]["threshold"] for one in same if one[way]["reached"]]
    ends = dict.fromkeys(f"{end:.2g}" for end in (min(places), max(places)))
    at = f"{_out_of(len(issued), len(same))}<br>at {'–'.join(ends)}"
    return at, _out_of(held, len(issued)), recall


def _many(label: tuple[str, str], outcome: Sequence[Mapping[str, Any]]) -> list[tuple[str, ...]]:
    if not outcome:
        return []
    sets = sum(one["sets"] for one in outcome)
    cells: list[str] = []
    for way in ("certified", "naive"):
        issued = sum(one[way]["given"] for one in outcome)
        broken = sum(one[way]["broken"] for one in outcome)
        cells += [_out_of(issued, sets), f"{broken:,} ({broken / sets:.1%})" if issued else NONE]
    return [(*label, *cells)]


def _out_of(some: int, every: int) -> str:
    return f"{some:,} of {every:,}".replace(" ", "\N{NO-BREAK SPACE}")
