"""Examples of bundle.card.wording."""

from calibrant.bundle.card.wording import as_code, escape_html, list_names


def test_example_of_escape_html():
    assert escape_html("<b>") == "&lt;b&gt;"


def test_example_of_as_code():
    assert (as_code("text"), as_code("a`b")) == ("`text`", "`a'b`")


def test_example_of_list_names():
    assert list_names(["weight", "fat"]) == "`weight`, `fat`"
