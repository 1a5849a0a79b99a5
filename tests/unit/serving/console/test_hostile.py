"""Hostile names of a bundle, of keys and in forms: pages keep their form, and show them as text.

A page with hostile names must have the very elements and attributes of the same page with plain
ones. Whatever a text could add, take away or change would show there.
"""

import json
from html.parser import HTMLParser
from urllib.parse import quote

import pytest
from tests.unit.bundle.parts import temperature
from tests.unit.serving.console.conftest import csrf_of
from tests.unit.serving.console.thresholds_bundles import calib_rows, certified

from calibrant.bundle import BundlePoint, pack
from calibrant.ood import OodRule
from calibrant.serving.console.pages.try_it.form_input import PASTE
from calibrant.store import Label, Outcome

HOSTILE = (
    '"><img src=x onerror=alert(1)>',
    "' autofocus onfocus=alert(1) x='",
    "<!--<script>alert(1)<script>",
    "{{ 7 * 7 }}{% include x %}${alert(1)}",
    "&lt;svg onload=alert(1)&gt;&#60;b&#62;",
)
NAMES = ("defect", "parts", "other")
PAGES = (
    "/console",
    "/console?bundle=all&window=7d",
    "/console/model",
    "/console/thresholds",
    "/console/thresholds?fp=1&fn=3",
    "/console/predictions",
    "/console/try",
)
LOGITS = ([5.0, 0.0, -1.0], [0.0, 4.0, 0.0], [0.2, 0.1, 0.0])
SOFT = "wbr"


class Skeleton(HTMLParser):
    """The elements of a page with the names of their attributes, and its words."""

    def __init__(self, page):
        super().__init__()
        self.elements, self.words, self.data, self.values = [], [], [], []
        self.status = page.status_code
        self._inside = ""
        self.feed(page.text)
        self.text = " ".join("".join(self.words).replace("\xa0", " ").split())

    def handle_starttag(self, tag, attributes):
        if tag != SOFT:  # a long name may break where a short one need not
            self.elements.append((tag, sorted(name for name, _ in attributes)))
            self.values += [value for name, value in attributes if name == "value"]
            self._inside = tag

    def handle_endtag(self, tag):
        self._inside = ""

    def handle_data(self, words):
        (self.data if self._inside == "script" else self.words).append(words)


def names_with(word):
    """Return names that hold a word; they are as different from each other without it."""
    return tuple(f"{name} {word}" for name in NAMES)


def packed(folder, word):
    names = names_with(word)
    rows = calib_rows(names=names)
    points = [certified(rows, name, names=names, share=0.5) for name in names[:2]]
    pack(
        folder / word.replace("/", ""),
        classes=names,
        calibrator=temperature(2.0, classes=names),
        points=[BundlePoint(each, "raw") for each in points],
        ood=OodRule("max_logit", -0.5, 0.95, 100),
        actions=dict.fromkeys(names, f"refund {word}"),
        metrics={word: {"value": 0.5}, "test": {"accuracy": {"value": 0.9}}, "n": 10},
        provenance={
            "confidence_together": 0.95,
            "config": {word: word, "title": word},
            "splits": {word: {"source": word, "rows": 10, "sha256": "0" * 64}},
        },
        card={"Intended use": f"For {word}."},
        calib=rows,
    )
    return folder / word.replace("/", "")


class Console:
    """A console whose every name holds a word.

    Parameters
    ----------
    client : of a service that asks for keys
    word : that all names hold
    """

    def __init__(self, client, word):
        self.client, self.word = client, word
        service = client.service
        _, token = service.store.keys.add(f"desk {word}", "admin")
        self._csrf = csrf_of(client.get("/console/login"))
        client.post("/console/login", data={"key": token, "csrf": self._csrf})
        self.ids = self._predict(token)
        at = service.store.predictions.get(self.ids[0]).at
        label = Label("label", at, self.ids[0], names_with(word)[1], word, None)
        service.store.outcomes.add(
            [Outcome("outcome", at, self.ids[0], word, 1.0, word, None)], [label]
        )

    def _predict(self, token):
        body = {
            "inputs": [{"logits": row} for row in LOGITS],
            **dict.fromkeys(("unit", "use_case", "branch"), self.word),
        }
        headers = {"Authorization": f"Bearer {token}", "Idempotency-Key": "once"}
        answer = self.client.post("/v1/predict", json=body, headers=headers).json()
        return [each["id"] for each in answer["predictions"]]

    def look(self, path, **filters):
        return Skeleton(self.client.get(path, params=filters or None))

    def send(self, path, **fields):
        """Send a form with the token of a page, and return where it leads to."""
        csrf = csrf_of(self.client.get("/console/try"))
        return Skeleton(self.client.post(path, data={"csrf": csrf, **fields}))


