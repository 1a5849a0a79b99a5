"""Recorded screens: whole outputs of commands and pages, compared word for word.

They show what a change of wording or layout does to a whole screen, so that other tests need to ask
for kind, place and remedy only. After a change that is meant, run

    pytest tests/screens --update-screens

and read the difference before it is committed.
"""

import difflib
import re
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent / "screens" / "recorded"
CHANGING = (
    (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "<id>"),
    (r"\b(?:[0-9a-f]{64}|[0-9a-f]{32}|(?=[0-9a-f]*[a-f])[0-9a-f]{12})\b", "<hash>"),
    (r"\b\d{1,2} [A-Z][a-z]{2} \d{4}, \d\d:\d\d(?::\d\d)?(?: UTC)?", "<time>"),
    (r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d[:.\d]*(?:\+00:00|Z| UTC)?", "<time>"),
    (r"\b\d+ (?:second|minute|hour|day)s? ago|just now", "<ago>"),
    (r"\bcal_[A-Za-z0-9_-]{20,}", "<key>"),
)
"""Parts of a screen that differ from run to run."""


def pytest_addoption(parser):
    parser.addoption("--update-screens", action="store_true", help="record the screens anew")


@pytest.fixture
def screen(request, tmp_path):
    """Compare a text with the recorded screen of this name, or record it."""

    def compare(name, text):
        shown = text.replace(str(tmp_path), "<folder>")
        for pattern, word in CHANGING:
            shown = re.sub(pattern, word, shown)
        shown = "\n".join(line.rstrip() for line in shown.splitlines()).strip("\n") + "\n"
        path = FOLDER / f"{name}.txt"
        if request.config.getoption("--update-screens"):
            path.write_text(shown, encoding="utf-8")
        known = path.read_text(encoding="utf-8") if path.exists() else ""
        if shown != known:
            changes = difflib.unified_diff(known.splitlines(), shown.splitlines(), n=1, lineterm="")
            lines = [f"screen {name} changed (--update-screens records it):", *changes]
            pytest.fail("\n".join(lines), pytrace=False)

    return compare
