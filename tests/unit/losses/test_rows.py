"""Rows of a batch: what is taken, what is refused, and how losses of rows become one number."""

import math

import numpy as np
import pytest
import torch
from tests.sentences import refuses

from calibrant.errors import InputError
from calibrant.losses import RowLoss
from calibrant.losses.rows import (
    as_class_weight,
    as_rows,
    as_weight,
    check_finite,
    check_ignore,
    reduce_values,
)

LOGITS = torch.tensor([[1.0, 0.0, 0.0], [0.0, 2.0, 0.0], [0.0, 0.0, 3.0]])
LABELS = torch.tensor([0, 1, 2])


def test_whole_labels_are_taken_as_they_are():
    rows = as_rows(LOGITS, LABELS)
    assert torch.equal(rows.logits, LOGITS)
    assert torch.equal(rows.labels, LABELS)
    assert rows.shares is None
    assert rows.mask is None
    assert rows.drop_ignored() is rows


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int32, torch.bool])
def test_labels_of_any_whole_type_are_taken(dtype):
    labels = torch.tensor([0, 1, 1]).to(dtype)
    assert as_rows(LOGITS, labels).labels.tolist() == [0, 1, 1]


@pytest.mark.parametrize(
    ("dtype", "wide"),
    [
        (torch.float16, torch.float32),
        (torch.bfloat16, torch.float32),
        (torch.float32, torch.float32),
        (torch.float64, torch.float64),
    ],
)
def test_half_precision_is_widened_and_double_kept(dtype, wide):
    assert as_rows(LOGITS.to(dtype), LABELS).logits.dtype == wide


def test_more_dimensions_are_flattened_with_each_label_beside_its_logits():
    logits = torch.arange(24.0).reshape(2, 3, 4)  # 2 texts of 4 tokens, 3 classes
    labels = torch.tensor([[0, 1, 2, 0], [2, 1, 0, 2]])
    rows = as_rows(logits, labels)
    assert rows.logits.shape == (8, 3)
    assert rows.logits[1].tolist() == logits[0, :, 1].tolist()
    assert rows.labels.tolist() == [0, 1, 2, 0, 2, 1, 0, 2]
    values = torch.arange(8.0)
    back = reduce_values(values, rows, weight=None, reduction="none")
    assert back.tolist() == [[0, 1, 2, 3], [4, 5, 6, 7]]


def test_shares_are_taken_in_the_shape_of_the_logits():
    logits = torch.zeros(2, 3, 4)
    shares = torch.rand(2, 3, 4).softmax(1)
    rows = as_rows(logits, shares)
    assert rows.labels is None
    assert torch.equal(rows.shares[5], shares[1, :, 1])
    assert rows.shape == (2, 4)
    assert torch.equal(rows.one_hot(), rows.shares)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_shares_may_sum_to_1_up_to_the_rounding_of_their_type(dtype):
    thirds = torch.full((1, 3), 1 / 3).to(dtype)
    assert as_rows(LOGITS[:1], thirds).shares.dtype == torch.float32


def test_classes_can_be_written_as_shares():
    assert as_rows(LOGITS, LABELS).one_hot().tolist() == torch.eye(3).tolist()


def test_a_loss_that_needs_classes_refuses_shares_in_one_sentence():
    with refuses(InputError, "mmce needs", "class per row", "shape (3,)"):
        as_rows(LOGITS, torch.eye(3)).require_classes("mmce")
    assert torch.equal(as_rows(LOGITS, LABELS).require_classes("mmce"), LABELS)


def test_ignored_rows_are_emptied_whatever_they_hold():
    logits = LOGITS.clone()
    logits[1] = torch.tensor([math.nan, math.inf, 1e4])
    leaf = logits.requires_grad_()
    rows = as_rows(leaf, torch.tensor([0, -100, 2]))
    assert rows.mask.tolist() == [True, False, True]
    assert rows.labels.tolist() == [0, 0, 2]
    assert rows.logits[1].tolist() == [0.0, 0.0, 0.0]
    rows.logits.exp().sum().backward()
    assert leaf.grad[1].tolist() == [0.0, 0.0, 0.0]
    only = rows.drop_ignored()
    assert only.mask is None
    assert torch.equal(only.logits, LOGITS[[0, 2]])
    assert only.labels.tolist() == [0, 2]


