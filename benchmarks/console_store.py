"""A store as one has it after a month: predictions of two versions of a bundle, units, labels.

The answers are a real model's to messages of the built-in corpus, which come again and again at
other times; they are written by the code that writes those of a service.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["CASE", "Rare", "fill", "pack_two"]

NETWORK = {"embedding": 32, "filters": 48, "width": 3}
TRAINED = 2_000
CALIB = 3_000
MESSAGES = 5_000
UNITS = 200_000
BATCH = 5_000
DAYS = 28  # all of them are within the longest window of the overview
NEWER = 1 / 3
"""Share of the predictions that the version which serves has made."""

RARE = 1_000
LABELLED = 20
"""One prediction in this number has a label."""

OLD_CASE, CASE, UNIT = "repairs", "returns", "customer-7"


@dataclass(frozen=True)
class Rare:
    """What is hard to find in the store, for pages that look for it.

    Parameters
    ----------
    version : hash of the bundle that made the older predictions
    use_case : of the oldest predictions only
    unit : that asked a few times
    label : the class that is met least
    middle, oldest : ids of predictions
    day : the first one
    """

    version: str
    use_case: str
    unit: str
    label: str
    middle: str
    oldest: str
    day: datetime


def pack_two(folder: Path) -> tuple[Path, Path]:
    """Train for a moment and pack two versions of a bundle: the one that serves, and its past."""
    from calibrant import TextClassifier
    from calibrant.bundle import BundlePoint, CalibRows, pack
    from calibrant.calibrators import TemperatureScaling
    from calibrant.cores import one_core_each
    from calibrant.data.return_reasons import ACTIONS, draw
    from calibrant.models.scorer import Scorer
    from calibrant.ood import OodRule
    from calibrant.thresholds import precision, select

    drawn, calib = draw(TRAINED, source="golden", seed=1), draw(CALIB, source="golden", seed=2)
    network = TextClassifier(
        model="text_cnn", model_options=NETWORK, epochs=6, learning_rate=0.005, device="cpu"
    )
    with one_core_each():  # a second one gains nothing for so small a network
        network.fit(drawn.texts, drawn.labels)
    classes = network.classes_.tolist()
    logits = network.predict_logits(calib.texts)
    rows: dict[str, Any] = {"logits": logits, "classes": classes, "confidence": 0.975}
    folders = []
    for name, least in (("returns", 0.7), ("past", 0.65)):
        hold = precision >= least
        points = [
            select(calib.labels, positive=of, hold=hold, **rows)
            for of in ("item_defective", "others")
        ]
        pack(
            folder / name,
            scorer=Scorer.from_classifier(network, column="message"),
            calibrator=TemperatureScaling().fit(logits, calib.labels, classes=classes),
            points=[BundlePoint(each, "raw") for each in points],
            ood=OodRule.fit(network.predict_logits(drawn.texts)),
            actions={name: ACTIONS[name] for name in classes if ACTIONS.get(name)},
            provenance={"confidence_together": 0.95},
            calib=CalibRows(logits, np.searchsorted(classes, calib.labels)),
        )
        folders.append(folder / name)
    return folders[0], folders[1]


def fill(db: Path, bundles: tuple[Path, Path], n: int) -> Rare:
    """Write n predictions of the last four weeks, and labels of some.

    Parameters
    ----------
    db : the file to be
    bundles : the version that serves, and the one before it
    n : predictions
    """
    from calibrant.store import Store

    with Store.open(db) as store:
        answers = [_answers(store, folder) for folder in bundles]
        month = _Month(n)
        ids = []
        for start in range(0, n, BATCH):
            places = range(start, min(start + BATCH, n))
            batch = list(_requests(month, places, answers))
            store.predictions.add(batch)
            truths = [answers[0][month.which[i]]["truth"] for i in places]
            store.outcomes.add([], list(_labels(batch, truths)))
            ids += [request.predictions[0].id for request in batch if request.id.endswith("000")]
        seen = [answer["label"] for answer in answers[0]]
        names, counts = np.unique(seen, return_counts=True)
        return Rare(
            version=answers[1][0]["bundle"],
            use_case=OLD_CASE,
            unit=UNIT,
            label=str(names[counts.argmin()]),
            middle=ids[len(ids) // 2],
            oldest=ids[0],
            day=month.at(0),
        )


class _Month:
    """When the i-th prediction was made: more by day than by night.

    Parameters
    ----------
    n : predictions
    """

    def __init__(self, n: int) -> None:
        rng = np.random.default_rng(7)
        self._begin = datetime.now(UTC) - timedelta(days=DAYS)
        hours = np.arange(24 * DAYS)
        weights = 1.2 + np.cos((self._begin.hour + hours - 14) / 24 * 2 * np.pi)
        per_hour = rng.multinomial(n, weights / weights.sum())
        self._seconds = np.sort(np.repeat(hours * 3600.0, per_hour) + rng.random(n) * 3600)
        self.n, self.which = n, rng.integers(MESSAGES, size=n)
        self.unit = rng.integers(min(UNITS, n), size=n)

    def at(self, i: int) -> datetime:
        """Return a moment."""
        return self._begin + timedelta(seconds=float(self._seconds[i]))

    def is_newer(self, i: int) -> bool:
        """Tell whether the version that serves now made it."""
        return i >= self.n * (1 - NEWER)


def _answers(store: Any, folder: Path) -> list[dict[str, Any]]:
    """Record a bundle, and return the parts of predictions that it decides."""
    from calibrant import load_bundle
    from calibrant.data.return_reasons import draw
    from calibrant.serving.bundle_slot import BundleSlot

    served = BundleSlot(folder, "cpu").load()
    store.bundles.record(
        hash=served.hash,
        name=served.name,
        classes=served.classes,
        manifest={},
        at=datetime.now(UTC),
    )
    drawn = draw(MESSAGES, source="golden", seed=3)
    texts, bundle = list(drawn.texts), load_bundle(folder, device="cpu")
    logits = np.asarray(bundle.predict_logits(texts), dtype=float)
    return [
        {
            "bundle": served.hash,
            "truth": str(truth),
            "input": {"text": text},
            "input_hash": store.keyed_hash(text.encode()),
            "logits": row.tolist(),
            **_decided(answer),
        }
        for text, truth, row, answer in zip(
            texts, drawn.labels, logits, bundle.decide(texts).to_rows(), strict=True
        )
    ]


def _decided(answer: Mapping[str, Any]) -> dict[str, Any]:
    probs = list(answer["probabilities"].values())
    fields = ("decision", "acted_as", "action", "operating_point", "out_of_scope")
    return {
        "probs": probs,
        "label": str(answer["label"]),
        "score": max(probs),
        **{name: answer[name] for name in fields},
    }


def _requests(month: _Month, places: range, answers: list[list[dict[str, Any]]]) -> Iterator[Any]:
    from calibrant.store import LoggedRequest, Prediction

    for i in places:
        answer = dict(answers[0 if month.is_newer(i) else 1][month.which[i]])
        del answer["truth"]
        request, at = f"order-{i}", month.at(i)
        one = Prediction(
            id=_id(at, i),
            at=at,
            request=request,
            position=0,
            unit=f"customer-{month.unit[i]}",
            use_case=OLD_CASE if i < min(RARE, month.n // 10) else CASE,
            branch=None,
            key=None,
            latency_ms=5.0,
            **answer,
        )
        yield LoggedRequest(request, "0" * 64, (one,))


def _labels(batch: list[Any], truths: list[str]) -> Iterator[Any]:
    from calibrant.store import Label

    for request, truth in list(zip(batch, truths, strict=True))[::LABELLED]:
        (one,) = request.predictions
        yield Label(one.id, one.at, one.id, truth, "agent", None)


def _id(at: datetime, i: int) -> str:
    """Return an id as `calibrant.store.new_id` would have made it then."""
    digits = f"{int(at.timestamp() * 1000) << 80 | 7 << 76 | 2 << 62 | i:032x}"
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))
