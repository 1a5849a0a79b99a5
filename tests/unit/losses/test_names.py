"""Losses by name: what text means, what is suggested, and what is refused."""

import sys

import numpy as np
import pytest
import torch
import torch.nn.functional as F  # noqa: N812  # torch's own convention
from tests.sentences import refuses
from torch import nn

from calibrant.errors import InputError
from calibrant.losses import (
    BalancedSoftmaxLoss,
    CrossEntropyLoss,
    FocalLoss,
    FunctionLoss,
    LossSum,
    as_loss,
    balanced_weights,
    class_balanced_weights,
    losses,
    names,
    register,
)

LOGITS, LABELS = torch.tensor([[1.0, 0.0], [0.0, 2.0]]), torch.tensor([0, 1])
MINE = """
import torch
from torch import nn
import torch.nn.functional as F

def plain(logits, labels):
    return F.cross_entropy(logits, labels)

def scaled(logits, labels, *, scale=1.0, shift=0.0):
    return scale * F.cross_entropy(logits, labels) + shift

class Own(nn.Module):
    def __init__(self, scale=1.0, weight=None):
        super().__init__()
        self.scale, self.weight = scale, weight

    def forward(self, logits, labels):
        return self.scale * F.cross_entropy(logits, labels, self.weight)

class Counted(nn.Module):
    def __init__(self, class_counts):
        super().__init__()
        self.class_counts = class_counts

class Open(nn.Module):
    def __init__(self, **options):
        super().__init__()
        self.options = options

class Strict(nn.Module):
    def __init__(self, scale=1.0):
        super().__init__()
        if scale < 0:
            raise ValueError("scale is below 0")

ready = nn.CrossEntropyLoss(label_smoothing=0.1)
number = 3
"""


@pytest.fixture(autouse=True)
def own_modules(tmp_path, monkeypatch):
    """Modules of the user's on the path, forgotten afterwards."""
    (tmp_path / "mypackage").mkdir()
    (tmp_path / "mypackage" / "__init__.py").touch()
    (tmp_path / "mypackage" / "mylosses.py").write_text(MINE)
    (tmp_path / "mypackage" / "broken.py").write_text("1 / 0\n")
    (tmp_path / "mypackage" / "garbled.py").write_text("def\n")
    (tmp_path / "flatlosses.py").write_text(MINE)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield
    for name in [name for name in sys.modules if name.split(".")[0] in ("mypackage", "flatlosses")]:
        del sys.modules[name]


def test_a_name_alone_and_a_name_with_options():
    assert isinstance(as_loss("ce"), CrossEntropyLoss)
    loss = as_loss("focal: gamma = 3 , reduction=sum,ignore_index=-1")
    assert (loss.gamma, loss.reduction, loss.ignore_index) == (3, "sum", -1)
    assert as_loss("focal:gamma=1e+1").gamma == 10.0
    assert as_loss("focal:gamma=-0.5").gamma == -0.5


def test_blanks_stand_where_they_like():
    assert as_loss(" focal : gamma = 3 ").gamma == 3
    assert as_loss("0.5 * focal : gamma=3 + ce").factors == (0.5, 1.0)
    assert as_loss("mypackage.mylosses : Own : scale=3").scale == 3
    assert as_loss("flatlosses : Own").scale == 1.0


def test_a_star_in_an_option_scales_nothing():
    assert as_loss('mypackage.mylosses:Open:a="2*ce"').options == {"a": "2*ce"}


def test_values_are_numbers_lists_truths_or_text():
    assert as_loss("focal:weight=[1,4]").weight.tolist() == [1.0, 4.0]
    assert as_loss("focal:weight=[1, 4],gamma=1").gamma == 1
    assert as_loss("focal:weight=null").weight is None
    assert as_loss("focal:weight=None").weight is None
    found = as_loss(
        'mypackage.mylosses:Open:a=true,b=False,c=text,d="quoted, text",e=[[0,1],[5,0]]'
    )
    assert found.options["a"] is True
    assert found.options["b"] is False
    assert found.options["c"] == "text"
    assert found.options["d"] == "quoted, text"
    assert found.options["e"] == [[0, 1], [5, 0]]


def test_lists_in_lists_are_one_value():
    loss = as_loss("cost_sensitive:costs=[[0,1],[5,0]],reduction=sum")
    assert loss.costs.tolist() == [[0.0, 1.0], [5.0, 0.0]]
    assert loss.reduction == "sum"