def test_a_class_can_be_ignored_and_so_can_a_negative_number():
    rows = as_rows(LOGITS, LABELS, ignore_index=1)
    assert rows.mask.tolist() == [True, False, True]
    assert as_rows(LOGITS[:2], torch.tensor([0, 2]), ignore_index=1).mask is None
    assert as_rows(LOGITS, torch.tensor([0, -1, 2]), ignore_index=-1).mask.tolist()[1] is False
    assert as_rows(LOGITS, torch.tensor([0, 9, 2]), ignore_index=np.int64(9)).mask is not None


@pytest.mark.parametrize(
    ("logits", "labels", "sentence"),
    [
        (LOGITS.numpy(), LABELS, ("logits", "torch tensor", "got ndarray")),
        (LOGITS, LABELS.tolist(), ("labels", "torch tensor", "got list")),
        (LOGITS.long(), LABELS, ("logits", "floating-point numbers", "got torch.int64")),
        (LOGITS[0], LABELS, ("column", "K > 1", "classes", "got shape (3,)")),
        (LOGITS[:, :1], LABELS, ("column", "K > 1", "classes", "got shape (3, 1)")),
        (LOGITS, LABELS[:2], ("labels", "classes", "shape (3,)", "got (2,)")),
        (LOGITS, LABELS[:, None], ("labels", "classes", "shape (3,)", "got (3, 1)")),
        (LOGITS, torch.ones(3), ("labels", "shares", "classes", "shape (3, 3)")),
        (
            LOGITS,
            torch.tensor([0, 1, 3]),
            ("labels must lie in 0..2", "3 classes", "got 3", "row 2"),
        ),
        (LOGITS, torch.tensor([0, -1, 2]), ("got -1 in row 1",)),
        (LOGITS, torch.tensor([0, -100, 7]), ("got 7 in row 2",)),
        (LOGITS, torch.eye(3) / 2, ("at least 0", "sum to 1")),
        (LOGITS, 2 * torch.eye(3) - torch.eye(3).roll(1, 0), ("at least 0", "sum to 1")),
        (LOGITS, torch.full((3, 3), math.nan), ("at least 0", "sum to 1")),
    ],
)
def test_bad_batches_are_refused_in_one_sentence(logits, labels, sentence):
    with refuses(InputError, *sentence) as refused:
        as_rows(logits, labels)
    assert str(refused.value).count(". ") == 0


@pytest.mark.parametrize("ignore", ["-100", 1.5, None, True])
def test_ignore_index_must_be_a_whole_number(ignore):
    with refuses(InputError, "ignore_index", "whole number", "got"):
        as_rows(LOGITS, LABELS, ignore_index=ignore)
    with pytest.raises(InputError, match="ignore_index"):
        RowLoss(ignore_index=ignore)
    check_ignore(np.int32(-1))


def test_an_empty_batch_gives_0():
    for labels in (LABELS[:0], torch.eye(3)[:0]):
        rows = as_rows(LOGITS[:0], labels)
        assert float(reduce_values(LOGITS[:0, 0], rows, weight=None, reduction="mean")) == 0.0


def test_reductions_by_hand():
    values = torch.tensor([1.0, 2.0, 6.0])
    rows = as_rows(LOGITS, LABELS)
    found = {
        name: reduce_values(values, rows, weight=None, reduction=name) for name in ("mean", "sum")
    }
    assert {name: float(value) for name, value in found.items()} == {"mean": 3.0, "sum": 9.0}
    weight = [1.0, 0.0, 3.0]
    assert float(reduce_values(values, rows, weight=weight, reduction="sum")) == 19.0
    assert float(reduce_values(values, rows, weight=weight, reduction="mean")) == 19.0 / 4
    none = reduce_values(values, rows, weight=weight, reduction="none")
    assert none.tolist() == [1.0, 0.0, 18.0]
    partly = as_rows(LOGITS, torch.tensor([0, -100, 2]))
    assert float(reduce_values(values, partly, weight=None, reduction="mean")) == 3.5
    assert float(reduce_values(values, partly, weight=weight, reduction="mean")) == 19.0 / 4
    assert reduce_values(values, partly, weight=None, reduction="none").tolist() == [1.0, 0.0, 6.0]


def test_values_of_every_class_are_summed_by_share_and_weight():
    values = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    shares = torch.tensor([[0.5, 0.5, 0.0], [0.0, 0.25, 0.75]])
    rows = as_rows(LOGITS[:2], shares)
    assert reduce_values(values, rows, weight=None, reduction="none").tolist() == [1.5, 5.75]
    weight = [2.0, 4.0, 0.0]
    assert reduce_values(values, rows, weight=weight, reduction="none").tolist() == [5.0, 5.0]
    mean = reduce_values(values, rows, weight=weight, reduction="mean")
    assert float(mean) == pytest.approx(10.0 / (3.0 + 1.0))
    assert as_weight(weight, rows).tolist() == [3.0, 1.0]


