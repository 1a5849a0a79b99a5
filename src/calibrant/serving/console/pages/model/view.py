"""Data of the Model page, gathered from the bundle being served."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from functools import cache
from http import HTTPStatus
from itertools import islice
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from calibrant.bundle import Bundle
from calibrant.bundle.packing import CARD
from calibrant.formatting import format_count, sentence
from calibrant.serving.bundle_slot import Served
from calibrant.serving.console.pages.model.figures import (
    candidate_data,
    figure_data,
    get_mapping,
    get_mappings,
)
from calibrant.serving.console.pages.model.points import point_data, unreached_data
from calibrant.serving.http.problems import Problem
from calibrant.study.report.tables import config_rows, split_rows
from calibrant.study.report.wording import method_name, shown_name

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token


REPORT = "report.html"  # Report of the study that produced the bundle

_REMEDIES: Mapping[str, str] = {
    REPORT: "calibrant train and calibrant demo add it if plotly is installed",
}


def bundle_file(served: Served, name: str) -> bytes:
    """Return a file of the bundle as it was packed.

    Raises a `Problem` if the file is missing or has changed since the bundle was loaded.
    """
    packed = served.manifest["files"].get(name)
    if packed is None:
        more = f": {_REMEDIES[name]}" if name in _REMEDIES else ""
        raise Problem(HTTPStatus.NOT_FOUND, f"this bundle was packed without {name}{more}.")
    content = _content(served, name)
    if hashlib.sha256(content).hexdigest() != packed:
        raise Problem(
            HTTPStatus.CONFLICT,
            f"{name} in the folder is not the file that bundle {served.id}, which is being served, "
            "was packed with: if a newer bundle was just put there, reload this page in a moment; "
            "otherwise restore the file from a copy of the bundle.",
        )
    return content


def _content(served: Served, name: str) -> bytes:
    path = served.bundle.path / name
    remedy = (
        "the bundle in memory is still served. Restore the folder from a copy, or pack the bundle "
        "again"
    )
    try:
        if not path.is_file():
            raise Problem(HTTPStatus.NOT_FOUND, f"{name} is no longer in the folder; {remedy}.")
        return path.read_bytes()
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise Problem(
            HTTPStatus.NOT_FOUND, f"{name} cannot be read ({reason.lower()}); {remedy}."
        ) from None


_MAX_SETTINGS = 300  # Largest number of settings listed
_WORDED_KEYS = ("at", "by", "reason", "what")  # Keys of a change that are shown in sentences

_FILES = {
    "calib.npz": "scores and true classes of the calibrate rows, without inputs",
    "card.md": "the model card, shown above",
    "model.safetensors": "the network's weights",
    "ngrams.json": "the n-grams of the train texts, and in how many texts they occur",
    "report.html": "the report of the study",
    "tokenizer.json": "the vocabulary of the tokenizer",
}


def origin_data(bundle: Bundle) -> dict[str, Any]:
    """Gather when, with what and from which files and rows a bundle was made."""
    provenance = bundle.provenance
    packages = {**get_mapping(provenance, "packages")}
    if provenance.get("python"):
        packages["Python"] = provenance["python"]
    return {
        "created": parse_moment(provenance.get("created")) or provenance.get("created"),
        "packages": [(str(name), _version(version)) for name, version in packages.items()],
        "sources": [
            {
                "role": str(each.get("role", "")).replace("_", " "),
                "name": shown_name(each.get("name", "")),
                "sha256": str(each.get("sha256", "")),
            }
            for each in get_mappings(provenance, "sources")
        ],
        "splits": list(split_rows(_splits(provenance))),
        "config": list(islice(config_rows(get_mapping(provenance, "config")), _MAX_SETTINGS)),
        "changes": list_changes(bundle),
    }


def list_changes(bundle: Bundle) -> list[dict[str, Any]]:
    """Return the changes made in the console since the study, newest first.

    Each has `at` (None if unreadable), `what`, `by` and `reason` as text, and `facts`, everything
    else on record.
    """
    return [_change(each) for each in reversed(get_mappings(bundle.provenance, "changes"))]


def file_rows(served: Served) -> Iterator[dict[str, str]]:
    """Yield the files of a bundle with their hashes."""
    for name, digest in sorted(served.manifest["files"].items()):
        yield {"name": shown_name(name), "sha256": digest, "what": _FILES.get(name, "")}


def parse_moment(value: Any) -> datetime | None:
    """Return a time saved as ISO text, or None for anything else."""
    try:
        moment = datetime.fromisoformat(value)
    except (TypeError, ValueError):
        return None
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


def _change(each: Mapping[str, Any]) -> dict[str, Any]:
    rest = {name: value for name, value in each.items() if name not in _WORDED_KEYS}
    if each.get("at") and parse_moment(each["at"]) is None:
        rest["at"] = each["at"]
    return {
        "at": parse_moment(each.get("at")),
        "what": sentence(str(each.get("what") or "the operating points were changed")),
        "by": str(each.get("by") or ""),
        "reason": str(each.get("reason") or ""),
        "facts": [
            (name.replace("_", " "), value)
            for name, value in islice(config_rows(rest), _MAX_SETTINGS)
        ],
    }


def _splits(provenance: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Return the splits on record; entries of another shape are skipped."""
    return {
        str(name): part
        for name, part in get_mapping(provenance, "splits").items()
        if isinstance(part, Mapping) and isinstance(part.get("rows"), int)
    }


