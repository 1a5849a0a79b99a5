"""Data of the Model page, gathered from the bundle being served."""

from __future__ import annotations

from typing import Any

from calibrant.bundle.packing import CARD
from calibrant.formatting import format_count
from calibrant.serving.bundle_slot import Served
from calibrant.serving.console.pages.model.card_html import card_html
from calibrant.serving.console.pages.model.figures import candidate_data, figure_data
from calibrant.serving.console.pages.model.files import REPORT, bundle_file
from calibrant.serving.console.pages.model.origin import file_rows, origin_data
from calibrant.serving.console.pages.model.points import point_data, unreached_data
from calibrant.serving.http.problems import Problem
from calibrant.study.report.wording import method_name

__all__ = ["model_data"]

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
    model = "" if bundle.scorer is None else f" with the network {bundle.scorer.config['model']}"
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
