"""The goals, and what was measured for them."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks.models.figures import SetFigures, holm, paired
from benchmarks.outcome import Outcome, within

__all__ = ["INTRO", "figures_table", "outcomes"]

INTRO = """## Models, set by set

`calibrant train` with its defaults on at most 10,000 rows, means of three seeds, log loss of the
test rows; peers have a temperature that was fitted on the same calibrate rows as ours. The ratio is
that with a temperature, plus or minus two paired standard errors. Recall is that of the test rows
under the proved promise, 0 where nothing can be promised (for accuracy: the share of rows that are
rightly accepted). FLAML had as many seconds as the command, and learned from the train, steer and
choice rows."""

CHOSEN_PEER, BEST_PEER = 1.0, 1.02
SECONDS = {"table": 60.0, "text": 180.0}
CLEAR = 2.0
MOST_WORSE = 3
_WORDS = {"table": "tables", "text": "texts"}


def outcomes(figures: Sequence[SetFigures]) -> list[Outcome]:
    """Hold the figures of every data set to the goals."""
    by_kind = {kind: [one for one in figures if one.data_set.kind == kind] for kind in _WORDS}
    out = [
        outcome
        for kind, ours in by_kind.items()
        if ours
        for outcome in (*_ratios(kind, ours), _seconds(kind, ours))
    ]
    out += [*_clearly_behind(figures), _recall(figures), *_harm(figures)]
    out[0].details["set_by_set"] = [one.to_dict() for one in figures]  # type: ignore[index]
    return out


def _ratios(kind: str, figures: Sequence[SetFigures]) -> list[Outcome]:
    """Return the geometric means of log-loss ratios."""
    what = f"{len(figures)} {_WORDS[kind]}: log loss"
    ways = {
        "with a temperature, against the peer chosen on choice rows (wished: 0.98)": (
            "temperature", None, CHOSEN_PEER,
        ),
        "as packed, against the peer chosen on choice rows": ("packed", None, CHOSEN_PEER),
        "with a temperature, against the best peer in hindsight": (
            "temperature", "hindsight", BEST_PEER,
        ),
    }  # fmt: skip
    out = []
    for words, (way, which, limit) in ways.items():
        ratios = {
            one.name: one.ours(way) / one.peer(one.hindsight_peer if which else None)
            for one in figures
        }
        mean = float(np.exp(np.mean(np.log(list(ratios.values())))))
        details = {"ratios": {name: round(ratio, 4) for name, ratio in ratios.items()}}
        out.append(within(f"{what} {words}", mean, limit, "times, geometric mean", details))
    return out


def _clearly_behind(figures: Sequence[SetFigures]) -> list[Outcome]:
    """Return how many sets are worse by two standard errors and by the margin."""
    out = []
    for way, words in (("temperature", "with a temperature"), ("packed", "as packed")):
        scores = {one.name: one.against_peer(way).score for one in figures}
        clearly = holm(scores, CLEAR)
        worse = [one.name for one in figures if one.name in clearly and one.is_behind(way)]
        goal = (
            f"no data set {words} worse than the chosen peer by two standard errors (Holm) and "
            "by 1 % (0.002 nats under 0.1)"
        )
        shown = {name: round(score, 2) for name, score in scores.items()}
        out.append(within(goal, len(worse), 1, "sets", {"worse": worse, "scores": shown}))
    return out


def _recall(figures: Sequence[SetFigures]) -> Outcome:
    scores = {one.name: one.recall_behind_peer().score for one in figures}
    below = sorted(holm(scores, CLEAR))
    return within(
        "proved recall at the asked precision nowhere clearly below `select` on the chosen peer",
        len(below), 1, "sets",
        {"below": below, "scores": {name: round(score, 2) for name, score in scores.items()}},
    )  # fmt: skip


def _harm(figures: Sequence[SetFigures]) -> list[Outcome]:
    """Compare the chosen candidate with cross-entropy of the same model, run by run."""
    runs = [(one.name, run) for one in figures for run in one.runs]
    worse, ratios = [], []
    for name, run in runs:
        chosen, plain = run.ours["temperature"].losses, run.ours["plain"].losses
        if paired([chosen], [plain]).score > CLEAR:
            worse.append(name)
        ratios.append(float(chosen.mean() / plain.mean()))
    mean = float(np.exp(np.mean(np.log(ratios))))
    n = len(runs)
    most = max(1, round(MOST_WORSE * n / 45))
    changed = sum(ratio != 1.0 for ratio in ratios)
    return [
        within(
            f"the choice is clearly worse than plain cross-entropy in at most {most} of {n} runs",
            len(worse), most + 1, "runs", {"worse": worse, "changed": changed},
        ),
        Outcome(
            "the choice does no harm: log loss of plain cross-entropy over the chosen one's",
            round(1 / mean, 6), 1.0, "times, geometric mean", "at least",
        ),
    ]  # fmt: skip


def _seconds(kind: str, figures: Sequence[SetFigures]) -> Outcome:
    medians = {
        one.name: statistics.median(run.record["seconds"] for run in one.runs) for one in figures
    }
    slowest = max(medians, key=lambda name: medians[name])
    details = {"slowest": slowest, "medians": medians}
    return within(
        f"`calibrant train` on at most 10,000 rows, {_WORDS[kind]}, the slowest set",
        medians[slowest], SECONDS[kind], "s", details,
    )  # fmt: skip


def figures_table(rows: Sequence[dict[str, Any]]) -> str:
    """Return a markdown table, one line for each data set."""
    lines = [
        "| Data set | Chosen | Log loss as packed | with temperature | Peer chosen on choice rows "
        "| its log loss | Ratio | Best peer in hindsight | FLAML | Accuracy, ours and peer "
        "| Recall, ours and peer | Seconds |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        ours = "ratio" in row
        best = row["hindsight_peer"]
        cells = [
            row["set"],
            _listed(row["chosen"]) if ours else "",
            _loss(row.get("packed")),
            _loss(row.get("temperature")),
            _listed(row["chosen_peer"]),
            _loss(row["peer"]),
            f"{row['ratio']:.3f} ± {2 * row['standard_error'] / row['peer']:.3f}" if ours else "",
            f"{best} {_loss(row['peers'][best])}",
            _loss(row["beside"].get("FLAML")),
            _two(row.get("accuracy"), row["peer_accuracy"]),
            _two(row.get("recall"), row["peer_recall"]) + f" ({row['hold']})",
            f"{statistics.median(row['seconds']):.0f}" if ours else "",
        ]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _listed(names: Sequence[str]) -> str:
    """Return names once, with how often each occurs."""
    counts = {name: names.count(name) for name in names}
    if len(counts) == 1:
        return next(iter(counts))
    return ", ".join(f"{name} ({n})" for name, n in counts.items())


def _loss(value: float | None) -> str:
    return "" if value is None else f"{value:.4f}"


def _two(ours: float | None, theirs: float) -> str:
    return f"{theirs:.3f}" if ours is None else f"{ours:.3f}, {theirs:.3f}"
