"""Strongest parts of an input, as the pages of a prediction and of Try it show them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant.bundle.reasons import list_reasons, why_unexplained
from calibrant.client.messages import Input
from calibrant.data.explanation import Reason
from calibrant.errors import InputError
from calibrant.formatting import format_signed, sentence
from calibrant.serving.bundle_slot import Served
from calibrant.serving.console.pages.predictions.wording import make_visible
from calibrant.serving.scoring import check_inputs, collate
from calibrant.store import BundleRecord, Prediction

_MOST = 10  # Parts shown
_SAME = 1e-6  # Largest distance of logits that are computed again

_ONLY_HASH = "Only the hash of the input was stored, so the parts of the input are unknown."
_OTHER_BUNDLE = "The bundle that made this prediction is no longer served, so there are no reasons."
_NOT_AS_READ = (
    "The stored input is not what the model read, for example because it was redacted for the "
    "store, so there are no reasons."
)
_UNJUDGED = "The model cannot judge this input, so there are no reasons."
_NOTHING = "No part of this input speaks for one class more than for the others."


@dataclass(frozen=True)
class PartBar:
    """A part of an input, its contribution as text, and the place of its bar in percent."""

    name: str
    words: str
    left: str
    width: str
    against: bool  # whether it speaks against the class


@dataclass(frozen=True)
class PartsView:
    """The strongest parts of an input, or why none are known."""

    label: str = ""
    other: str = ""  # the other class, if there are only two
    bars: tuple[PartBar, ...] = ()
    why_none: str = ""


def view_parts(served: Served, row: Any, logits: Sequence[float], label: str) -> PartsView | None:
    """Return the strongest parts of a checked input; None for a bundle without a model."""
    scorer = served.bundle.scorer
    if scorer is None:
        return None
    why = why_unexplained(scorer)
    if why is not None:
        return PartsView(why_none=sentence(why))
    scores, position = np.array([logits]), served.classes.index(label)
    explained = served.bundle.explain(collate([row], served)).rows
    (reasons,) = list_reasons(explained, scores, [position], _MOST)
    if not reasons:
        return PartsView(why_none=_NOTHING if np.ptp(scores) > 0.0 else _UNJUDGED)
    others = [name for name in served.classes if name != label]
    other = make_visible(others[0]) if len(others) == 1 else ""
    return PartsView(make_visible(label), other, _bars(reasons))


def view_stored_parts(
    prediction: Prediction, record: BundleRecord, served: Served, max_text: int
) -> PartsView | None:
    """Return the strongest parts of a stored input, if the served bundle scores it as then."""
    if record.manifest.get("scorer", {}).get("kind", "none") == "none":
        return None
    if prediction.bundle != served.hash:
        return PartsView(why_none=_OTHER_BUNDLE)
    why = why_unexplained(served.bundle.scorer)
    if why is not None:
        return PartsView(why_none=sentence(why))
    if prediction.input is None:
        return PartsView(why_none=_ONLY_HASH)
    row = _read_again(prediction, served, max_text)
    if row is None:
        return PartsView(why_none=_NOT_AS_READ)
    return view_parts(served, row, prediction.logits, prediction.label)


def _read_again(prediction: Prediction, served: Served, max_text: int) -> Any:
    """Return the stored input as the model takes it; None if its logits are now others."""
    try:
        input = Input.model_validate(prediction.input)
        (row,) = check_inputs([input], served, max_text=max_text)
        logits = served.bundle.predict_logits(collate([row], served))[0]
        same = np.allclose(logits, prediction.logits, rtol=_SAME, atol=_SAME)
    except (ValueError, InputError):  # of another form or length
        return None
    return row if same and prediction.label in served.classes else None


def _bars(reasons: Sequence[Reason]) -> tuple[PartBar, ...]:
    """Return bars on both sides of the middle; the longest reaches the end."""
    longest = max(abs(each.contribution) for each in reasons)
    bars = []
    for part, contribution in reasons:
        width, against = 50 * abs(contribution) / longest, contribution < 0
        left = f"{50 - width if against else 50:.2f}"
        words = format_signed(contribution)
        bars.append(PartBar(make_visible(part), words, left, f"{width:.2f}", against))
    return tuple(bars)