def test_a_sum_of_terms():
    loss = as_loss("0.5*ce + 2 * focal:gamma=3 + brier")
    assert isinstance(loss, LossSum)
    assert loss.factors == (0.5, 2.0, 1.0)
    assert [term.name for term in loss.terms] == ["ce", "focal", "brier"]
    assert as_loss("1e+1*ce").factors == (10.0,)
    assert as_loss("1*ce").name == "ce"
    assert as_loss("-0.1*ce + ce").factors == (-0.1, 1.0)


def test_what_is_no_text_is_taken_as_it_is():
    module = nn.CrossEntropyLoss()
    assert as_loss(module) is module
    assert isinstance(as_loss(FocalLoss), FocalLoss)
    assert isinstance(as_loss(F.cross_entropy), FunctionLoss)
    for thing in (3, None, ["ce"]):
        with refuses(InputError, "loss", "name like 'focal:gamma=3'", "got"):
            as_loss(thing)


UNREADABLE = [
    ("fokal", ("no loss 'fokal'", "(did you mean 'focal'?)", "choose")),
    ("adafocl:n_bins=3", ("you mean 'adafocal'",)),
    ("zzz", ("no loss 'zzz'", "choose", "ce", "name", "own", "package")),
    ("focal:gama=3", ("'focal'", "no option 'gama'", "(did you mean 'gamma'?)", "takes gamma")),
    (
        "focal:x=3",
        ("'focal'", "no option 'x'", "takes gamma", "weight", "ignore_index", "reduction"),
    ),
    ("focal:gamma", ("'gamma'", "'focal:gamma'", "read option=value", "like gamma=3")),
    ("focal:gamma=", ("read option=value",)),
    ("focal:=3", ("read option=value",)),
    ("focal:gamma=3,", ("read option=value",)),
    ("focal:gamma=3,gamma=4", ("names", "option 'gamma' twice")),
    ("focal:gamma=high", ("gamma", "number", "-5 to 100", "got 'high'")),
    ("focal:gamma=true", ("gamma", "number", "-5 to 100", "got True")),
    ("focal:gamma=500", ("gamma", "number", "-5 to 100", "got 500")),
    ("focal:gamma=NaN", ("gamma must be a number",)),
    ("focal:reduction=avg", ("reduction", "'mean'", "'sum'", "'none'", "got 'avg'")),
    ("focal:ignore_index=x", ("ignore_index", "whole number", "got 'x'")),
    ("focal:weight=[1,-4]", ("weight", "finite number", "at least 0 per", "class")),
    ("focal:weight=[1,4", ("weight", "loss 'focal'", "'balanced'", "got '[1,4'")),
    ("focal:weight=equal", ("'balanced'", "'class_balanced'", "number per class")),
    ("", ("name", "loss", "empty", "write", "like 'ce'", "'focal:gamma=3'")),
    ("ce + ", ("name of a loss is empty",)),
    ("+", ("name of a loss is empty",)),
    ("1.2.3*ce", ("'1.2.3'", "'1.2.3*ce'", "not a finite number", "scale", "write")),
    ("1e999*ce", ("'1e999'", "'1e999*ce'", "not a finite number", "scale", "loss")),
    (
        "inf*ce",
        ("'inf'", "'inf*ce'", "not a finite number", "scale", "loss", "write", "before the star"),
    ),
    ("ce*2", ("'ce'", "'ce*2'", "not a finite number", "before", "star", "'0.5*ce'")),
    ("2*3*ce", ("'2*3'", "'2*3*ce'", "not a finite number")),
    ("*ce", ("''", "'*ce'", "not a finite number", "scale", "loss")),
    (
        "2*",
        ("no loss follows", "star", "'2*'", "write", "like 'ce'", "'focal:gamma=3'"),
    ),
    ("ce + 2 * :gamma=3", ("no loss follows", "star", "'2 * :gamma=3'")),
    (":gamma=3", ("name of a loss is empty",)),
    ("0.5*ce - 0.5*brier", ("losses", "joined", "'ce + -0.5*brier'", "got")),
]


def test_what_cannot_be_meant_is_refused_in_one_sentence(subtests):
    for text, sentence in UNREADABLE:
        with subtests.test(f"{text!r}"):
            with refuses(InputError, *sentence) as refused:
                as_loss(text)
            assert str(refused.value).endswith(".")
            assert "\n" not in str(refused.value)


