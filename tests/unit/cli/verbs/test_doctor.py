"""`calibrant doctor`: what it finds, and what it must not import."""

import json
import re
import tomllib
from pathlib import Path

import pytest
from tests.sentences import assert_mentions

from calibrant.cli.verbs import doctor

PROJECT = Path(__file__).parents[4] / "pyproject.toml"


def test_everything_is_here(cli):
    result = cli("doctor", "--json")
    found = json.loads(result.stdout)
    assert result.exit_code == 0
    assert found["ok"] is True
    assert found["dependencies"]["numpy"]["version"]
    assert found["cores"] >= 1
    assert_mentions(cli("doctor").stdout, "core dependencies", "fine")


def test_the_core_list_is_that_of_the_project():
    listed = tomllib.loads(PROJECT.read_text())["project"]["dependencies"]
    assert [re.split(r"[<>=]", line)[0] for line in listed] == list(doctor.CORE)


@pytest.mark.parametrize("extra", doctor.EXTRAS)
def test_the_extras_are_those_of_the_project(extra):
    listed = tomllib.loads(PROJECT.read_text())["project"]["optional-dependencies"][extra]
    own = [line for line in listed if not line.startswith("calibrant[")]
    assert [re.split(r"[<>=]", line)[0] for line in own] == list(doctor.EXTRAS[extra])


def test_a_missing_extra_is_said_and_is_no_fault(cli, monkeypatch):
    monkeypatch.setattr(doctor, "EXTRAS", {"torch": ("torch", "no-such-package")})
    result = cli("doctor")
    assert result.exit_code == 0
    assert re.search(r"^no-such-package \[torch\] +not installed$", result.stdout, re.MULTILINE)


def test_a_missing_core_dependency_is_a_no(cli, monkeypatch):
    monkeypatch.setattr(doctor, "CORE", ("numpy", "no-such-package"))
    result = cli("doctor")
    assert result.exit_code == 1
    assert_mentions(result.stdout, "missing", "too old", "no-such-package")


def test_a_dependency_that_is_too_old_is_a_no(cli, monkeypatch):
    monkeypatch.setattr(doctor, "_minimum_versions", lambda: {"numpy": "99.1"})
    found = json.loads(cli("doctor", "--json").stdout)
    assert found["ok"] is False
    assert "99.1" in found["dependencies"]["numpy"]["why"]


@pytest.mark.parametrize(
    ("make", "state"), [(False, "not found"), (True, "1 entries"), (None, "not set")]
)
def test_the_data_folder(cli, tmp_path, make, state):
    folder = tmp_path / "data"
    if make:
        folder.mkdir()
        (folder / "set").mkdir()
    env = {} if make is None else {"CALIBRANT_DATA": str(folder)}
    assert state in json.loads(cli("doctor", "--json", env=env).stdout)["data"]["state"]


def test_versions_are_compared_as_numbers():
    assert doctor._version_tuple("1.10.0") > doctor._version_tuple("1.9.1")
    assert doctor._version_tuple("2.13.0+cpu") == (2, 13, 0)


def test_torch_is_not_imported_unless_asked(spawn):
    code = (
        "import sys; from typer.testing import CliRunner; from calibrant.cli.main import app\n"
        "result = CliRunner().invoke(app, ['doctor'])\n"
        "print(result.exit_code, sorted({'torch', 'numpy', 'pyarrow'} & set(sys.modules)))"
    )
    out, _ = spawn(code=code).communicate(timeout=60)
    assert out == "0 []\n"


def test_without_torch_the_device_is_not_checked():
    assert "not installed" in doctor._device(False, look=True)
    assert "--device" in doctor._device(True, look=False)


def test_version(cli):
    result = cli("--version")
    assert result.exit_code == 0
    assert result.stdout.startswith("calibrant ")
