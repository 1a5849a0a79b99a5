"""Cross-entropy: torch's own, but for two corners, and what class weights do to probabilities."""

import math

import pytest
import torch
import torch.nn.functional as F  # noqa: N812  # torch's own convention

from calibrant.losses import CrossEntropyLoss, as_loss, balanced_weights, cross_entropy_loss
from calibrant.training import ArrayRows, TrainingOptions, train

NOISE = torch.Generator().manual_seed(0)
LOGITS = 3 * torch.randn(30, 5, generator=NOISE, dtype=torch.float64)
LABELS = torch.randint(0, 5, (30,), generator=NOISE)
SHARES = torch.randn(30, 5, generator=NOISE, dtype=torch.float64).softmax(-1)
WEIGHT = torch.tensor([0.5, 1.0, 2.0, 0.0, 4.0], dtype=torch.float64)


def both(ours, theirs, logits=LOGITS):
    """Return value and gradient of each."""
    found = []
    for loss in (ours, theirs):
        leaf = logits.clone().requires_grad_()
        value = loss(leaf)
        value.sum().backward()
        found.append((value.detach(), leaf.grad))
    return found


def assert_same(ours, theirs, logits=LOGITS):
    one, other = both(ours, theirs, logits)
    assert torch.allclose(one[0], other[0], rtol=1e-12)
    assert torch.allclose(one[1], other[1], atol=1e-14)


def test_hand_computed_values():
    logits = torch.tensor([[math.log(3.0), 0.0]])
    assert cross_entropy_loss(logits, torch.tensor([0])).item() == pytest.approx(math.log(4 / 3))
    assert cross_entropy_loss(logits, torch.tensor([1])).item() == pytest.approx(math.log(4))
    shares = torch.tensor([[0.5, 0.5]])
    expected = 0.5 * math.log(4 / 3) + 0.5 * math.log(4)
    assert cross_entropy_loss(logits, shares).item() == pytest.approx(expected)


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("weight", [None, WEIGHT])
@pytest.mark.parametrize("ignore", [-100, 3])
def test_whole_labels_are_torchs(reduction, weight, ignore):
    options = {"reduction": reduction, "weight": weight, "ignore_index": ignore}
    assert_same(
        lambda z: cross_entropy_loss(z, LABELS, **options),
        lambda z: F.cross_entropy(z, LABELS, **options),
    )


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_shares_are_torchs(reduction):
    assert_same(
        lambda z: cross_entropy_loss(z, SHARES, reduction=reduction),
        lambda z: F.cross_entropy(z, SHARES, reduction=reduction),
    )
    if reduction != "mean":
        assert_same(
            lambda z: cross_entropy_loss(z, SHARES, reduction=reduction, weight=WEIGHT),
            lambda z: F.cross_entropy(z, SHARES, reduction=reduction, weight=WEIGHT),
        )


def test_more_dimensions_are_torchs():
    logits = LOGITS.reshape(5, 3, 2, 5).movedim(-1, 1)
    labels = LABELS.reshape(5, 3, 2)
    for reduction in ("mean", "sum", "none"):
        assert_same(
            lambda z, r=reduction: cross_entropy_loss(z, labels, weight=WEIGHT, reduction=r),
            lambda z, r=reduction: F.cross_entropy(z, labels, weight=WEIGHT, reduction=r),
            logits,
        )
    shares = SHARES.reshape(5, 3, 2, 5).movedim(-1, 1)
    assert_same(
        lambda z: cross_entropy_loss(z, shares), lambda z: F.cross_entropy(z, shares), logits
    )


def test_a_weighted_mean_over_shares_divides_by_their_weights_where_torch_divides_by_rows():
    ours = cross_entropy_loss(LOGITS, SHARES, weight=WEIGHT)
    total = F.cross_entropy(LOGITS, SHARES, weight=WEIGHT, reduction="sum")
    assert torch.allclose(ours, total / (SHARES * WEIGHT).sum())
    theirs = F.cross_entropy(LOGITS, SHARES, weight=WEIGHT)
    assert torch.allclose(theirs, total / 30)
    one_hot = F.one_hot(LABELS, 5).double()
    from_shares = cross_entropy_loss(LOGITS, one_hot, weight=WEIGHT)
    assert torch.allclose(from_shares, cross_entropy_loss(LOGITS, LABELS, weight=WEIGHT))


