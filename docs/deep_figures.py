"""The tables within deep-models.md that are measured on a GPU, made from the results."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from docs.tables import table

SPEED = "<!-- speed: made by docs/generate.py -->", "<!-- end of speed -->"
RUNS = "<!-- runs: made by docs/generate.py -->", "<!-- end of runs -->"
PLAIN = "plain eager loop"

_RATE = re.compile(r"batch (\d+), (.+)$")
_WORDS = {"ce": "cross-entropy", "adafocal": "AdaFocal"}
_OTHERS = "other schedules, "

Result = Mapping[str, Any]


def with_figures(
    text: str, speed: Result | None, images: Result | None, texts: Result | None
) -> str:
    """Replace the text between the marks; without a result it stays unchanged."""
    parts = [images_part(images)] if images else []
    parts += [texts_part(texts)] if texts else []
    where = dict.fromkeys(f"{_machine(one)}\n" for one in (images, texts) if one)
    text = _put(text, SPEED, speed_part(speed) if speed else None)
    return _put(text, RUNS, "\n".join([*parts, *where]) if parts else None)


def speed_part(result: Result) -> str:
    """Return images per second by batch size: of a plain loop of torch, eager and compiled."""
    rates: dict[str, dict[str, float]] = {}
    others = []
    for goal in result["goals"]:
        named = _RATE.search(goal["goal"])
        if goal["unit"] != "images/s" or named is None:
            others.append(f"- {goal['goal']} {goal['measured']:.2g} {goal['unit']}.\n")
            continue
        batch = rates.setdefault(named[1], {})
        batch |= {PLAIN: goal["details"][PLAIN]} if goal["details"].get(PLAIN) else {}
        batch[named[2]] = goal["measured"]
    ways = list(dict.fromkeys(way for each in rates.values() for way in each))
    rows = [
        (batch, *(f"{each[way]:,.0f}" if way in each else "" for way in ways))
        for batch, each in rates.items()
    ]
    listed = f"\n{''.join(others)}" if others else ""
    return f"Images per second:\n\n{table(('batch', *ways), rows)}{listed}\n{_machine(result)}\n"


def images_part(result: Result) -> str:
    """Return the figures of CIFAR-10 for every loss and every schedule that was tried."""
    rows = [
        (_WORDS.get(loss, loss), _schedule(run.get("settings") or {}), f"{run['error']:.2f}",
         f"{run['ece_em']:.2f}", f"{run['ece_em_scaled']:.2f}", f"{run['seconds']:,.0f}")
        for goal in result["goals"]
        for loss, run in _runs(goal["details"])
    ]  # fmt: skip
    head = ("loss", "schedule", "error, %", "ECE, %", "scaled ECE, %", "seconds")
    sentences = " ".join(map(_goal_sentence, result["goals"]))
    if len({row[:1] for row in rows}) < len(rows):
        sentences += " Every schedule that was tried is shown: the best of several looks too good."
    ece = "ECE is that of 15 bins of equal mass, *scaled* after temperature scaling."
    return f"{table(head, rows)}\n{sentences} {ece}\n"


def texts_part(result: Result) -> str:
    """Return how long an epoch of texts takes and, where it is a goal, the error."""
    rows = []
    for goal in result["goals"]:
        run, has_error = goal["details"], goal["unit"] == "%"
        error = f"{run['error']:.1f}" if has_error else "–"
        rows.append((goal["goal"].rpartition(":")[0], f"{run['rows'][0]:,}", run["epochs"],
                     f"{run['seconds_of_an_epoch']:.1f}", error))  # fmt: skip
    head = ("texts", "train rows", "epochs", "seconds each", "error, %")
    return table(head, rows)


def _runs(details: Mapping[str, Any], loss: str = "ce") -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield a run with its loss, then the runs that are stored beside it."""
    yield loss, details
    for name, value in details.items():
        if isinstance(value, Mapping) and "error" in value:
            yield name, value
        elif name.startswith(_OTHERS):
            yield from ((name.removeprefix(_OTHERS), run) for run in value)


def _schedule(settings: Mapping[str, Any]) -> str:
    words = {"schedule": "{}", "learning_rate": "rate {}", "warmup": "warm-up {}",
             "weight_decay": "decay {}"}  # fmt: skip
    parts = [how.format(settings[name]) for name, how in words.items() if name in settings]
    if (settings.get("model_options") or {}).get("zero_init"):
        parts.append("blocks that begin at zero")
    return ", ".join(parts)


def _goal_sentence(goal: Mapping[str, Any]) -> str:
    met = "met" if goal["met"] else "**missed**"
    limit = f"{goal['sense']} {goal['limit']:g} {goal['unit']}"
    return f"The goal was {limit}, set beforehand: {met}, with {goal['measured']:g}."


def _machine(result: Result) -> str:
    machine = result["machine"]
    torch = machine.get("packages", {}).get("torch")
    return f"Measured {machine['date']} on one {machine.get('gpu')}, torch {torch}."


def _put(text: str, marks: tuple[str, str], content: str | None) -> str:
    begin, end = marks
    before, opened, rest = text.partition(begin)
    _, closed, after = rest.partition(end)
    if not (opened and closed):
        raise SystemExit(f"docs/deep-models.md needs the marks {begin} and {end}.")
    return text if content is None else f"{before}{begin}\n\n{content}\n{end}{after}"
