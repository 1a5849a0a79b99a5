"""What the tests of the store share: every test that asks for a database runs on both kinds."""

from tests.databases import blank_url, database_url, store

__all__ = ["blank_url", "database_url", "store"]
