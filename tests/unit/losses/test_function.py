"""A user's own function as a loss."""

import copy
import functools
import pickle

import pytest
import torch
import torch.nn.functional as F  # noqa: N812  # torch's own convention
from tests.sentences import refuses

from calibrant.errors import InputError
from calibrant.losses import CrossEntropyLoss, FunctionLoss, Loss, as_loss
from calibrant.losses.function import check_value

NOISE = torch.Generator().manual_seed(0)
LOGITS, LABELS = torch.randn(8, 3, generator=NOISE), torch.randint(0, 3, (8,), generator=NOISE)


def test_a_function_is_called_with_its_options():
    loss = FunctionLoss(F.cross_entropy, label_smoothing=0.1)
    expected = F.cross_entropy(LOGITS, LABELS, label_smoothing=0.1)
    assert torch.equal(loss(LOGITS, LABELS), expected)
    assert isinstance(loss, Loss)


def test_hand_computed_value():
    loss = FunctionLoss(lambda logits, labels: logits.gather(1, labels[:, None]).sum() * -1.0)
    assert loss(torch.tensor([[3.0, 1.0]]), torch.tensor([1])).item() == -1.0


def test_gradients_pass_through():
    ours, theirs = LOGITS.clone().requires_grad_(), LOGITS.clone().requires_grad_()
    as_loss(F.cross_entropy)(ours, LABELS).backward()
    CrossEntropyLoss()(theirs, LABELS).backward()
    assert torch.allclose(ours.grad, theirs.grad, atol=1e-7)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_reaches_the_function_in_single_precision(dtype):
    seen = []

    def spy(logits, labels):
        seen.append(logits.dtype)
        return F.cross_entropy(logits, labels)

    leaf = torch.tensor([[-1e4, 1e4]] * 8, dtype=dtype, requires_grad=True)
    value = FunctionLoss(spy)(leaf, torch.zeros(8, dtype=torch.long))
    value.backward()
    assert seen == [torch.float32]
    assert value.isfinite()
    assert leaf.grad.dtype == dtype
    FunctionLoss(spy)(LOGITS.double(), LABELS)
    assert seen[-1] == torch.float64


@pytest.mark.parametrize(
    ("function", "sentence"),
    [
        (
            lambda z, y: F.cross_entropy(z, y, reduction="none"),
            ("shape (8,)", "use reduction='mean'", "'sum'"),
        ),
        (lambda z, y: 0.5, ("<lambda> returned 0.5.",)),
        (lambda z, y: None, ("returned None.",)),
    ],
)
def test_what_is_not_one_number_is_refused(function, sentence):
    with refuses(InputError, "loss", "return", "number", "torch tensor"):
        FunctionLoss(function)(LOGITS, LABELS)
    with refuses(InputError, *sentence):
        FunctionLoss(function)(LOGITS, LABELS)


def test_a_value_without_a_gradient_is_refused_where_a_model_asks_for_one():
    loss = FunctionLoss(lambda logits, labels: (logits.argmax(-1) != labels).float().mean())
    assert loss(LOGITS, LABELS).ndim == 0
    leaf = LOGITS.clone().requires_grad_()
    sentence = ("loss <lambda> returned", "number without", "gradient", "nothing connects")
    with refuses(InputError, *sentence):
        loss(leaf, LABELS)
    with torch.no_grad():
        assert loss(leaf, LABELS).ndim == 0


def test_values_of_any_loss_can_be_checked():
    leaf = LOGITS.clone().requires_grad_()
    check_value(leaf.sum(), "mine")
    for value, sentence in (
        (0.5, ("number", "torch tensor", "mine returned 0.5")),
        (leaf.sum(-1), ("mine returned", "tensor", "shape (8,)", "use reduction='mean'", "'sum'")),
        (LOGITS.sum(), ("loss mine returned", "number without", "gradient", "nothing connects")),
    ):
        with refuses(InputError, *sentence):
            check_value(value, "mine")
    with torch.no_grad():
        check_value(leaf.sum(), "mine")


@pytest.mark.parametrize(
    ("function", "options", "sentence"),
    [
        (
            lambda z: z.sum(),
            {},
            ("loss", "called", "<lambda>(logits, labels)", "takes (z)"),
        ),
        (lambda z, y, t: z.sum(), {}, ("but <lambda> takes (z, y, t).",)),
        (lambda z, y: z.sum(), {"a": 1}, ("called", "<lambda>(logits, labels, a=1)")),
    ],
)
def test_a_function_that_cannot_be_called_as_a_loss_is_refused_at_once(function, options, sentence):
    with refuses(InputError, *sentence):
        FunctionLoss(function, **options)
    assert FunctionLoss(lambda z, y, t=2: z.sum(), t=3)
    assert FunctionLoss(torch.dist)  # written in C: what it takes is not known


def test_a_value_per_row_is_given_where_it_is_asked_for():
    assert FunctionLoss(F.cross_entropy, reduction="none")(LOGITS, LABELS).shape == (8,)


def test_it_can_be_copied_saved_printed_and_added():
    loss = FunctionLoss(F.cross_entropy, label_smoothing=0.1)
    for other in (copy.deepcopy(loss), pickle.loads(pickle.dumps(loss))):
        assert torch.equal(other(LOGITS, LABELS), loss(LOGITS, LABELS))
    assert repr(loss) == "FunctionLoss(cross_entropy)"
    assert "partial" in repr(FunctionLoss(functools.partial(F.cross_entropy, label_smoothing=0.2)))
    assert (2 * loss)(LOGITS, LABELS).item() == pytest.approx(2 * loss(LOGITS, LABELS).item())
    assert not loss.state_dict()
