"""Examples of reports.evaluation.page."""

from calibrant.reports.evaluation.page import add_break_hints


def test_example_of_add_break_hints():
    assert str(add_break_hints("item_defective <b>")) == "item_<wbr>defective &lt;b&gt;"
