"""A client of the service, and the messages that travel between them."""

from calibrant.client.client import Client

__all__ = ["Client"]
