"""The pages about calibrators: facts come from the methods, figures and losses from the results."""

from pathlib import Path

import pytest
from docs.calibrator_figures import figures_page
from docs.calibrator_pages import methods_table, with_methods

from calibrant.calibrators import list_methods

GUIDE = (Path(__file__).resolve().parents[2] / "docs/calibrators.md").read_text(encoding="utf-8")
FIGURES = {"ece_ew": 0.01, "ece_em": 0.02, "brier": 0.1, "fit_s": 0.002, "harm": False}


def row(case, method, nll, change, package="calibrant", **more):
    named = {"case": case, "package": package, "method": method}
    return {**named, **FIGURES, "nll": nll, "nll_change": change, **more}


def result(table, goals=()):
    cases = [
        {"case": "net", "group": "networks", "classes": 10, "fitted": 5000, "judged": 10000},
        {"case": "coin", "group": "worlds", "classes": 2, "fitted": 5000, "judged": 100000},
    ]
    details = {"harmed": [], "versions": {"netcal": "1.4.0"}, "cases": cases, "table": table}
    first = goal("automatic choice harms none", 0.0, details)
    return {"machine": {"date": "2026-01-01", "cpu": "a machine"}, "goals": [first, *goals]}


def goal(text, measured, details, limit=1.0):
    met = measured < limit
    return {"goal": text, "measured": measured, "limit": limit, "unit": "cases", "sense": "below",
            "ratio": measured / limit, "met": met, "details": details}  # fmt: skip


TABLE = [
    row("net", "auto", 0.30, -0.25, chosen="temperature"),
    row("net", "identity", 0.40, 0.0),
    row("net", "temperature", 0.30, -0.25),
    row("net", "histogram", 0.44, 0.10, harm=True),
    row("net", "isotonic", None, None, package="netcal", harm=True),
    row("net", "logistic", 0.20, -0.50, package="netcal"),
    {"case": "net", "package": "netcal", "method": "beta", "why_not": "would take over a minute"},
    row("coin", "auto", 0.50, 0.0, chosen="identity", true_ce=0.0),
    row("coin", "identity", 0.50, 0.0, true_ce=0.0),
    row("coin", "temperature", 0.501, 0.002, true_ce=0.004),
]


def test_the_table_of_methods_on_the_page_is_that_of_today():
    assert with_methods(GUIDE) == GUIDE, "run docs/generate.py"


def test_every_method_has_its_facts_in_the_table():
    found = methods_table()
    lines = {line.split("`")[3]: line for line in found.splitlines() if "<br>" in line}
    assert lines.keys() == list_methods().keys()
    assert lines["temperature"].endswith("| yes | yes | – |")
    assert lines["platt"].endswith("| – | yes | yes |")
    assert "as its parts" in lines["chain"]
    assert "This holds for all of them: takes weights." in found


def test_a_page_without_the_marks_is_refused():
    with pytest.raises(SystemExit, match="needs the marks"):
        with_methods("# Calibrators\n")


def test_without_results_the_page_says_how_to_make_them():
    assert "make bench" in figures_page(None, None)


def test_methods_are_sorted_and_those_that_fail_stand_below():
    page = figures_page(result(TABLE), None).replace("\N{NO-BREAK SPACE}", " ")
    networks = page.partition("## Networks")[2].partition("### ")[0]
    names = [line.split("|")[1].strip() for line in networks.splitlines() if line.startswith("| ")]
    expected = ["netcal logistic", "`auto`", "`temperature`", "`identity`", "`histogram`"]
    assert names[2:] == [*expected, "netcal isotonic", "netcal beta"]
    assert "| netcal isotonic | ∞ in 1 of 1 | 1 of 1 |" in networks
    assert "| netcal beta | not run |" in networks
    assert "- netcal beta, 1 of 1 cases: would take over a minute." in networks
    assert "| `histogram` | +10.0% | 1 of 1 |" in networks


def test_a_case_shows_when_another_library_is_ahead_and_when_we_did_harm():
    page = figures_page(result(TABLE), None)
    shown = "`temperature` −25.0% | `temperature` −25.0% | **netcal logistic −50.0%** |"
    assert f"| net | 10 | 0.4000 | {shown}" in page
    assert "| `histogram` | 1 | net +10.0% |" in page
    assert "0 of 2 cases harmed" in page


def test_true_errors_stand_where_the_truth_is_known():
    page = figures_page(result(TABLE), None)
    assert "true error" not in page.partition("## Networks")[2].partition("## Worlds")[0]
    assert "true error" in page.partition("## Worlds of two classes")[2]


def test_missed_goals_and_lost_comparisons_stay():
    lost = {"method": "ets", "peer": "probmetrics: ETS", "case": "net"}
    lost |= {"held_out_relative": 0.348, "held_out_z": 17.9}
    missed = goal("ets: held-out NLL clearly above probmetrics", 2.0, {"losing": [lost]})
    page = figures_page(result(TABLE, [missed]), None)
    assert "2 goals, 1 missed" in page
    assert "| ets: held-out NLL clearly above probmetrics | 2 | below 1 | **MISSED** |" in page
    assert "| `ets` | probmetrics: ETS | net | +34.8% | 17.9 |" in page
    assert "No comparison was lost." in figures_page(result(TABLE), None)


def test_the_automatic_choice_is_shown_by_number_of_rows_where_it_was_measured():
    summary = {"n": 500, "cases": 20, "harm_share": 0.021, "regret": -0.0035, "best_single": "ets"}
    summary |= {"chosen": {"temperature": 3, "identity": 1}}
    summary |= {"worst_cases": [{"case": "world: coin", "nll_change": 0.004}]}
    harm = goal("harms fewer than 5 %", 0.021, {"table": summary}, 0.05)
    regret = goal("regret at most 0.5 %", 0.009, {"best_single": "ets"}, 0.005)
    page = figures_page(result(TABLE), {"goals": [harm, regret]})
    assert "| 500 | 20 | 2.1% | −0.35% | `ets` | `temperature` 75%, `identity` 25% |" in page
    assert "| 500 | world: coin | +0.4% |" in page
    assert "| regret at most 0.5 % | 0.009 | **MISSED** |" in page
    assert "by number of rows" not in figures_page(result(TABLE), None)
