"""The error about a missing column: the nearest name first, then a short list."""

import pytest

from calibrant.files.missing_column import missing_column_error


@pytest.mark.parametrize(
    ("n", "listed"),
    [
        (1, "'c0'"),
        (8, "'c0', 'c1', 'c2', 'c3', 'c4', 'c5', 'c6', 'c7'"),
        (9, "'c0', 'c1', 'c2', 'c3', 'c4', 'c5', …, 'c7', 'c8'"),
        (300, "'c0', 'c1', 'c2', 'c3', 'c4', 'c5', …, 'c298', 'c299'"),
    ],
)
def test_at_most_eight_columns_are_listed_with_the_last_ones(n, listed):
    text = str(missing_column_error("a.csv", "label", [f"c{i}" for i in range(n)]))
    assert text == f"a.csv has no column 'label': choose one of its columns: {listed}."


def test_the_nearest_name_comes_first_whatever_its_case():
    names = [*(f"c{i}" for i in range(20)), "Message", "id"]
    text = str(missing_column_error("a.csv", "MESAGE", names, option="--text"))
    assert text.startswith("a.csv has no column 'MESAGE' (did you mean 'Message'?): choose one of")
    assert "with --text: 'c0'" in text
