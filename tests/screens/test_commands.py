"""Text that the verbs print for a run that works, and for one whose answer is no."""

import re

import numpy as np
import pytest
from tests.unit.bundle.parts import point, temperature
from tests.unit.study.report.study_cases import a_study, an_unpromised_study

from calibrant.data import write_example

SAVED = ("-o", "p.json")
HOLD = ("--hold", "item_defective: precision>=0.85")


@pytest.fixture
def files(here):
    """Write score files of three classes and of two."""
    write_example(here / "scores.csv", n=2000)
    write_example(here / "later.csv", n=1000, seed=1)
    rng = np.random.default_rng(0)
    logits = rng.normal(0.0, 2.0, 600)
    labels = (rng.random(600) < 1 / (1 + np.exp(-0.7 * logits))).astype(int)
    rows = [f"{y},{z:.4f}" for y, z in zip(labels, logits, strict=True)]
    (here / "two.csv").write_text("\n".join(["label,logit", *rows]) + "\n")
    return here


@pytest.mark.parametrize(
    ("name", "words", "code"),
    [
        ("evaluate-two-classes", ("evaluate", "two.csv"), 0),
        ("evaluate", ("evaluate", "scores.csv"), 0),
        ("compare", ("compare", "scores.csv", "scores.csv"), 0),
        ("calibrate", ("calibrate", "scores.csv", "--method", "temperature", "-o", "c.json"), 0),
        ("threshold", ("threshold", "scores.csv", *HOLD, "-o", "point.json"), 0),
        (
            "threshold-unreachable",
            ("threshold", "two.csv", "--hold", "precision>=0.99", *SAVED),
            1,
        ),
        (
            "threshold-band",
            (
                "threshold",
                "two.csv",
                "--act",
                "precision>=0.7",
                "--clear",
                "npv>=0.7",
                "-o",
                "p.json",
            ),
            0,
        ),
        ("wrong-column", ("evaluate", "two.csv", "--label", "lable"), 2),
        ("unknown-file", ("evaluate", "nowhere.csv"), 2),
    ],
)
def test_text_of_a_verb(cli, files, screen, name, words, code):
    result = cli(*words)
    assert result.exit_code == code, result.output
    screen(name, result.output)


def test_text_of_decide(cli, files, screen):
    assert cli("threshold", "scores.csv", *HOLD, "-o", "point.json").exit_code == 0
    decided = cli("decide", "later.csv", "--point", "point.json", "-o", "decided.csv")
    screen("decide", decided.output)
    screen("decide-check", cli("decide", "later.csv", "--point", "point.json", "--check").output)


def test_text_of_pack_and_predict(cli, here, screen):
    import json

    (here / "c.json").write_text(json.dumps(temperature().to_dict()))
    (here / "p.json").write_text(json.dumps(point().to_dict()))
    classes = point().classes
    rows = [",".join(map(str, row)) for row in np.eye(len(classes)).round(1) * 4]
    header = ",".join(f"logit_{name}" for name in classes)
    (here / "new.csv").write_text("\n".join([header, *rows]) + "\n")
    packed = cli("pack", "--calibrator", "c.json", "--point", "p.json", "-o", "bundle")
    screen("pack", packed.output)
    screen("predict", cli("predict", "bundle", "new.csv", "-o", "predicted.csv").output)


def test_text_of_keys(cli, here, screen):
    added = cli("keys", "add", "--name", "shop", "--role", "predict").output
    id = added.split()[1]
    screen("keys-add", added.replace(id, "abcdefghijkl"))
    listed = cli("keys", "list").output.replace(id, "abcdefghijkl")
    screen("keys-list", re.sub(r"\d{4}-\d\d-\d\d", "2026-01-31", listed))


def test_text_of_a_study(here, screen):
    from calibrant.study.report.text import render_study

    screen("study", render_study(a_study(), width=80, color=False))
    screen("study-without-a-promise", render_study(an_unpromised_study(), width=80, color=False))
