"""Pages about reproductions: every figure is a record's, and what was not run is told."""

import json

import numpy as np
import pytest
from docs.reproduction_charts import CHARTS, _save, _unlike, bin_history, draw_charts
from docs.reproduction_curve_charts import CURVE_CHARTS
from docs.reproduction_extra_charts import EXTRA_CHARTS
from docs.reproduction_extra_tables import EXTRA_TABLES
from docs.reproduction_group_charts import GROUP_CHARTS
from docs.reproduction_nav import _with_pages
from docs.reproduction_pages import experiment_page, index_page, write_pages
from docs.reproduction_records import read_one
from docs.reproduction_tables import commands, how_it_was_run, log_losses
from reproductions.experiment import experiments

WAYS = ("raw", "temperature", "ets", "spline", "auto")
ECES = ("ece_em", "ece_ew", "ece_debiased", "ece_sweep_em")
MACHINE = {
    "cpu": "a processor", "cores": 2, "gpu": "a card", "system": "Linux", "python": "3.12.1",
    "packages": {"torch": "2.0", "none": None},
}  # fmt: skip


def figure(value, floor=None):
    return {"value": value, "low": value / 2, "high": 2 * value, "floor": floor}


def figures(way, raw, error):
    ece = raw if way == "raw" else 0.0222
    found = {name: figure(ece, {"mean": 0.0201, "q95": 0.0299}) for name in ECES}
    return {**found, "nll": figure(0.9), "brier": figure(0.4), "error": figure(error)}


def record(name, method, seed=0, *, raw=0.1, error=0.25, epochs=4, **other):
    """Return a run as `python -m reproductions` keeps it."""
    label = next(m.label for m in experiments()[name].methods if m.name == method)
    epoch = np.arange(epochs)
    sure = 0.5 + 0.03 * np.arange(15)[None] + 0.01 * epoch[:, None]
    bins = {"epoch": epoch, "confidence": sure, "accuracy": sure - raw, "train_confidence": sure}
    seen = {"error": error, "ece_em": raw, "nll": 0.9}
    return {
        "schema": 1, "experiment": name, "method": method, "label": label, "seed": seed,
        "size": "full", "rows": {"train": 1400, "steer": 50, "calib": 60, "test": 200},
        "classes": ["no", "yes"], "note": "Fewer rows.", "epochs": epochs, "best_epoch": 2,
        "seconds": 61.4, "steer": {"refinement": 0.8 + error / 10}, "temperature": 1.57,
        "chosen": "temperature", "figures": {way: figures(way, raw, error) for way in WAYS},
        "test_history": [{"epoch": int(e), **seen} for e in epoch],
        "bins": {key: values.tolist() for key, values in bins.items()},
        "gammas": (1 + 0.1 * sure).tolist() if "adafocal" in method else None, "extras": {},
        "options": {}, "machine": MACHINE, "date": "2026-01-02", "given": {}, **other,
    }  # fmt: skip


def keep(folder, run, loss=0.9):
    place = folder / run["experiment"]
    place.mkdir(parents=True, exist_ok=True)
    path = place / f"{run['method']}-{run['seed']}"
    path.with_suffix(".json").write_text(json.dumps(run), encoding="utf-8")
    rows = np.random.default_rng(0).gamma(2.0, loss / 2, 200).astype(np.float32)
    np.savez(path.with_suffix(".npz"), temperature=rows, auto=rows)


@pytest.fixture
def results(tmp_path):
    folder = tmp_path / "results"
    for seed in range(3):
        keep(folder, record("newsgroups-cnn", "ce", seed, raw=0.1834, error=0.2667))
        keep(folder, record("newsgroups-cnn", "adafocal_paper", seed, raw=0.0266, error=0.2712))
    return folder


def one_of(tmp_path, *runs, notes=None):
    for run in runs:
        keep(tmp_path, run)
    name = runs[0]["experiment"]
    if notes:
        saved = {"size": runs[0]["size"], "notes": notes}
        (tmp_path / name / "notes.json").write_text(json.dumps(saved), encoding="utf-8")
    return read_one(tmp_path, experiments()[name])


