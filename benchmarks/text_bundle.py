"""The bundle of texts that benchmarks work on: as `calibrant demo` makes it, trained for a moment.

A BiLSTM (embedding 64, hidden 64, one layer) with redaction, a calibrator, an operating point and
an out-of-scope rule.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

__all__ = ["pack_texts"]

NETWORK = {"embedding": 64, "hidden": 64, "layers": 1}


def pack_texts(folder: Path, n: int) -> Path:
    """Train on n messages for one epoch, so that scores are not all alike, and pack the network."""
    from calibrant import TextClassifier
    from calibrant.bundle import BundlePoint, pack
    from calibrant.calibrators import TemperatureScaling
    from calibrant.data.redaction.redactor import redact
    from calibrant.data.return_reasons import draw
    from calibrant.models.scorer import Scorer
    from calibrant.ood import OodRule
    from calibrant.thresholds import recall, select

    drawn = draw(n, seed=1)
    texts = redact(drawn.texts)
    network = TextClassifier(model_options=NETWORK, epochs=1, device="cpu")
    network.fit(texts, drawn.labels)
    logits, classes = network.predict_logits(texts), network.classes_.tolist()
    names: dict[str, Any] = {"classes": classes, "positive": classes[0]}
    point = select(drawn.labels, logits=logits, hold=recall >= 0.5, confidence=None, **names)
    pack(
        folder,
        scorer=Scorer.from_classifier(network, column="message", redact=True),
        calibrator=TemperatureScaling().fit(logits, drawn.labels, classes=classes),
        points=[BundlePoint(point, "raw")],
        ood=OodRule.fit(logits),
    )
    return folder
