"""A small trained bundle, and a store with its predictions."""

import json
from contextlib import contextmanager
from urllib.request import Request, urlopen

import numpy as np
from tests.unit.serving.running import running

from calibrant import TextClassifier
from calibrant.bundle import BundlePoint, CalibRows, pack
from calibrant.calibrators import TemperatureScaling
from calibrant.data.return_reasons import draw
from calibrant.models.scorer import Scorer
from calibrant.ood import OodRule
from calibrant.reports import write_threshold_html
from calibrant.store import Store
from calibrant.thresholds import precision, select

ROLES = ("predict", "label", "admin")
ACTED = ("item_defective", "others")
ACTIONS = {"item_defective": "replacement", "others": "ask again"}
TOGETHER = 0.95
HOLD = precision >= 0.7
NETWORK = {"embedding": 32, "filters": 48, "width": 3}
STRANGE = "qqqq zzzz wwww how do i bake sourdough bread with rye 42"


def trained_bundle(folder):
    """Train for two seconds, certify two promises on other rows, and pack a bundle."""
    drawn, calib = draw(2000, source="golden", seed=1), draw(1500, source="golden", seed=2)
    network = TextClassifier(
        model="text_cnn", model_options=NETWORK, epochs=6, learning_rate=0.005, device="cpu"
    )
    network.fit(drawn.texts, drawn.labels)
    classes = network.classes_.tolist()
    logits = network.predict_logits(calib.texts)
    each = 1 - (1 - TOGETHER) / len(ACTED)
    rows = {"logits": logits, "classes": classes, "hold": HOLD, "confidence": each}
    points = [select(calib.labels, positive=name, **rows) for name in ACTED]
    report = write_threshold_html(
        points[0], folder.parent / "report.html", labels=calib.labels, scores=logits, on="logits",
        classes=classes, source="calibrate rows",
    )  # fmt: skip
    pack(
        folder,
        scorer=Scorer.from_classifier(network, column="message"),
        calibrator=TemperatureScaling().fit(logits, calib.labels, classes=classes),
        points=[BundlePoint(each, "raw") for each in points],
        ood=OodRule.fit(network.predict_logits(drawn.texts)),
        actions=ACTIONS,
        provenance={"confidence_together": TOGETHER},
        calib=CalibRows(logits, np.searchsorted(classes, calib.labels)),
        files={"report.html": report},
    )
    return folder


def fill(bundle, db, n=240):
    """Send messages and some labels to a service; return the keys by role."""
    with Store.open(db) as store:
        keys = {role: store.keys.add(f"{role} desk", role)[1] for role in ROLES}
    drawn = draw(n, source="golden", seed=3)
    with running(bundle, db, need_key=True) as service:
        for start in range(0, n, 40):
            texts, labels = (part[start : start + 40] for part in (drawn.texts, drawn.labels))
            answered = predict(service, texts, keys["predict"], unit=f"customer-{start}")
            outcomes = [
                {"prediction": each["id"], "label": str(label)}
                for each, label in zip(answered[::4], labels[::4], strict=True)
            ]
            ask(service, "/v1/outcomes", {"outcomes": outcomes}, keys["label"])
        predict(service, [STRANGE], keys["predict"])
    return keys


def predict(service, texts, key=None, **about):
    """Send messages, and return the predictions."""
    body = {"inputs": [{"text": text} for text in texts], **about}
    return ask(service, "/v1/predict", body, key)["predictions"]


def ask(service, path, body=None, key=None):
    """Send an API request and return the response."""
    headers = {"Content-Type": "application/json"}
    if key is not None:
        headers["Authorization"] = f"Bearer {key}"
    data = None if body is None else json.dumps(body).encode()
    with urlopen(Request(service.url + path, data=data, headers=headers)) as answer:
        return json.load(answer)


@contextmanager
def console(bundle, db, keys, **settings):
    """Serve a bundle; yield the service with its `keys`."""
    with running(bundle, db, **settings) as service:
        service.keys = keys
        yield service
