"""`calibrant predict --reasons`: the strongest parts of each row, in every format and remotely."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest
from tests.sentences import assert_mentions
from tests.unit.boosting.models import TABLE as SHELVES
from tests.unit.bundle.explained import (
    UNEXPLAINED,
    explained_bundle,
    ngram_scorer,
    wet_scorer,
)
from tests.unit.bundle.model_parts import TABLE, TEXTS
from tests.unit.bundle.parts import CLASSES, rows, temperature
from tests.unit.serving.running import running

from calibrant.bundle import load_bundle, pack
from calibrant.files.write_table import write_tables
from calibrant.workflows import predict as workflow

FAR = {"price": [1e6, None], "shelf": ["top", "low"]}


@pytest.fixture(scope="module")
def boosted(tmp_path_factory):
    """Boosted trees that decide."""
    return explained_bundle(tmp_path_factory.mktemp("boosted") / "bundle", decides=True).path


@pytest.fixture(scope="module")
def wet(tmp_path_factory):
    """N-grams with round weights, without a point."""
    folder = tmp_path_factory.mktemp("wet") / "bundle"
    return explained_bundle(folder, scorer=wet_scorer(column="text")).path


def written(path, columns):
    write_tables(path, [pa.table(columns)])
    return path


def read(path):
    if path.suffix == ".parquet":
        return pq.read_table(path).to_pydict()
    if path.suffix == ".jsonl":
        lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        return {name: [line[name] for line in lines] for name in lines[0]}
    return pacsv.read_csv(path).to_pydict()


def reasons_of(path):
    return [json.loads(cell) for cell in read(path)["reasons"]]


def shelves_file(path):
    table = {name: [*SHELVES[name][:40], *FAR[name]] for name in SHELVES}
    return written(path, table)


def test_two_words_by_hand_and_without_a_point(cli, wet, tmp_path):
    file = written(tmp_path / "in.jsonl", {"text": ["dry wet", "wet", "lost", None]})
    out = tmp_path / "out.jsonl"
    result = cli("predict", wet, file, "-o", out, "--reasons", 5)
    assert result.exit_code == 0, result.output
    half = pytest.approx(np.sqrt(0.5), abs=1e-6)
    both, one, lost, empty = reasons_of(out)
    assert [each["part"] for each in both] == ["dry", "wet"]
    assert both[0]["contribution"] / 3 == half
    assert both[1]["contribution"] / -2 == half
    assert one == [{"part": "wet", "contribution": 2.0}]  # it is predicted as "no"
    assert lost == empty == []  # the model knows no word of them
    assert list(read(out)) == ["text", "predicted", "prob_no", "prob_yes", "reasons"]


@pytest.mark.parametrize("ending", [".csv", ".parquet", ".jsonl", ".csv.gz"])
def test_every_format_holds_what_the_bundle_explains(cli, boosted, tmp_path, ending, monkeypatch):
    monkeypatch.setattr(workflow, "_BLOCK", 7)  # in several blocks
    file, out = shelves_file(tmp_path / "in.parquet"), tmp_path / f"out{ending}"
    assert cli("predict", boosted, file, "-o", out, "--reasons", 2).exit_code == 0
    table = {name: [*SHELVES[name][:40], *FAR[name]] for name in SHELVES}
    bundle = load_bundle(boosted)
    explained = bundle.explain(table).rows
    labels = bundle.predict_proba(table).argmax(axis=1).tolist()
    wanted = [
        [each._asdict() for each in row.reasons(label, 2)]
        for row, label in zip(explained, labels, strict=True)
    ]
    wanted[40] = []  # its price is too far from the train rows to be judged
    assert reasons_of(out) == wanted
    assert sum(map(bool, wanted)) >= 40


def test_there_is_no_column_unless_it_is_asked_for(cli, boosted, tmp_path):
    file, out = shelves_file(tmp_path / "in.parquet"), tmp_path / "out.parquet"
    for flags in ((), ("--reasons", 0)):
        assert cli("predict", boosted, file, "-o", out, *flags).exit_code == 0
        assert "reasons" not in read(out)
    plain = read(out)
    assert cli("predict", boosted, file, "-o", out, "--reasons", 1).exit_code == 0
    explained = read(out)
    del explained["reasons"]
    assert list(explained) == list(plain)
    assert explained["predicted"] == plain["predicted"]


def test_redacted_texts_show_no_address(cli, tmp_path):
    texts = ["write to missing@arrival.com, it broke", "broken: call anna.b@shop.example now"]
    scorer = ngram_scorer([*TEXTS, *texts], redact=True, column="text")
    bundle = explained_bundle(tmp_path / "bundle", scorer=scorer).path
    file, out = written(tmp_path / "in.csv", {"text": texts}), tmp_path / "out.parquet"
    assert cli("predict", bundle, file, "-o", out, "--reasons", 100).exit_code == 0
    cells = " ".join(read(out)["reasons"])
    assert "broke" in cells
    for secret in ("@", "missing", "arrival", "anna", "shop", "example"):
        assert secret not in cells


@pytest.mark.parametrize("ending", [".csv", ".parquet", ".jsonl"])
@pytest.mark.parametrize("kind", ["table", "text"])
def test_a_service_gives_the_reasons_of_its_bundle(cli, tmp_path, boosted, wet, kind, ending):
    bundle = boosted if kind == "table" else wet
    texts = {"text": ["dry wet", "wet", "lost", "dry", "dry dry wet"] * 60}
    file = (
        shelves_file(tmp_path / "in.parquet")
        if kind == "table"
        else written(tmp_path / "in.parquet", texts)
    )
    local, remote = tmp_path / f"local{ending}", tmp_path / f"remote{ending}"
    assert cli("predict", bundle, file, "-o", local, "--reasons", 3).exit_code == 0
    with running(bundle, f"sqlite:///{tmp_path}/calibrant.db") as service:
        result = cli("predict", service.url, file, "-o", remote, "--reasons", 3)
    assert result.exit_code == 0, result.output
    found = read(remote)
    assert found.pop("prediction_id")
    assert list(found) == list(read(local))
    assert found["reasons"] == read(local)["reasons"]


@pytest.mark.parametrize("kind", UNEXPLAINED)
def test_models_without_reasons_are_refused_before_a_row_is_read(cli, tmp_path, kind):
    bundle = explained_bundle(tmp_path / "bundle", scorer=UNEXPLAINED[kind]()).path
    column = {"message": TEXTS} if kind == "network" else TABLE
    file, out = written(tmp_path / "in.parquet", column), tmp_path / "out.csv"
    result = cli("predict", bundle, file, "-o", out, "--reasons", 5)
    assert result.exit_code == 2
    assert_mentions(result.stderr, "--reasons 5", "boosting", "ngrams", "leave --reasons out")
    assert not out.exists()
    assert cli("predict", bundle, file, "-o", out).exit_code == 0


def test_score_files_have_no_reasons(cli, tmp_path):
    bundle = pack(tmp_path / "bundle", calibrator=temperature(), force=True).path
    columns = {f"logit_{name}": column for name, column in zip(CLASSES, rows(5).T, strict=True)}
    result = cli("predict", bundle, written(tmp_path / "in.csv", columns), "--reasons", 3)
    assert result.exit_code == 2
    assert_mentions(result.stderr, "--reasons 3", "no model")


def test_a_service_without_reasons_is_refused_before_a_row_is_sent(cli, tmp_path):
    bundle = explained_bundle(tmp_path / "bundle", scorer=UNEXPLAINED["ensemble"]()).path
    file = written(tmp_path / "in.csv", TABLE)
    with running(bundle, f"sqlite:///{tmp_path}/calibrant.db") as service:
        result = cli("predict", service.url, file, "--reasons", 3)
        assert result.exit_code == 2
        assert_mentions(result.stderr, "--reasons 3", service.url, "leave --reasons out")


def test_a_column_of_that_name_is_not_overwritten(cli, wet, tmp_path):
    file = written(tmp_path / "in.csv", {"text": ["dry"], "reasons": ["mine"]})
    out = tmp_path / "out.csv"
    result = cli("predict", wet, file, "-o", out, "--reasons", 1)
    assert result.exit_code == 2
    assert_mentions(result.stderr, "in.csv", "'reasons'", "rename")
    assert cli("predict", wet, file, "-o", out).exit_code == 0  # without the flag it is copied
    assert read(out)["reasons"] == ["mine"]


@pytest.mark.parametrize("number", [-1, 101, "many"])
def test_the_number_of_reasons_is_checked(cli, wet, tmp_path, number):
    file = written(tmp_path / "in.csv", {"text": ["dry"]})
    result = cli("predict", wet, file, "--reasons", number)
    assert result.exit_code == 2
    assert_mentions(result.stderr, "--reasons")
