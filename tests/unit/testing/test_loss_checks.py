"""check_loss: each rule catches a loss that violates it, with a clear message."""

import math
import subprocess
import sys

import pytest
import torch
import torch.nn.functional as F  # noqa: N812  # torch's own convention
from tests.unit.testing.broken_losses import (
    CAUGHT,
    Changed,
    HasNoWeight,
    HoldsAFactorConstant,
    OverflowsInHalf,
    PenalisesLogits,
    SumsToAnotherSum,
    TakesNaN,
    TakesTheLastDimension,
)

from calibrant.errors import InputError
from calibrant.losses import AdaFocalLoss, CrossEntropyLoss, as_loss
from calibrant.testing import check_loss
from calibrant.testing.loss_cases import (
    HUGE,
    drawn,
    expect_alike,
    expect_finite,
    expect_near,
    extremes,
    gradient,
    has_option,
    numeric_gradient,
    one_hot,
    with_options,
)
from calibrant.testing.loss_checks import _RULES_OF_OPTION, RULES


def one_vs_rest(logits, labels):
    return F.binary_cross_entropy_with_logits(logits, one_hot(labels, logits.shape[1]).to(logits))


def test_each_rule_has_a_loss_that_breaks_it():
    assert set(CAUGHT) == set(RULES)
    assert all(CAUGHT.values())


@pytest.mark.filterwarnings("ignore:std")
@pytest.mark.parametrize(
    ("rule", "broken"),
    [(rule, broken) for rule, group in CAUGHT.items() for broken in group],
    ids=[broken.__name__ for group in CAUGHT.values() for broken in group],
)
def test_broken_loss_is_caught(rule, broken):
    with pytest.raises(AssertionError) as caught:
        check_loss(broken)
    assert str(caught.value).startswith(f"{rule} (2 classes): ")


def test_the_message_of_an_optional_rule_names_its_option():
    assert {text for texts in _RULES_OF_OPTION.values() for text in texts} < set(RULES)
    for name, broken in {
        "shift": PenalisesLogits,
        "half": OverflowsInHalf,
        "derivative": HoldsAFactorConstant,
        "weight": HasNoWeight,
        "more_dimensions": TakesTheLastDimension,
        "rowwise": SumsToAnotherSum,
    }.items():
        with pytest.raises(AssertionError, match=f"pass {name}=False$"):
            check_loss(broken())
    only = {"weight": False, "soft_labels": False, "more_dimensions": False}
    check_loss(one_vs_rest, shift=False, **only)
    check_loss(HoldsAFactorConstant(), derivative=False, rowwise=False, refuses=False)
    check_loss(HasNoWeight(), weight=False)
    check_loss(OverflowsInHalf(), half=False)
    check_loss(TakesTheLastDimension(), more_dimensions=False)


def test_what_is_switched_off_must_be_refused():
    with pytest.raises(AssertionError, match=r"bad input .*: soft labels was accepted"):
        check_loss(CrossEntropyLoss(), soft_labels=False)
    with pytest.raises(AssertionError, match=r"bad input .*: 'none' of a whole batch was accepted"):
        check_loss(CrossEntropyLoss(), rowwise=False)


def test_refusing_bad_input_is_required_of_calibrant_losses_only():
    with pytest.raises(AssertionError, match="bad input must be refused"):
        check_loss(TakesNaN())
    check_loss(TakesNaN(), refuses=False)
    check_loss(F.cross_entropy)
    with pytest.raises(AssertionError, match="an ignored row of nan has a gradient"):
        check_loss(F.cross_entropy, refuses=True)


def test_an_error_inside_a_loss_is_named_with_its_rule_and_kept_as_the_cause():
    class Fails(Changed):
        def after(self, value, logits, labels):
            if logits.ndim > 2:
                raise ZeroDivisionError("by accident")
            return value

    with pytest.raises(AssertionError, match="ZeroDivisionError: by accident") as caught:
        check_loss(Fails())
    assert str(caught.value).startswith("(n, K, ...) must equal rows (2 classes)")
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
    with pytest.raises(InputError, match="did you mean 'focal'"):
        check_loss("fokal")


