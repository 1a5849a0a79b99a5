"""Examples of serving.console.pages.thresholds.targets."""

from calibrant.serving.console.pages.thresholds.targets import read_target


def test_example_of_thresholdtarget_text():
    assert (
        read_target("recall >= 0.30 and precision >= 0.85", of="defect").text
        == "recall>=0.3 and precision>=0.85"
    )
