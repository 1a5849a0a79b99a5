"""The command line: one file per verb; each parses, calls the library and prints."""
