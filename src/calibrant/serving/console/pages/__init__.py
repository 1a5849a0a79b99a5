"""Pages of the console: a folder each, with its route, view, template and script."""
