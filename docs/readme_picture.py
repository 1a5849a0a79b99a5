"""Draw the picture of the README from the code of the README: `python docs/readme_picture.py`."""

from __future__ import annotations

import re
from pathlib import Path

import matplotlib

ROOT = Path(__file__).resolve().parent.parent
PICTURE = ROOT / "docs" / "images" / "before-after.png"


def readme_code() -> str:
    """Return the first Python block of the README."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    return re.findall(r"```python\n(.*?)```", text, re.DOTALL)[0]


def main() -> None:
    """Draw the model before and after calibration, and the operating point."""
    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    from calibrant.reports import OperatingCurveDisplay, ReliabilityDisplay

    names: dict = {}
    exec(readme_code(), names)
    labels, point = names["y"][4000:], names["point"]
    figure, (left, middle, right) = plt.subplots(1, 3, figsize=(13.5, 4.3), layout="constrained")
    for axes, probs, title in (
        (left, names["before"], "Before: over-confident"),
        (middle, names["after"], "After: calibrated"),
    ):
        ReliabilityDisplay.from_predictions(labels, probs).plot(ax=axes)
        axes.legend(fontsize=7, loc="upper left")
        axes.set_title(title)
    middle.get_legend().remove()
    OperatingCurveDisplay.from_point(point, labels, names["after"], ax=right)
    right.set_title("Threshold: precision of at least 85 %")
    figure.savefig(PICTURE, dpi=110)


if __name__ == "__main__":
    main()
