"""Minutes that configs tell were measured: the records say the same."""

import json
from pathlib import Path

import pytest

from calibrant.reproductions.experiment import experiments

RESULTS = Path(__file__).parents[2] / "docs/reproductions/results"
TIMED = {
    each.name: minutes
    for each in experiments().values()
    for hardware, minutes in each.minutes.items()
    if "side by side" in hardware
}


@pytest.mark.parametrize("name", TIMED)
def test_minutes_side_by_side_are_those_of_the_records(name):
    runs = [json.loads(path.read_text()) for path in (RESULTS / name).glob("[!.]*-*.json")]
    seconds = [run["seconds"] for run in runs if run["size"] == "full"]
    if not seconds:
        pytest.skip("no records on this copy")
    assert TIMED[name] == pytest.approx(sum(seconds) / len(seconds) / 60, abs=0.051)
