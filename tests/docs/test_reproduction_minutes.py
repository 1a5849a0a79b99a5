"""Minutes that configs tell were measured: the records say the same."""

import json
from pathlib import Path

import pytest
from reproductions.experiment import experiments

RESULTS = Path(__file__).parents[2] / "docs/reproductions/results"
RUN = [name for name in experiments() if (RESULTS / name).is_dir()]


@pytest.mark.parametrize("name", RUN)
def test_minutes_are_those_of_the_records(name):
    runs = [json.loads(path.read_text()) for path in (RESULTS / name).glob("[!.]*-*.json")]
    seconds = [run["seconds"] for run in runs if run["size"] == "full"]
    found = sum(seconds) / len(seconds) / 60
    told = experiments()[name].minutes.values()
    # Some configs also tell how long a run takes that has the hardware to itself.
    assert any(each == pytest.approx(found, abs=0.051) for each in told), found
