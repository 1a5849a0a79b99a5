"""Settings: what no service can run with is refused, and worker processes get the same."""

import math
from pathlib import Path

import pytest
from tests.sentences import refuses

from calibrant.errors import InputError
from calibrant.serving.settings import Settings, is_loopback

HERE = Path("bundle")


def test_worker_processes_read_what_was_set():
    made = Settings(
        HERE, "postgresql://u:p@h/d", "::1", 80, 3, "hash", True, max_wait=0.25, drain=2
    )
    assert Settings.from_json(made.to_json()) == made
    assert Settings.from_json(made.to_json()) != Settings(HERE)


def test_what_another_version_knows_is_passed_over():
    text = Settings(HERE).to_json().replace("{", '{"colour": "red", ', 1)
    assert Settings.from_json(text) == Settings(HERE)


IMPOSSIBLE = [
    ("inputs", "all", ("inputs", "keep", "redacted", "hash", "got 'all'")),
    ("port", -1, ("port", "0 to 65535", "got -1")),
    ("port", 65_536, ("port", "0 to 65535", "got 65536")),
    *[
        (name, 0, (name, "at least 1", "got 0"))
        for name in ("workers", "max_body", "max_inputs", "max_text", "max_queue", "max_batch")
    ],
    *[
        (name, value, (name, "above 0 seconds", f"got {value}"))
        for name in ("timeout", "drain")
        for value in (0, -1.0, math.inf, math.nan)
    ],
    ("max_wait", -0.1, ("max_wait", "0 to 1 second", "got -0.1")),
    ("max_wait", 1.5, ("max_wait", "0 to 1 second", "got 1.5")),
    ("max_wait", math.nan, ("max_wait", "0 to 1 second", "got nan")),
    ("max_queue", 999, ("max_inputs (1000)", "not be above", "max_queue (999)")),
]


def test_what_no_service_can_run_with_is_refused(subtests):
    for name, value, mentions in IMPOSSIBLE:
        with subtests.test(f"{name} {value}"), refuses(InputError, *mentions):
            Settings(HERE, **{name: value})


@pytest.mark.parametrize(
    ("host", "alone"),
    [
        ("127.0.0.1", True),
        ("127.8.9.1", True),
        ("::1", True),
        ("[::1]", True),
        ("LocalHost", True),
        ("0.0.0.0", False),
        ("::", False),
        ("10.0.0.7", False),
        ("localhost.example.org", False),
        ("127.0.0.1.example.org", False),
        ("", False),
    ],
)
def test_keys_are_needed_wherever_others_may_reach_the_service(host, alone):
    assert is_loopback(host) is alone
    assert Settings(HERE, host=host).keys_needed is not alone
    assert Settings(HERE, host=host, need_key=True).keys_needed


def test_the_bundle_may_be_a_str():
    assert Settings(bundle="folder") == Settings(bundle=Path("folder"))
    assert Settings("folder").bundle == Path("folder")
