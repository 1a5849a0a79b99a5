"""Verbs of the command line, one file each: parse, call the library, print."""
