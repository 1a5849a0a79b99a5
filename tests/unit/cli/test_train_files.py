"""`calibrant train` on real files: small studies end to end, and bad files in one sentence."""

import csv
import json
import random

import pytest
from tests.sentences import assert_mentions

from calibrant.bundle import load_bundle

WORDS = {
    "defect": ["broken", "crack", "scratch", "dead", "faulty", "torn"],
    "size": ["small", "large", "tight", "loose", "long", "short"],
    "late": ["late", "slow", "delayed", "waiting", "days", "courier"],
}
FILL = ["the", "item", "box", "parcel", "it", "came", "was", "very", "and", "my", "order"]
TINY = (
    "--candidates", "ce", "--epochs", 1, "--jobs", 1, "--model", "bilstm", "--pack-anyway",
    "--model-option", "embedding=4",
    "--model-option", "hidden=4", "--model-option", "layers=1", "--training", "min_count=1",
)  # fmt: skip


def messages(n, seed=0, names=tuple(WORDS)):
    rng = random.Random(seed)
    rows = []
    for i in range(n):
        name = names[i % len(names)]
        said = [rng.choice(WORDS.get(name, FILL) + FILL) for _ in range(6)]
        rows.append({"message": f"{' '.join(said)} no {seed}x{i}", "reason": name})
    return rows


def write(path, rows):
    with open(path, "w", newline="", encoding="utf-8") as file:
        table = csv.DictWriter(file, list(rows[0]))
        table.writeheader()
        table.writerows(rows)
    return path


@pytest.fixture
def place(tmp_path, monkeypatch):
    """Work in a folder with logs and a golden set."""
    monkeypatch.chdir(tmp_path)
    write("logs.csv", messages(150))
    write("golden.csv", messages(120, seed=1))
    return tmp_path


def train(cli, *words, golden="golden.csv", tiny=TINY):
    named = ("logs.csv", "--text", "message", "--label", "reason", "--out", "out")
    more = () if golden is None else ("--golden", golden)
    return cli("train", *named, *more, *tiny, *words)


def test_a_study_of_texts_leaves_a_bundle_that_reads_texts(cli, place):
    result = train(cli, "--hold", "defect: precision>=0.05", "--action", "defect=refund")
    assert result.exit_code == 0, result.output
    assert sorted(p.name for p in (place / "out").iterdir()) == [
        "bundle", "candidates", "report.html", "result.json", "splits.json", "study.toml",
    ]  # fmt: skip
    assert load_bundle(place / "out/bundle").predict_proba(["it came broken"]).shape == (1, 3)
    before = (place / "out/study.toml").read_text()
    again = cli("train", "--config", "out/study.toml", "--out", "out", "--json")
    assert again.exit_code == 0, again.output
    assert (place / "out/study.toml").read_text() == before
    found = json.loads(again.stdout)
    assert [each["loss"] for each in found["candidates"]] == ["ce"]
    assert found["operating_points"][0]["hold_text"] == "defect: precision>=0.05"
    assert found["actions"] == {"defect": "refund"}


def test_a_promise_out_of_reach_ends_with_1_and_everything_is_written(cli, place):
    write("logs.csv", messages(240))
    result = train(cli, "--hold", "late: precision>=0.999", "--json", golden=None)
    assert result.exit_code == 1, result.output
    found = json.loads(result.stdout)
    assert found["operating_points"][0]["reached"] is False
    assert (place / "out/bundle/manifest.json").exists()
    assert (place / "out/report.html").exists()


