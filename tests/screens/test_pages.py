"""Visible text of the reports and of the console's pages."""

import re
from html.parser import HTMLParser

import pytest
from tests.unit.serving.console.predictions_log import keep, make_prediction

HOLD = ("--hold", "item_defective: precision>=0.85")
BLOCKS = {"p", "div", "li", "tr", "h1", "h2", "h3", "h4", "section", "table", "dt", "dd", "summary"}
HIDDEN = {"script", "style", "template", "title"}


class VisibleText(HTMLParser):
    """Text of a page, a line for each block."""

    def __init__(self, page):
        super().__init__()
        self._parts, self._hidden = [], 0
        self.feed(page)
        lines = "".join(self._parts).replace("\xa0", " ").replace("\xad", "").splitlines()
        self.lines = [text for line in lines if (text := " ".join(line.split()))]

    def handle_starttag(self, tag, attrs):
        self._hidden += tag in HIDDEN
        self._parts.append("\n" if tag in BLOCKS else " ")

    def handle_endtag(self, tag):
        self._hidden -= tag in HIDDEN
        self._parts.append("\n" if tag in BLOCKS else " ")

    def handle_data(self, data):
        if not self._hidden:
            self._parts.append(data)


def visible(page):
    return "\n".join(VisibleText(page).lines)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("page-evaluate", ("evaluate", "scores.csv")),
        ("page-calibrate", ("calibrate", "scores.csv", "--method", "temperature", "-o", "c.json")),
        ("page-threshold", ("threshold", "scores.csv", *HOLD, "-o", "point.json")),
    ],
)
def test_text_of_a_report(cli, here, screen, name, words):
    from calibrant.data import write_example

    write_example(here / "scores.csv", n=2000)
    assert cli(*words, "--html", "report.html").exit_code == 0
    screen(name, visible((here / "report.html").read_text(encoding="utf-8")))


@pytest.fixture
def console(serving, logits_folder):
    """A service with a few predictions of its bundle."""
    client = serving(logits_folder)
    hash = client.service.slot.current.hash
    acted = {"decision": "act", "acted_as": "defect", "action": "refund", "operating_point": 0}
    keep(client, make_prediction(hash), make_prediction(hash, 1, **acted, score=0.9))
    return client


@pytest.mark.parametrize("page", ["", "/model", "/thresholds", "/predictions", "/try"])
def test_text_of_a_console_page(console, screen, page):
    answer = console.get(f"/console{page}")
    assert answer.status_code == 200
    text = re.sub(r"\b[0-9a-f]{8,12}\b", "<hash>", visible(answer.text))
    screen(f"console{page.replace('/', '-') or '-overview'}", text)
