"""Every registered loss follows the contract, and so do user-defined losses."""

import inspect
import sys

import numpy as np
import pytest
import torch
import torch.nn.functional as F  # noqa: N812  # torch's own convention
from torch import nn

from calibrant.errors import InputError
from calibrant.losses import BatchLoss, CalFocalLoss, RowLoss, as_loss, losses
from calibrant.testing import check_loss
from calibrant.testing.loss_cases import drawn

COUNTS = {2: [30, 10], 5: [40, 5, 10, 2, 1]}
COSTS = {k: (np.arange(k)[:, None] * 2.0 + np.arange(k)) * (1 - np.eye(k)) for k in COUNTS}
BATCH = {"rowwise": False, "weight": False}  # of a batch as a whole
HARD = {"soft_labels": False}  # needs one class per row

# Rules that do not apply to each loss. A new loss must be listed here.
FACTS = {
    "adafocal": HARD,
    "balanced_softmax": {},
    "brier": {},
    "calfocal": HARD,
    "ce": {},
    "cost_sensitive": {},
    "dual_focal": {},
    "entropy_penalty": {},
    "flsd": {},
    "focal": {},
    "inverse_focal": {},
    "label_smoothing": {},
    "logit_adjustment": {},
    "mmce": {**BATCH, **HARD},
    "scheduled_focal": {},
    "soft_f1": BATCH,
}
# Other settings of a loss than its defaults.
VARIANTS = [
    ("adafocal:mode=paper,n_bins=3", HARD),
    ("ce:weight=balanced", {}),
    ("focal:gamma=0.5,reduction=sum", {}),
    ("focal:gamma=-2,weight=class_balanced", {}),
    ("calfocal:per=bin", HARD),
    ("dual_focal:gamma=0.2", {}),
    ("label_smoothing:others_only=true", {}),
    ("logit_adjustment:tau=0.5", {}),
    ("mmce:weighted=false", {**BATCH, **HARD}),
    ("soft_f1:average=macro", BATCH),
    ("0.5*ce + 0.5*soft_f1", BATCH),
    ("0.5*focal:gamma=3 + 2*brier", {"weight": False}),
]


def make_loss(text, k):
    loss = losses().get(text)
    if loss is not None and "costs" in inspect.signature(loss).parameters:
        return loss(COSTS[k])
    return as_loss(text, class_counts=COUNTS[k])


def updated(loss, k):
    """Return a steered loss after some updates."""
    for seed in range(4):
        loss.update(*drawn(k, seed, 600))
    return loss


def test_every_registered_loss_is_listed_here():
    assert set(FACTS) == set(losses())


@pytest.mark.parametrize("k", COUNTS)
@pytest.mark.parametrize("name", FACTS)
def test_loss_keeps_the_contract(name, k):
    check_loss(make_loss(name, k), n_classes=(k,), **FACTS[name])


@pytest.mark.parametrize(("text", "facts"), VARIANTS)
def test_variant_keeps_the_contract(text, facts):
    for k in COUNTS:
        check_loss(make_loss(text, k), n_classes=(k,), seed=1, **facts)


@pytest.mark.parametrize("text", ["adafocal", "adafocal:mode=paper", "calfocal:per=bin"])
def test_steered_loss_keeps_the_contract_after_updates(text):
    for k in COUNTS:
        loss = updated(make_loss(text, k), k)
        assert len(set(loss.gammas.tolist())) > 1
        check_loss(loss, n_classes=(k,), **HARD)


def test_gamma_of_each_row_is_held_constant_by_calfocal():
    loss = updated(CalFocalLoss(per="sample"), 5)
    check_loss(loss, n_classes=(5,), derivative=False, **HARD)
    with pytest.raises(AssertionError, match="must be the derivative of the value"):
        check_loss(loss, n_classes=(5,), **HARD)


