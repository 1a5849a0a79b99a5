"""`python -m reproductions`: the list, a run, and every way to ask wrongly."""

import gzip
import io
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from reproductions.__main__ import load_app
from tests.few_draws import few_draws
from typer.testing import CliRunner


@pytest.fixture
def cli():
    """Run the command line in this process, with rough intervals."""
    with few_draws():
        yield lambda *words: CliRunner().invoke(load_app(), [str(word) for word in words])


def test_the_list_tells_names_data_and_what_was_not_run(cli, monkeypatch):
    monkeypatch.delenv("CALIBRANT_DATA", raising=False)
    found = cli("--list")
    assert found.exit_code == 0
    for word in ("newsgroups-cnn", "cifar10-resnet50", "bigmart", "not run", "missing"):
        assert word in found.stdout
    told = json.loads(cli("--list", "--json").stdout)["reproductions"]
    by_name = {each["name"]: each for each in told}
    assert by_name["newsgroups-cnn"]["needs"]["newsgroups20"] is False
    assert not by_name["imagenet-resnet50"]["run"]
    assert by_name["imagenet-resnet50"]["why"]


def test_a_run_ends_with_a_table_beside_the_papers(cli, tmp_path):
    asked = ("newsgroups-cnn", "--size", "toy", "--out", tmp_path)
    found = cli(*asked)
    assert found.exit_code == 0, found.stderr
    assert "18.57" not in found.stdout  # made-up rows are held against no paper
    assert "Made-up rows and a tiny network" in found.stdout.replace("\n", " ")
    assert "AdaFocal" in found.stdout
    assert str(tmp_path / "newsgroups-cnn") in found.stdout
    told = json.loads(cli(*asked, "--json").stdout)  # nothing is run again
    assert [each["name"] for each in told["methods"]] == ["ce", "adafocal"]
    assert told["extras"].keys() == {"ce-0", "adafocal-0"}
    # Another size in the same folder goes its own way: it is refused, and nothing is mixed.
    refused = cli("newsgroups-cnn", "--size", "toy", "--epochs", "2", "--out", tmp_path)
    assert refused.exit_code == 2
    assert "--again" in refused.stderr


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ([], "NAME is missing"),
        (["bigmrt"], "did you mean 'bigmart'"),
        (["bigmart", "--size", "huge"], "size must be 'full', 'small' or 'toy'"),
        (["bigmart", "--methods", "cee"], "there is no method 'cee'"),
        (["bigmart", "--seeds", "a,b"], "--seeds must be whole numbers"),
        (["bigmart", "--seeds", "-1"], "--seeds must be whole numbers"),
        (["bigmart", "--seeds", ""], "--seeds must be whole numbers"),
        (["bigmart", "--seeds", "4294967296"], "--seeds must be whole numbers"),
        (["bigmart", "--methods", ","], "--methods must be names"),
        (["bigmart", "--size", "toy", "--methods", "soft_f1"], "no method at size toy 'soft_f1'"),
        (["bigmart", "--again", "--calibrate-again"], "give one of them"),
        (
            ["bigmart", "--size", "toy", "--calibrate-again"],
            "ce-0.json is not there, or not whole: run it first",
        ),
        (["clinc150", "--calibrate-again"], "need its networks"),
        (["newsgroups-cnn"], "CALIBRANT_DATA"),
        (["imagenet-resnet50"], "CALIBRANT_DATA"),
    ],
)
def test_what_cannot_be_done_is_told_in_a_sentence(cli, tmp_path, monkeypatch, words, told):
    monkeypatch.delenv("CALIBRANT_DATA", raising=False)
    monkeypatch.setattr("pooch.retrieve", _no_network)
    found = cli(*words, "--out", tmp_path)
    assert found.exit_code == 2
    assert told in found.stderr
    assert "Traceback" not in found.stderr


def _no_network(*_, **__):
    raise OSError("no network")


@pytest.mark.parametrize(
    ("name", "folder", "file"),
    [
        ("newsgroups-cnn", "newsgroups20", "newsgroups20.parquet"),
        ("it-tickets", "it_tickets", "it_tickets.parquet"),
        ("womens-clothing", "womens_clothing", "womens_clothing_reviews.csv.gz"),
        ("clinc150", "clinc150", "clinc150_imbalanced.jsonl.gz"),
        ("bigmart", "bigmart", "bigmart_train.csv.gz"),
        ("long-tail-mammography", "mammography", "mammography.csv.gz"),
    ],
)
@pytest.mark.parametrize("damage", ["empty", "text", "cut", "columns"])
def test_a_damaged_data_file_is_named(cli, tmp_path, monkeypatch, name, folder, file, damage):
    path = tmp_path / "data" / folder / file
    path.parent.mkdir(parents=True)
    path.write_bytes(_damaged(file, damage))
    monkeypatch.setenv("CALIBRANT_DATA", str(tmp_path / "data"))
    found = cli(name, "--size", "small", "--methods", "ce", "--out", tmp_path / "out")
    assert found.exit_code == 2, found.stderr
    assert file in found.stderr
    assert "Traceback" not in found.stderr


def _damaged(file, damage):
    if damage in ("empty", "text"):
        return b"" if damage == "empty" else b"hi there"
    if file.endswith("parquet"):
        sink = io.BytesIO()
        pq.write_table(pa.table({"other": ["a"] * 200}), sink)
        whole = sink.getvalue()
    elif file.endswith("jsonl.gz"):
        whole = gzip.compress(b'{"other": 1}\n' * 200)
    else:
        whole = gzip.compress(b"other,columns\n" + b"1,2\n" * 200)
    return whole[: len(whole) // 2] if damage == "cut" else whole


def test_a_folder_that_is_nobodys_does_not_break_the_list(cli, monkeypatch):
    monkeypatch.setenv("CALIBRANT_DATA", "~nobody_is_called_so/data")
    assert cli("--list").exit_code == 0


def test_a_seed_or_method_that_is_named_twice_is_run_once(cli, tmp_path):
    asked = ("--size", "toy", "--methods", "ce,ce", "--seeds", "0,0", "--out", tmp_path)
    found = cli("newsgroups-cnn", *asked)
    assert found.exit_code == 0, found.stderr
    assert "of 2" not in found.stderr


def test_what_is_special_about_an_experiment_is_told_at_the_end(cli, tmp_path):
    found = cli("bigmart", "--size", "toy", "--methods", "ce", "--out", tmp_path)
    assert found.exit_code == 0, found.stderr
    words = " ".join(found.stdout.split())
    assert "The tutorial's recipe as written" in words
    asked = ("--size", "toy", "--out", tmp_path, "--json")
    told = json.loads(cli("return-reasons-binary", *asked).stdout)
    assert any(each.startswith("Thresholds put by hand") for each in told["findings"])
    assert "true_ce" in told["extras"]["ce-0"]
