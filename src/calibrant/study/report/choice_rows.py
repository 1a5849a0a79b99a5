"""Description of the rows that chose among the candidates of a study."""

from __future__ import annotations

from collections.abc import Collection


def choice_data(splits: Collection[str], candidates: int) -> dict[str, str]:
    """Describe the column of log losses after temperature scaling, and its role in the choice.

    Early studies had no choice rows and chose on the steer rows.

    Examples
    --------
    >>> choice_data(("train", "steer", "choice"), 5)["title"]
    'Choice log loss'
    >>> choice_data(("train", "steer"), 1)["decides"]
    ''
    """
    rows = "choice" if "choice" in splits else "steer"
    what = f"The {rows} log loss, after temperature scaling on the {rows} rows, is"
    if candidates < 2:
        words = f"{what} that of the epoch that they kept: one candidate leaves nothing to choose."
    elif rows == "steer":
        words = (
            f"{what} what the candidate was chosen by. These rows also steered the training, so it "
            "is too good for a candidate that followed them closely."
        )
    else:
        words = (
            f"{what} what the candidate was chosen by. Nobody was trained or steered by these rows."
        )
    decides = "decides" if candidates > 1 else ""
    return {
        "rows": rows,
        "title": f"{rows.capitalize()} log loss",
        "decides": decides,
        "words": words,
    }
