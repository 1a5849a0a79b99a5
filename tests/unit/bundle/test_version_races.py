"""Versions while others are at work: processes that change, threads that load, a service."""

import json
import os
import subprocess
import sys
import threading
import time
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
    said = [each.communicate()[0].strip() for each in started]
    made = [each for each in said if not each.startswith("conflict: ")]
    assert made == [seal(bundle)]
    refused = [each for each in said if each not in made]  # a busy machine may not wait to the end
    assert all("repeat the change" in each or "try again" in each for each in refused)
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


def test_a_change_goes_on_when_the_other_is_done(bundle, monkeypatch):
    monkeypatch.setattr(
        "calibrant.bundle.versions.versions.lock_versions",
        lambda folder, **more: lock_versions(folder, **{**more, "patience": 600.0}),
    )
    inside, done = threading.Event(), []

    def wait():
        inside.wait()
        done.append(save(bundle))

    other = threading.Thread(target=wait)
    other.start()
    with lock_versions(place(bundle)):  # removes the folder at its end, because it is empty
        inside.set()
        other.join(0.3)
        assert done == []
    other.join()
    assert done == [seal(bundle)]


class Readers:
    """Two threads that load a bundle again and again."""

    def __init__(self, bundle):
        self.bundle, self.seen, self.errors = bundle, set(), []
        self._loads, self._over = [0, 0], threading.Event()
        self._threads = [threading.Thread(target=self._load, args=(i,)) for i in range(2)]

    def _load(self, i):
        while not self._over.is_set():
            try:
                loaded = load_bundle(self.bundle)
                assert len(loaded.calib) == 5
                self.seen.add(loaded.manifest["sha256"])
            except Exception as error:  # whatever it is, the test says it
                self.errors.append(str(error))
            self._loads[i] += 1

    def wait_for_loads(self):
        """Wait until each thread has loaded once more: on a busy machine they may be slow."""
        earlier = list(self._loads)
        while any(now == then for now, then in zip(self._loads, earlier, strict=True)):
            time.sleep(0.001)

    def __enter__(self):
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *failure):
        self._over.set()
        for thread in self._threads:
            thread.join()


@pytest.mark.parametrize("way", ["one step", "renames"])
def test_whoever_loads_meanwhile_gets_a_whole_version(bundle, monkeypatch, way):
    if way == "renames":
        monkeypatch.setattr(exchange, "exchange_folders", lambda first, second: False)
    made = [seal(bundle)]
    with Readers(bundle) as readers:
        for i in range(20):
            made.append(save(bundle, 0.5 + 0.01 * i))
            readers.wait_for_loads()
        made.append(Versions(bundle).restore(made[0], base=made[-1], begin=lambda made: None))
    # Between two renames there is no folder for a moment, and that is all.
    gone = ("does not exist", "is not a bundle", "No such file") if way == "renames" else ()
    assert [e for e in readers.errors if not any(words in e for words in gone)] == []
    assert readers.seen <= set(made)
    assert len(readers.seen) > 1


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
