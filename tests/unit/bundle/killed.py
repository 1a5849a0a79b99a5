"""Kill a process at every step of a change, and say what it left; run as a program of its own.

`python killed.py FOLDER CHANGE WAY`: every try works on a fresh copy of the bundle FOLDER/start and
its versions, in a child that ends by SIGKILL right before the n-th thing it does to files there.
Prints one JSON object for each try.
"""

import json
import os
import shutil
import signal
import sys
from pathlib import Path

from calibrant.bundle import BundlePoint, Versions, load_bundle
from calibrant.bundle.versions import exchange
from calibrant.bundle.versions.kept_versions import seal_of
from calibrant.errors import CalibrantError

_READS = ("os.listdir", "os.scandir", "os.fwalk")


def is_step(event, arguments, bundle):
    """Whether Python tells of something that is about to change files of the bundle."""
    if not event.startswith(("open", "os.", "shutil.", "fcntl.")) or event in _READS:
        return False
    if event == "open" and not arguments[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
        return False
    return str(bundle) in str(arguments)


def change(bundle, kind, first, begin=lambda made: None):
    versions, base = Versions(bundle), seal_of(bundle)
    if kind == "restore":
        return versions.restore(first, base=base, begin=begin)
    points = [BundlePoint(each.result, each.decides_on) for each in load_bundle(bundle).points]
    return versions.save_points(points[::-1], base=base, change={"by": "Ann"}, begin=begin)


def killed_at(step, bundle, kind, first):
    """Make the change in a child that is killed at a step; return whether it was."""
    child = os.fork()
    if child == 0:
        seen = 0

        def hook(event, arguments):
            nonlocal seen
            if is_step(event, arguments, bundle):
                if seen == step:
                    os.kill(os.getpid(), signal.SIGKILL)
                seen += 1

        sys.addaudithook(hook)
        change(bundle, kind, first)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0, status
    return os.WIFSIGNALED(status)


def left_by(bundle, kind, first):
    """Say what there is after a kill, and what a further change makes of it."""
    place = bundle.with_name(f"{bundle.name}.versions")
    found = {"folder": _loaded(bundle), "kept": []}
    if place.is_dir():
        found["aside"] = [_loaded(path) for path in place.glob(".draft-*.aside")]
        found["kept"] = [_loaded(path) for path in place.iterdir() if path.name[0] != "."]
    found["listed"] = [each.hash for each in Versions(bundle).all()]
    if found["folder"] == first and kind == "restore":  # it was done already
        kind = "save"
    try:  # the next one works, and clears up
        change(bundle, kind, first) if found["folder"] else _next(bundle, kind, first)
    except CalibrantError as error:
        found["error"] = str(error)
    found["then"] = _loaded(bundle)
    found["drafts"] = [path.name for path in place.iterdir() if path.name.startswith(".draft")]
    return found


def _next(bundle, kind, first):
    """Go on where the folder stands aside: whoever changes it knows the version that served."""
    place = bundle.with_name(f"{bundle.name}.versions")
    base = seal_of(next(place.glob(".draft-*.aside")))
    if kind == "restore":
        return Versions(bundle).restore(first, base=base, begin=lambda made: None)
    points = load_bundle(place / base[:12]).points[::-1]
    return Versions(bundle).save_points(points, base=base, change={}, begin=lambda made: None)


def _loaded(folder):
    try:
        return load_bundle(folder).manifest["sha256"]
    except CalibrantError:
        return None


def main(folder, kind, way):
    os.fsync = lambda handle: None  # only a machine that stops needs it, and it takes long
    if way == "renames":
        exchange.exchange_folders = lambda first, second: False
    first = json.loads((folder / "first.json").read_text())
    for step in range(1000):
        place = folder / f"{kind}-{way}-{step}"
        shutil.copytree(folder / "start", place)
        killed = killed_at(step, place / "bundle", kind, first)
        found = left_by(place / "bundle", kind, first)
        sys.stdout.write(json.dumps({"step": step, "killed": killed, **found}) + "\n")
        if not killed:
            return
    raise AssertionError("it never came to an end")


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
