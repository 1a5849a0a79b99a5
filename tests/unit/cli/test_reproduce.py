"""`calibrant reproduce`: the list, a run, and every way to ask wrongly."""

import json

import pytest


def test_the_list_tells_names_data_and_what_was_not_run(cli, monkeypatch):
    monkeypatch.delenv("CALIBRANT_DATA", raising=False)
    found = cli("reproduce", "--list")
    assert found.exit_code == 0
    for word in ("newsgroups-cnn", "cifar10-resnet50", "bigmart", "not run", "missing"):
        assert word in found.stdout
    told = json.loads(cli("reproduce", "--list", "--json").stdout)["reproductions"]
    by_name = {each["name"]: each for each in told}
    assert by_name["newsgroups-cnn"]["needs"]["newsgroups20"] is False
    assert not by_name["imagenet-resnet50"]["run"]
    assert by_name["imagenet-resnet50"]["why"]


def test_a_run_ends_with_a_table_beside_the_papers(cli, tmp_path):
    asked = ("reproduce", "newsgroups-cnn", "--size", "toy", "--out", tmp_path)
    found = cli(*asked)
    assert found.exit_code == 0, found.stderr
    assert "18.57" in found.stdout
    assert "AdaFocal" in found.stdout
    assert str(tmp_path / "newsgroups-cnn") in found.stdout
    told = json.loads(cli(*asked, "--json").stdout)  # nothing is run again
    assert [each["name"] for each in told["methods"]] == ["ce", "adafocal"]
    # Another size in the same folder goes its own way: it is refused, and nothing is mixed.
    refused = cli(
        "reproduce", "newsgroups-cnn", "--size", "toy", "--epochs", "2", "--out", tmp_path
    )
    assert refused.exit_code == 2
    assert "--again" in refused.stderr


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ([], "name what to reproduce"),
        (["bigmrt"], "did you mean 'bigmart'"),
        (["bigmart", "--size", "huge"], "size must be 'full', 'small' or 'toy'"),
        (["bigmart", "--methods", "cee"], "there is no method 'cee'"),
        (["bigmart", "--seeds", "a,b"], "--seeds must be whole numbers"),
        (["bigmart", "--seeds", "-1"], "--seeds must be whole numbers"),
        (["bigmart", "--seeds", ""], "--seeds must be whole numbers"),
        (["newsgroups-cnn"], "CALIBRANT_DATA"),
        (["imagenet-resnet50"], "CALIBRANT_DATA"),
    ],
)
def test_what_cannot_be_done_is_told_in_a_sentence(cli, tmp_path, monkeypatch, words, told):
    monkeypatch.delenv("CALIBRANT_DATA", raising=False)
    monkeypatch.setattr("pooch.retrieve", _no_network)
    found = cli("reproduce", *words, "--out", tmp_path)
    assert found.exit_code == 2
    assert told in found.stderr
    assert "Traceback" not in found.stderr


def _no_network(*_, **__):
    raise OSError("no network")
