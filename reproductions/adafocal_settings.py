"""Effect of each AdaFocal setting, one changed at a time, from the records of the runs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from calibrant.study.report.wording import join_words
from reproductions.experiment import Experiment
from reproductions.paired_loss import SURE
from reproductions.seed_figures import MethodSummary, Spread, spread_of
from reproductions.summary import Summary

__all__ = ["SETTINGS", "Value", "later_error", "setting_headline", "setting_words", "settings_of"]

SETTINGS = {
    "n_bins": "number of bins",
    "strength": "lambda, the strength of each step",
    "gamma_max": "largest gamma",
    "gamma_min": "smallest gamma",
    "switch": "S_th, inverse focal loss below it",
    "mode": "rules",
}
"""Options of the loss, and what people call them."""

Runs = Mapping[str, Sequence[Mapping[str, Any]]]


@dataclass(frozen=True)
class Value:
    """One value of a setting.

    Parameters
    ----------
    text : the value
    method : that has it
    usual : whether the others are changes of this one
    changed : whether this one is itself a change of plain AdaFocal
    """

    text: str
    method: MethodSummary
    usual: bool = False
    changed: bool = False


def settings_of(experiment: Experiment, methods: Sequence[MethodSummary]) -> dict[str, list[Value]]:
    """Return the methods that change one setting of AdaFocal, by setting, in the order of values.

    The one that they are a change of, plain AdaFocal or one of another strength, stands among them
    at its own value. A single loss with an option is not a series and gives nothing.

    Parameters
    ----------
    experiment : with the loss of each method
    methods : those that were run
    """
    known = {each.name: _options(str(each.options.get("loss", ""))) for each in experiment.methods}
    there = {each.name: each for each in methods if known.get(each.name) is not None}
    settings: dict[str, list[Value]] = {}
    for name, each in there.items():
        options = dict(known[name] or {})
        varied = [key for key in options if key in SETTINGS and key != "strength"] or list(options)
        if len(varied) != 1 or varied[0] not in SETTINGS:
            continue
        series = settings.setdefault(varied[0], [])
        series.append(Value(options.pop(varied[0]), each))
        base = next((name for name, other in known.items() if other == options), None)
        if base in there and all(one.method is not there[base] for one in series):
            usual = _usual_value(varied[0])
            series.append(Value(usual, there[base], usual=True, changed=bool(options)))
    if sum(map(len, settings.values())) < 3:
        return {}
    return {name: sorted(each, key=lambda one: _place(one.text)) for name, each in settings.items()}


def later_error(runs: Sequence[Mapping[str, Any]]) -> Spread | None:
    """Return ECE_EM as trained, over seeds: a run's mean over the second half of its epochs.

    Which epoch is kept moves a calibration error more than most settings do; this does not hang on
    it. It is measured on test rows, and nothing is chosen by it.

    Examples
    --------
    >>> runs = [{"test_history": [{"ece_em": e} for e in (0.3, 0.3, 0.02, 0.04)]}]
    >>> round(later_error(runs).mean, 6)
    0.03
    """
    histories = [[each["ece_em"] for each in run.get("test_history") or ()] for run in runs]
    later = [each[len(each) // 2 :] for each in histories if len(each) > 1]
    return spread_of(math.fsum(each) / len(each) for each in later)


def setting_words(experiment: Experiment, summary: Summary, runs: Runs) -> tuple[str, ...]:
    """Return a plain answer for each setting, with its noise, as sentences.

    Two values are distinguished if all seeds of one lie on one side of all seeds of the other, and
    the means more than two standard errors apart.

    Parameters
    ----------
    experiment : with the loss of each method
    summary : of its runs
    runs : records by method
    """
    settings = settings_of(experiment, summary.methods)
    if not settings:
        return ()
    sentences = [_answer(name, values, runs) for name, values in settings.items()]
    return (
        _noise(settings, runs),
        *(each for each in sentences if each),
        *_after(settings, summary),
    )


def setting_headline(experiment: Experiment, summary: Summary, runs: Runs) -> str:
    """Return which settings made a difference, in one sentence."""
    settings = settings_of(experiment, summary.methods)
    if not settings:
        return ""
    effects = [
        f"{_short(name)} ({_by_value(values, runs)})"
        for name, values in settings.items()
        if _changed(values, runs)
    ]
    after = [name for name, values in settings.items() if _apart_after(values)]
    words = (
        f"only {join_words(effects)} {'changes' if len(effects) == 1 else 'change'}"
        if effects
        else ("none changes")
    )
    end = f"{join_words([_short(name) for name in after])} still tell" if after else "none does"
    return (
        f"Of {len(settings)} settings {words} ECE_EM as trained (mean of the later half of the "
        f"epochs) by more than seeds do; after calibration {end}."
    )


def _noise(settings: Mapping[str, Sequence[Value]], runs: Runs) -> str:
    """Describe the spread between seeds, at the selected epoch and over the later ones."""
    usual = next((one for each in settings.values() for one in each if one.usual), None)
    if usual is None:
        usual = next(iter(settings.values()))[0]
    best_epoch_error = usual.method.figure("raw", "ece_em")
    later = later_error(runs[usual.method.name])
    if best_epoch_error is None or later is None:
        return "Metrics vary between seeds; these records do not show by how much."
    n = best_epoch_error.value.n
    lucky = f" (without any difference {n} seeds of {2 * n} do one time in {_luck(n)})"
    return (
        f"Noise: seeds of one setting ({usual.method.label}) have ECE_EM "
        f"{_ends(best_epoch_error.value)} as trained at the epoch that is kept, and "
        f"{_ends(later)} as the mean over the second half of the epochs, which is compared here. A "
        "value is distinguished if all its seeds are on one side of those of the usual value"
        f"{lucky if n > 1 else ''}, and the means are more than two standard errors apart."
    )


def _answer(name: str, values: Sequence[Value], runs: Runs) -> str:
    known = [spread for one in values if (spread := later_error(runs[one.method.name])) is not None]
    if len(known) < 2:
        return ""
    usual = next((one for one in values if one.usual), None)
    beside = []
    if usual is not None:
        beside.append(f"usual: {usual.text}")
        beside += [f"all at {usual.method.label}"] if usual.changed else []
    title = _capital(SETTINGS[name])
    title += f" ({'; '.join(beside)})" if beside else ""
    if len(set(known)) == 1:
        texts = join_words([one.text for one in values])
        return f"{title}: {texts} gave the very same runs, so it never came into play."
    effects = [
        f"{one.text} is {'worse' if worse else 'better'}" for one, worse in _changed(values, runs)
    ]
    words = join_words(effects) if effects else "no value is distinguished from the usual one"
    limits = _reached(values, runs) if name == "gamma_max" else ""
    return f"{title}: {words}. ECE_EM by value: {_by_value(values, runs)}.{limits}"


def _reached(values: Sequence[Value], runs: Runs) -> str:
    """Describe the limits that some gamma reached: only there they had an effect."""
    reached = [
        one.text
        for one in values
        if any(
            max(map(max, run["gammas"])) >= float(one.text)
            for run in runs[one.method.name]
            if run.get("gammas")
        )
    ]
    return f" Some gamma came to its limit at {join_words(reached)}." if reached else ""


def _by_value(values: Sequence[Value], runs: Runs) -> str:
    known = [(one, later_error(runs[one.method.name])) for one in values]
    return ", ".join(f"{one.text}: {100 * s.mean:.1f} %" for one, s in known if s is not None)


def _after(settings: Mapping[str, Sequence[Value]], summary: Summary) -> Iterator[str]:
    """Describe the error after the automatic choice of a calibrator, next to cross-entropy."""
    every = {one.method.name: one.method for each in settings.values() for one in each}
    means = [mean for each in every.values() if (mean := each.mean("auto", "ece_em")) is not None]
    if not means:
        return
    apart = [
        f"{_short(name)} {one.text}"
        for name, values in settings.items()
        for one in _apart_after(values)
    ]
    words = (
        f"distinguished from the usual value: {join_words(apart)}"
        if apart
        else "none is distinguished"
    )
    plain = None if summary.baseline is None else summary[summary.baseline].mean("auto", "ece_em")
    beside = "" if plain is None else f", plain cross-entropy {100 * plain:.1f} %"
    yield (
        f"After the automatic choice of a calibrator all settings have ECE_EM "
        f"{100 * min(means):.1f} to {100 * max(means):.1f} %{beside}; {words}."
    )
    verdicts = [each.nll.word for each in every.values() if each.nll]
    counts = [f"{verdicts.count(one)} {one}" for one in ("better", "level", "worse")]
    if verdicts:
        yield (
            "Their log loss beside that of cross-entropy with temperature scaling, by two standard "
            f"errors over test rows: {', '.join(counts)}."
        )


def _changed(values: Sequence[Value], runs: Runs) -> list[tuple[Value, bool]]:
    """Return the values whose seeds all lie on one side of the usual one's, and whether above."""
    usual = next((one for one in values if one.usual), None)
    base = None if usual is None else later_error(runs[usual.method.name])
    if usual is None or base is None:
        return []
    errors = [(one, later_error(runs[one.method.name])) for one in values if one is not usual]
    return [
        (one, spread.least > base.most)
        for one, spread in errors
        if spread is not None and _apart(spread, base)
    ]


