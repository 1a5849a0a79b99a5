"""The page of guarantees shows how many promises were broken, also where it is too many."""

from docs.promise_tables import promises_part

KEPT = {
    "what": "precision>=0.85", "world": "constant_rate", "n": 300, "delta": 0.05, "broken": 60,
    "issued": 60, "runs": 2000, "kept": True,
}  # fmt: skip
FAILED = {**KEPT, "n": 1000, "broken": 200, "issued": 400, "kept": False}
WRONG = {**KEPT, "what": "no test at all", "broken": 1100, "kept": False}


def found(*cells):
    return {
        "date": "2026-01-01", "repetitions": 2000, "machine": "a machine", "cells": list(cells),
        "wrong_ways": [WRONG],
    }  # fmt: skip


def test_broken_and_issued_are_shares_of_all_samples():
    page = promises_part(found(KEPT))
    assert "| constant_rate | 5% | 3.00% / 3.0% |" in page
    assert "1 cells, 1 passed, 0 failed" in page
    assert "2,000 samples a cell" in page


def test_a_failed_cell_stays_and_is_named():
    page = promises_part(found(KEPT, FAILED))
    assert "| constant_rate | 5% | 3.00% / 3.0% | **10.00% / 20.0%** |" in page
    assert "2 cells, 1 passed, 1 failed" in page
    assert "precision>=0.85 (constant_rate, n = 1,000) with 10.00% broken" in page


def test_wrong_ways_are_shown_beside_what_they_may_break():
    assert "| no test at all | constant_rate | 300 | 5% | 55.00% |" in promises_part(found(KEPT))


def test_without_figures_there_is_no_part():
    assert promises_part(None) == ""
