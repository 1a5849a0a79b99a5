"""Named splits: no row has two jobs, and they survive a file."""

import json

import numpy as np
import pytest
from tests.sentences import refuses

from calibrant.data import Splits
from calibrant.data.splits import SplitPart
from calibrant.errors import InputError, SplitMisuse


def splits(**changed):
    parts = {
        "train": SplitPart("logs", [0, 1, 2, 3]),
        "steer": SplitPart("logs", [4]),
        "log_test": SplitPart("logs", [5]),
        "calibrate": SplitPart("golden", [0, 1]),
        "test": SplitPart("golden", [2, 3]),
        "out_of_scope": SplitPart("golden", [4]),
        "choice": SplitPart("logs", [6]),
    }
    return Splits(**{**parts, **changed})


def test_splits_survive_json():
    before = splits()
    after = Splits.from_dict(json.loads(json.dumps(before.to_dict())))
    assert after == before
    assert after.to_dict()["format"] == 1
    assert after.train.ids.dtype == np.int64
    assert after != splits(train=SplitPart("logs", [0]))


def test_splits_that_were_saved_before_there_were_choice_rows_are_read():
    saved = splits(choice=SplitPart()).to_dict()
    del saved["splits"]["choice"]
    assert Splits.from_dict(saved) == splits(choice=SplitPart())


def test_sizes_name_every_split_and_the_text_those_with_rows():
    made = splits(log_test=SplitPart(), out_of_scope=SplitPart(), choice=SplitPart())
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
        ({"steer": SplitPart("logs", [3, 9])}, ("train", "steer share 1", "logs (row 3)")),
        (
            {"test": SplitPart("golden", [0, 1, 2])},
            ("calibrate", "test share 2", "(rows 0, 1)"),
        ),
        ({"test": SplitPart("logs", [5])}, ("test and", "log_test share 1", "row", "logs")),
        ({"out_of_scope": SplitPart("golden", [1])}, ("calibrate", "out_of_scope share")),
        ({"choice": SplitPart("logs", [6, 4])}, ("steer", "choice share 1", "logs (row 4)")),
        ({"choice": SplitPart("golden", [9])}, ("choice", "rows", "logs")),
        ({"train": SplitPart("logs", [0, 7, 7])}, ("train", "row 7", "logs twice")),
        ({"train": SplitPart("logs", [])}, ("split train", "empty")),
        ({"train": SplitPart("golden", [9])}, ("train", "rows", "logs")),
    ],
)
def test_rows_with_two_jobs_are_refused(changed, says):
    with refuses(SplitMisuse, *says):
        splits(**changed)


def test_only_the_first_shared_rows_are_listed():
    with refuses(SplitMisuse, "share 50 rows of golden (rows 0, 1, 2, 3, 4, ...)"):
        splits(calibrate=SplitPart("golden", range(60)), test=SplitPart("golden", range(50)))


def test_equal_ids_of_different_files_are_different_rows():
    assert (
        splits(calibrate=SplitPart("golden", [0]), test=SplitPart("golden", [1])).sizes()["test"]
        == 1
    )


def test_rows_of_another_split_are_refused_for_a_job():
    made = splits()
    made.check("train", [1, 0])
    made.check("test", np.array([3]), source="golden")
    made.check("train", [])
    with refuses(SplitMisuse, "row 4 of logs belongs to steer, not to train"):
        made.check("train", [0, 4])
    with refuses(SplitMisuse, "row 2 of golden belongs to test, not to calibrate"):
        made.check("calibrate", [2], source="golden")
    with refuses(SplitMisuse, "row 99 of logs belongs to no split, not to train"):
        made.check("train", [99])
    with refuses(SplitMisuse, "row 0 of golden belongs to calibrate, not to train"):
        made.check("train", [0], source="golden")
    with refuses(InputError, "'valid' is not a split:", "calibrate,"):
        made.check("valid", [0])


@pytest.mark.parametrize("ids", [[0.5], ["a"], [[1]], [-1], [True]])
def test_ids_that_are_no_positions_are_refused(ids):
    with refuses(InputError, "row ids must be"):
        SplitPart("logs", ids)


def test_unknown_sources_and_formats_are_refused():
    with refuses(InputError, "source must be 'logs' or 'golden', got 'web'"):
        SplitPart("web", [0])
    with refuses(InputError, "not splits of format 1: got format 2"):
        Splits.from_dict({**splits().to_dict(), "format": 2})
