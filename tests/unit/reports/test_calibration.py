"""A calibration as words, JSON, text and page: they say the same, and names stay text."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest
from tests.sentences import assert_mentions

from calibrant.calibrators.choice.comparison import Candidate, Choice
from calibrant.metrics import compare, evaluate
from calibrant.reports.calibration.page import calibration_html, write_calibration_html
from calibrant.reports.calibration.result import CalibrationResult, Judgement
from calibrant.reports.calibration.text import render_calibration
from calibrant.results import Difference
from calibrant.testing import WORLDS

HOSTILE = "</script><img src=x onerror=alert(1)>"


def judgement(before, after, labels, how="judged on other rows"):
    return Judgement(
        evaluate(labels, before).with_classes(("no", HOSTILE)),
        evaluate(labels, after).with_classes(("no", HOSTILE)),
        compare(labels, before, after, names=("before", "after")),
        how,
    )


@pytest.fixture(scope="module")
def better():
    draw = WORLDS["binary"].draw(1500, 0)
    saved = {"format": 1, "method": "beta", "classes": ["no", HOSTILE], "params": {"a": 1.5}}
    both = judgement(draw.probs, draw.posterior, draw.labels)
    choice = Choice(
        "beta", "beta has the best score.", "nll", 1500, 5, 2,
        (Candidate("identity", 0.5, 0.0, 0.0, 0.5, 0.2, 0.05),
         Candidate("beta", 0.4, 0.1, 0.01, 0.4, 0.19, 0.01),
         Candidate(HOSTILE, why_not=f"it needs {HOSTILE}")),
    )  # fmt: skip
    return CalibrationResult(saved, "auto", 1500, "nll", both, choice=choice, notes=("a note",))


def turned(result):
    """Swap before and after."""
    both = result.judgement
    names = ("before", "after")
    found = {
        name: replace(d, a=d.b, b=d.a, value=-d.value,
                      interval=replace(d.interval, low=-d.interval.high, high=-d.interval.low))
        for name, d in both.difference.differences.items()
    }  # fmt: skip
    difference = replace(both.difference, differences=found, names=names)
    return replace(result, judgement=replace(
        both, before=both.after, after=both.before, difference=difference))  # fmt: skip


def test_the_verdict_follows_the_interval(better):
    assert better.state == "better"
    assert_mentions(better.verdict, "better:", "log loss")
    worse = turned(better)
    assert worse.state == "worse"
    assert_mentions(worse.verdict, "worse")
    found = better.judgement.difference.differences["nll"]
    wide = replace(found, interval=replace(found.interval, high=0.1))
    vague = replace(better.judgement.difference, differences={"nll": wide, "brier": wide})
    unclear = replace(better, judgement=replace(better.judgement, difference=vague))
    assert unclear.state == "unclear"
    assert_mentions(unclear.verdict, "no clear difference")


def test_the_identity_says_so(better):
    same = replace(better, saved={**better.saved, "method": "identity"})
    assert same.state == "same"
    assert_mentions(same.verdict, "no method", "clearly better")
    assert_mentions(replace(same, requested="identity").verdict, "the identity")


def test_an_infinite_log_loss_leaves_the_verdict_to_brier(better):
    lost = Difference("nll", np.inf, 0.4, None, "", why="infinite")
    found = {**better.judgement.difference.differences, "nll": lost}
    difference = replace(better.judgement.difference, differences=found)
    result = replace(better, judgement=replace(better.judgement, difference=difference))
    assert "Brier score" in result.verdict
    json.dumps(result.to_dict(), allow_nan=False)


def test_json_is_strict_and_keeps_its_keys(better):
    found = json.loads(json.dumps(better.to_dict(), allow_nan=False))
    assert found["chosen"] == "beta"
    assert found["candidates"][1]["nll"] == 0.4
    assert found["before"]["nll"] > found["after"]["nll"]
    bare = replace(better, judgement=None, choice=None, why_not="there are too few rows.")
    found = json.loads(json.dumps(bare.to_dict(), allow_nan=False))
    assert (found["before"], found["after"]) == (None, None)
    assert found["candidates"] == [{"method": "beta"}]
    assert found["why_not_judged"] == "there are too few rows."


def test_the_text_fits_into_80_columns_and_shows_the_verdict_first(better):
    text = render_calibration(better, width=80)
    assert max(map(len, text.splitlines())) <= 80
    words = " ".join(text.split())
    assert words.startswith(better.verdict)
    assert_mentions(words, "1,500 rows", "2 classes", "other rows")
    assert "Note: A note." in words
    nll = better.judgement.difference["nll"]
    (line,) = (line for line in text.splitlines() if line.startswith("NLL (log loss)  "))
    assert f"{nll.a:.4f}" in line
    assert f"{nll.value:+.4f}" in line
    assert "better" in line


def test_a_result_without_judgement_is_short(better):
    bare = replace(better, judgement=None, choice=None, why_not="there are too few rows.")
    lines = render_calibration(bare).splitlines()
    assert_mentions(lines[0], "Beta", "not judged", "too few rows")
    assert len(lines) == 3
    assert "Not judged" in calibration_html(bare)


def test_what_was_learned_is_told_where_it_is_short(better):
    assert better.learned == "a = 1.5"
    assert replace(better, saved={**better.saved, "params": {"a": [1.0, 2.0]}}).learned == ""


def test_the_page_is_one_file_without_network_and_names_stay_text(better, tmp_path):
    page = calibration_html(better, title=HOSTILE, source=HOSTILE, out=HOSTILE, command=HOSTILE)
    plain = re.sub(r"<script.*?</script>", "", page, flags=re.DOTALL)
    assert "<img" not in plain
    assert not re.findall(r'(?:src|href)="http', plain)
    assert "default-src 'none'" in page
    file = write_calibration_html(better, tmp_path / "report.html")
    assert file.stat().st_size < 8 * 2**20
    assert [p.name for p in tmp_path.iterdir()] == ["report.html"]
