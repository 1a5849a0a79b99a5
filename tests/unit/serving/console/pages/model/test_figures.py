"""Examples of serving.console.pages.model.figures."""

from calibrant.serving.console.pages.model.figures import parse_figures


def test_example_of_parse_figures():
    figures = parse_figures({"test": {"accuracy": {"value": 0.9, "low": 0.8, "high": 0.95}}})
    assert str(figures["accuracy"]) == "accuracy: 0.9000 [0.8000, 0.9500]"
