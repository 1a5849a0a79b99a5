"""Settings of a study: fields, checks, and the file `study.toml`."""
