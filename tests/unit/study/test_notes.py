"""Notes of a study: what a user should know first comes first."""

from types import SimpleNamespace

import pyarrow as pa
import pyarrow.csv as pacsv
import pytest
from tests.unit.study.runs import table_config

from calibrant.data.encoders.column_warning import ColumnWarning
from calibrant.fitting.steer_figures import NOTHING_LEARNED
from calibrant.study import run_study
from calibrant.study.candidates.candidate import StudyCandidate
from calibrant.study.candidates.trained import TrainedCandidate
from calibrant.study.study import _collect_notes

pytestmark = pytest.mark.usefixtures("rough_intervals")


def test_a_column_that_leaks_the_target_is_the_first_note_and_names_the_flag(tmp_path, recwarn):
    config = table_config(tmp_path, group="customer", drop=(), training={"epochs": 1})
    table = pacsv.read_csv(config.data)
    settled = [1.0 if name == "yes" else 0.0 for name in table["fraud"].to_pylist()]
    table = table.append_column("settled on", pa.array(settled))
    pacsv.write_csv(table.append_column("row", pa.array(range(len(table)))), config.data)
    notes = run_study(config, tmp_path / "run").notes
    assert notes[0].startswith("possible target leakage: the column 'settled on' alone")
    assert notes[0].endswith("leave it out with --drop 'settled on'.")
    assert any("'row' looks like a row number" in note and "--drop row." in note for note in notes)
    assert any("Rows of one 'customer' may be correlated" in note for note in notes[1:])
    assert not any("drop=" in note for note in notes)
    assert not any(isinstance(warning.message, ColumnWarning) for warning in recwarn)


def test_a_warning_about_one_network_names_its_candidate(tmp_path):
    class Outcome(TrainedCandidate):
        def __init__(self, loss, warning):
            candidate = StudyCandidate(loss, 0, "0" * 8, model="mlp", raced=True)
            super().__init__(candidate, tmp_path, {}, {"warnings": [warning]})

    lost = f"{NOTHING_LEARNED} that 70 steer rows show: try more epochs."
    both = "column 'a' is constant."
    rows = SimpleNamespace(notes=())
    outcomes = [Outcome("ce", both), Outcome("adafocal", lost), Outcome("focal", both)]
    notes = _collect_notes(table_config(tmp_path), rows, [], outcomes)
    assert [note for note in notes if NOTHING_LEARNED in note] == [f"mlp, adafocal: {lost}"]
    assert notes.count(both) == 1