def _apart_after(values: Sequence[Value]) -> list[Value]:
    usual = next((one for one in values if one.usual), None)
    base = None if usual is None else usual.method.figure("auto", "ece_em")
    if base is None:
        return []
    return [
        one
        for one in values
        if (own := one.method.figure("auto", "ece_em")) is not None
        and _apart(own.value, base.value)
    ]


def _apart(a: Spread, b: Spread) -> bool:
    """Return whether no seeds overlap, and the means lie more than two standard errors apart."""
    if a.sd is None or b.sd is None:
        return False
    error = math.hypot(a.sd / math.sqrt(a.n), b.sd / math.sqrt(b.n))
    beside = a.least > b.most or a.most < b.least
    return beside and abs(a.mean - b.mean) > SURE * error


def _luck(n: int) -> int:
    """Return one in how many splits of 2n equal seeds puts n on one side."""
    return math.comb(2 * n, n) // 2


def _options(loss: str) -> dict[str, str] | None:
    """Return the options of AdaFocal that are settings; None for another loss."""
    name, _, options_text = loss.partition(":")
    if name != "adafocal":
        return None
    pairs = (each.split("=") for each in options_text.split(",") if "=" in each)
    return {key: value for key, value in pairs if key != "min_count"}


def _usual_value(name: str) -> str:
    """Return the default value of an AdaFocal option."""
    from calibrant.losses import AdaFocalLoss

    plain: Any = AdaFocalLoss()
    inside = {"gamma_max": "high", "gamma_min": "low"}.get(name, name)
    value = getattr(plain, name, None) or getattr(plain.rule, inside)
    return value if isinstance(value, str) else f"{value:g}"


def _place(value: str) -> tuple[float, str]:
    try:
        return float(value), ""
    except ValueError:
        return math.inf, value


def _short(name: str) -> str:
    return SETTINGS[name].partition(",")[0]


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _ends(spread: Spread) -> str:
    return f"{100 * spread.least:.1f} to {100 * spread.most:.1f} %"
