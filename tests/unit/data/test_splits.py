"""Named splits: no row has two jobs, and they survive a file."""

import json

import numpy as np
import pytest

from calibrant.data import Splits
from calibrant.data.splits import Part
from calibrant.errors import InputError, SplitMisuse


def splits(**changed):
    parts = {
        "train": Part("logs", [0, 1, 2, 3]),
        "steer": Part("logs", [4]),
        "log_test": Part("logs", [5]),
        "calibrate": Part("golden", [0, 1]),
        "test": Part("golden", [2, 3]),
        "out_of_scope": Part("golden", [4]),
        "choice": Part("logs", [6]),
    }
    return Splits(**{**parts, **changed})


def test_splits_survive_json():
    before = splits()
    after = Splits.from_dict(json.loads(json.dumps(before.to_dict())))
    assert after == before
    assert after.to_dict()["format"] == 1
    assert after.train.ids.dtype == np.int64
    assert after != splits(train=Part("logs", [0]))


def test_splits_that_were_saved_before_there_were_choice_rows_are_read():
    saved = splits(choice=Part()).to_dict()
    del saved["splits"]["choice"]
    assert Splits.from_dict(saved) == splits(choice=Part())


def test_sizes_name_every_split_and_the_text_those_with_rows():
    made = splits(log_test=Part(), out_of_scope=Part(), choice=Part())
    assert made.sizes() == {
        "train": 4,
        "steer": 1,
        "calibrate": 2,
        "test": 2,
        "log_test": 0,
        "out_of_scope": 0,
        "choice": 0,
    }
    assert str(made).startswith("train 4 rows of logs, steer 1 row of logs")
    assert "log_test" not in str(made)


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"steer": Part("logs", [3, 9])}, r"train and steer share 1 row of logs \(row 3\)"),
        ({"test": Part("golden", [0, 1, 2])}, r"calibrate and test share 2 rows .*\(rows 0, 1\)"),
        ({"test": Part("logs", [5])}, r"test and log_test share 1 row of logs"),
        ({"out_of_scope": Part("golden", [1])}, r"calibrate and out_of_scope share"),
        ({"choice": Part("logs", [6, 4])}, r"steer and choice share 1 row of logs \(row 4\)"),
        ({"choice": Part("golden", [9])}, "choice must be rows of the logs"),
        ({"train": Part("logs", [0, 7, 7])}, "train has row 7 of logs twice"),
        ({"train": Part("logs", [])}, "the split train is empty"),
        ({"train": Part("golden", [9])}, "train must be rows of the logs"),
    ],
)
def test_rows_with_two_jobs_are_refused(changed, says):
    with pytest.raises(SplitMisuse, match=says):
        splits(**changed)


def test_only_the_first_shared_rows_are_listed():
    with pytest.raises(SplitMisuse, match=r"share 50 rows of golden \(rows 0, 1, 2, 3, 4, ...\)"):
        splits(calibrate=Part("golden", range(60)), test=Part("golden", range(50)))


def test_equal_ids_of_different_files_are_different_rows():
    assert splits(calibrate=Part("golden", [0]), test=Part("golden", [1])).sizes()["test"] == 1


def test_rows_of_another_split_are_refused_for_a_job():
    made = splits()
    made.check("train", [1, 0])
    made.check("test", np.array([3]), source="golden")
    made.check("train", [])
    with pytest.raises(SplitMisuse, match="row 4 of logs belongs to steer, not to train"):
        made.check("train", [0, 4])
    with pytest.raises(SplitMisuse, match="row 2 of golden belongs to test, not to calibrate"):
        made.check("calibrate", [2], source="golden")
    with pytest.raises(SplitMisuse, match="row 99 of logs belongs to no split, not to train"):
        made.check("train", [99])
    with pytest.raises(SplitMisuse, match="row 0 of golden belongs to calibrate, not to train"):
        made.check("train", [0], source="golden")
    with pytest.raises(InputError, match="'valid' is no split: choose among calibrate,"):
        made.check("valid", [0])


@pytest.mark.parametrize("ids", [[0.5], ["a"], [[1]], [-1], [True]])
def test_ids_that_are_no_positions_are_refused(ids):
    with pytest.raises(InputError, match="row ids must be"):
        Part("logs", ids)


def test_unknown_sources_and_formats_are_refused():
    with pytest.raises(InputError, match="source must be 'logs' or 'golden', got 'web'"):
        Part("web", [0])
    with pytest.raises(InputError, match="not splits of format 1: got format 2"):
        Splits.from_dict({**splits().to_dict(), "format": 2})
