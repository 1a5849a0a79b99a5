"""The page of threshold figures: every cell that can be promised is shown, no loss is hidden."""

from docs.threshold_figures import figures_page

SETTINGS = {"MAPIE 8 starts": "eight starts", "MAPIE as it comes": "its defaults"}


def cell(world, n, ours, theirs, *, holds=True, nobody=False):
    recall = {"calibrant": ours, "MAPIE 8 starts": theirs, "MAPIE as it comes": 0.0}
    counts = {"calibrant": 300, "MAPIE 8 starts": 250, "MAPIE as it comes": 0}
    broken = {"calibrant": 9, "MAPIE 8 starts": 1, "MAPIE as it comes": 0}
    return {"world": world, "n": n, "target": 0.85, "recall": recall, "issued": counts,
            "broken": broken, "best_of_mapie": "MAPIE 8 starts", "difference": ours - theirs,
            "paired_error": 0.01, "holds": holds, "nobody": nobody}  # fmt: skip


def result(*cells):
    details = {
        "repetitions": 300,
        "settings": SETTINGS,
        "worlds": {"hard_case": "A hard case.", "easy": "An easy one."},
        "mean_recall": {"calibrant": 0.4, "MAPIE 8 starts": 0.3, "MAPIE as it comes": 0.1},
        "versions": {"MAPIE": "1.6.0"},
        "table": cells,
    }
    return {"machine": {"date": "2026-01-01", "cpu": "a machine"}, "goals": [{"details": details}]}


def test_without_results_the_page_says_how_to_get_them():
    assert "make bench" in figures_page(None, None)


def test_recall_stands_beside_theirs_with_the_best_in_bold():
    page = figures_page(result(cell("easy", 1000, 0.512, 0.401)), None)
    assert "| easy | 1,000 | **0.512** | 0.401 | +0.111" in page
    assert "Lost cells" not in page
    assert "| Calibrant | 0.400 | 100% | 9 of 300 | 3.0% |" in page


def test_a_lost_cell_is_named():
    lost = cell("hard_case", 5000, 0.2, 0.3, holds=False)
    page = figures_page(result(cell("easy", 1000, 0.5, 0.4), lost), None)
    below = page.split("## Lost cells")[1]
    assert "5,000" in below
    assert "−0.100" in below
    assert "two standard errors in 1." in page


def test_a_cell_in_which_nobody_can_promise_is_marked_and_not_shown_as_a_draw():
    page = figures_page(
        result(cell("easy", 1000, 0.5, 0.4), cell("hard_case", 300, 0, 0, nobody=True)), None
    )
    table, marked = page.split("## Where nobody can promise anything")
    assert "| hard_<wbr>case | 300 |" not in table
    assert "85% from 300 rows" in marked


def test_a_missed_goal_of_speed_stays():
    times = {"calibrant": {"median_s": 1.5}, "MAPIE, once": {"seconds": 3.0}}
    goals = [{"goal": "under 1 s", "measured": 1.5, "unit": "s", "met": False, "details": times}]
    page = figures_page(result(cell("easy", 1000, 0.5, 0.4)), {"goals": goals})
    assert "**MISSED**" in page
    assert "| MAPIE, once | 3.000 s |" in page
