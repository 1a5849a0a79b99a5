"""`--help` of every verb."""

import pytest

VERBS = (
    "evaluate",
    "compare",
    "calibrate",
    "threshold",
    "decide",
    "pack",
    "train",
    "predict",
    "demo",
    "serve",
    "doctor",
)
GROUPS = {"keys": ("add", "list", "revoke"), "store": ("check", "export", "forget", "prune")}


def test_help_of_calibrant(cli, here, screen):
    screen("help", cli("--help").stdout)


@pytest.mark.parametrize("verb", VERBS)
def test_help_of_a_verb(cli, here, screen, verb):
    screen(f"help-{verb}", cli(verb, "--help").stdout)


@pytest.mark.parametrize("group", GROUPS)
def test_help_of_a_group(cli, here, screen, group):
    pages = [cli(group, *command, "--help").stdout for command in ((), *zip(GROUPS[group]))]
    screen(f"help-{group}", "\n\n".join(pages))
