"""Two tiers of tests, by question.

`make test` asks whether each part works: unit tests, contracts, doctests, the first case of every
test marked `smoke` (one guarantee cell for each theorem, one browser test for each page).
`make verify` asks whether the promises hold: pages and code blocks of the documentation, all
guarantee cells, kills and outages, full browser tests, parity with peers, reproductions, several
processes. Every test belongs to exactly one of them; `pytest` without `--tier` runs both.
A test marked `verify` is of the second tier wherever it stands: kills, memory, many processes.
"""

import pytest

VERIFIED = (
    "tests/docs/",
    "tests/guarantees/",
    "tests/parity/",
    "tests/reproductions/",
    "tests/web/",
    "tests/unit/bundle/test_killed_changes.py",
    "tests/unit/losses/test_ranks.py",
    "tests/unit/study/candidates/test_devices.py",
    "tests/unit/test_source_checkout.py",
    "tests/unit/training/test_many_processes.py",
    "tests/unit/training/test_ranks.py",
    "tests/unit/training/test_speed.py",
    "tests/unit/training/test_transformers.py",
)
"""Folders and files of the second tier."""


def pytest_addoption(parser):
    parser.addoption("--tier", choices=("test", "verify"), help="run one tier of tests only")


def pytest_configure(config):
    config.addinivalue_line("markers", "smoke: its first case belongs to the tier `test`")
    config.addinivalue_line("markers", "verify: belongs to the tier `verify`")


def in_first_tier(items):
    """Yield whether each test belongs to the tier `test`."""
    seen = set()
    for item in items:
        path, _, name = item.nodeid.partition("::")
        function = (path, name.partition("[")[0])
        smoke = item.get_closest_marker("smoke") is not None and function not in seen
        seen.add(function)
        late = path.startswith(VERIFIED) or item.get_closest_marker("verify") is not None
        yield smoke or not late


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config, items):
    tier = config.getoption("--tier")
    if tier is None:
        return
    firsts = list(in_first_tier(items))
    chosen = [item for item, first in zip(items, firsts, strict=True) if first == (tier == "test")]
    config.hook.pytest_deselected(items=[item for item in items if item not in set(chosen)])
    items[:] = chosen
