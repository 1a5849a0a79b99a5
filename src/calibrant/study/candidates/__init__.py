"""Candidates of a study: trained one after the other or in parallel, and cached."""
