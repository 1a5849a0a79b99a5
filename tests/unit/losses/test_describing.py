"""What a loss says of itself: the same for the same loss, and another text for any other."""

import functools
import importlib
import itertools
import subprocess
import sys

import numpy as np
import pytest
import torch
import torch.nn.functional as F  # noqa: N812  # torch's own convention
from torch import nn

from calibrant.losses import AdaFocalLoss, FunctionLoss, Loss, as_loss, losses
from calibrant.losses.describing import describe, describe_code

COUNTS = [70, 20, 10]
TEXTS = [
    *(name for name in losses() if name != "cost_sensitive"),
    "cost_sensitive:costs=[[0,1,1],[1,0,1],[1,1,0]]",
    "cost_sensitive:costs=[[0,1,1],[1,0,1],[1,5,0]]",
    "focal:reduction=sum",
    "focal:ignore_index=-1",
    "focal:gamma=3",
    "focal:weight=[1,1,1]",
    "focal:weight=[1,1,2]",
    "ce:weight=balanced",
    "ce:weight=class_balanced",
    "logit_adjustment:class_counts=[70,20,11]",
    "logit_adjustment:tau=0.5",
    "adafocal:strength=2",
    "adafocal:mode=paper",
    "adafocal:update_every=50",
    "ce + focal",
    "focal + ce",
    "0.5*ce + focal",
    "soft_f1:average=macro",
]


def told(loss):
    return describe(as_loss(loss, class_counts=COUNTS))


def outer(scale, add=0.0):
    def scaled(logits, labels):
        return scale * F.cross_entropy(logits, labels) + add

    return scaled


class Own(nn.Module):
    def __init__(self, scale=1.0, table=None):
        super().__init__()
        self.scale = scale
        self.table = nn.Parameter(torch.zeros(30) if table is None else table)

    def forward(self, logits, labels):
        return self.scale * F.cross_entropy(logits, labels)


class Callable:
    def __init__(self, scale):
        self.scale, self.me = scale, self

    def __call__(self, logits, labels):
        return self.scale * F.cross_entropy(logits, labels)

    def method(self, logits, labels):
        return self(logits, labels)


def test_one_by_hand():
    assert told("focal:gamma=3,weight=[1,2.5]") == (
        "calibrant.losses.focal.FocalLoss(gamma=3, ignore_index=-100, reduction='mean', "
        "weight=(2,) [1, 2.5])"
    )


def test_two_losses_of_one_text_say_the_same(subtests):
    for text in TEXTS:
        with subtests.test(text):
            assert told(text) == told(text)
            assert "\n" not in told(text)


def test_losses_of_unlike_texts_say_unlike_things():
    found = [told(text) for text in TEXTS]
    assert len(set(found)) == len(TEXTS)


def test_a_number_is_the_same_however_it_is_written():
    assert told("focal:gamma=3") == told("focal:gamma=3.0")
    assert told("focal:weight=[1,2,3]") == told("focal:weight=[1.0,2.0,3.0]")


def test_functions_differ_by_name_options_code_defaults_and_what_they_enclose():
    table = np.arange(3.0)
    functions = [
        F.cross_entropy,
        F.multi_margin_loss,
        functools.partial(F.cross_entropy, label_smoothing=0.9),
        lambda z, y: z.sum() + 0 * y.sum(),
        lambda z, y: z.mean() + 0 * y.sum(),  # the same bytecode: another name
        lambda z, y: z.sum() + 1 * y.sum(),  # the same bytecode: another constant
        lambda z, y: z.sum() + (lambda: 2)() * y.sum(),
        lambda z, y: z.sum() + (lambda: 3)() * y.sum(),
        lambda z, y, t=1.0: z.sum() * t,
        lambda z, y, t=2.0: z.sum() * t,
        lambda z, y, *, t=1.0: z.sum() * t,
        lambda z, y, *, t=2.0: z.sum() * t,
        lambda z, y: z.sum() * table[0],
        outer(1.0),
        outer(2.0),
        Callable(1.0),
        Callable(2.0),
        Callable(1.0).method,
        Callable(2.0).method,
        torch.dist,
    ]
    found = [describe(FunctionLoss(function)) for function in functions]
    assert len(set(found)) == len(functions)
    assert not any("0x" in one for one in found)
    smoothed = [FunctionLoss(F.cross_entropy, label_smoothing=s) for s in (0.0, 0.9)]
    assert len({describe(FunctionLoss(F.cross_entropy)), *map(describe, smoothed)}) == 3
    assert describe(FunctionLoss(outer(2.0))) == describe(FunctionLoss(outer(2.0)))
    assert describe(FunctionLoss(Callable(2.0))) == describe(FunctionLoss(Callable(2.0)))