def test_own_losses_by_import_path():
    reference = F.cross_entropy(LOGITS, LABELS).item()
    value = {
        text: as_loss(text)(LOGITS, LABELS).item()
        for text in (
            "mypackage.mylosses:plain",
            "mypackage.mylosses:Own",
            "mypackage.mylosses:Own:scale=3",
            "mypackage.mylosses:scaled:scale=2,shift=1",
            "0.5*mypackage.mylosses:Own:scale=3 + ce",
            "flatlosses:plain",
            "flatlosses:Own:scale=3",
        )
    }
    assert list(value.values()) == pytest.approx(
        [
            reference,
            reference,
            3 * reference,
            2 * reference + 1,
            2.5 * reference,
            reference,
            3 * reference,
        ]
    )
    assert isinstance(as_loss("mypackage.mylosses:ready"), nn.CrossEntropyLoss)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (
            "mypackage.nowhere:Own",
            ("'mypackage.nowhere:Own' cannot be imported", "No module named"),
        ),
        ("mypackage.broken:Own", ("cannot be imported (ZeroDivisionError: division by zero)",)),
        ("mypackage.garbled:Own", ("cannot be imported (SyntaxError",)),
        ("mypackage.mylosses:own", ("no loss 'own'", "(did you mean 'Own'?)")),
        ("mypackage.mylosses:zzz", ("'mypackage.mylosses'", "no loss 'zzz'")),
        ("mypackage.mylosses", ("named", "package.module:Name", "got 'mypackage.mylosses'")),
        ("mypackage.mylosses:Own:scal=1", ("no option 'scal'", "(did you mean 'scale'?)")),
        ("mypackage.mylosses:scaled:x=1", ("no option 'x'", "takes scale", "shift")),
        ("mypackage.mylosses:plain:x=1", ("no option 'x'", "takes none")),
        ("mypackage.mylosses:Strict:scale=-1", ("cannot be made (scale is below 0)",)),
        ("mypackage.mylosses:Strict:scale=x", ("cannot be made ('<'", "not supported")),
        ("mypackage.mylosses:number", ("function", "torch Module class", "got int")),
        ("mypackage.mylosses:ready:a=1", ("got CrossEntropyLoss", "options")),
        ("nowherelosses:Own", ("no loss 'nowherelosses'",)),
        ("os:getcwd", ("loss", "called", "getcwd(logits, labels)", "getcwd takes ()")),
    ],
)
def test_own_losses_that_cannot_be_had_are_refused_in_one_sentence(text, sentence):
    with refuses(InputError, *sentence):
        as_loss(text)


def test_counts_of_classes_reach_the_losses_that_ask_for_them():
    counts = [30, 10]
    assert isinstance(as_loss("balanced_softmax", class_counts=counts), BalancedSoftmaxLoss)
    assert isinstance(as_loss(BalancedSoftmaxLoss, class_counts=counts), BalancedSoftmaxLoss)
    assert as_loss("mypackage.mylosses:Counted", class_counts=counts).class_counts == counts
    given = as_loss("mypackage.mylosses:Counted:class_counts=[1,2]", class_counts=counts)
    assert given.class_counts == [1, 2]
    balanced = as_loss("focal:weight=balanced", class_counts=np.array(counts))
    assert torch.equal(balanced.weight, balanced_weights(counts))
    milder = as_loss("0.5*ce:weight=class_balanced + ce", class_counts=counts).terms[0]
    assert torch.equal(milder.weight, class_balanced_weights(counts))
    own = as_loss("mypackage.mylosses:Own:weight=balanced", class_counts=counts)
    assert torch.equal(own.weight, balanced_weights(counts))


@pytest.mark.parametrize("text", ["balanced_softmax", "ce:weight=balanced"])
def test_counts_that_are_missing_or_bad_are_named(text):
    name = text.split(":")[0]
    sentence = (f"loss '{name}' needs", "classes", "pass class_counts")
    with refuses(InputError, *sentence):
        as_loss(text)
    with refuses(InputError, "class_counts", "rows"):
        as_loss(text, class_counts=[5])


def test_a_needed_option_that_is_missing_is_named():
    sentence = (
        "the loss 'cost_sensitive' needs the option 'costs': write 'cost_sensitive:costs=VALUE' "
        "with a number, a word or a list like [[0,1],[5,0]] for VALUE."
    )
    for text in ("cost_sensitive", "ce + 0.1*cost_sensitive:reduction=sum"):
        with pytest.raises(InputError) as refused:
            as_loss(text)
        assert str(refused.value) == sentence


def test_registered_losses_are_sorted_and_can_be_added_to(monkeypatch):
    assert list(losses()) == sorted(losses())
    monkeypatch.setattr(names, "_LOSSES", dict(names._LOSSES))

    @register("my_own")
    class Mine(nn.Module):
        pass

    assert losses()["my_own"] is Mine
    assert Mine.name == "my_own"
    assert isinstance(as_loss("my_own"), Mine)
    register("my_own")(Mine)  # again is no fault: a module may be read twice
    with refuses(InputError, "loss name 'ce'", "taken", "CrossEntropyLoss"):
        register("ce")(Mine)
