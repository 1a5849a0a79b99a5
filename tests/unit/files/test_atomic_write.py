"""Examples of files.atomic_write."""

import tempfile
from pathlib import Path

from tests.sentences import refuses

from calibrant.errors import InputError
from calibrant.files.atomic_write import check_writable, write_atomically


def test_example_of_check_writable():
    with refuses(InputError, "--html", "the folder no_such_folder"):
        check_writable("no_such_folder/report.html", name="--html")


def test_example_of_write_atomically():
    folder = Path(tempfile.mkdtemp())
    with write_atomically(folder / "a.txt") as draft:
        _ = draft.write_text("done")
    assert [p.name for p in folder.iterdir()] == ["a.txt"]
