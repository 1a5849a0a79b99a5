"""Names of candidates: whatever a network depends on is in them, a user's own loss too."""

from __future__ import annotations

import importlib
import sys
from dataclasses import replace

import pytest
from tests.unit.study.runs import text_config

from calibrant.study import run_study
from calibrant.study.candidates.candidate import list_candidates
from calibrant.study.rows.read import read_study_rows

pytestmark = pytest.mark.usefixtures("rough_intervals")

HEAD = "import functools, torch\nF = torch.nn.functional\n"
FUNCTION = "def mine(z, y):\n    return F.cross_entropy(z, y)\n"
HELPER = (
    "SCALE = 2.0\ndef half(x):\n    return x / SCALE\ndef mine(z, y):\n    return half(z.sum())\n"
)
OBJECT = (
    "class Scaled:\n    def __init__(self, by):\n        self.by = by\n"
    "    def __call__(self, z, y):\n        return self.by * F.cross_entropy(z, y)\n"
    "mine = Scaled(2.0)\n"
)
PART = f"{FUNCTION.replace('mine', 'inner')}mine = functools.partial(inner)\n"
MODULE = (
    "class mine(torch.nn.Module):\n    def forward(self, z, y):\n"
    "        return F.cross_entropy(z, y)\n"
)
RANDOM = (
    "class mine(torch.nn.Module):\n    def __init__(self):\n        super().__init__()\n"
    "        self.w = torch.nn.Parameter(torch.randn(3))\n    def forward(self, z, y):\n"
    "        return F.cross_entropy(z, y)\n"
)
EDITS = {
    "function": (FUNCTION, "F.cross_entropy(z, y)", "0.001 * z.pow(2).sum()"),
    "constant of a function": (FUNCTION, "(z, y)\n", "(2 * z, y)\n"),
    "default": (FUNCTION, "mine(z, y)", "mine(z, y, t=2)"),
    "helper": (HELPER, "x / SCALE", "x * SCALE"),
    "global": (HELPER, "2.0", "3.0"),
    "callable object": (OBJECT, "self.by * F", "self.by + F"),
    "what an object holds": (OBJECT, "Scaled(2.0)", "Scaled(3.0)"),
    "partial": (PART, "F.cross_entropy(z, y)", "F.cross_entropy(2 * z, y)"),
    "Module": (MODULE, "F.cross_entropy(z, y)", "F.cross_entropy(2 * z, y)"),
    "Module with weights": (RANDOM, "F.cross_entropy(z, y)", "F.cross_entropy(2 * z, y)"),
}


@pytest.fixture
def own(tmp_path, monkeypatch):
    """Return a function that writes the module of a loss and imports it afresh."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def written(text):
        (tmp_path / "losses_of_a_user.py").write_text(HEAD + text)
        sys.modules.pop("losses_of_a_user", None)
        importlib.invalidate_caches()

    yield written
    sys.modules.pop("losses_of_a_user", None)


@pytest.fixture(scope="module")
def read(tmp_path_factory):
    config = text_config(tmp_path_factory.mktemp("candidate"))
    return config, read_study_rows(config)


def named(read, loss):
    config = replace(read[0], candidates=("ce", loss))
    return [one.folder for one in list_candidates(config, read[1].files, read[1].splits)]


@pytest.mark.parametrize("loss", ["losses_of_a_user:mine", "ce + 0.5*losses_of_a_user:mine"])
@pytest.mark.parametrize("case", EDITS)
def test_a_change_of_an_own_loss_makes_another_candidate(own, read, case, loss):
    text, old, new = EDITS[case]
    own(text)
    before = named(read, loss)
    own(f"# a comment\n\n{text}def other(z, y):\n    return z.sum()\n")  # nothing that it uses
    assert named(read, loss) == before
    assert old in text
    own(text.replace(old, new))
    after = named(read, loss)
    assert after[0] == before[0]
    assert after[1] != before[1]


def test_a_loss_whose_source_cannot_be_had_is_known_by_its_code(own, read):
    made = 'place = {{"F": F, "__name__": __name__}}\nexec({!r}, place)\nmine = place["mine"]\n'
    own(made.format(FUNCTION))
    before = named(read, "losses_of_a_user:mine")
    own(made.format(FUNCTION.replace("z, y)\n", "2 * z, y)\n")))
    assert named(read, "losses_of_a_user:mine")[1] != before[1]


def test_a_study_trains_again_with_a_changed_function(own, tmp_path):
    own(FUNCTION)
    config = text_config(tmp_path, candidates=("ce", "losses_of_a_user:mine"))
    first = run_study(config, tmp_path / "run")
    own(FUNCTION.replace("F.cross_entropy(z, y)", "0.001 * z.pow(2).sum()"))
    told = []
    second = run_study(config, tmp_path / "run", progress=told.append)
    assert "ce: trained before, reused" in told
    assert "losses_of_a_user:mine: trained before, reused" not in told
    assert first.candidates[1].refinement != second.candidates[1].refinement


NETWORK = """
from torch import nn
from calibrant.models import register

@register("network_of_a_user")
class Net(nn.Module):
    def __init__(self, n_tokens, n_classes):
        super().__init__()
        self.config = {"model": "network_of_a_user", "n_tokens": n_tokens, "n_classes": n_classes}
        self.words = nn.Embedding(n_tokens, 8)
        self.out = nn.Linear(8, n_classes)

    def forward(self, tokens, lengths):
        return self.out(torch.relu(self.words(tokens).mean(1)))
"""


def test_a_change_of_an_own_network_makes_another_candidate(own, read, monkeypatch):
    from calibrant.models import registry

    def folders():
        importlib.import_module("losses_of_a_user")
        changes = {"candidates": ("ce",), "model": "network_of_a_user", "model_options": {}}
        config = replace(read[0], **changes)
        return [one.folder for one in list_candidates(config, read[1].files, read[1].splits)]

    monkeypatch.setattr(registry, "_MODELS", dict(registry.models()))
    own(NETWORK)
    before = folders()
    own(f"# a comment\n{NETWORK}")
    assert folders() == before
    own(NETWORK.replace("torch.relu(", "torch.tanh(-3 * "))
    assert folders() != before