@pytest.fixture
def consoles(serving, tmp_path):
    def make_console(word, place):
        folder = tmp_path / place
        folder.mkdir()
        db = f"sqlite:///{folder}/calibrant.db"
        return Console(serving(packed(folder, word), need_key=True, db=db), word)

    return lambda word: (make_console(word, "hostile"), make_console("plain word", "plain"))


def check(hostile, plain):
    """Refuse a page whose form was changed by names, or whose data cannot be read."""
    assert hostile.elements == plain.elements
    for data in hostile.data:
        json.loads(data)


@pytest.mark.parametrize("word", HOSTILE)
def test_names_of_a_bundle_and_of_its_predictions_are_text_on_every_page(consoles, word):
    both = consoles(word)
    for path in PAGES:
        hostile, plain = (each.look(path) for each in both)
        check(hostile, plain)
        assert word in hostile.text, path
    for k in range(len(LOGITS)):
        hostile, plain = (each.look(f"/console/predictions/{each.ids[k]}") for each in both)
        check(hostile, plain)
        assert word in hostile.text


@pytest.mark.parametrize("word", HOSTILE)
def test_what_visitors_type_is_text(consoles, word):
    both = consoles(word)
    sent = [_typed_everywhere(each, f"typed {each.word}") for each in both]
    for hostile, plain in zip(*sent, strict=True):
        check(hostile, plain)
        typed = f"typed {word}"[:40]  # as much as every field shows again
        assert typed in hostile.text or any(value.startswith(typed) for value in hostile.values)
    assert [page.status for page in sent[0]] == [200, 404, 422, 422, 422, 422, 422]


def _typed_everywhere(console, typed):
    """Return the pages that answer where something cannot be found or read."""
    served = console.client.service.slot.current
    one = f"/console/predictions/{console.ids[0]}"
    return [
        console.look("/console/predictions", use_case=typed),
        console.look(f"/console/predictions/{quote(typed)}"),
        console.look("/console/predictions", min_score=typed),
        console.look("/console/thresholds", fp=typed, fn="1"),
        console.send("/console/thresholds/target", hold=typed, rows=served.bundle.calib.hash),
        console.send("/console/try", bundle=served.hash, **{PASTE: typed}),
        console.send(one, kind="outcome", once=console.ids[0], outcome=typed, value=typed),
    ]


@pytest.mark.parametrize("word", HOSTILE)
def test_the_history_of_a_bundle_is_text(consoles, word):
    both = consoles(word)
    pages = []
    for each in both:
        service = each.client.service
        before = service.slot.current.hash
        fields = {"base": before, "threshold": "0.9", "reason": f"because {each.word}"}
        each.send("/console/thresholds/save", **fields)
        assert service.slot.current.hash != before
        pages.append([each.look("/console/thresholds"), each.look("/console/model")])
    for hostile, plain in zip(*pages, strict=True):
        check(hostile, plain)
        assert f"because {word}" in hostile.text


def test_a_card_leads_nowhere_and_loads_nothing(serving, tmp_path):
    word = "[press](javascript:alert(1)) ![x](https://example.com/x.png) <https://example.com>"
    client = serving(packed(tmp_path, word.replace("/", "")))
    page = client.get("/console/model").text
    card = page[page.index('class="model-card"') :].partition("</section>")[0]
    assert "<a" not in card
    assert "<img" not in card
    assert "[press](javascript:alert(1))" in card
