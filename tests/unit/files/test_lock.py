"""The lock of a folder: one holder at a time, and it goes with the handle."""

import os

import pytest

from calibrant.files.lock import LOCK, try_lock


def test_one_at_a_time(tmp_path):
    first = try_lock(tmp_path)
    assert first is not None
    assert try_lock(tmp_path) is None
    os.close(first)
    second = try_lock(tmp_path)
    assert second is not None
    os.close(second)


def test_a_lock_whose_file_was_taken_away_is_none(tmp_path, monkeypatch):
    """Between opening and locking, the one before may remove the file."""
    import fcntl

    own = fcntl.flock

    def late(handle, how):
        (tmp_path / LOCK).unlink()
        own(handle, how)

    monkeypatch.setattr("fcntl.flock", late)
    assert try_lock(tmp_path) is None
    assert try_lock(tmp_path / "no folder") is None


def test_a_system_that_refuses_is_not_taken_for_another_holder(tmp_path, monkeypatch):
    def refuse(handle, how):
        raise OSError("no locks here")

    before = len(os.listdir("/proc/self/fd"))
    monkeypatch.setattr("fcntl.flock", refuse)
    with pytest.raises(OSError, match="no locks here"):
        try_lock(tmp_path)
    assert len(os.listdir("/proc/self/fd")) == before