def test_values_of_every_class_with_whole_labels_leave_ignored_rows_out():
    values = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    rows = as_rows(LOGITS[:2], torch.tensor([2, -100]))
    assert reduce_values(values, rows, weight=None, reduction="none").tolist() == [3.0, 0.0]
    assert float(reduce_values(values, rows, weight=None, reduction="mean")) == 3.0


@pytest.mark.parametrize("weight", [None, [1.0, 2.0, 3.0]])
def test_a_batch_in_which_no_row_counts_gives_0_with_no_gradient(weight):
    leaf = LOGITS.clone().requires_grad_()
    rows = as_rows(leaf, torch.full((3,), -100))
    value = reduce_values(rows.logits.sum(-1), rows, weight=weight, reduction="mean")
    value.backward()
    assert value.item() == 0.0
    assert not leaf.grad.any()


def test_weights_of_0_everywhere_give_0():
    rows = as_rows(LOGITS, LABELS)
    assert float(reduce_values(torch.ones(3), rows, weight=[0.0] * 3, reduction="mean")) == 0.0


@pytest.mark.parametrize(
    "weight",
    ["balanced", [1.0, -1.0], [1.0, math.nan], [1.0, math.inf], 3.0, [[1.0]], ["a"], {"a": 1}],
)
def test_weights_must_be_finite_numbers_of_at_least_0(weight):
    with refuses(InputError, "weight", "finite number", "at least 0 per", "per class"):
        as_class_weight(weight)
    with pytest.raises(InputError, match="weight must"):
        RowLoss(weight=weight)
    with pytest.raises(InputError, match="weight must"):
        as_weight(weight, as_rows(LOGITS, LABELS))


def test_weights_must_be_as_many_as_classes_and_follow_the_logits():
    rows = as_rows(LOGITS.double(), LABELS)
    with refuses(InputError, "number per class", "(3,)", "got shape (2,)"):
        as_weight([1.0, 2.0], rows)
    assert as_weight(np.array([1, 2, 3]), rows).dtype == torch.float64
    assert RowLoss(weight=[1, 2]).weight.dtype == torch.float32
    assert as_weight(None, rows) is None


def test_reduction_must_be_known():
    with refuses(InputError, "reduction", "'mean'", "'sum'", "'none'", "got 'avg'"):
        reduce_values(torch.ones(3), as_rows(LOGITS, LABELS), weight=None, reduction="avg")
    with pytest.raises(InputError, match="reduction"):
        RowLoss(reduction="avg")


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_logits_that_are_not_finite_are_refused_with_their_row(bad, reduction):
    logits = LOGITS.clone()
    logits[1, 0] = bad
    rows = as_rows(logits, LABELS)
    values = logits.logsumexp(-1)
    with refuses(InputError, "row 1", f"1 hold {bad}", "model", "diverged"):
        reduce_values(values, rows, weight=None, reduction=reduction)
    spared = as_rows(logits, torch.tensor([0, -100, 2]))
    assert reduce_values(spared.logits.sum(-1), spared, weight=None, reduction="sum").isfinite()


def test_logits_that_are_too_large_are_named_and_a_sum_that_overflows_is_not_their_fault():
    rows = as_rows(LOGITS, LABELS)
    with refuses(InputError, "row 2", "large"):
        reduce_values(torch.tensor([0.0, 0.0, math.inf]), rows, weight=None, reduction="mean")
    large = torch.full((3,), 3e38)
    assert math.isinf(reduce_values(large, rows, weight=None, reduction="sum"))


def test_finite_values_can_be_asked_for_without_reducing_them():
    logits = LOGITS.clone()
    logits[2, 1] = math.nan
    with refuses(InputError, "row 2", "nan", "model", "diverged"):
        check_finite(logits.sum(-1), as_rows(logits, LABELS))
    check_finite(LOGITS.sum(-1), as_rows(LOGITS, LABELS))
    check_finite(torch.full((3,), math.nan, device="meta"), as_rows(LOGITS, LABELS))


def test_a_row_loss_hands_its_three_options_on():
    options = RowLoss(weight=[1, 2], ignore_index=-1, reduction="sum").options
    assert options["weight"].tolist() == [1.0, 2.0]
    assert (options["ignore_index"], options["reduction"]) == (-1, "sum")
    assert "weight" in RowLoss(weight=[1, 2]).state_dict()
