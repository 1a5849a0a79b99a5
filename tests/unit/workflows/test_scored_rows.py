"""Examples of workflows.scored_rows."""

from calibrant.workflows.scored_rows import describe_empty_texts


def test_example_of_describe_empty_texts():
    assert describe_empty_texts(1) == ("1 row has no text: treated as empty.",)
