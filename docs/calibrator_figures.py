"""The page of figures: what each calibrator gains, beside other libraries', with every loss."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from docs.tables import table

Row = Mapping[str, Any]

OURS = "calibrant"
AHEAD = 1.001
"""A log loss that is lower by this factor is worth a word."""

GROUPS = {
    "networks": (
        "Networks",
        "Classifiers of images and texts. Calibrators learn from the published validation part, "
        "5,000 rows or a little fewer, and are judged on the test part. Names ending in c10 or "
        "cifar-10 are photographs in ten classes, cifar-100 in a hundred; mnist are digits, 20news "
        "messages in twenty newsgroups.",
    ),
    "tables": (
        "Tables",
        "Two classes. The model learned from a third of the rows, the calibrator from 5,000 "
        "others, and the rest judges. Naive Bayes is far too sure of itself, a forest says exactly "
        "0 and exactly 1, and boosting is nearly right as it is.",
    ),
    "worlds of two classes": (
        "Worlds of two classes",
        "Made-up rows whose true probabilities are known ([worlds](testing.md)): 5,000 to learn "
        "from, 100,000 to judge. *True error* is the calibration error that an unlimited sample "
        "would show, in percentage points.",
    ),
    "worlds of more classes": (
        "Worlds of more classes",
        "The same with five and with twenty classes.",
    ),
}

_LESSON = """**What to take from it.** Where a model is off, nearly every method of scaling helps,
and they differ less from each other than from doing nothing. Bins (`histogram`, `scaling_binning`,
`bayesian_binning`) cost log loss on networks even where their calibration error looks good, so
choose by log loss. Where a model is right already there is nothing to gain, and flexible methods
do harm. No method is best everywhere; that is what the automatic choice is for.

"""

_READING = """## How to read the tables

- **Method**: ours are written `like this`, others with the name of their library.
- **Change of log loss**: what calibration changed on rows that were not learned from, relative to
  the uncalibrated model, on average over the cases; negative is better. ∞ means that the true class
  of some row got a probability of 0. Methods are sorted by it; one that was not run in all cases
  stands below, because its average is over other cases.
- **Harmed**: cases in which log loss rose by more than 0.1 % and by more than two standard errors
  of the paired difference.
- **ECE**: the [calibration error](metrics.md) in 15 bins of equal width, and of equal mass, in
  percentage points; of the predicted class, or of the positive one where there are two.
- **Fit**: median time to learn from the rows; indicative only.
- **Case by case**: the automatic choice, the best of our methods, and the best of the other
  libraries', both as it turned out on the judged rows. Bold where another library's best is ahead
  of ours by more than 0.1 %.

"""


def figures_page(results: Mapping[str, Any] | None, choice: Mapping[str, Any] | None) -> str:
    """Show every method beside the peers', group by group, with lost cases and missed goals."""
    head = "# Calibrators: figures\n\n"
    if results is None:
        return head + (
            "There are no results on this copy: `make bench` writes them, and `make docs` then "
            "fills this page.\n"
        )
    details = results["goals"][0]["details"]
    facts = {case["case"]: case for case in details["cases"]}
    groups = _grouped(details["table"], facts)
    parts = [head, _LESSON, _summary_lines(groups), _READING]
    for group, rows in groups.items():
        title, words = GROUPS[group]
        parts.append(f"## {title}\n\n{words}\n\n{_methods(rows)}\n")
        parts.append(f"### {title}, case by case\n\n{_cases(rows, facts)}\n")
    parts += [_harmed(details["table"]), _goals(results), _lost(results), _choice(choice)]
    return "".join([*parts, _measured(results, details)])


def _grouped(rows: Iterable[Row], facts: Mapping[str, Row]) -> dict[str, list[Row]]:
    """Put rows of cases that the same methods can be run on together, in the order of the page."""
    results: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        fact = facts[row["case"]]
        group = fact["group"]
        if group == "worlds":
            group += " of two classes" if fact["classes"] == 2 else " of more classes"
        results[group].append(row)
    return {group: results[group] for group in GROUPS if results[group]}


def _summary_lines(groups: Mapping[str, Sequence[Row]]) -> str:
    every = [row for rows in groups.values() for row in rows]
    auto = [row for row in every if row["method"] == "auto" and row.get("nll")]
    harmed = sum(bool(row["harm"]) for row in auto)
    behind = statistics.mean(_behind(row, every) for row in auto)
    lines = [
        f"- Automatic choice: {harmed} of {len(auto)} cases harmed; on average {behind:.1%} above "
        "the one of our methods that turned out best, which nobody knows beforehand.\n"
    ]
    for group, rows in groups.items():
        ours = [one for one in _summaries(rows) if one["package"] == OURS]
        best = [one for one in ours if one["method"] not in ("auto", "identity")][:3]
        names = ", ".join(f"`{one['method']}` ({_percent(one['change'])})" for one in best)
        lines.append(f"- {GROUPS[group][0]}: lowest log loss on average with {names}.\n")
    return "".join([*lines, "\n"])


