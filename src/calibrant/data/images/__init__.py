"""Images from folders and numpy archives."""
