import pytest
from reproductions.experiment import Method, experiments
from reproductions.summary_text import list_text, summary_text
from rich.cells import cell_len
from tests.reproductions.made_records import (
    figure,
    made_experiment,
    made_losses,
    made_record,
    made_runs,
    made_summary,
)


def line_of(text, start):
    return " ".join(next(each for each in text.splitlines() if each.startswith(start)).split())


def test_the_tables_by_hand():
    text = str(made_summary(losses=made_losses()))
    assert text.splitlines()[0] == "Made-up rows"
    head = "Somebody 2020, Table 1. Rows: train 800, steer 100, calib 100, test 400; 2 classes."
    assert head in text
    assert "Run 2026-11-16 to 2026-11-18 on Two cores." in text.replace("\n", " ")
    assert line_of(text, "CE ") == (
        "CE 9.00 → 3.00 8.00 [7.0, 9.0] 4.00 2.00 1.00 (1.50) 0.5000 20.00"
    )
    assert line_of(text, "FL-3 *") == (
        "FL-3 * 4.00 → 2.50 4.00 [3.0, 5.0] 2.00 2.00 1.00 (1.50) 0.5000 20.30"
    )
    second = text[text.index("auto less") :]
    assert line_of(second, "CE ") == "CE 0.5000 0.5000 0.5000 same 0.2500"
    assert line_of(second, "FL-3 *").startswith("FL-3 * 0.5000 0.5000 0.5000 -0.1158 0.00")


def test_every_sentence_is_shown():
    summary = made_summary(losses=made_losses())
    text = " ".join(summary_text(summary, width=80).split())
    for told in summary.sentences:
        assert told in text


@pytest.mark.parametrize("width", [60, 80, 100, 140])
def test_no_line_is_wider_than_the_terminal(width):
    names = [
        "AdaFocal, robust",
        "Label smoothing 0.05",
        "CE",
        "CalFocal, lambda 100",
    ]
    methods = tuple(Method(f"m{i}", name, {"loss": f"l{i}"}) for i, name in enumerate(names))
    published = {f"m{i}": {"ece_em": 18.57, "ece_em_scaled": 10.08} for i in range(3)}
    runs = [made_record(f"m{i}", seed, ece=0.2) for i in range(4) for seed in range(3)]
    summary = made_summary(runs, methods=methods, published=published)
    text = summary_text(summary, width=width)
    assert all(cell_len(line) <= width for line in text.splitlines())
    if width >= 80:
        assert "18.57 → 10.08" in text
        assert "20.00 [19.0, 21.0]" in text
        assert "…" not in text


def test_no_paper_no_column():
    text = str(made_summary(published={}))
    assert "raw → T" not in text
    assert "there is none to reach" in " ".join(text.split())


def test_a_paper_that_has_only_equally_wide_bins_is_shown_beside_those():
    published = {"ce": {"ece": 9.0}, "focal": {"ece_ew": 4.0, "ece_ew_scaled": 2.0}}
    text = str(made_summary(published=published))
    assert "ECE_EW in %" in text.replace("\n", " ")
    assert "9.00 → –" in text
    assert "4.00 → 2.00" in text


def test_what_is_not_there_is_a_dash():
    runs = made_runs()
    for run in runs:
        run["figures"]["auto"] = None
        run["figures"]["raw"]["ece_em"] = {**figure(0.08), "low": None}
    text = str(made_summary(runs))
    assert line_of(text, "CE ") == "CE 9.00 → 3.00 8.00 4.00 – – – –"
    runs[0]["figures"]["raw"] = runs[1]["figures"]["raw"] = runs[2]["figures"]["raw"] = None
    assert line_of(str(made_summary(runs)), "CE ").startswith("CE 9.00 → 3.00 – ")


def test_sizes_seeds_and_days_are_said():
    runs = [{**made_record("ce"), "size": "small", "date": "2026-11-16"}]
    text = " ".join(str(made_summary(runs)).split())
    assert "Size small, not the paper's. Run 2026-11-16 on Two cores." in text
    assert "Means over 1 seed." in text
    uneven = " ".join(str(made_summary(made_runs()[:-1])).split())
    assert "Means over 2 to 3 seeds." in uneven
    assert "Run" not in str(made_summary([{**runs[0], "date": ""}])).splitlines()[1]


def test_nothing_in_a_record_can_steer_the_terminal():
    runs = [{**each, "note": "a note\x1b[31m"} for each in made_runs()]
    assert "\x1b" not in str(made_summary(runs))
    assert "\x1b[" in summary_text(made_summary(runs), color=True)


# The list


def test_the_list_tells_data_runs_and_minutes():
    made = made_experiment(needs=("posts", "vectors"), minutes={"NVIDIA H200": 1.5})
    unrun = made_experiment(
        name="later", needs=("pictures",), run=False, why="The pictures cannot be had here."
    )
    easy = made_experiment(name="easy")
    where = {"vectors": "ask the registry", "pictures": "ask their owners.", "posts": "look"}
    text = list_text([made, unrun, easy], {"posts": True, "vectors": False}, where=where)
    assert line_of(text, "made ").startswith("made Made-up rows ")
    assert "posts (here)" in text
    assert "vectors" in text
    assert "2 x 3" in text
    assert "1.5 (NVIDIA H200)" in text
    assert "Not run: later. The pictures cannot be had here." in text
    assert "Missing: vectors; ask the registry." in text
    assert "Missing: pictures; ask their owners." in text
    assert "Missing: posts" not in text
    assert line_of(text, "easy ").endswith(" not run yet")
    assert "made here" in text


def test_the_list_tells_one_reason_once():
    unrun = [made_experiment(name=name, run=False, why="No pictures.") for name in ("a", "b", "c")]
    assert "Not run: a, b and c. No pictures." in list_text(unrun, {})
    assert "Not run: a. Its data cannot be had here." in list_text(
        [made_experiment(name="a", run=False)], {}
    )


@pytest.mark.parametrize("width", [80, 100])
def test_the_list_of_all_experiments_fits(width):
    text = list_text(experiments().values(), {}, width=width)
    assert all(cell_len(line) <= width for line in text.splitlines())
    assert "…" not in text
    for name in experiments():
        assert name in text  # whole, to be copied
