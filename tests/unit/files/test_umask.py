"""The mask of new files is read without being changed."""

import os

import pytest

from calibrant.files import atomic_write as module
from calibrant.files.atomic_write import umask


@pytest.mark.parametrize("mask", [0o022, 0o077, 0o002])
@pytest.mark.parametrize("told", [True, False])
def test_it_is_the_mask_of_the_process(monkeypatch, tmp_path, mask, told):
    if not told:
        monkeypatch.setattr(module, "_STATUS", tmp_path / "none")
    old = os.umask(mask)
    try:
        assert umask() == mask
        assert umask() == mask  # nothing has changed
    finally:
        os.umask(old)


def test_nothing_is_set_where_the_system_tells_it(monkeypatch, tmp_path):
    status = tmp_path / "status"
    status.write_text("Name:\tpython\nUmask:\t0027\nState:\tR\n", encoding="utf-8")
    monkeypatch.setattr(module, "_STATUS", status)
    monkeypatch.setattr(os, "umask", lambda _: pytest.fail("the mask was set"))
    assert umask() == 0o027