def test_a_study_of_a_table_with_a_label_that_is_cut(cli, place):
    rng = random.Random(0)
    rows = []
    for i in range(200):
        price, shop = rng.random(), rng.choice("abc")
        rows.append(
            {"row_id": f"r{i}", "price": price, "shop": shop, "sales": price + rng.random()}
        )
    write("shop.csv", rows)
    result = cli(
        "train", "shop.csv", "--tabular", "--label", "sales", "--cut", "--drop", "row_id",
        "--candidates", "ce,focal", "--epochs", 1, "--jobs", 1, "--json", "-o", "out",
        "--model", "mlp", "--pack-anyway",
        "--model-option", "hidden=[4]", "--model-option", "dropout=[0.1]",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert (found["kind"], found["classes"]) == ("table", ["high", "low"])


def no_label(rows):
    return [{"message": row["message"], "reasons": row["reason"]} for row in rows]


def emptied(rows):
    return [{**row, "message": " "} for row in rows]


LOGS = {
    "label column missing": (no_label(messages(60)), (), "'reasons'?"),
    "one class": (messages(60, names=("size",)), (), "only one class, 'size'"),
    "all texts empty": (emptied(messages(60)), (), "none of its 60 rows has a text"),
    "class of one row": (
        [*messages(60), {"message": "odd one", "reason": "late fee"}], (), "'late fee'",
    ),
    "text column missing": (messages(60), ("--text", "massage"), "'message'?"),
    "a class for each row": (
        [{"message": f"a {i}", "reason": f"r{i}"} for i in range(60)], (), "reason",
    ),
    "hold of an unknown class": (messages(240), ("--hold", "defects: precision>=0.5"), "'defects'"),
    "action of an unknown class": (messages(240), ("--action", "sizes=refund"), "'sizes'"),
    "group column missing": (messages(60), ("--group", "customer"), "no column 'customer'"),
    "time column missing": (messages(60), ("--time", "day"), "no column 'day'"),
    "no rows": ([], (), "logs.csv"),
}  # fmt: skip


@pytest.mark.parametrize("case", LOGS)
@pytest.mark.parametrize("golden", ["golden.csv", None], ids=["golden", "alone"])
def test_bad_logs_are_told_in_one_sentence(cli, place, case, golden):
    rows, words, says = LOGS[case]
    if rows:
        write("logs.csv", rows)
    else:
        (place / "logs.csv").write_text("message,reason\n")
    refused(train(cli, *words, golden=golden), says, place)


def seen():
    return [*messages(40, seed=1), *messages(150)[3:5]]


GOLDEN = {
    "class the logs lack": (
        [*messages(60, seed=1), {"message": "x y", "reason": "lost"}],
        "'lost'",
    ),
    "rows of the logs": (seen(), "--overlap drop"),
    "label column missing": (no_label(messages(60, seed=1)), "golden.csv has no column 'reason'"),
    "one row": (messages(1, seed=1), "golden.csv"),
}


@pytest.mark.parametrize("case", GOLDEN)
def test_a_bad_golden_set_is_told_in_one_sentence(cli, place, case):
    rows, says = GOLDEN[case]
    write("golden.csv", rows)
    refused(train(cli), says, place)


def test_overlapping_rows_are_named_and_can_be_dropped(cli, place):
    write("golden.csv", seen())
    result = train(cli)
    assert "data row" in result.stderr
    dropped = train(cli, "--overlap", "drop", "--json")
    assert dropped.exit_code == 0, dropped.output
    assert any("2 rows" in note for note in json.loads(dropped.stdout)["notes"])


def test_logs_that_all_stand_in_the_golden_set_are_told_so(cli, place):
    write("golden.csv", messages(150))
    says = "no row of logs.csv is left to train on, because all 150 of them are also in golden.csv"
    refused(train(cli, "--overlap", "drop"), says, place)


def test_logs_of_no_class_are_told_so(cli, place):
    write("logs.csv", messages(60, names=("size",)))
    refused(
        train(cli, "--out-of-scope", "size", golden=None), "the out-of-scope label 'size'", place
    )


@pytest.mark.parametrize("flag", ["DATA", "--golden"])
def test_a_missing_file_is_named(cli, place, flag):
    (place / ("logs.csv" if flag == "DATA" else "golden.csv")).unlink()
    refused(train(cli), "logs.csv" if flag == "DATA" else "golden.csv", place)


def test_weights_that_are_no_numbers_are_refused(cli, place):
    write("golden.csv", [{**row, "w": "heavy"} for row in messages(60, seed=1)])
    refused(train(cli, "--weight", "w"), "'w'", place)


def table_rows(n=240):
    rng = random.Random(0)
    return [
        {"ticket_id": f"T{i:05}", "price": rng.random(), "mixed": rng.choice(["3", "x"]),
         "sold": rng.choice(["few", "many"])}
        for i in range(n)
    ]  # fmt: skip


TABLES = {
    "id column": ((), "'ticket_id'"),
    "drop of nothing": (("--drop", "tickets_id"), "'ticket_id'?"),
    "category of nothing": (("--drop", "ticket_id", "--category", "shop"), "no column 'shop'"),
    "everything dropped": (
        ("--drop", "ticket_id", "--drop", "price", "--drop", "mixed"), "no column left",
    ),
    "words to cut": (("--drop", "ticket_id", "--cut"), "--cut"),
    "number as label": (("--drop", "ticket_id", "--label", "price"), "--cut"),
}  # fmt: skip


@pytest.mark.parametrize("case", TABLES)
def test_bad_tables_are_told_in_one_sentence(cli, place, case):
    words, says = TABLES[case]
    write("shop.csv", table_rows())
    tiny = ("--candidates", "ce", "--model", "mlp", "--epochs", 1, "--jobs", 1, "--out", "out")
    refused(cli("train", "shop.csv", "--tabular", "--label", "sold", *tiny, *words), says, place)


TAKEN = [
    *("predicted", "prob_few", "decision", "acted_as", "action"),
    *("decision_rule", "decision_score", "decision_threshold", "out_of_scope", "prediction_id"),
]


@pytest.mark.parametrize("name", TAKEN)
def test_a_feature_that_predict_would_write_over_is_refused(cli, place, name):
    rows = [{name: row.pop("price"), "prob": 1, **row} for row in table_rows()]
    write("shop.csv", rows)
    words = ("train", "shop.csv", "--tabular", "--label", "sold", "--drop", "ticket_id")
    tiny = ("--candidates", "ce", "--model", "mlp", "--epochs", 1, "--jobs", 1, "--out", "out")
    says = f"'{name}' is the name of a column that calibrant predict adds: rename it, or leave it"
    refused(cli(*words, *tiny), says, place)


def test_a_study_that_has_no_bundle_yet_is_told_so(cli, place):
    (place / "out/candidates").mkdir(parents=True)
    result = cli("predict", "out/bundle", "logs.csv")
    assert_mentions(result.stderr, "calibrant train", "calibrant pack")
    (place / "out/bundle").mkdir()
    (place / "out/bundle/manifest.json").touch()
    assert "no manifest.json): use out/bundle." in cli("predict", "out", "logs.csv").stderr


def test_a_column_of_numbers_and_words_is_a_category(cli, place):
    write("shop.csv", table_rows())
    result = cli(
        "train", "shop.csv", "--tabular", "--label", "sold", "--drop", "ticket_id",
        "--candidates", "ce", "--epochs", 1, "--jobs", 1, "--out", "out", "--json",
        "--model", "mlp", "--pack-anyway",
    )  # fmt: skip
    assert result.exit_code == 0, result.output


@pytest.mark.parametrize("golden", ["golden.csv", None], ids=["golden", "alone"])
def test_too_few_rows_to_calibrate_on_are_told_before_any_training(cli, place, golden):
    write("logs.csv" if golden is None else "golden.csv", messages(30, seed=1))
    says = "hold more rows out" if golden is None else "label more golden rows"
    refused(train(cli, golden=golden), says, place)
    assert not (place / "out/candidates").exists()


def refused(result, says, place):
    """One sentence, no traceback, nothing that looks like a study."""
    assert result.exit_code == 2, result.output
    assert says in result.stderr
    assert result.stderr.count("\n") == 1
    assert "Traceback" not in result.output
    assert result.stdout == ""
    assert not (place / "out/bundle").exists()
