"""Operating points after release: transfer to later rows, and other class frequencies."""
