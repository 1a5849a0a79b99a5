"""Changes of a bundle that cannot be made: one sentence, nothing changed, nothing left behind."""

import os
import shutil
from pathlib import Path

import pytest
from tests.sentences import refuses
from tests.unit.bundle.parts import CLASSES, band, point
from tests.unit.bundle.version_parts import back, bundle_in, content, place, save, seal

from calibrant.bundle import BundlePoint, Versions, load_bundle, pack
from calibrant.bundle.versions import exchange
from calibrant.errors import BundleError, InputError, VersionConflict


@pytest.fixture
def bundle(tmp_path):
    return bundle_in(tmp_path)


@pytest.fixture
def unchanged(bundle):
    """Check that in the end the folder is as it was, and that nothing is left behind."""
    before = content(bundle)
    yield
    assert content(bundle) == before
    assert [path.name for path in bundle.parent.iterdir()] == ["bundle"]


def never(made):
    raise AssertionError("nothing may be begun")


@pytest.mark.parametrize("error", [RuntimeError("no"), KeyboardInterrupt(), InputError("no")])
@pytest.mark.usefixtures("unchanged")
def test_nothing_changes_where_begin_refuses(bundle, error):
    def begin(made):
        raise error

    with pytest.raises(type(error)) as caught:
        save(bundle, begin=begin)
    assert caught.value is error


@pytest.mark.usefixtures("unchanged")
def test_another_base_is_a_conflict(bundle):
    with refuses(VersionConflict, "not 000000000000") as caught:
        save(bundle, base="0" * 64, begin=never)
    assert "\n" not in str(caught.value)
    assert isinstance(caught.value, InputError)
    with pytest.raises(VersionConflict):
        back(bundle, "1" * 64, base="0" * 64, begin=never)


@pytest.mark.usefixtures("unchanged")
@pytest.mark.parametrize("unknown", ["0" * 64, "../../run", "", "f" * 12])
def test_an_unknown_version(bundle, unknown):
    with pytest.raises(BundleError, match=r"is not kept in|is damaged in") as caught:
        back(bundle, unknown, begin=never)
    assert "\n" not in str(caught.value)


def test_the_version_that_serves_is_no_way_back(bundle):
    with refuses(InputError, "the current one"):
        back(bundle, seal(bundle), begin=never)


@pytest.mark.parametrize(
    ("name", "mentions"),
    [
        ("manifest.json", ("is damaged in",)),
        ("card.md", ("card.md", "changed", "packed")),
        ("calib.npz", ("lacks its file 'calib.npz'",)),
    ],
)
def test_a_damaged_version_is_not_put_back(bundle, name, mentions):
    first = seal(bundle)
    save(bundle)
    before, file = content(bundle), place(bundle) / first[:12] / name
    if name == "calib.npz":
        file.unlink()
    else:
        file.write_text(file.read_text(encoding="utf-8") + " x")
    with refuses(BundleError, *mentions):
        back(bundle, first, begin=never)
    assert content(bundle) == before
    assert [path.name for path in place(bundle).glob(".draft*")] == []


def test_a_damaged_copy_is_made_again_when_it_is_kept(bundle):
    first, before = seal(bundle), content(bundle)
    back(bundle, first, base=save(bundle))
    kept = place(bundle) / first[:12]
    (kept / "card.md").write_text("spoilt")
    made = save(bundle)
    assert content(kept) == before
    back(bundle, first, base=made)
    assert content(bundle) == before


def test_a_bundle_that_is_not_there(tmp_path):
    with refuses(BundleError, "does not exist"):
        Versions(tmp_path / "b").save_points([], base="0" * 64, change={}, begin=never)
    with refuses(BundleError, "cannot be changed", "No such file"):
        Versions(tmp_path / "no/b").save_points([], base="0" * 64, change={}, begin=never)
    assert list(tmp_path.iterdir()) == []


def test_a_lost_folder_is_told_of_by_its_versions(bundle):
    save(bundle)
    shutil.rmtree(bundle)
    with refuses(BundleError, "does not exist", "versions"):
        load_bundle(bundle)
    assert len(Versions(bundle).all()) == 1


@pytest.mark.parametrize("name", ["manifest.json", "card.md", "calib.npz"])
def test_a_damaged_bundle_is_not_changed(bundle, name):
    base = seal(bundle)
    (bundle / name).write_bytes((bundle / name).read_bytes()[:-3] + b"xyz")
    before = content(bundle)
    with pytest.raises(BundleError, match=f"{name} (was changed|is damaged)"):
        save(bundle, base=base, begin=never)
    assert content(bundle) == before
    assert not place(bundle).exists()


