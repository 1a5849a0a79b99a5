"""Card sections on the model: use, metrics, failure modes, data and origin."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from calibrant.bundle.calib_rows import FILE
from calibrant.bundle.card.inputs import input_lines, misread_line, stored_data_lines
from calibrant.bundle.card.network import network
from calibrant.bundle.card.wording import escape_html
from calibrant.formatting import format_count, number, printable
from calibrant.metrics.catalogue import title_of

if TYPE_CHECKING:
    from calibrant.bundle.bundle import Bundle
    from calibrant.ood import OodRule

__all__ = ["data_handling", "failure_modes", "figures", "hand_over", "intended_use", "origin"]

_FIGURES = ("accuracy", "nll", "ece_em")
"""Test metrics on the card."""


def intended_use(bundle: Bundle) -> Iterator[str]:
    """Describe inputs and outputs."""
    if bundle.scorer is None:
        yield "Pass the logits of the classifier that it was made for, and of no other."
    else:
        yield from input_lines(bundle.scorer)
    yield ("It returns a probability for each class and, with an operating point, a decision.")


def figures(bundle: Bundle) -> Iterator[str]:
    """List a few test metrics, if packed."""
    metrics = _as_mapping(bundle.metrics.get("test"))
    shown = [name for name in _FIGURES if _has_value(metrics, name)]
    if not shown:
        yield "No test metrics were packed."
        return
    n = bundle.metrics.get("n")
    rows = format_count(n, "test row") if isinstance(n, int) else "the test rows"
    for name in shown:
        low, high = (metrics[name].get(end) for end in ("low", "high"))
        span = "" if low is None or high is None else f" ({number(low)} to {number(high)})"
        yield f"{title_of(name)}: {number(metrics[name]['value'])}{span}, on {rows}."


def failure_modes(bundle: Bundle) -> Iterator[str]:
    """Describe known failure modes of this kind of model."""
    if bundle.ood is None:
        yield (
            "There is no out-of-scope rule: a row of none of the classes is scored as "
            "if it belonged to one."
        )
    else:
        rule = bundle.ood
        yield (
            f"A row is out of scope if the {rule.score} of its logits is above "
            f"{_threshold_text(rule)}. It was fitted on {format_count(rule.n, 'row')} in scope, "
            f"of which it flags at most {100 * (1 - rule.quantile):.3g} %. Unusual rows with "
            "similar scores are not flagged."
        )
        if rule.equal and bundle.scorer is not None and bundle.scorer.knows_far_numbers:
            yield (
                "So is a row with a number whose distance from the train range of its column "
                "exceeds the width of that range."
            )
    yield "When the class frequencies change, probabilities are biased until it is recalibrated."
    if bundle.scorer is not None:
        yield misread_line(bundle.scorer)


def _threshold_text(rule: OodRule) -> str:
    if rule.by_class is None:
        return f"{rule.threshold:.4g}"
    low, high = min(rule.by_class), max(rule.by_class)
    return f"the threshold of its predicted class ({low:.4g} to {high:.4g})"


def hand_over(bundle: Bundle) -> Iterator[str]:
    """Describe which rows go to a person, with what information."""
    if not bundle.points:
        yield "It makes no decisions: the use of its probabilities is up to its users."
        return
    yield "A row goes to a person if its decision is `abstain`: no operating point acts on it."
    if bundle.ood is not None:
        yield "So does every row with `out_of_scope` true, however confident its scores are."
    yield "The most probable class and all probabilities are included as a hint, not a decision."


def data_handling(bundle: Bundle) -> Iterator[str]:
    """Describe how data are processed, and which data are in the folder."""
    calib = FILE in _as_mapping(bundle.manifest.get("files"))
    if bundle.scorer is not None:
        yield from stored_data_lines(bundle.scorer)
    elif calib:
        yield "It reads scores, not rows."
    else:
        yield "It contains no rows and reads scores only."
    if calib:
        yield (
            f"`{FILE}` contains the logits, the class and the weight (if any) of every calibrate "
            "row, for exploring thresholds, and nothing else from those rows."
        )
    for name, part in _splits(bundle).items():
        source = (
            f" from {escape_html(printable(str(part['source'])))}" if part.get("source") else ""
        )
        digest = f" ({str(part['sha256'])[:16]}…)" if part.get("sha256") else ""
        rows = format_count(part["rows"], "row")
        yield f"{escape_html(printable(name))}: {rows}{source}{digest}."


def origin(bundle: Bundle) -> Iterator[str]:
    """Report the time, package versions and source files of the bundle."""
    provenance = bundle.provenance
    if bundle.scorer is not None:
        yield from network(bundle.scorer)
    versions = ", ".join(f"{name} {version}" for name, version in provenance["packages"].items())
    yield f"Packed {provenance['created']} with {versions}, Python {provenance['python']}."
    for source in provenance["sources"]:
        role = source["role"].replace("_", " ")
        name = escape_html(printable(source["name"]))
        yield f"The {role} is from `{name}`, {source['sha256'][:16]}…"
    yield f"`manifest.json` (format {bundle.manifest['format']}) contains every value and hash."


def _splits(bundle: Bundle) -> Mapping[str, Mapping[str, Any]]:
    """Return the packed splits, ignoring malformed entries."""
    return {
        str(name): part
        for name, part in _as_mapping(bundle.provenance.get("splits")).items()
        if isinstance(part, Mapping) and isinstance(part.get("rows"), int)
    }


def _as_mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _has_value(metrics: Mapping[str, Any], name: str) -> bool:
    return isinstance(_as_mapping(metrics.get(name)).get("value"), int | float)
