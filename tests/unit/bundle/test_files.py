"""A folder that is written whole or not at all."""

import os
import tempfile
from pathlib import Path

import pytest
from tests.sentences import assert_mentions, refuses
from tests.unit.bundle.parts import point

from calibrant.bundle import pack
from calibrant.bundle.files import (
    bundle_files,
    check_folder,
    is_plain_name,
    manifest_identity,
    sha256_of,
    write_folder_atomically,
)
from calibrant.errors import InputError


def names(folder):
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*"))


def break_off(path, error):
    """Start to write a bundle, and meet an error half-way."""
    with write_folder_atomically(path, force=True, name="-o") as draft:
        (draft / "half.txt").write_text("half")
        raise error


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, OSError(28, "No space left")])
@pytest.mark.parametrize("before", [False, True])
def test_what_goes_wrong_leaves_nothing_behind(tmp_path, error, before):
    if before:
        pack(tmp_path / "b", points=[point()])
    kept = names(tmp_path)
    raised = InputError if isinstance(error, OSError) else error
    with pytest.raises(raised) as caught:
        break_off(tmp_path / "b", error)
    assert names(tmp_path) == kept
    if raised is InputError:
        where = f"-o {tmp_path / 'b'} cannot be written"
        assert_mentions(caught.value, where, "No space left", "choose another path")


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError(13, "Permission denied")])
@pytest.mark.parametrize("fails", [1, 2])
def test_a_bundle_stays_where_it_was_when_it_cannot_be_replaced(
    tmp_path, monkeypatch, error, fails
):
    old = pack(tmp_path / "b", points=[point()])
    kept, real, calls = names(tmp_path), Path.rename, []

    def rename(path, target):
        calls.append(path)
        if len(calls) == fails:
            raise error
        return real(path, target)

    monkeypatch.setattr(Path, "rename", rename)
    with (
        pytest.raises((InputError, KeyboardInterrupt)),
        write_folder_atomically(tmp_path / "b", force=True) as draft,
    ):
        (draft / "new.txt").write_text("new")
    assert names(tmp_path) == kept
    assert bundle_files(old.path) == {"manifest.json", "card.md"}


def test_an_empty_folder_is_filled(tmp_path):
    (tmp_path / "b").mkdir()
    assert pack(tmp_path / "b", points=[point()]).path == tmp_path / "b"
    assert names(tmp_path) == ["b", "b/card.md", "b/manifest.json"]


def test_a_bundle_is_replaced_only_when_told_to(tmp_path):
    pack(tmp_path / "b", points=[point(threshold=0.6)])
    with refuses(InputError, "existing bundle", "force=True", "replace"):
        pack(tmp_path / "b", points=[point()])
    with refuses(InputError, "--force", "replace"):
        check_folder(tmp_path / "b", name="-o")
    new = pack(tmp_path / "b", points=[point()], force=True)
    assert new.points[0].result.threshold == 0.75
    assert names(tmp_path) == ["b", "b/card.md", "b/manifest.json"]


def test_a_damaged_bundle_may_be_replaced(tmp_path):
    pack(tmp_path / "b", points=[point()])
    (tmp_path / "b/card.md").unlink()
    pack(tmp_path / "b", points=[point()], force=True)
    assert names(tmp_path / "b") == ["card.md", "manifest.json"]


def test_what_is_not_the_bundles_is_never_lost(tmp_path):
    pack(tmp_path / "b", points=[point()])
    (tmp_path / "b/notes.txt").write_text("mine")
    with refuses(InputError, "'notes.txt'", "bundle"):
        pack(tmp_path / "b", points=[point()], force=True)
    for content in ("{", "[]", '{"format": 1}', '{"format": 1, "scorer": {}, "files": []}'):
        other = tmp_path / "other"
        other.mkdir(exist_ok=True)
        (other / "manifest.json").write_text(content)
        with refuses(InputError, "not a bundle"):
            pack(other, points=[point()], force=True)
        assert (other / "manifest.json").read_text() == content


def test_places_where_no_folder_can_be(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("x")
    for path, said in (
        ("file", "is a file: a bundle is a folder"),
        ("file/b", "is a file, not a folder"),
        ("nowhere/b", "does not exist: create it first"),
    ):
        with pytest.raises(InputError, match=said):
            check_folder(tmp_path / path)
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    for path in (".", tmp_path / "here", "../here"):
        with refuses(InputError, "the current folder"):
            check_folder(path)
    monkeypatch.setattr(os, "access", lambda *args: False)
    with refuses(InputError, "is not writable"):
        check_folder(tmp_path / "b")


def test_a_link_stays_a_link(tmp_path):
    real = pack(tmp_path / "real", points=[point(threshold=0.6)]).path
    (tmp_path / "link").symlink_to(real)
    pack(tmp_path / "link", points=[point()], force=True)
    assert (tmp_path / "link").is_symlink()
    assert '"threshold": 0.75' in (real / "manifest.json").read_text(encoding="utf-8")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    with refuses(InputError, "loop"):
        check_folder(tmp_path / "loop")


def test_others_may_read_what_the_umask_lets_them(tmp_path):
    old = os.umask(0o022)
    try:
        made = pack(tmp_path / "b", points=[point()]).path
    finally:
        os.umask(old)
    assert made.stat().st_mode & 0o777 == 0o755
    assert {p.stat().st_mode & 0o777 for p in made.iterdir()} == {0o644}


def test_a_link_to_nothing_does_not_count_in_the_hash_of_a_folder(tmp_path):
    (tmp_path / "cat").mkdir()
    (tmp_path / "cat/1.png").write_bytes(b"pixels")
    whole = sha256_of(tmp_path)
    (tmp_path / "cat/2.png").symlink_to(tmp_path / "nowhere.png")
    os.mkfifo(tmp_path / "cat/3.png")
    assert sha256_of(tmp_path) == whole


def test_example_of_is_plain_name():
    assert (is_plain_name("report.html"), is_plain_name("../report.html")) == (True, False)


def test_example_of_manifest_identity():
    assert manifest_identity(Path(tempfile.mkdtemp())) is None