@pytest.mark.usefixtures("unchanged")
@pytest.mark.parametrize("name", ["run", "bundle"])
def test_what_may_not_be_written(bundle, monkeypatch, name):
    may = os.access
    monkeypatch.setattr("os.access", lambda path, how: Path(path).name != name and may(path, how))
    with pytest.raises(BundleError, match=f"{name} is not writable") as caught:
        save(bundle, begin=never)
    assert "\n" not in str(caught.value)


@pytest.mark.usefixtures("unchanged")
@pytest.mark.parametrize("broken", ["os.mkdir", "shutil.copy2", "os.fsync", "os.rename"])
def test_a_full_disk_changes_nothing_and_leaves_nothing(bundle, monkeypatch, broken):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    if broken == "os.fsync":  # a folder that cannot be waited for is no reason to fail: files are
        monkeypatch.setattr("calibrant.bundle.versions.exchange._sync", full)
    else:
        monkeypatch.setattr(broken, full)
    with refuses(BundleError, "cannot be changed", "No space left") as caught:
        save(bundle, begin=never)
    assert "\n" not in str(caught.value)
    monkeypatch.undo()


def test_a_swap_that_fails_leaves_the_old_version(bundle, monkeypatch):
    before, begun = content(bundle), []
    rename = os.rename

    def failing(source, target):
        if Path(target) == bundle and ".aside" not in str(source):
            raise OSError(16, "Device or resource busy")
        rename(source, target)

    monkeypatch.setattr(exchange, "exchange_folders", lambda first, second: False)
    monkeypatch.setattr("os.rename", failing)
    with refuses(BundleError, "resource busy"):
        save(bundle, begin=begun.append)
    assert len(begun) == 1
    assert content(bundle) == before
    assert [path.name for path in bundle.parent.iterdir()] == ["bundle"]


@pytest.mark.usefixtures("unchanged")
def test_a_process_that_stands_in_the_folder(bundle, monkeypatch):
    monkeypatch.chdir(bundle)
    with refuses(BundleError, "the current folder"):
        Versions(".").save_points([], base=seal(bundle), change={}, begin=never)


@pytest.mark.usefixtures("unchanged")
def test_a_folder_that_is_a_mount(bundle, monkeypatch):
    monkeypatch.setattr("os.path.ismount", lambda path: Path(path) == bundle)
    with refuses(BundleError, "mount point", "parent folder"):
        save(bundle, begin=never)


@pytest.mark.usefixtures("unchanged")
def test_a_file_that_is_not_the_bundles_would_be_lost(bundle):
    (bundle / "notes.txt").write_text("mine")
    with refuses(BundleError, "'notes.txt'", "move it"):
        save(bundle, begin=never)
    (bundle / "notes.txt").unlink()


@pytest.mark.usefixtures("unchanged")
@pytest.mark.parametrize(
    ("points", "told", "mentions"),
    [
        ([band()], {}, ("2 classes", "bundle has 3")),
        ([point("x", classes=("x", *CLASSES[1:]))], {}, ("class 'x'", "the bundle")),
        ([point()], {"reason": {1, 2}}, ("JSON values",)),
        ([point()], {"reason": float("nan")}, ("JSON values",)),
    ],
)
def test_points_and_words_that_do_not_fit(bundle, points, told, mentions):
    with refuses(InputError, *mentions):
        save(bundle, *points, change=told, begin=never)


def test_calibrated_points_need_a_calibrator(tmp_path):
    folder = tmp_path / "bundle"
    pack(folder, points=[point()])
    chosen = [BundlePoint(point(), "calibrated")]
    with refuses(InputError, "no calibrator"):
        Versions(folder).save_points(chosen, base=seal(folder), change={}, begin=never)
    assert list(tmp_path.iterdir()) == [folder]


@pytest.mark.parametrize("way", ["one step", "renames"])
def test_a_bundle_that_someone_else_put_there_meanwhile_stays(bundle, monkeypatch, way):
    if way == "renames":
        monkeypatch.setattr(exchange, "exchange_folders", lambda first, second: False)
    put = []

    def begin(made):
        put.append(pack(bundle, points=[point(None)], force=True).manifest["sha256"])

    with refuses(VersionConflict, "repeat the change"):
        save(bundle, begin=begin)
    assert [seal(bundle)] == put
    assert load_bundle(bundle).points[0].acts_on == {None}
    assert [path.name for path in place(bundle).glob(".draft*")] == []
