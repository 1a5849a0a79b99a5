"""Examples of workflows.image_rows."""

from calibrant.workflows.image_rows import holds_images


def test_example_of_holds_images():
    assert (holds_images("photos.npz"), holds_images("returns.csv")) == (True, False)
