"""The page of guarantees shows what was counted at the service, also what should not be."""

from docs.generate import guarantees_page
from docs.serving_tables import serving_part

COUNTS = {
    "database": "SQLite", "workers": 1, "acknowledged": 2029, "rows": 15753, "retried": 194,
    "unheard": 34, "in_doubt": 36, "in_doubt_on_record": 3, "outcomes": 388, "lost": 0, "twice": 0,
    "halves": 0, "different": 0, "strangers": 0, "faults": 0, "kept": True,
}  # fmt: skip
KILL = {**COUNTS, "killed": "every process", "kills": 20}
OUTAGE = {**COUNTS, "trouble": "the disk is full", "refused": 1234}
STOP = {**COUNTS, "stops": 5, "in_doubt": 2, "in_doubt_on_record": 0}
SWAP = {**COUNTS, "swaps": 3, "failed": 0, "misattributed": 0}
WRONG = {**COUNTS, "way": "answers before it writes", "kills": 10, "lost": 1494, "kept": False}


def found(**changes):
    return {
        "date": "2026-01-01", "machine": "a machine", "kills": [KILL], "outages": [OUTAGE],
        "stops": [STOP], "swaps": [SWAP], "wrong_ways": [WRONG], **changes,
    }  # fmt: skip


def test_every_run_is_a_row():
    page = serving_part(found())
    for row in (
        "| SQLite | 1 | every process | 20 | 2,029 | 15,753 | 194 | 34 | 36 (3) | 0 | 0 | 0 | 0 |",
        "| SQLite | the disk is full | 1,234 | 2,029 | 194 | 0 | 0 | 0 |",
        "| SQLite | 1 | 5 | 2,029 | 2 | 0 | 0 | 0 |",
        "| SQLite | 3 | 2,029 | 0 | 0 | 0 | 0 |",
        "| answers before it writes | 10 | 1,494 | 0 | 0 | yes |",
    ):
        assert row in page
    assert "20 kills, 2,029 acknowledged requests, nothing lost, nothing twice" in page


def test_what_was_lost_stands_out():
    page = serving_part(found(kills=[{**KILL, "lost": 3, "kept": False}]))
    assert "acknowledged requests, **3 faults**" in page
    assert "| **3** |" in page


def test_a_wrong_service_that_was_not_caught_stands_out():
    page = serving_part(found(wrong_ways=[{**WRONG, "lost": 0, "kept": True}]))
    assert "| answers before it writes | 10 | 0 | 0 | 0 | **no** |" in page


def test_the_part_is_on_the_page_where_there_are_figures():
    assert serving_part(None) == ""
    assert "Nothing lost" in guarantees_page({"date": "2026-01-01", "serving": found()})
    assert "Nothing lost" not in guarantees_page({"date": "2026-01-01"})
