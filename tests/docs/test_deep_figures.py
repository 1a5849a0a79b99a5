"""The tables of the page about deep models: made from the results, left alone without any."""

from pathlib import Path

import pytest
from docs.deep_figures import RUNS, SPEED, images_part, speed_part, texts_part, with_figures

PAGE = (Path(__file__).resolve().parents[2] / "docs/deep-models.md").read_text(encoding="utf-8")
MACHINE = {"date": "2026-01-01", "gpu": "a card", "packages": {"torch": "2.0"}}


def goal(text, unit, measured=1.0, met=True, **details):
    held = {"sense": "below", "limit": 6.5, "met": met}
    return {"goal": text, "unit": unit, "measured": measured, "details": details, **held}


def result(*goals):
    return {"machine": MACHINE, "goals": list(goals)}


def speed():
    plain = {"plain eager loop": 5000.0}
    return result(
        goal("a net, batch 128, eager", "images/s", 6000.4, **plain),
        goal("a net, batch 128, compile=True", "images/s", 16000.0, **plain),
        goal("a net, batch 512, eager", "images/s", 15000.0),
        goal("A step with AdaFocal, batch 128, eager: slower by", "%", 1.25),
    )


def run(error, schedule="linear"):
    settings = {"schedule": schedule, "learning_rate": 0.1, "epochs": 30}
    figures = {"ece_em": 3.456, "ece_em_scaled": 0.789, "seconds": 1234.4}
    return {"error": error, "settings": settings, **figures}


def images():
    beside = {"adafocal": run(5.5), "other schedules, ce": [run(6.87, "cosine")], "gpu": "a card"}
    return result(goal("CIFAR-10: test error", "%", 6.55, False, **run(6.55), **beside))


def texts():
    told = {"error": 14.52, "seconds_of_an_epoch": 16.645, "epochs": 4, "rows": [13947, 900, 3999]}
    asked = goal("MiniLM: test error", "%", **told)
    return result(asked, goal("text CNN: an epoch", "s", **told))


def test_rates_stand_side_by_side_and_other_goals_below():
    made = speed_part(speed())
    assert "| batch | plain eager loop | eager | compile=True |" in made
    assert "| 128 | 5,000 | 6,000 | 16,000 |" in made
    assert "| 512 |  | 15,000 |  |" in made
    assert "- A step with AdaFocal, batch 128, eager: slower by 1.2 %." in made
    assert "Measured 2026-01-01 on one a card, torch 2.0." in made


def test_every_loss_and_schedule_that_was_tried_is_shown_and_a_missed_goal_stays():
    made = images_part(images())
    row = "| {} | {}, rate 0.1 | {} | 3.46 | 0.79 | 1,234 |"
    assert row.format("cross-entropy", "linear", "6.55") in made
    assert row.format("AdaFocal", "linear", "5.50") in made
    assert row.format("cross-entropy", "cosine", "6.87") in made
    assert "The goal was below 6.5 %, set beforehand: **missed**, with 6.55." in made


def test_the_error_of_texts_is_shown_where_it_was_asked_for():
    made = texts_part(texts())
    assert "| MiniLM | 13,947 | 4 | 16.6 | 14.5 |" in made
    assert "| text CNN | 13,947 | 4 | 16.6 | – |" in made


def test_only_what_stands_between_the_marks_is_replaced():
    made = with_figures(PAGE, speed(), images(), texts())
    before, after = PAGE.split(SPEED[0])[0], PAGE.split(RUNS[1])[1]
    assert made.startswith(before)
    assert made.endswith(after)
    assert "| 128 | 5,000 | 6,000 | 16,000 |" in made
    assert with_figures(made, speed(), images(), texts()) == made


def test_without_results_the_page_stays_as_it_is():
    assert with_figures(PAGE, None, None, None) == PAGE


def test_lost_marks_are_named():
    with pytest.raises(SystemExit, match="needs the marks"):
        with_figures("# Deep models\n", speed(), None, None)