def _version(value: Any) -> str:
    return "not installed" if value is None else str(value)


_DISABLED_RULES = ("link", "image", "autolink", "reference", "html_inline", "html_block")
"""Markdown that could leave the page, load something or be HTML; it is shown as written."""


_HIGHEST, _LOWEST = 3, 6  # Heading levels of a card, below the heading of its section


def card_html(text: str) -> Markup:
    r"""Return a Markdown card as an HTML fragment.

    HTML in it is shown as text, links and images stay as written, and headings are lowered. The
    title is dropped, because the page has one.
    """
    parser = _parser()
    tokens = _lower_headings(_drop_title(parser.parse(text)))
    rendered: str = parser.renderer.render(tokens, parser.options, {})
    return Markup(rendered.strip())  # safe: the parser escaped everything else


@cache
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark", {"html": False}).disable(_DISABLED_RULES)


def _drop_title(tokens: list[Token]) -> list[Token]:
    has_title = bool(tokens) and tokens[0].type == "heading_open" and tokens[0].tag == "h1"
    return tokens[3:] if has_title else tokens  # opening, text and closing token


def _lower_headings(tokens: list[Token]) -> list[Token]:
    for token in tokens:
        if token.type in ("heading_open", "heading_close"):
            level = min(max(int(token.tag[1:]) + 1, _HIGHEST), _LOWEST)
            token.tag = f"h{level}"
    return tokens


_READS = {"text": "text", "table": "table rows", "logits": "logits of an external classifier"}


def model_data(served: Served) -> dict[str, Any]:
    """Gather the data of the page; it reads the card from disk, so run it in a thread."""
    bundle = served.bundle
    together = bundle.provenance.get("confidence_together")
    return {
        "summary": _summary(served),
        "points": point_data(bundle),
        "unreached": unreached_data(bundle.metrics),
        "together": together if isinstance(together, float) and len(bundle.points) > 1 else None,
        "figures": figure_data(bundle.metrics),
        "candidates": candidate_data(bundle.metrics),
        "card": _card(served),
        "origin": origin_data(bundle),
        "files": list(file_rows(served)),
        "has_report": REPORT in served.manifest["files"],
    }


def _summary(served: Served) -> str:
    """Describe the bundle in one sentence."""
    bundle = served.bundle
    model = "" if bundle.scorer is None else f" with the model {bundle.scorer.config['model']}"
    method = None if bundle.calibration is None else bundle.calibration.method
    how = "without a calibrator" if method is None else f"calibrated with {method_name(method)}"
    if method == "identity":
        how = "without further calibration"
    classes = format_count(len(bundle.classes), "class")
    return f"Reads {_READS[served.reads]}{model}, {how}, with {classes}"


def _card(served: Served) -> dict[str, Any]:
    """Return the card as HTML, or the reason there is none."""
    try:
        text = bundle_file(served, CARD).decode("utf-8", "replace")
    except Problem as problem:
        return {"html": None, "why": problem.detail[:1].upper() + problem.detail[1:]}
    return {"html": card_html(text), "why": ""}
