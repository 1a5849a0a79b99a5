"""Time windows, decisions per hour, and current traffic."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from calibrant.serving.console.pages.overview.traffic import (
    DECISION_TITLES,
    WINDOWS,
    Live,
    Window,
    ago_words,
    count_traffic,
)
from calibrant.store import HourCount
from calibrant.store.records import DECISIONS

NOW = datetime(2026, 3, 2, 10, 45, 30, tzinfo=UTC)
TEN = datetime(2026, 3, 2, 10, tzinfo=UTC)


def hours(n):
    return timedelta(hours=n)


def test_every_decision_of_the_store_has_words():
    assert set(DECISION_TITLES) == {*DECISIONS, "none"}


@pytest.mark.parametrize(
    ("name", "since", "bars", "last"),
    [
        ("24h", "2026-03-01T11:00", 24, "2026-03-02T10:00"),
        ("7d", "2026-02-23T11:00", 168, "2026-03-02T10:00"),
        ("30d", "2026-02-01T00:00", 30, "2026-03-02T00:00"),
    ],
)
def test_a_window_ends_with_the_bar_that_is_not_over_yet(name, since, bars, last):
    window = Window.from_name(name, NOW)
    assert window.since.isoformat(timespec="minutes") == f"{since}+00:00"
    assert len(window.steps) == bars
    assert window.steps[0] == window.since
    assert window.steps[-1].isoformat(timespec="minutes") == f"{last}+00:00"
    assert window.steps[-1] <= NOW < window.steps[-1] + window.step


def test_a_window_is_in_utc_wherever_the_clock_is():
    there = NOW.astimezone(timezone(timedelta(hours=5, minutes=30)))
    assert Window.from_name("30d", there) == Window.from_name("30d", NOW)


def test_counts_are_put_into_the_bars_of_their_hours():
    window = Window.from_name("24h", NOW)
    traffic = count_traffic(
        window,
        [
            HourCount(TEN - hours(23), "act", 2),
            HourCount(TEN - hours(1), "act", 3),
            HourCount(TEN - hours(1), "abstain", 4),
            HourCount(TEN, "out_of_scope", 1),
        ],
    )
    assert traffic.total == 10
    assert [(each.decision, each.n, each.share) for each in traffic.decisions] == [
        ("act", 5, 0.5),
        ("abstain", 4, 0.4),
        ("out_of_scope", 1, 0.1),
    ]
    filled = {bar.at: bar.counts for bar in traffic.bars if bar.total}
    assert filled == {TEN - hours(23): (2, 0, 0), TEN - hours(1): (3, 4, 0), TEN: (0, 0, 1)}
    assert len(traffic.bars) == 24
    assert traffic.count("abstain") == 4
    assert traffic.count("clear") == 0


def test_days_hold_the_counts_of_their_hours():
    window = Window.from_name("30d", NOW)
    midnight = TEN - hours(10)
    counts = [HourCount(midnight - hours(1), "act", 5), HourCount(midnight, "act", 1)]
    traffic = count_traffic(window, [*counts, HourCount(TEN, "act", 2)])
    assert [bar.total for bar in traffic.bars[-3:]] == [0, 5, 3]


def test_hours_outside_of_the_window_do_not_count():
    window = Window.from_name("24h", NOW)
    traffic = count_traffic(
        window, [HourCount(TEN - hours(24), "act", 7), HourCount(TEN, "act", 1)]
    )
    assert traffic.total == 1
    late = count_traffic(window, [HourCount(TEN + hours(1), "act", 7)])  # a clock that runs ahead
    assert late.total == 0


@pytest.mark.parametrize(
    ("counts", "sentence"),
    [
        ([], "No predictions."),
        ([("act", 1)], "1 prediction, acted on."),
        ([(None, 3)], "3 predictions, all without a decision."),
        (
            [("act", 1), ("clear", 2), ("abstain", 1)],
            "4 predictions: 1 acted on (25.0 %), 2 cleared (50.0 %), 1 left to a person (25.0 %).",
        ),
    ],
)
def test_traffic_as_a_sentence(counts, sentence):
    hour_counts = [HourCount(TEN, decision, n) for decision, n in counts]
    assert count_traffic(Window.from_name("24h", NOW), hour_counts).sentence == sentence


def test_the_chart_has_a_number_for_each_bar_of_each_decision():
    hour_counts = [HourCount(TEN, "act", 3), HourCount(TEN - hours(2), None, 1)]
    chart = count_traffic(Window.from_name("24h", NOW), hour_counts).chart()
    assert len(chart["at"]) == 24
    assert chart["at"][-1] == "2026-03-02 10:00"
    assert [each["name"] for each in chart["decisions"]] == ["act", "none"]
    assert chart["decisions"][0]["counts"][-3:] == [0, 0, 3]
    assert chart["decisions"][1]["counts"][-3:] == [1, 0, 0]


def test_a_million_predictions_are_written_with_commas():
    traffic = count_traffic(Window.from_name("24h", NOW), [HourCount(TEN, "act", 1_000_000)])
    assert traffic.sentence == "1,000,000 predictions, all acted on."


@pytest.mark.parametrize(
    ("minute", "ago", "sentence"),
    [
        (0, None, "No predictions yet."),
        (1, 2, "1 prediction in the last minute. Last one: 2 seconds ago."),
        (1_500, 0, "1,500 predictions in the last minute. Last one: just now."),
        (0, 7_300, "No predictions in the last minute. Last one: 2 hours ago."),
    ],
)
def test_current_traffic_as_a_sentence(minute, ago, sentence):
    latest = None if ago is None else NOW - timedelta(seconds=ago)
    assert Live(NOW, minute, latest, 5_000).sentence == sentence


def test_live_figures_are_plain_json():
    traffic = Live(NOW, 3, NOW - timedelta(seconds=9), 5_000).to_dict()
    assert traffic == {
        "now": "2026-03-02T10:45:30+00:00",
        "minute": 3,
        "latest": "2026-03-02T10:45:21+00:00",
        "total": 5_000,
        "sentence": "3 predictions in the last minute. Last one: 9 seconds ago.",
    }


def test_elapsed_time_is_given_in_its_largest_unit():
    assert ago_words(timedelta(days=3, hours=23)) == "3 days ago"
    assert ago_words(timedelta(minutes=1, seconds=59)) == "1 minute ago"
    assert ago_words(timedelta(milliseconds=900)) == "just now"


def test_the_first_window_is_the_shortest():
    assert list(WINDOWS) == ["24h", "7d", "30d"]