def _behind(auto: Row, every: Iterable[Row]) -> float:
    same = [row for row in every if row["case"] == auto["case"] and row["package"] == OURS]
    best = min(row["nll"] for row in same if row.get("nll") is not None)
    return float((auto["nll"] - best) / best)


# Methods ------------------------------------------------------------------------------------------


def _summaries(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Sum up each method over the cases of a group, the best first."""
    by_method: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in rows:
        by_method[row["package"], row["method"]].append(row)
    before = {row["case"]: row["brier"] for row in by_method[OURS, "identity"]}
    results = [_summary(*name, same, before) for name, same in by_method.items()]
    return sorted(
        results, key=lambda one: (one["run"] < one["cases"], one["infinite"], one["change"])
    )


def _summary(
    package: str, method: str, rows: Sequence[Row], before: Mapping[str, float]
) -> dict[str, Any]:
    run = [row for row in rows if "why_not" not in row]
    finite = [row for row in run if row["nll"] is not None]
    times = [row["fit_s"] for row in run if row["fit_s"] is not None]
    change = _mean(finite, "nll_change")
    brier = [row["brier"] / before[row["case"]] - 1.0 for row in run]
    return {
        "package": package,
        "method": method,
        "cases": len(before),
        "run": len(run),
        "infinite": len(run) - len(finite),
        "change": float("inf") if change is None else change,
        "harmed": sum(bool(row["harm"]) for row in run),
        "brier": statistics.mean(brier) if brier else None,
        "fit_s": statistics.median(times) if times else None,
        "why_not": sorted({row["why_not"] for row in rows if "why_not" in row}),
        **{name: _mean(run, name) for name in ("ece_ew", "ece_em", "true_ce")},
    }


def _mean(rows: Sequence[Row], name: str) -> float | None:
    values = [row[name] for row in rows if row.get(name) is not None]
    return statistics.mean(values) if values else None


def _methods(rows: Sequence[Row]) -> str:
    results = _summaries(rows)
    truth = ["true_ce"] if any(one["true_ce"] is not None for one in results) else []
    head = ("method", "change of log loss", "harmed", "change of Brier score",
            "ECE, width", "ECE, mass", *["true error"] * len(truth), "fit")  # fmt: skip
    lines, notes = [], []
    for one in results:
        name = _named(one)
        harmed = _whole(f"{one['harmed']} of {one['run']}") if one["run"] else ""
        errors = [_points(one[error]) for error in ("ece_ew", "ece_em", *truth)]
        brier = "" if one["brier"] is None else _percent(one["brier"])
        lines.append((name, _change(one), harmed, brier, *errors, _time(one["fit_s"])))
        if one["why_not"]:
            absent = f"{one['cases'] - one['run']} of {one['cases']} cases"
            reasons = "; ".join(one["why_not"])
            notes.append(f"- {name}, {absent}: {reasons}.\n")
    left = f"\nNot run, or without an answer that can be judged:\n\n{''.join(notes)}" * bool(notes)
    return table(head, lines) + left


def _change(one: Mapping[str, Any]) -> str:
    if not one["run"]:
        return "not run"
    if one["infinite"]:
        return _whole(f"∞ in {one['infinite']} of {one['run']}")
    some = f" (of {one['run']})" if one["run"] < one["cases"] else ""
    return _whole(_percent(one["change"]) + some)


# Cases --------------------------------------------------------------------------------------------


def _cases(rows: Sequence[Row], facts: Mapping[str, Row]) -> str:
    by_case: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        by_case[row["case"]].append(row)
    lines = [_case(facts[case], same) for case, same in by_case.items()]
    head = ("case", "classes", "log loss before", "automatic choice", "best of ours",
            "best of the others")  # fmt: skip
    return table(head, lines)


def _case(fact: Row, rows: Sequence[Row]) -> tuple[object, ...]:
    known = {row["method"]: row for row in rows if row["package"] == OURS}
    auto = known.pop("auto")
    chosen = f"`{auto['chosen']}` {_percent(auto['nll_change'])}" if "chosen" in auto else "not run"
    ours = _best(known.values())
    theirs = _best(row for row in rows if row["package"] != OURS)
    best = f"{_named(ours)} {_percent(ours['nll_change'])}" if ours else ""
    other = ""
    if theirs is not None:
        other = f"{_named(theirs)} {_percent(theirs['nll_change'])}"
        if ours is not None and ours["nll"] > AHEAD * theirs["nll"]:
            other = f"**{other}**"
    before = f"{known['identity']['nll']:.4f}"
    chosen += " **(harm)**" * bool(auto.get("harm"))
    return _breakable(fact["case"]), fact["classes"], before, chosen, best, other


def _best(rows: Iterable[Row]) -> Row | None:
    run = [row for row in rows if row.get("nll") is not None]
    return min(run, key=lambda row: row["nll"]) if run else None


def _harmed(rows: Iterable[Row]) -> str:
    cases: dict[str, list[str]] = defaultdict(list)
    for row in rows:
        if row["package"] == OURS and row.get("harm"):
            cases[row["method"]].append(f"{row['case']} {_percent(row['nll_change'])}")
    if not cases:
        return ""
    order = sorted(cases.items(), key=lambda results: len(results[1]))
    lines = [(f"`{name}`", len(where), ", ".join(where)) for name, where in order]
    return (
        "## Where our methods did harm\n\nMethods that are not listed harmed no case.\n\n"
        f"{table(('method', 'cases', 'which, and by how much log loss rose'), lines)}\n"
    )


# Goals --------------------------------------------------------------------------------------------


def _goals(results: Mapping[str, Any]) -> str:
    rows = [
        (goal["goal"], f"{goal['measured']:.2g}", f"{goal['sense']} {goal['limit']:g}",
         _verdict(goal))
        for goal in results["goals"]
    ]  # fmt: skip
    missed = sum(not goal["met"] for goal in results["goals"])
    return (
        "## Goals: the same method elsewhere\n\nWhere another library has the same method, two "
        "things are asked. Does ours, set up as the other, reach as low a value of what both "
        "minimise on the rows they learn from? Measured is the largest relative excess. And is the "
        "log loss (NLL) of ours, as it comes, clearly above the other's on new rows, by more than "
        f"0.1 % and two standard errors? {len(rows)} goals, {missed} missed.\n\n"
        f"{table(('goal', 'measured', 'limit', ''), rows)}\n"
    )


def _verdict(goal: Mapping[str, Any]) -> str:
    return "met" if goal["met"] else "**MISSED**"


def _lost(results: Mapping[str, Any]) -> str:
    pairs = [pair for goal in results["goals"] for pair in goal["details"].get("losing", [])]
    if not pairs:
        return "No comparison was lost.\n\n"
    rows = [
        (f"`{pair['method']}`", pair["peer"], pair["case"], _percent(pair["held_out_relative"]),
         f"{pair['held_out_z']:.1f}" if pair["held_out_z"] is not None else "")
        for pair in pairs
    ]  # fmt: skip
    head = ("ours", "theirs", "case", "our log loss is higher by", "in standard errors")
    return f"### Lost comparisons\n\n{table(head, rows)}\n"


def _choice(choice: Mapping[str, Any] | None) -> str:
    """Show harm and regret of the automatic choice by number of rows, where they were measured."""
    if choice is None:
        return ""
    results: list[Row] = []
    for goal in choice["goals"]:
        inside = goal["details"].get("table", [])
        results += [inside] if isinstance(inside, Mapping) else inside
    rows = [
        (f"{one['n']:,}", one.get("cases", ""), f"{one['harm_share']:.1%}",
         _percent(one["regret"], 2), f"`{one['best_single']}`", _often(one.get("chosen", {})))
        for one in results
    ]  # fmt: skip
    worst = [
        (f"{one['n']:,}", bad["case"], _percent(bad["nll_change"]))
        for one in results
        for bad in one.get("worst_cases", [])[:3]
    ]
    least = f"The cases with the least gain:\n\n{table(('rows', 'case', 'change'), worst)}\n"
    goals = [(g["goal"], f"{g['measured']:.3g}", _verdict(g)) for g in choice["goals"]]
    head = ("rows", "cases", "draws harmed", "regret", "best single method", "chosen most often")
    return (
        "## The automatic choice by number of rows\n\n*Regret* is how far its log loss lies above "
        "that of the single method that is best over all these cases; below 0 it did better than "
        f"any one method would have.\n\n{table(head, rows)}\n{least * bool(worst)}"
        f"{table(('goal', 'measured', ''), goals)}\n"
    )


def _often(counts: Mapping[str, int]) -> str:
    total = sum(counts.values())
    return ", ".join(f"`{name}` {count / total:.0%}" for name, count in list(counts.items())[:3])


# Words --------------------------------------------------------------------------------------------


def _named(one: Row) -> str:
    """Write our methods as code, and others with the name of their library."""
    package, method = one["package"], one["method"]
    if package == OURS:
        return f"`{method}`"
    return package if method.lower() == package else f"{package} {method}"


def _whole(words: str) -> str:
    """Keep words on one line."""
    return words.replace(" ", "\N{NO-BREAK SPACE}")


def _breakable(name: str) -> str:
    """Let a long name go on in the next line after an underscore."""
    return name.replace("_", "_<wbr>")


def _measured(results: Mapping[str, Any], details: Mapping[str, Any]) -> str:
    machine = results.get("machine", {})
    packages = ", ".join(f"{name} {version}" for name, version in details["versions"].items())
    return f"Measured {machine.get('date')} on {machine.get('cpu')}, with {packages}.\n"


def _percent(share: float | None, digits: int = 1) -> str:
    """Return a change with its sign; a change of nothing has none."""
    if share is None or share == float("inf"):
        return "∞"
    rounded = round(share, digits + 2)
    return f"{rounded:+.{digits}%}".replace("-", "−") if rounded else f"{0:.{digits}%}"


def _points(share: float | None) -> str:
    return "" if share is None else f"{100 * share:.2f}"


def _time(seconds: float | None) -> str:
    if seconds is None:
        return ""
    if seconds >= 1:
        return _whole(f"{seconds:.1f} s")
    if seconds < 1e-4:
        return _whole("< 0.1 ms")
    return _whole(f"{1000 * seconds:.{0 if seconds >= 0.01 else 1}f} ms")
