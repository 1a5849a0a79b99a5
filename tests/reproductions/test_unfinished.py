"""The folder of a run that is not finished: kept, begun anew, taken away, or refused."""

from contextlib import suppress

import pytest
from reproductions.unfinished import unfinished

from calibrant.errors import InputError
from calibrant.files.lock import exclusive_folder


def cut_off(record, setting):
    """Leave a file behind as a run that is interrupted does."""
    with suppress(KeyboardInterrupt), unfinished(record, setting) as folder:
        (folder / "epoch-0003.safetensors").write_text("three epochs")
        raise KeyboardInterrupt
    return folder


def test_what_a_run_left_is_there_for_the_same_setting_and_goes_when_it_is_done(tmp_path):
    folder = cut_off(tmp_path / "ce-0.json", {"epochs": 5})
    with unfinished(tmp_path / "ce-0.json", {"epochs": 5}) as again:
        assert (again / "epoch-0003.safetensors").read_text() == "three epochs"
    assert again == folder
    assert not folder.exists()


@pytest.mark.parametrize("note", ['{"epochs": 5}', "cut sho", None])
def test_what_a_run_of_another_or_an_unknown_setting_left_is_taken_away(tmp_path, note):
    folder = cut_off(tmp_path / "ce-0.json", {"epochs": 4})
    if note is None:
        (folder / "setting.json").unlink()
    else:
        (folder / "setting.json").write_text(note)
    with unfinished(tmp_path / "ce-0.json", {"epochs": 4}) as again:
        assert [path.name for path in again.iterdir()] == ["setting.json"]


def test_a_folder_that_cannot_be_made_is_told_in_a_sentence(tmp_path):
    (tmp_path / ".ce-0").write_text("a file")
    with (
        pytest.raises(InputError, match=r"\.ce-0 cannot be made \(File exists\).*another --out"),
        unfinished(tmp_path / "ce-0.json", {}),
    ):
        pass


def test_what_a_run_at_work_saved_is_not_taken_away_by_one_of_another_setting(tmp_path):
    folder = cut_off(tmp_path / "ce-0.json", {"epochs": 5})
    with (
        exclusive_folder(folder),
        pytest.raises(InputError, match="another run is using"),
        unfinished(tmp_path / "ce-0.json", {"epochs": 4}),
    ):
        pass
    assert (folder / "epoch-0003.safetensors").exists()
