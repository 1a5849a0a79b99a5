"""Shell commands that send a first prediction."""

import json
import shlex

import pytest
from tests.unit.bundle.parts import temperature
from tests.unit.serving.bundles import served

from calibrant.bundle import pack
from calibrant.serving.console.pages.overview.route import send_commands

ADDRESS = "http://127.0.0.1:8000/"


def body_of(line):
    """Return what a line of curl would send, as a shell takes it apart."""
    words = shlex.split(line)
    assert words[:2] == ["curl", "http://127.0.0.1:8000/v1/predict"]
    return json.loads(words[words.index("-d") + 1])


@pytest.mark.parametrize("kind", ["text_folder", "table_folder", "logits_folder"])
def test_the_command_is_answered_by_the_bundle(kind, request, serving):
    folder = request.getfixturevalue(kind)
    client = serving(folder)
    commands = send_commands(client.service.slot.current, ADDRESS, needs_key=False)
    answer = client.post("/v1/predict", json=body_of(commands.single))
    assert answer.status_code == 200, answer.text
    assert commands.file == "calibrant predict http://127.0.0.1:8000 FILE"


def test_columns_of_the_file_are_named(table_folder):
    bundle = served(table_folder)
    commands = send_commands(bundle, ADDRESS, needs_key=False)
    assert all(repr(name) in commands.reads for name in bundle.bundle.columns.names)


def test_a_key_goes_with_it_where_one_is_needed(text_folder):
    commands = send_commands(served(text_folder), ADDRESS, needs_key=True)
    assert "Authorization: Bearer KEY" in shlex.split(commands.single)
    assert shlex.split(commands.file)[-2:] == ["--key", "KEY"]


def test_with_many_classes_only_a_file_is_sent(tmp_path):
    classes = tuple(f"class {k}" for k in range(150))
    pack(tmp_path / "b", calibrator=temperature(2.0, classes))
    commands = send_commands(served(tmp_path / "b"), ADDRESS, needs_key=False)
    assert commands.single is None
    assert "and 142 more" in commands.reads


def test_an_address_cannot_break_out_of_the_command(text_folder):
    commands = send_commands(served(text_folder), "http://a;rm -rf '~'", needs_key=False)
    assert shlex.split(commands.single)[1] == "http://a;rm -rf '~'/v1/predict"
    assert shlex.split(commands.file)[2] == "http://a;rm -rf '~'"