@pytest.mark.parametrize("name", FACTS)
def test_loss_is_named_documented_and_has_the_three_options_or_refuses_them(name):
    loss = losses()[name]
    assert loss.name == name
    assert inspect.getdoc(loss)
    batch = not FACTS[name].get("rowwise", True)
    assert issubclass(loss, BatchLoss if batch else RowLoss)
    options = {"weight": [1.0, 2.0], "reduction": "none", "ignore_index": -1}
    known = {"costs": COSTS[2], "class_counts": COUNTS[2]}
    needed = {key: known[key] for key in known if key in inspect.signature(loss).parameters}
    for option, value in options.items():
        if batch and option != "ignore_index":
            with pytest.raises(InputError, match=option):
                loss(**needed, **{option: value})
        else:
            assert getattr(loss(**needed, **{option: value}), option) is not None


def run_on_meta_device(loss, k):
    """Run forward and backward on the meta device, where reading a value is an error."""
    logits = torch.empty(8, k, device="meta", requires_grad=True)
    value = loss.to("meta")(logits, torch.empty(8, device="meta", dtype=torch.long))
    value.backward()
    return value, logits.grad


@pytest.mark.parametrize("text", [*FACTS, *(text for text, _ in VARIANTS)])
def test_loss_never_waits_for_a_device(text):
    value, grad = run_on_meta_device(make_loss(text, 5), 5)
    assert value.shape == ()
    assert grad.shape == (8, 5)


@pytest.mark.parametrize("read_value", [float, bool, lambda value: value[value > 0]])
def test_reading_a_value_on_the_device_is_detected(read_value):
    class ReadsValue(nn.Module):
        def forward(self, logits, labels):
            read_value(logits.detach().sum())
            return F.cross_entropy(logits, labels)

    with pytest.raises((RuntimeError, NotImplementedError), match="meta"):
        run_on_meta_device(ReadsValue(), 5)


def hinge(logits, labels):
    own = logits.gather(-1, labels[:, None])
    others = logits.scatter(-1, labels[:, None], -torch.inf).amax(-1, keepdim=True)
    return F.relu(1 - own + others).mean()


class Tempered(nn.Module):
    """Cross-entropy with a updated temperature."""

    def __init__(self, start=2.0):
        super().__init__()
        self.temperature = nn.Parameter(torch.tensor(float(start)))

    def forward(self, logits, labels):
        return F.cross_entropy(logits.double() / self.temperature, labels)


PLAIN = {"weight": False, "soft_labels": False, "more_dimensions": False}


def test_function_of_the_users_keeps_the_contract():
    check_loss(hinge, **PLAIN)
    check_loss(F.cross_entropy)  # has all options of our own losses
    with pytest.raises(AssertionError, match="a one-hot label must equal a class"):
        check_loss(hinge, weight=False)


def test_module_of_the_users_keeps_the_contract():
    check_loss(Tempered(), weight=False)
    check_loss(Tempered, weight=False)
    check_loss(0.5 * as_loss("ce") + Tempered(), weight=False, refuses=False)


def test_torchs_own_module_overflows_in_half_precision_only():
    with pytest.raises(AssertionError, match=r"half precision .* the value is inf"):
        check_loss(nn.CrossEntropyLoss())
    check_loss(nn.CrossEntropyLoss(), half=False)


def test_loss_in_a_module_of_the_users_keeps_the_contract(tmp_path, monkeypatch):
    (tmp_path / "contract_losses").mkdir()
    (tmp_path / "contract_losses" / "__init__.py").touch()
    (tmp_path / "contract_losses" / "mine.py").write_text(
        "import torch\n"
        "from torch import nn\n"
        "def squared(logits, labels, power=2.0):\n"
        "    p = logits.softmax(-1).gather(-1, labels[:, None])\n"
        "    return ((1 - p) ** power).mean()\n"
        "class Scaled(nn.Module):\n"
        "    def __init__(self, scale=1.0):\n"
        "        super().__init__()\n"
        "        self.scale = scale\n"
        "    def forward(self, logits, labels):\n"
        "        return self.scale * squared(logits.double(), labels)\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    try:
        check_loss("contract_losses.mine:squared", **PLAIN)
        check_loss("contract_losses.mine:squared:power=3", **PLAIN)
        check_loss("contract_losses.mine:Scaled:scale=0.5", **PLAIN)
        check_loss("0.5*ce + 0.5*contract_losses.mine:Scaled", refuses=False, **PLAIN)
    finally:
        for name in [name for name in sys.modules if name.startswith("contract_losses")]:
            del sys.modules[name]
