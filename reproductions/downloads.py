"""Downloads from public addresses, with checksums and a cache."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

from calibrant.errors import InputError

__all__ = ["NotDownloaded", "cache_folder", "download"]


class NotDownloaded(InputError):
    """A file could not be downloaded; the message is the reason, as part of a sentence."""


def cache_folder() -> Path | None:
    """Return the download cache, or None if pooch is not installed."""
    if find_spec("pooch") is None:
        return None
    import pooch

    return Path(pooch.os_cache("calibrant"))


def download(address: str, checksum: str, folder: str, name: str) -> Path:
    """Return a public file, downloaded unless the cache has it with this checksum.

    Parameters
    ----------
    address : of the file
    checksum : such as "sha256:..." or "md5:..."; a file without one is not downloaded
    folder : in the cache
    name : of the file in that folder
    """
    cache = cache_folder()
    if cache is None:
        raise NotDownloaded(
            "downloads need the optional extra 'reproductions': "
            "pip install 'calibrant[reproductions]'"
        )
    import pooch

    pooch.get_logger().setLevel("WARNING")  # it writes to where stderr was when it was imported
    if not (cache / folder / name).exists():
        sys.stderr.write(f"downloading {address}\n")
    try:
        downloaded = pooch.retrieve(address, checksum, fname=name, path=cache / folder)
    except OSError as error:  # so are those of the network
        kind = type(error).__name__
        raise NotDownloaded(f"{address} could not be downloaded ({kind})") from None
    except ValueError:  # pooch has thrown the file away
        raise NotDownloaded(f"what {address} gave has a wrong checksum") from None
    return Path(downloaded)