def test_the_loss_is_not_modified():
    loss = AdaFocalLoss(n_bins=4)
    loss.update(*drawn(3, 0, 300))
    before = {key: torch.as_tensor(v).clone() for key, v in loss.state_dict().items()}
    check_loss(loss, n_classes=(3,), soft_labels=False)
    after = loss.state_dict()
    assert before.keys() == after.keys()
    assert all(torch.equal(before[key], torch.as_tensor(after[key])) for key in before)
    assert (loss.weight, loss.ignore_index, loss.reduction) == (None, -100, "mean")


def test_the_number_of_classes_and_the_seed_can_be_set():
    tried = []

    def spy(logits, labels):
        tried.append((logits.shape[1], float(logits.detach().flatten()[0])))
        return F.cross_entropy(logits, labels)

    check_loss(spy, n_classes=(3, 7), weight=False, seed=4)
    assert {k for k, _ in tried} == {3, 7}
    assert tried[0][1] == float(drawn(3, 4)[0][0, 0])


@pytest.mark.parametrize("k", [2, 5])
def test_rows_hold_every_class_and_extremes_fit_into_half_precision(k):
    logits, labels = drawn(k, 0)
    assert logits.dtype == torch.float64
    assert set(labels.tolist()) == set(range(k))
    assert not torch.equal(logits, drawn(k, 1)[0])
    names = set()
    for name, wide, target in extremes(k):
        names.add(name)
        assert float(wide.abs().max()) <= HUGE
        assert bool(wide.half().isfinite().all())
        assert set(target.tolist()) == set(range(k))
    assert len(names) == 7


def test_the_numeric_gradient_is_the_derivative():
    logits, labels = torch.tensor([[1.0, 0.0]]).double(), torch.tensor([0])
    p = 1 / (1 + math.exp(-1.0))
    result = numeric_gradient(CrossEntropyLoss(), logits, labels)
    assert result.tolist()[0] == pytest.approx([p - 1, 1 - p], abs=1e-9)
    value, grad = gradient(CrossEntropyLoss(), logits, labels)
    assert float(value) == pytest.approx(0.313261687518)  # log(1 + 1 / e)
    assert grad.tolist()[0] == pytest.approx([p - 1, 1 - p])


def test_options_are_attributes_of_modules_and_keywords_of_functions():
    loss = CrossEntropyLoss()
    other = with_options(loss, reduction="sum")
    assert (loss.reduction, other.reduction) == ("mean", "sum")
    function = as_loss(F.cross_entropy)
    smoothed = with_options(function, label_smoothing=0.1)
    assert function.options == {}
    assert smoothed.options == {"label_smoothing": 0.1}
    assert not has_option(function, "gamma")
    assert not has_option(loss, "gamma")
    assert not has_option(as_loss(max), "weight")  # has no signature
    with pytest.raises(AssertionError, match="it has no 'gamma'"):
        with_options(function, gamma=1)


def test_failed_expectations_name_both_values():
    one, two = torch.tensor(1.0), torch.tensor([1.0, 2.0])
    expect_near("a thing", two, two + 1e-9)
    with pytest.raises(AssertionError, match=r"a thing 2 became 2\.5"):
        expect_near("a thing", two, torch.tensor([1.0, 2.5]))
    with pytest.raises(AssertionError, match="a thing 1 became nan"):
        expect_near("a thing", two, torch.tensor([torch.nan, 2.0]))
    with pytest.raises(AssertionError, match=r"a thing of \(2,\) became \(\)"):
        expect_near("a thing", two, one)
    with pytest.raises(AssertionError, match="here: gradient 2 became 3"):
        expect_alike("here", (one, two), (one, torch.tensor([1.0, 3.0])))
    expect_finite("here", two, (one, two))
    with pytest.raises(AssertionError, match="here: the value is inf"):
        expect_finite("here", two, (one / 0, two))
    with pytest.raises(
        AssertionError, match=r"gradient of \(2,\) torch.float32 logits is \(2,\) tor"
    ):
        expect_finite("here", two, (one, two.double()))
    with pytest.raises(AssertionError, match=r"the gradient contains nan in torch\.float32"):
        expect_finite("here", two, (one, two * torch.nan))
    assert one_hot(torch.tensor([1]), 3).tolist() == [[0.0, 1.0, 0.0]]


def test_the_checks_are_imported_without_torch():
    code = "import sys, calibrant.testing; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
