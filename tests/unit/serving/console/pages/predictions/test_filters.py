"""Examples of serving.console.pages.predictions.filters."""

from calibrant.serving.console.pages.predictions.filters import Filters, read_filters


def test_example_of_filters():
    filters = Filters(decision="act", min_score=0.9)
    assert [phrase.words for phrase in filters.phrases()] == [
        "acted on",
        "with a probability of at least 0.9",
    ]
    assert (filters.url("decision"), Filters().url()) == (
        "/console/predictions?min_score=0.9",
        "/console/predictions",
    )


def test_example_of_read_filters():
    assert read_filters({"min_score": "7"}, []).errors == {
        "min_score": "A probability is a number from 0 to 1, such as 0.85."
    }