NAMED = "import torch\nLEVEL = {level}\ndef part(z):\n    return z{power}\n{kind}"
FUNCTION = "def mine(z, y):\n    return LEVEL * part(z).sum()\n"
MODULE = (
    "class mine(torch.nn.Module):\n    def forward(self, z, y):\n        return part(z).sum()\n"
)


@pytest.mark.parametrize("kind", [FUNCTION, MODULE], ids=["function", "Module"])
def test_a_change_inside_a_named_function_or_class_is_seen(tmp_path, monkeypatch, kind):
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def said(level=1, power="", kind=kind):
        (tmp_path / "named_losses.py").write_text(NAMED.format(level=level, power=power, kind=kind))
        monkeypatch.delitem(sys.modules, "named_losses", raising=False)
        importlib.invalidate_caches()
        return describe(as_loss("named_losses:mine"))

    before = said()
    assert "named_losses.mine" in before
    assert said() == before
    assert said(power="**2") != before  # what it calls
    assert said(kind=kind.replace("sum", "mean")) != before
    assert (said(level=2) == before) == (kind is MODULE)  # which does not read it


def test_a_function_says_the_same_after_it_was_called_often():
    loss = FunctionLoss(outer(2.0))
    before = describe(loss)
    for _ in range(50):  # an interpreter may rewrite code that runs often
        loss(torch.zeros(2, 2), torch.tensor([0, 1]))
    assert describe(loss) == before


def test_foreign_modules_differ_by_class_attributes_and_weights():
    ones = torch.ones(30)
    modules = [
        nn.CrossEntropyLoss(),
        nn.CrossEntropyLoss(label_smoothing=0.1),
        nn.CrossEntropyLoss(reduction="sum"),
        nn.CrossEntropyLoss(weight=torch.ones(3)),
        nn.MultiMarginLoss(),
        Own(),
        Own(2.0),
        Own(table=ones),
        Own(table=ones.bfloat16()),
        nn.Sequential(Own(), Own()),
        nn.Sequential(Own(), Own(2.0)),
    ]
    for one, other in itertools.combinations(modules, 2):
        assert describe(one) != describe(other)
    assert describe(Own()) == describe(Own())


def test_neither_mode_nor_place_nor_hooks_nor_compilation_matter():
    before = describe(Own())
    module = Own().eval()
    module.register_forward_hook(lambda *_: None)
    assert describe(module) == before
    assert describe(torch.compile(Own(), backend="eager")) == before
    compiled = torch.compile(outer(2.0), backend="eager")
    assert describe(FunctionLoss(compiled)) == describe(FunctionLoss(outer(2.0)))


class Learner(Loss):
    learned = ("level", "_seen")

    def __init__(self, rate):
        super().__init__()
        self.rate, self._seen = rate, 0
        self.register_buffer("level", torch.tensor(0.0))

    def set_epoch(self, epoch):
        self._seen = epoch
        self.level.fill_(epoch)


def test_what_training_changes_is_left_out():
    for loss in (Learner(0.5), as_loss("ce + scheduled_focal:gammas=[2,0],epochs=[1]")):
        before = describe(loss)
        loss.set_epoch(3)
        assert describe(loss) == before
    assert describe(Learner(0.5)) != describe(Learner(0.6))


def test_a_fresh_loss_does_not_know_of_one_that_has_learned():
    before = describe(AdaFocalLoss())
    AdaFocalLoss().update(torch.randn(100, 3), torch.zeros(100).long())
    assert describe(AdaFocalLoss()) == before


PROGRAM = """
from calibrant.losses import as_loss
from calibrant.losses.describing import describe
print(describe(as_loss("0.5*ce:weight=balanced + adafocal", class_counts=[3, 1])))
print(describe(as_loss(lambda z, y: z.sum() * (str(z) in {"a", "b", "c", "d", "e"}))))
"""


def test_it_is_the_same_in_another_process(capsys):
    exec(PROGRAM, {"__name__": "__main__"})
    here = capsys.readouterr().out
    made = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True)
    assert made.stdout == here  # though sets of text come in another order there
    assert here.startswith("calibrant.losses.sums.LossSum(factors=[0.5, 1]")


def test_example_of_describe_code():
    assert describe_code([nn.Linear]) == ""
