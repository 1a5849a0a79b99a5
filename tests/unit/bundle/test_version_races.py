"""Versions while others are at work: processes that change, threads that load, a service."""

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from tests.sentences import refuses
from tests.unit.bundle.parts import point, rows

from calibrant.bundle import BundlePoint, CalibRows, Versions, load_bundle, pack
from calibrant.bundle.versions import exchange
from calibrant.bundle.versions.lock import lock_versions
from calibrant.errors import BundleError, VersionConflict
from calibrant.files.lock import LOCK
from calibrant.serving.bundle_slot import BundleSlot

_CHANGE = """
import sys
from calibrant.bundle import BundlePoint, Versions, load_bundle
from calibrant.errors import VersionConflict

folder, base, by = sys.argv[1:]
points = [BundlePoint(each.result, "raw") for each in load_bundle(folder).points]
print("ready", flush=True)
sys.stdin.readline()
try:
    change = {"by": by}
    made = Versions(folder).save_points(points, base=base, change=change, begin=lambda made: None)
except VersionConflict as error:
    made = f"conflict: {error}"
print(made)
"""


@pytest.fixture
def bundle(tmp_path):
    calib = CalibRows(rows(5), [0, 1, 2, 0, -1])
    return pack(tmp_path / "bundle", points=[point()], calib=calib).path


def seal(folder):
    return json.loads((folder / "manifest.json").read_text(encoding="utf-8"))["sha256"]


def place(bundle):
    return Path(f"{bundle}.versions")


def save(bundle, threshold=0.6):
    chosen = [BundlePoint(point("parts", threshold), "raw")]
    versions, base = Versions(bundle), seal(bundle)
    return versions.save_points(chosen, base=base, change={}, begin=lambda made: None)


def test_of_processes_that_change_the_same_version_one_does(bundle):
    base = seal(bundle)
    words = [sys.executable, "-c", _CHANGE, str(bundle), base]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    started = [subprocess.Popen([*words, f"{i}"], **pipes) for i in range(3)]
    for each in started:
        assert each.stdout.readline() == "ready\n"
    for each in started:  # all at once
        each.stdin.write("go\n")
        each.stdin.flush()
    said = [each.communicate(timeout=60)[0].strip() for each in started]
    made = [each for each in said if not each.startswith("conflict: ")]
    assert made == [seal(bundle)]
    assert all("repeat the change" in each for each in said if each not in made)
    found = load_bundle(bundle)
    assert [each["by"] for each in found.provenance["changes"]] == [str(said.index(made[0]))]
    assert sorted(os.listdir(place(bundle))) == [LOCK, base[:12]]


def test_a_change_waits_for_another_and_not_for_ever(bundle, monkeypatch):
    monkeypatch.setattr(
        "calibrant.bundle.versions.versions.lock_versions",
        lambda p, **more: lock_versions(p, patience=0.1),
    )
    base = seal(bundle)
    with (
        lock_versions(place(bundle)),
        refuses(VersionConflict, "another process"),
    ):
        save(bundle)
    assert seal(bundle) == base
    assert not place(bundle).exists()
    save(bundle)


def test_a_change_goes_on_when_the_other_is_done(bundle):
    inside, done = threading.Event(), []

    def wait():
        inside.wait(30)
        done.append(save(bundle))

    other = threading.Thread(target=wait)
    other.start()
    with lock_versions(
        place(bundle)
    ):  # takes the folder away at its end, for nothing is kept in it
        inside.set()
        other.join(0.3)
        assert done == []
    other.join(30)
    assert done == [seal(bundle)]


@pytest.mark.parametrize("way", ["one step", "renames"])
def test_whoever_loads_meanwhile_gets_a_whole_version(bundle, monkeypatch, way):
    if way == "renames":
        monkeypatch.setattr(exchange, "exchange_folders", lambda first, second: False)
    made, seen, wrong, over = [seal(bundle)], set(), [], threading.Event()

    def load():
        while not over.is_set():
            try:
                found = load_bundle(bundle)
                assert len(found.calib) == 5
                seen.add(found.manifest["sha256"])
            except Exception as error:  # whatever it is, the test says it
                wrong.append(error)

    readers = [threading.Thread(target=load) for _ in range(2)]
    for each in readers:
        each.start()
    made += [save(bundle, 0.5 + 0.01 * i) for i in range(20)]
    made += [Versions(bundle).restore(made[0], base=made[-1], begin=lambda made: None)]
    over.set()
    for each in readers:
        each.join(60)
    if way == "one step":
        assert wrong == []
    else:  # between two renames there is no folder for a moment, and that is all
        gone = ("does not exist", "is not a bundle", "No such file")
        assert [str(e) for e in wrong if not any(words in str(e) for words in gone)] == []
    assert seen <= set(made)
    assert len(seen) > 1


def test_a_folder_that_never_stands_still_is_told(bundle, monkeypatch):
    changing = iter(range(100))
    monkeypatch.setattr("calibrant.bundle.loading.manifest_identity", lambda _: next(changing))
    with refuses(BundleError, "keeps changing"):
        load_bundle(bundle)


def test_a_service_takes_every_version_and_goes_back(bundle):
    slot = BundleSlot(bundle, "cpu")
    first = slot.load().hash
    assert not slot.look()
    second = save(bundle)
    assert slot.look()
    assert slot.current.hash == second
    assert slot.current.bundle.points[0].acts_on == {"parts"}
    assert not slot.look()
    Versions(bundle).restore(first, base=second, begin=lambda made: None)
    assert slot.look()
    assert slot.current.hash == first
    assert slot.refused is None


def test_a_loaded_bundle_reads_its_rows_after_a_change_too(bundle):
    loaded = load_bundle(bundle)
    save(bundle)
    assert len(loaded.calib) == 5


def test_what_a_killed_process_left_is_not_served(bundle):
    base = seal(bundle)
    save(bundle)
    draft = place(bundle) / ".draft-half"
    draft.mkdir()
    (draft / "card.md").write_text("half")
    (place(bundle) / ".draft-old.aside").mkdir()
    assert len(Versions(bundle).all()) == 2
    save(bundle)
    assert not list(place(bundle).glob(".draft*"))
    assert base in [each.hash for each in Versions(bundle).all()]
