"""Sentences about focal loss before and after calibration, from the records of the runs.

The return-reason paper claims that focal loss calibrates better than cross-entropy, the more so the
larger its gamma, and that its flatter scores make it easier to tune a threshold. These sentences
hold each claim against what was measured.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from calibrant.study.report.wording import join_words
from reproductions.experiment import Experiment
from reproductions.seed_figures import MethodSummary, paper_error
from reproductions.summary import Summary
from reproductions.summary_words import called, figure_name

__all__ = ["focal_headline", "focal_words"]

Runs = Mapping[str, Sequence[Mapping[str, Any]]]


class _FocalRuns:
    """Cross-entropy, the focal losses by their gammas, and what the sentences need of them."""

    def __init__(self, experiment: Experiment, summary: Summary, runs: Runs) -> None:
        there = {each.name: each for each in summary.methods}
        focal = [
            (float(str(each.options["loss"]).partition("gamma=")[2]), there[each.name])
            for each in experiment.methods
            if each.name in there and str(each.options.get("loss", "")).startswith("focal:gamma=")
        ]
        self.plain = there.get(summary.baseline or "")
        self.focal = [each for _, each in sorted(focal, key=lambda one: one[0])]
        self.runs, self.summary, self.there = runs, summary, there
        self.metric = paper_error(summary.methods)
        self.adafocal = there.get("adafocal")
        claimed = "promise" in experiment.extras
        self.tells = claimed and self.plain is not None and len(self.focal) > 1

    def ece(self, method: MethodSummary, way: str) -> float:
        value = method.mean(way, self.metric)
        return float("nan") if value is None else value

    def true(self, method: MethodSummary, way: str) -> float | None:
        errors = [one["extras"].get("true_ce", {}) for one in self.runs[method.name]]
        known = [one[way] for one in errors if way in one]
        return sum(known) / len(known) if known else None


def focal_words(experiment: Experiment, summary: Summary, runs: Runs) -> tuple[str, ...]:
    """Return what the runs say of the paper's claims, as sentences.

    These are claims of the paper whose thresholds are checked: other experiments, and those
    without cross-entropy and at least two focal losses, have nothing to tell.

    Parameters
    ----------
    experiment : with the losses of its methods
    summary : of its runs
    runs : records by method
    """
    focal_runs = _FocalRuns(experiment, summary, runs)
    if not focal_runs.tells:
        return ()
    return tuple(_sentences(focal_runs))


def focal_headline(experiment: Experiment, summary: Summary, runs: Runs) -> str:
    """Return the shortest answer: who is best as trained, and what is left after calibration."""
    focal_runs = _FocalRuns(experiment, summary, runs)
    if not focal_runs.tells:
        return ""
    assert focal_runs.plain is not None
    best = min(focal_runs.focal, key=lambda each: focal_runs.ece(each, "raw"))
    ends = [
        [f"{100 * focal_runs.ece(each, way):.1f}" for each in (focal_runs.plain, best)]
        for way in ("raw", "temperature")
    ]
    plain = focal_runs.plain.label
    better = [each.label for each in focal_runs.focal if _verdict(each) == "better"]
    tail = "no focal loss has"
    if better:
        tail = f"{join_words(better)} {'has' if len(better) == 1 else 'have'}"
    return (
        f"As trained {figure_name(focal_runs.metric)} is {ends[0][0]} % with {plain} and "
        f"{ends[0][1]} % with {best.label}, the best focal loss; after temperature scaling "
        f"{ends[1][0]} % and {ends[1][1]} %, and {tail} a log loss clearly lower than {plain}'s."
    )


def _sentences(focal_runs: _FocalRuns) -> Iterator[str]:
    yield _as_trained(focal_runs)
    yield _with_temperature(focal_runs)
    yield _log_losses(focal_runs)
    yield _errors(focal_runs)
    if focal_runs.adafocal is not None:
        yield _adafocal(focal_runs, focal_runs.adafocal)
    if "ce_best_epoch" in focal_runs.there:
        yield _best_epoch(focal_runs, focal_runs.there["ce_best_epoch"])
    yield from _thresholds(focal_runs)


def _as_trained(focal_runs: _FocalRuns) -> str:
    plain, focal = _both(focal_runs)
    best = min(focal, key=lambda each: focal_runs.ece(each, "raw"))
    words = (
        f"As trained, {plain.label} has {figure_name(focal_runs.metric)} "
        f"{_percent(focal_runs.ece(plain, 'raw'))}{_paper(plain, focal_runs.metric)} and the focal "
        f"losses {_range(focal, lambda each: focal_runs.ece(each, 'raw'))}"
    )
    if focal_runs.ece(best, "raw") >= focal_runs.ece(plain, "raw"):
        words += f": none is better calibrated, and {_largest(focal_runs)}"
    else:
        words += f", least with {best.label}{_paper(best, focal_runs.metric)}"
        if focal_runs.ece(focal[-1], "raw") > focal_runs.ece(best, "raw"):
            words += f"; a larger gamma is worse again: {_largest(focal_runs)}"
    true = focal_runs.true(plain, "raw")
    if true is not None:
        all_true = _range(focal, lambda each: focal_runs.true(each, "raw") or 0.0)
        words += f". The true error is {_percent(true)} for {plain.label}, {all_true} for the focal"
        words += " losses"
    return f"{words}."


def _largest(focal_runs: _FocalRuns) -> str:
    """Say which error the largest gamma has, and which way it is wrong."""
    most = focal_runs.focal[-1]
    words = (
        f"{most.label} has {_percent(focal_runs.ece(most, 'raw'))}{_paper(most, focal_runs.metric)}"
    )
    if most.temperature is None:
        return words
    side = "too sure" if most.temperature.mean > 1 else "not sure enough"
    return f"{words}, being {side} (temperature {most.temperature.mean:.2f})"


def _with_temperature(focal_runs: _FocalRuns) -> str:
    plain, focal = _both(focal_runs)
    own = focal_runs.ece(plain, "temperature")
    least = min(focal_runs.ece(each, "temperature") for each in focal)
    figure = plain.figure("temperature", focal_runs.metric)
    floor, q95 = (figure.floor, figure.floor_q95) if figure is not None else (None, None)
    words = (
        f"After temperature scaling {plain.label} has {_percent(own)} and the focal losses "
        f"{_range(focal, lambda each: focal_runs.ece(each, 'temperature'))}"
    )
    noise = 0.0 if floor is None or q95 is None else q95 - floor
    if floor is not None and q95 is not None:
        words += f" (chance alone: {_percent(floor)}, up to {_percent(q95)})"
    if own - least > noise:
        words += ": some of the lead is left"
    elif least - own > noise:
        words += f": {plain.label} is ahead"
    else:
        words += f": the best of them and {plain.label} are not further apart than noise explains"
    true = focal_runs.true(plain, "temperature")
    if true is not None:
        others = _range(focal, lambda each: focal_runs.true(each, "temperature") or 0.0)
        words += f". The true error is {_percent(true)} against {others}"
    return f"{words}."


def _log_losses(focal_runs: _FocalRuns) -> str:
    plain, focal = _both(focal_runs)
    differences = []
    for verdict in ("better", "level", "worse"):
        some = [each for each in focal if _verdict(each) == verdict]
        if not some:
            continue
        names = join_words([called(each.label) for each in some])
        gaps = [abs(each.nll_scaled.difference) for each in some if each.nll_scaled is not None]
        ends = dict.fromkeys(f"{end:.3f}" for end in (min(gaps), max(gaps)))
        by = "" if verdict == "level" else f" by {' to '.join(ends)}"
        differences.append(f"{names} {'is' if len(some) == 1 else 'are'} {verdict}{by}")
    if not differences:
        return f"Log losses after temperature scaling were not compared with {plain.label}'s."
    better = any(_verdict(each) == "better" for each in focal)
    end = "some of the gain stays" if better else "focal loss does not help"
    return (
        f"Log loss after temperature scaling, beside {plain.label}'s: {', '.join(differences)} "
        f"(two standard errors over test rows decide). After calibration {end} here."
    )


def _errors(focal_runs: _FocalRuns) -> str:
    plain, focal = _both(focal_runs)
    theirs = [each.published["error"] for each in focal if "error" in each.published]
    paper = plain.published.get("error")
    beside = ""
    if paper is not None and theirs:
        beside = f" (the paper: {paper:.1f}, and {min(theirs):.1f} to {max(theirs):.1f})"
    own = _percent(plain.mean("raw", "error") or 0.0)
    others = _range(focal, lambda each: each.mean("raw", "error") or 0.0)
    return f"Error: {plain.label} {own}, focal losses {others}{beside}."


def _adafocal(focal_runs: _FocalRuns, method: MethodSummary) -> str:
    raw, scaled = (_percent(focal_runs.ece(method, way)) for way in ("raw", "temperature"))
    words = f"{called(method.label)} has {raw} as trained and {scaled} with temperature"
    if method.nll_scaled is not None:
        verdict = _verdict(method)
        than = "with" if verdict == "level" else "than"
        words += f"; its log loss is then {verdict} {than} that of cross-entropy"
    return f"{words}."


def _best_epoch(focal_runs: _FocalRuns, method: MethodSummary) -> str:
    plain, _ = _both(focal_runs)
    pairs = [
        [each.mean("temperature", name) or 0.0 for each in (method, plain)]
        for name in ("error", "nll")
    ]
    last = [each for each in focal_runs.there.values() if "epoch" not in each.label]
    ahead = _verdict(method) == "better" and all(
        pairs[1][0] < (each.mean("temperature", "nll") or 0.0) for each in last
    )
    epoch_note = (
        "" if method.best_epoch is None else f" ({method.best_epoch.mean + 1:.0f} on average)"
    )
    return (
        f"{called(method.label)} keeps the epoch{epoch_note} that has the best refinement: error "
        f"{_percent(pairs[0][0])} instead of {_percent(pairs[0][1])}, log loss with temperature "
        f"{pairs[1][0]:.3f} instead of {pairs[1][1]:.3f}. Stopping in time "
        f"{'does more than any of these losses' if ahead else 'is not what counts most here'}."
    )


def _thresholds(focal_runs: _FocalRuns) -> Iterator[str]:
    promises = {
        name: [each for run in runs for each in _promises(run)]
        for name, runs in focal_runs.runs.items()
    }
    every = [each for own in promises.values() for each in own]
    if not every:
        return
    what = str(every[0]["hold"]).rpartition(":")[2].strip().replace(">=", " of at least ")
    parts = []
    for way, words in (("naive", "put by hand"), ("certified", "certified")):
        fresh = [each[way]["fresh"] for each in every if each[way]["reached"]]
        held = sum(bool(each["held"]) for each in fresh)
        parts.append(f"{words}, {len(fresh)} of {len(every)} were found and {held} held")
    yield (
        f"Thresholds for {_of_hundred(what)}, chosen on one calibration set and tried on fresh "
        f"rows: {'; '.join(parts)}."
    )
    sets = {
        name: [each["golden_sets"] for each in own if each.get("golden_sets")]
        for name, own in promises.items()
    }
    if not all(sets.values()):
        return
    broken = {way: [_share(own, way, "broken") for own in sets.values()] for way in WAYS}
    shares = [_share(own, "certified", "given") for own in sets.values()]
    yield (
        "Over many calibration sets of the same size, a threshold put by hand is broken in "
        f"{_ends(broken['naive'])} of them, a certified one in {_ends(broken['certified'])} (5 % "
        f"are allowed), but only {_ends(shares)} of the sets give one."
    )
    plain, focal = _both(focal_runs)
    recalls = {name: _recall(own) for name, own in sets.items()}
    spiky = recalls[plain.name] >= min(recalls[each.name] for each in focal)
    yield (
        f"At the thresholds put by hand on these sets {plain.label} finds "
        f"{_percent(recalls[plain.name])} of what it looks for on average, the focal losses "
        f"{_range(focal, lambda each: recalls[each.name])}"
        f"{': spiky scores do not matter, because only the order of rows counts' if spiky else ''}."
    )


WAYS = ("naive", "certified")


def _promises(run: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    promises: Sequence[Mapping[str, Any]] = (run["extras"].get("promise") or {}).get("promises", ())
    return promises


def _of_hundred(what: str) -> str:
    name, _, value = what.partition(" of at least ")
    return f"{100 * float(value):g} % {name}" if value else what


def _share(sets: Sequence[Mapping[str, Any]], way: str, what: str) -> float:
    return float(sum(one[way][what] for one in sets) / sum(one["sets"] for one in sets))


def _recall(sets: Sequence[Mapping[str, Any]]) -> float:
    """Return the mean recall of thresholds put by hand, over the sets that give one."""
    n_thresholds = sum(one["naive"]["given"] for one in sets)
    total_recall = sum(one["naive"]["given"] * (one["naive"]["mean_recall"] or 0.0) for one in sets)
    return float(total_recall / n_thresholds) if n_thresholds else float("nan")


def _both(focal_runs: _FocalRuns) -> tuple[MethodSummary, list[MethodSummary]]:
    assert focal_runs.plain is not None  # without it there are no sentences
    return focal_runs.plain, focal_runs.focal


def _verdict(method: MethodSummary) -> str:
    loss = method.nll_scaled
    return "unknown" if loss is None else loss.word


def _paper(method: MethodSummary, metric: str) -> str:
    """Return the paper's figure; papers that know one ECE only mean bins of equal width."""
    known = method.published
    printed = known.get(metric, known.get("ece") if metric == "ece_ew" else None)
    return "" if printed is None else f" (the paper: {printed:.1f})"


def _range(methods: Sequence[MethodSummary], of: Callable[[MethodSummary], float]) -> str:
    return _ends([of(each) for each in methods])


def _ends(values: Sequence[float]) -> str:
    low, high = (f"{100 * end:.1f}" for end in (min(values), max(values)))
    return f"{low} %" if low == high else f"{low} to {high} %"


def _percent(value: float) -> str:
    return f"{100 * value:.1f} %"
