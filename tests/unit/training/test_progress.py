"""The bar shows what it should, and lets go of the terminal."""

import io

import pytest
from rich.console import Console
from tests.unit.training.runs import blobs, net, options

from calibrant.training import EpochRecord, Hook, train
from calibrant.training.progress import ProgressBar, format_record

RECORD = EpochRecord(3, 0.412, 0.398, 0.391, 1.2, 0.021, 0.8, 0.84, 1e-3, 0.2)


def test_words_of_an_epoch():
    assert format_record(RECORD) == "loss 0.412 · steer NLL 0.398 · ECE 2.1 %"


def test_the_bar_ends_with_the_last_epoch_and_its_figures():
    written = io.StringIO()
    console = Console(file=written, force_terminal=True, width=120)
    bar = ProgressBar(3, 4, console)
    trained = train(
        net(), blobs(128), blobs(60, seed=1), loss="adafocal", hooks=[bar],
        options=options(epochs=3),
    )  # fmt: skip
    last = written.getvalue().rsplit("epoch", 1)[1]
    assert "3/3" in last
    assert f"steer NLL {trained.records[-1].nll:.3f}" in last
    assert "gamma" in last


def test_progress_goes_to_stderr_only(capsys):
    train(net(), blobs(64), blobs(60, seed=1), progress=True, options=options(epochs=1))
    assert capsys.readouterr().out == ""


def test_an_error_closes_the_bar():
    bar = ProgressBar(3, 4, Console(file=io.StringIO(), force_terminal=True))

    class Fail(Hook):
        def on_epoch_end(self, run, record):
            raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        train(net(), blobs(64), blobs(60, seed=1), hooks=[bar, Fail()], options=options())
    assert bar._bar.live.is_started is False