def write(results, folder):
    return write_pages(folder, experiments().values(), results)


def everything(folder):
    return {path.name: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_a_page_shows_the_figures_of_its_records_beside_the_papers(results, tmp_path):
    pages = write(results, tmp_path / "out")
    assert [path.name for path in pages] == ["index.md", "newsgroups-cnn.md"]
    page = pages[1].read_text(encoding="utf-8").replace("\N{NO-BREAK SPACE}", " ")
    page = page.replace("\N{WORD JOINER}", "")
    same = "1.11–4.44 | 2.01 (2.99)"  # as trained at the last epoch, then errors
    assert f"| **CE** | 18.57 → 4.08 | 18.34 → 2.22 | {same} | 18.34 | 26.68 | 26.67 |" in page
    assert f"| AdaFocal | 2.62 → 2.46 | 2.66 → 2.22 | {same} | 2.66 | 28.53 | 27.12 |" in page
    assert "The recipe is CE + temperature scaling, chosen on the steer rows." in page
    assert "| CE | 0, 1, 2 | 4 | 3 | 1.57 | temperature scaling | 61 |" in page
    assert (
        "- 2026-01-02: one a card, a processor, 2 cores, Linux; Python 3.12.1, torch 2.0\n" in page
    )
    assert "| 1,400 | 50 | 60 | 200 |" in page
    for chart in ("ece", "epochs", "bins", "gammas", "match"):
        assert f"images/newsgroups-cnn-{chart}.png" in page
        size = (tmp_path / f"out/images/newsgroups-cnn-{chart}.png").stat().st_size
        assert size < 150_000


def test_the_overview_has_a_row_for_each_result_and_tells_what_was_not_run(results, tmp_path):
    page = write(results, tmp_path / "out")[0].read_text(encoding="utf-8")
    page = page.replace("\N{WORD JOINER}", "")
    page = page.replace("\N{NO-BREAK SPACE}", " ")
    row = "| [20 Newsgroups, global-pooling CNN](newsgroups-cnn.md) | 6<br>3 seeds | ECE reached"
    assert f"{row}<br>error reached<br>log loss the same | CE + temperature scaling: ECE_EM" in page
    assert "[20 Newsgroups, global-pooling CNN](newsgroups-cnn.md)<br>CE + temperature" in page
    assert "| 2.13 | 2.22<br>1.11–4.44 | 2.01 (2.99) | 26.67 (26.67) |" in page
    assert "2.01 % on average on 200 test rows" in page
    glance = page.split("## Our recipes")[0]
    assert "| **not run** | – | Not run yet, nor was telling other data sets apart. |" in glance
    assert all(each.title in glance for each in experiments().values())
    below = page.split("## Not run")[1]
    for each in experiments().values():
        assert (f"`{each.name}`" in below) == (each.name != "newsgroups-cnn")
        assert each.run or each.why in below
    assert "not run yet" in below
    assert "www.cs.toronto.edu/~kriz/cifar.html" in below


def test_without_results_the_overview_says_how_to_get_them(tmp_path):
    pages = write(tmp_path / "nothing", tmp_path / "out")
    assert [path.name for path in pages] == ["index.md"]
    assert "There are no results on this copy yet" in pages[0].read_text(encoding="utf-8")


def test_the_same_results_give_the_same_bytes_and_pages_of_before_go(results, tmp_path):
    write(results, tmp_path / "out")
    first = everything(tmp_path / "out")
    write(results, tmp_path / "out")
    assert everything(tmp_path / "out") == first
    write(tmp_path / "nothing", tmp_path / "out")
    assert list(everything(tmp_path / "out")) == ["index.md"]


def test_a_lost_comparison_and_a_missed_goal_stay_visible(tmp_path):
    for seed in range(3):
        keep(tmp_path, record("newsgroups-cnn", "ce", seed, error=0.2), loss=0.9)
        run = record("newsgroups-cnn", "brier", seed, error=0.3)
        run["steer"]["refinement"] = 0.1
        run["figures"]["auto"]["ece_em"]["value"] = 0.0777
        keep(tmp_path, run, loss=1.8)
    found = read_one(tmp_path, experiments()["newsgroups-cnn"])
    page = index_page([], {"newsgroups-cnn": found})
    page = page.replace("\N{NO-BREAK SPACE}", " ")
    assert "ECE **missed**<br>error **missed**<br>log loss **worse**" in page
    assert ", worse |" in log_losses(found)
    assert "CE with temperature scaling wins" in experiment_page(found)


def test_a_smaller_size_is_told_and_the_largest_one_is_shown(tmp_path):
    found = one_of(tmp_path, record("newsgroups-cnn", "ce", size="toy"))
    assert 'warning "Size toy"' in experiment_page(found)
    assert "(size toy)" in index_page([], {"newsgroups-cnn": found})
    assert commands(found) == (
        "python -m reproductions newsgroups-cnn --size toy --methods ce "
        "--out docs/reproductions/results\n"
    )
    found = one_of(tmp_path, record("newsgroups-cnn", "adafocal"))
    assert (found.size, list(found.methods)) == ("full", ["adafocal"])


def test_the_command_repeats_what_was_asked_for(tmp_path):
    given = {"epochs": 4, "device": "cuda"}
    methods = [method.name for method in experiments()["newsgroups-cnn"].methods]
    runs = [record("newsgroups-cnn", name, seed) for name in methods for seed in range(3)]
    assert commands(one_of(tmp_path / "all", *runs)) == (
        "python -m reproductions newsgroups-cnn --out docs/reproductions/results\n"
    )
    one = one_of(tmp_path / "one", record("newsgroups-cnn", "ce", 7, given=given))
    asked = "--methods ce --seeds 7 --device cuda --epochs 4"
    assert asked in commands(one)


def test_a_chart_without_its_data_is_left_out(tmp_path):
    bare = {"test_history": [], "bins": None, "gammas": None}
    found = one_of(tmp_path / "runs", record("newsgroups-cnn", "ce", **bare))
    drawn = draw_charts((*CHARTS, *CURVE_CHARTS, *EXTRA_CHARTS), found, tmp_path / "images")
    assert [chart.name for chart, _ in drawn] == ["ece"]
    assert not any(part(found) for part in EXTRA_TABLES)


def test_bins_of_a_record_are_rebuilt_with_epochs_from_one():
    history = bin_history(record("newsgroups-cnn", "ce", raw=0.2))
    assert history.epoch.tolist() == [1, 2, 3, 4]
    assert history.ece == pytest.approx(0.2)
    assert history.error == pytest.approx(0.2)


def extras_page(tmp_path, name, methods, notes=None):
    runs = [record(name, method, extras=extras) for method, extras in methods.items()]
    found = one_of(tmp_path / "runs", *runs, notes=notes)
    drawn = draw_charts((*CURVE_CHARTS, *EXTRA_CHARTS), found, tmp_path / "images")
    page = experiment_page(found, drawn).replace("\N{NO-BREAK SPACE}", " ")
    return page, [chart.name for chart, _ in drawn]


def test_other_data_sets_are_shown_with_the_papers_figures(tmp_path):
    ood = {"svhn": {"entropy": {"raw": 0.9012, "temperature": 0.9123}}}
    page, charts = extras_page(tmp_path, "cifar10-wrn-26-10", {"ce": {"ood": ood}})
    assert "| CE | 90.12 (96.82) | 91.23 (97.62) |" in page
    assert charts == ["ood"]


def test_a_report_and_the_tutorial_are_shown(tmp_path):
    row = {"class": "high", "precision": None, "recall": 0.5, "f1": 0.6, "support": 1200}
    after = {"classes": [row], "accuracy": 0.82, "macro": row, "support": 2400}
    bins = {"rows": [9, 0], "confidence": [0.7, None], "accuracy": [0.6, None]}
    report = {"after": after, "told": "It is the same.", "bins": {"before": bins, "after": bins}}
    honest = {"temperature": 1.25, "ece": 0.03, "floor": {"mean": 0.0149}}
    printed = {"temperature": 1.5, "ece": 0.0246}
    run = {"seed": 42, "accuracy": 0.8, "ece_before": 0.0582, "printed": printed, "honest": honest}
    notes = {"tutorial": {"told": "It prints.", "bins": 10, "runs": [run]}}
    page, charts = extras_page(tmp_path, "bigmart", {"ce": {"report": report}}, notes)
    assert "| high | – | 50.0 | 60.0 | 1,200 |" in page
    assert "accuracy 82.0 %. It is the same." in page
    assert "| 42 | 80.0 | 5.82 | 1.500 | 2.46 | 1.250 | 3.00 | 1.49 |" in page
    assert charts == ["reliability"]


def test_a_rare_class_is_shown_with_what_moved_it(tmp_path):
    own = {
        "recall": [0.9, 0.4], "f1_macro": 0.7, "mean_score": 0.3, "event_rate": 0.1,
        "ece_em": figure(0.2, {"mean": 0.01, "q95": 0.02}), "auroc": figure(0.9),
        "auprc": figure(0.5),
    }  # fmt: skip
    rare = {"class": "yes", "corrected": False, "log_shift": [0.1, 1.0], "raw": own, "platt": own}
    page, charts = extras_page(
        tmp_path, "long-tail-mammography", {"over_left": {"rare_class": rare}}
    )
    assert (
        "| Over-sampling | 30.00 | 40.00 | 70.00 | 20.00 | 20.00 | 1.00 | 90.00 | 50.00 |" in page
    )
    assert charts == ["rare"]


def promise_of(given, held):
    fresh = {"recall": 0.655, "held": held}
    way = {"reached": False, "why": "too few"}
    if given:
        way = {"reached": True, "threshold": 0.989, "fresh": fresh}
    sets = {"sets": 20, "certified": {"given": 8, "broken": 0}, "naive": {"given": 20, "broken": 9}}
    asked = {"class": "yes", "hold": "yes: precision>=0.85", "golden_sets": sets}
    many = {"confidence": 0.95, "calib": 60, "fresh": 5000, "known": True}
    naive = {"reached": True, "threshold": 0.7, "fresh": {**fresh, "held": False}}
    return {**many, "promises": [{**asked, "certified": way, "naive": naive}]}


@pytest.mark.parametrize(
    ("given", "shown"), [(True, "1 of 1<br>at 0.99 | 1 of 1 | 65.5"), (False, "0 of 1 | – | –")]
)
def test_promises_are_shown_with_whether_they_were_kept(tmp_path, given, shown):
    columns = {"accuracy": 0.852, "precision": 0.85, "recall": 0.79, "f1": 0.8, "nll": 0.347,
               "ece": 0.021, "mce": 0.065, "mce_rows": 103}  # fmt: skip
    part = {"rows": 60, "raw": columns, "temperature": columns}
    true_ce = {"rows": 5000, "raw": 0.06, "temperature": 0.02, "auto": 0.01, "best_accuracy": 0.91}
    bins = {"rows": [0, 9], "confidence": [None, 0.7], "accuracy": [None, 0.6]}
    kept = {"threshold": [0.0, 0.5], "precision": [0.3, None], "recall": [1.0, 0.0]}
    curve = {"reliability": bins, "scores": [5, 4], "thresholds": kept}
    curves = {"raw": curve, "temperature": curve}
    extras = {
        "paper_columns": {"golden": part, "test": part, "curves": curves},
        "true_ce": true_ce,
        "promise": promise_of(given, held=True),
    }
    page, charts = extras_page(tmp_path, "return-reasons-binary", {"ce": extras})
    assert charts == ["reliability", "scores", "thresholds"]
    assert "| CE | paper | 83.6 | 83.8 | 82.3 | 82.8 | 2.159 | 16.8 | 72.0 |  |" in page
    assert "| CE | as trained | 85.2 | 85.0 | 79.0 | 80.0 | 0.347 | 2.1 | 6.5 | 103 |" in page
    assert "| CE | 6.00 | 2.00 | 1.00 |" in page
    assert f"| CE | yes: precision ≥ 0.85 | {shown} | 1 of 1<br>at 0.7 | 0 of 1 | 65.5 |" in page
    assert "| CE | yes: precision ≥ 0.85 | 8 of 20 | 0 (0.0%) | 20 of 20 | 9 (45.0%) |" in page


def test_settings_of_adafocal_are_drawn_and_answered(tmp_path):
    name = "adafocal-ablations"
    methods = ("default", "bins-50", "bins-5", "strength-5", "gamma_max-50", "mode-paper")
    found = one_of(tmp_path / "runs", *(record(name, method) for method in methods))
    drawn = draw_charts(EXTRA_CHARTS, found, tmp_path / "images")
    assert [chart.name for chart, _ in drawn] == ["settings"]
    page = experiment_page(found).replace("\N{NO-BREAK SPACE}", " ")
    assert "# AdaFocal: what its options do\n\n**Of 4 settings none changes ECE_EM" in page
    assert "- Number of bins (usual: 15): 5, 15 and 50 gave the very same runs" in page
    assert page.index("Number of bins") < page.index("### Recipe and goals")


def test_focal_losses_are_held_against_the_papers_claims(tmp_path):
    runs = [record("return-reasons-binary", name) for name in ("ce", "fl1", "fl5")]
    found = one_of(tmp_path, *runs)
    page = experiment_page(found)
    assert "The paper claims that focal loss calibrates better" in page
    assert "\n**As trained ECE_EW is 10.0\N{NO-BREAK SPACE}% with CE" in page
    assert "As trained ECE_EW is" in index_page([], {found.name: found})


def test_the_kept_epoch_is_told_where_it_moves_the_papers_figure(tmp_path):
    later = [{"epoch": e, "error": 0.2, "ece_em": 0.03, "nll": 1.0} for e in range(4)]
    run = record("newsgroups-cnn", "adafocal_paper", raw=0.09, test_history=later)
    page = experiment_page(one_of(tmp_path, run)).replace("\N{NO-BREAK SPACE}", " ")
    assert (
        "Most of all that of AdaFocal: 9.00 % at the epoch that is kept, 3.00 % after the last one "
        "(the paper: 2.62 %)."
    ) in page


def test_equally_wide_bins_stand_beside_what_was_printed_of_them(results):
    page = experiment_page(read_one(results, experiments()["newsgroups-cnn"]))
    page = page.replace("\N{NO-BREAK SPACE}", " ").replace("\N{WORD JOINER}", "")
    assert "| **CE** | 17.92 → 2.39 | 18.34 → 2.22 | 9.17–36.68 | 1.11–4.44 |\n" in page
    assert "Mukhoti et al. (2020)" in page
    assert page.count("| AdaFocal | 2.62 → 2.46 |") == 1  # nobody printed its other error


def test_gammas_at_their_limit_are_told_where_rows_are_still_too_sure(tmp_path):
    gammas = [[20.0] * 2 + [1.0] * 13] * 6
    run = record("newsgroups-cnn", "adafocal_paper", raw=0.12, gammas=gammas)
    told = "in the 2 least sure of 15 bins gamma ended at its limit, 20, and in bin "
    assert told in experiment_page(one_of(tmp_path, run))
    calm = {**run, "gammas": [[20.0 - 5 + i] * 15 for i in range(6)]}  # still on its way
    assert "at its limit" not in experiment_page(one_of(tmp_path, calm))
    right = record("newsgroups-cnn", "adafocal_paper", raw=0.01, gammas=gammas)
    assert "at its limit" not in experiment_page(one_of(tmp_path, right))


def test_methods_that_a_paper_shows_together_have_charts_of_their_own(tmp_path):
    name = "cifar10-resnet50"
    groups = ("ce", "fl3", "fl4", "fl5"), ("ce", "adafocal_paper", "calfocal10", "calfocal100")
    runs = [record(name, method) for method in dict.fromkeys((*groups[0], *groups[1]))]
    found = one_of(tmp_path / "runs", *runs)
    drawn = [chart.name for chart, _ in draw_charts(GROUP_CHARTS, found, tmp_path / "images")]
    assert drawn == [f"{of}-{what}" for of in ("focal", "calfocal")
                     for what in ("epochs", "bins", "match")]  # fmt: skip
    few = one_of(tmp_path / "few", *(run for run in runs if run["method"] in groups[0]))
    drawn = [chart.name for chart, _ in draw_charts(GROUP_CHARTS, few, tmp_path / "images")]
    assert drawn == ["focal-match"]  # the charts of all methods show the rest


def test_a_goal_of_few_seeds_is_open_in_the_overview(tmp_path):
    runs = [record("newsgroups-cnn", method) for method in ("ce", "ls")]
    page = index_page([], {"newsgroups-cnn": one_of(tmp_path, *runs)})
    goals = page.replace("\N{NO-BREAK SPACE}", " ")
    assert "<br>error open<br>log loss the same so far |" in goals
    assert "Of 1 log loss, with few seeds or many: the same in 1." in goals


def test_adafocal_stands_beside_cross_entropy_wherever_both_were_run(results):
    found = {"newsgroups-cnn": read_one(results, experiments()["newsgroups-cnn"])}
    page = index_page([], found).replace("\N{NO-BREAK SPACE}", " ")
    assert "of 1 log losses AdaFocal's is level in 1, by two standard errors" in page
    cells = "AdaFocal | 18.34 → 2.66 | 2.22 → 2.22 | 26.67 → 27.12 | the same |"
    assert f"| [20 Newsgroups, global-pooling CNN](newsgroups-cnn.md) | {cells}" in page


def test_without_adafocal_there_is_no_section_about_it(tmp_path):
    found = one_of(tmp_path, record("newsgroups-cnn", "ce"), record("newsgroups-cnn", "ls"))
    assert "Does AdaFocal pay" not in index_page([], {"newsgroups-cnn": found})


def test_seconds_of_runs_side_by_side_are_told(results):
    found = read_one(results, experiments()["newsgroups-cnn"])
    told = "seconds are those of training, on one NVIDIA H200, 12 to 16 side by side (a run alone"
    assert told in how_it_was_run(found)


def test_methods_that_only_keep_another_epoch_share_a_line(tmp_path):
    runs = [record("newsgroups-cnn", name) for name in ("ce", "ce_best_epoch")]
    assert list(_unlike({run["method"]: [run] for run in runs})) == ["ce"]
    runs[1]["test_history"][0]["ece_em"] = 0.5
    assert len(_unlike({run["method"]: [run] for run in runs})) == 2


def test_thin_lines_keep_their_colours_in_small_pictures(tmp_path):
    import matplotlib.pyplot as plt
    from PIL import Image

    colors = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
    figure, ax = plt.subplots()
    for place, color in enumerate(colors):
        ax.plot([0, 1], [place, place], color=color)
        ax.fill_between([0, 1], place - 2, place + 2, color=color, alpha=0.18, linewidth=0)
    _save(figure, tmp_path / "lines.png")
    plt.close(figure)
    with Image.open(tmp_path / "lines.png") as picture:
        kept = {color for _, color in picture.convert("RGB").getcolors(1 << 20)}
    wanted = {tuple(bytes.fromhex(color[1:])) for color in colors}
    assert wanted | {(255, 255, 255)} <= kept
    assert len(kept) <= 256


def test_pages_come_into_the_navigation_behind_the_overview():
    nav = [{"Home": "index.md"}, {"Evidence": [{"Reproductions": "reproductions/index.md"}]}]
    made = _with_pages(nav, ["reproductions/bigmart.md"])
    overview = {"Overview": "reproductions/index.md"}
    assert made[0] == nav[0]
    assert made[1] == {"Evidence": [{"Reproductions": [overview, "reproductions/bigmart.md"]}]}
