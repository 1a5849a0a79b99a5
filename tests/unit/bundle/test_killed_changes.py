"""A process that is killed in the middle of a change leaves a bundle that loads."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.unit.bundle import killed
from tests.unit.bundle.parts import point

from calibrant.bundle import BundlePoint, CalibRows, Versions, pack
from calibrant.bundle.versions import exchange


@pytest.fixture
def start(tmp_path):
    """Pack a bundle with a first version that is kept, so that there is one to go back to."""
    bundle = tmp_path / "start/bundle"
    bundle.parent.mkdir()
    calib = CalibRows([[1.0, 0.0, 0.0]] * 4, [0, 1, 2, -1])
    first = pack(bundle, points=[point()], calib=calib).manifest["sha256"]
    points = [BundlePoint(point("parts"), "raw"), BundlePoint(point("other"), "raw")]
    second = Versions(bundle).save_points(points, base=first, change={}, begin=lambda made: None)
    (tmp_path / "first.json").write_text(json.dumps(first))
    return tmp_path, first, second


def can_exchange(folder):
    for name in ("a", "b"):
        (folder / name).mkdir()
    return exchange.exchange_folders(folder / "a", folder / "b")


def tries(folder, kind, way):
    """Run all tries in a process of their own, which no thread of the tests is in."""
    here = Path(killed.__file__)
    done = subprocess.run(
        [sys.executable, str(here), str(folder), kind, way],
        capture_output=True, text=True, timeout=240, check=False,
        env={**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.parametrize("way", ["one step", "renames"])
@pytest.mark.parametrize("kind", ["save", "restore"])
def test_killed_at_every_step(start, kind, way):
    folder, first, second = start
    if way == "one step" and not can_exchange(folder):
        way = "renames"  # which is what a system does that cannot
    found = tries(folder, kind, way)
    assert len(found) > 20
    assert [each["killed"] for each in found] == [True] * (len(found) - 1) + [False]
    after = first if kind == "restore" else None
    for each in found:
        now = each["folder"]
        if now is None:  # between two renames: both are in the versions folder
            assert way == "renames"
            assert each["aside"] == [second]
            assert second in each["kept"]
        else:
            assert now == second or now == (after or now)
        assert None not in each["kept"]  # what is kept is whole
        assert first in each["kept"]  # and what was kept stays
        assert set(each["listed"]) >= {first} | ({now} if now else set())
        assert "error" not in each
        assert each["then"] is not None
        assert each["drafts"] == []
    assert found[0]["folder"] == second
    assert found[-1]["folder"] != second
    lost = [each["step"] for each in found if each["folder"] is None]
    assert bool(lost) == (way == "renames")