def test_a_batch_of_ignored_rows_gives_0_where_torch_gives_nan():
    ignored = torch.full((30,), -100)
    ours, theirs = both(
        lambda z: cross_entropy_loss(z, ignored), lambda z: F.cross_entropy(z, ignored)
    )
    assert ours[0].item() == 0.0
    assert not ours[1].any()
    assert theirs[0].isnan()


def test_an_ignored_row_may_hold_anything_where_torchs_gradient_is_nan():
    logits = LOGITS.clone()
    logits[0, 0] = math.nan
    labels = LABELS.clone()
    labels[0] = -100
    ours, theirs = both(
        lambda z: cross_entropy_loss(z, labels), lambda z: F.cross_entropy(z, labels), logits
    )
    assert torch.allclose(ours[0], theirs[0])
    assert ours[1].isfinite().all()
    assert theirs[1][0].isnan().any()


def test_half_precision_sums_do_not_overflow_where_torchs_do():
    logits = torch.tensor([[-1e4, 1e4]] * 8, dtype=torch.float16)
    labels = torch.zeros(8, dtype=torch.long)
    assert cross_entropy_loss(logits, labels).item() == 2e4
    assert F.cross_entropy(logits, labels).isinf()


def test_weights_move_the_model_asked_for_and_log_shift_moves_it_back():
    eta, weight = [0.8, 0.2], [1.0, 4.0]
    shares = torch.tensor([eta], dtype=torch.float64)
    logits = torch.zeros(1, 2, dtype=torch.float64, requires_grad=True)
    optimiser = torch.optim.LBFGS([logits], line_search_fn="strong_wolfe", tolerance_grad=1e-12)
    loss = CrossEntropyLoss(weight=weight)

    def step():
        optimiser.zero_grad()
        value = loss(logits, shares)
        value.backward()
        return value

    optimiser.step(step)
    assert logits.softmax(-1)[0].tolist() == pytest.approx([0.5, 0.5])
    undone = (logits - loss.log_shift()).softmax(-1)
    assert undone[0].tolist() == pytest.approx(eta)
    assert CrossEntropyLoss().log_shift() is None


def test_a_class_of_weight_0_is_moved_as_the_others_on_average():
    shift = CrossEntropyLoss(weight=[2.0, 0.0, 0.5]).log_shift()
    assert shift.tolist() == pytest.approx([math.log(2), 0.0, math.log(0.5)])
    absent = as_loss("ce:weight=balanced", class_counts=[30, 10, 0])
    assert absent.log_shift().tolist() == pytest.approx(
        [math.log(2 / 3), math.log(2), math.log(4 / 3) / 2]
    )


def test_a_class_absent_from_the_train_split_does_not_win():
    draw = torch.Generator().manual_seed(0)
    features = torch.randn(300, 2, generator=draw)
    rows = ArrayRows(features, (features[:, 0] > 0.5).long())
    options = TrainingOptions(epochs=15, learning_rate=0.05)
    for loss in ("ce:weight=balanced", "2*ce:weight=[1,3,0]", "balanced_softmax:weight=balanced"):
        with pytest.warns(UserWarning, match="steer split.*no rows.*1 of 3 classes"):
            trained = train(torch.nn.Linear(2, 3), rows, rows, loss=loss, options=options)
        best = trained.records[trained.best_epoch]
        assert best.nll < 0.5  # log 3 is what knowing nothing costs
        assert best.accuracy > 0.9


def test_module_and_function_agree():
    options = {"weight": WEIGHT, "ignore_index": 2, "reduction": "sum"}
    ours = CrossEntropyLoss(**options)(LOGITS, LABELS)
    assert torch.equal(ours, cross_entropy_loss(LOGITS, LABELS, **options))
    named = as_loss("ce:weight=balanced", class_counts=[10, 20, 30, 40, 50])
    assert torch.equal(named.weight, balanced_weights([10, 20, 30, 40, 50]))
