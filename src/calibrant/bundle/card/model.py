"""What a card says about the model: its use, its figures, how it fails, what it has of the data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from calibrant.bundle.calib_rows import FILE
from calibrant.bundle.card.inputs import given, kept, misread
from calibrant.bundle.card.network import network
from calibrant.bundle.card.wording import safe
from calibrant.formatting import format_count, number, printable
from calibrant.metrics.catalogue import title_of

if TYPE_CHECKING:
    from calibrant.bundle.bundle import Bundle
    from calibrant.ood import OodRule

__all__ = ["data_handling", "failure_modes", "figures", "hand_over", "intended_use", "origin"]

_FIGURES = ("accuracy", "nll", "ece_em")
"""The figures of the test rows that the card gives."""


def intended_use(bundle: Bundle) -> Iterator[str]:
    """Say what goes in and what comes out."""
    if bundle.scorer is None:
        yield "Give it the logits of the classifier that it was made for, and of no other."
    else:
        yield from given(bundle.scorer)
    yield (
        "It gives a probability for each class and, where there is an operating point, a decision."
    )


def figures(bundle: Bundle) -> Iterator[str]:
    """Give a few figures of the test rows, where some were packed."""
    found = _table(bundle.metrics.get("test"))
    shown = [name for name in _FIGURES if _has_value(found, name)]
    if not shown:
        yield "No figures of test rows were packed."
        return
    n = bundle.metrics.get("n")
    rows = format_count(n, "test row") if isinstance(n, int) else "the test rows"
    for name in shown:
        low, high = (found[name].get(end) for end in ("low", "high"))
        span = "" if low is None or high is None else f" ({number(low)} to {number(high)})"
        yield f"{title_of(name)}: {number(found[name]['value'])}{span}, on {rows}."


def failure_modes(bundle: Bundle) -> Iterator[str]:
    """Say what it is known to get wrong, by how it is made."""
    if bundle.ood is None:
        yield (
            "There is no out-of-scope rule: a row that belongs to none of the classes is judged as "
            "if it belonged to one."
        )
    else:
        rule = bundle.ood
        yield (
            f"A row is out of scope where the {rule.score} of its logits is above "
            f"{_threshold_words(rule)}. The rule was fitted on {format_count(rule.n, 'row')} in "
            f"scope, of which it flags at most {100 * (1 - rule.quantile):.3g} %. Strange rows "
            "that score like them pass."
        )
        if rule.equal and bundle.scorer is not None and bundle.scorer.knows_far_numbers:
            yield (
                "So is a row with a number further outside the train rows' values of its column "
                "than these lie apart."
            )
    yield "When the mix of classes changes, probabilities are off until it is calibrated again."
    if bundle.scorer is not None:
        yield misread(bundle.scorer)


def _threshold_words(rule: OodRule) -> str:
    if rule.by_class is None:
        return f"{rule.threshold:.4g}"
    low, high = min(rule.by_class), max(rule.by_class)
    return f"a threshold of its predicted class ({low:.4g} to {high:.4g})"


def hand_over(bundle: Bundle) -> Iterator[str]:
    """Say which rows go to a person, and what comes along."""
    if not bundle.points:
        yield "It decides nothing: what is done with its probabilities is up to those who use it."
        return
    yield "A row goes to a person where its decision is `abstain`: no point is sure of it."
    if bundle.ood is not None:
        yield "So does every row with `out_of_scope` true, however sure the scores look."
    yield "The most probable class and all probabilities come along, as a hint and not a decision."


def data_handling(bundle: Bundle) -> Iterator[str]:
    """Say what is done to the data, and what of them is in the folder."""
    calib = FILE in _table(bundle.manifest.get("files"))
    if bundle.scorer is not None:
        yield from kept(bundle.scorer)
    elif calib:
        yield "It reads no rows: scores come in."
    else:
        yield "No rows are in the bundle, and it reads none: scores come in."
    if calib:
        yield (
            f"`{FILE}` holds of every calibrate row the logits, the class and its weight if it has "
            "one, for thresholds to be explored with. Nothing else of those rows is in it."
        )
    for name, part in _splits(bundle).items():
        source = f" from {safe(printable(str(part['source'])))}" if part.get("source") else ""
        digest = f" ({str(part['sha256'])[:16]}…)" if part.get("sha256") else ""
        yield f"{safe(printable(name))}: {format_count(part['rows'], 'row')}{source}{digest}."


def origin(bundle: Bundle) -> Iterator[str]:
    """Say when, by which packages and from which files it was packed."""
    made = bundle.provenance
    if bundle.scorer is not None:
        yield from network(bundle.scorer)
    versions = ", ".join(f"{name} {version}" for name, version in made["packages"].items())
    yield f"Packed {made['created']} with {versions}, Python {made['python']}."
    for source in made["sources"]:
        role = source["role"].replace("_", " ")
        yield f"The {role} is from `{safe(printable(source['name']))}`, {source['sha256'][:16]}…"
    yield f"`manifest.json` (format {bundle.manifest['format']}) holds every number and hash."


def _splits(bundle: Bundle) -> Mapping[str, Mapping[str, Any]]:
    """Return the splits that were packed; what has another shape is left out."""
    return {
        str(name): part
        for name, part in _table(bundle.provenance.get("splits")).items()
        if isinstance(part, Mapping) and isinstance(part.get("rows"), int)
    }


def _table(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _has_value(found: Mapping[str, Any], name: str) -> bool:
    return isinstance(_table(found.get(name)).get("value"), int | float)
