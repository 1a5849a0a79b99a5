"""AdaFocal's loss, its options, and its parity with the released code."""

import math

import numpy as np
import pytest
import torch
from tests.sentences import refuses
from tests.unit.losses.adafocal_transcription import PlainAdaFocal
from tests.unit.losses.steer_worlds import world
from torch.nn import functional

from calibrant.errors import InputError
from calibrant.losses import AdaFocalLoss, FocalLoss, adafocal_loss, as_loss, focal_loss
from calibrant.losses.describing import describe


def logits_of(*probs):
    """Two-class logits that give class 0 these probabilities."""
    p = torch.tensor(probs, dtype=torch.float64)
    return torch.stack([(p / (1 - p)).log(), torch.zeros_like(p)], -1)


def zeros(n):
    return torch.zeros(n, dtype=torch.long)


# --- the loss ---


def test_each_row_takes_the_gamma_of_its_bin():
    bins = {"gammas": [2.0, 0.0, -1.0], "edges": [0.5, 0.8], "scale": "probability"}
    probs = [0.2, 0.6, 0.9]
    found = adafocal_loss(logits_of(*probs), zeros(3), reduction="none", **bins)
    by_hand = [0.8**2 * -math.log(0.2), -math.log(0.6), 1.9 * -math.log(0.9)]
    assert found.tolist() == pytest.approx(by_hand, abs=1e-14)


def test_a_bin_holds_its_lower_edge_and_the_outer_bins_are_open():
    bins = {"gammas": [1.0, 2.0, 3.0], "edges": [0.0, 2.0]}
    odds = torch.tensor([-1e4, -1e-9, 0.0, 1.99, 2.0, 1e4], dtype=torch.float64)
    logits = torch.stack([odds, torch.zeros_like(odds)], -1)
    found = adafocal_loss(logits, zeros(6), reduction="none", **bins)
    gammas = [1, 1, 2, 2, 3, 3]
    each = [focal_loss(row[None], zeros(1), gamma=g) for row, g in zip(logits, gammas, strict=True)]
    assert torch.allclose(found, torch.stack(each), atol=0, rtol=1e-14)


def test_the_two_scales_of_edges_say_the_same():
    logits, labels = world(500)
    gammas, edges = [3.0, -1.0, 0.5, 2.0], torch.tensor([0.2, 0.5, 0.9], dtype=torch.float64)
    in_probability = adafocal_loss(
        logits, labels, gammas=gammas, edges=edges, scale="probability", reduction="none"
    )
    in_odds = adafocal_loss(logits, labels, gammas=gammas, edges=edges.logit(), reduction="none")
    assert torch.equal(in_probability, in_odds)


def test_before_any_update_it_is_focal_loss_with_gamma_one():
    logits, labels = world(300, dtype=torch.float32)
    for mode in ("robust", "paper"):
        assert torch.equal(AdaFocalLoss(mode=mode)(logits, labels), FocalLoss(1.0)(logits, labels))


def test_no_gradient_flows_through_the_look_up():
    logits, labels = world(200)
    logits.requires_grad_()
    loss = AdaFocalLoss(reduction="sum", min_count=1)
    loss.update(*world(900, sharpness=2.5, seed=1))
    assert len(loss.gammas.unique()) > 5
    (found,) = torch.autograd.grad(loss(logits, labels), logits)
    odds = torch.logit(logits.detach().softmax(-1).gather(1, labels[:, None]).squeeze(1))
    gammas = loss.gammas[torch.searchsorted(loss.edges, odds, right=True)]
    apart = [
        torch.autograd.grad(focal_loss(row[None], label[None], gamma=float(g)), row)[0]
        for row, label, g in zip(
            logits.detach().requires_grad_().unbind(), labels, gammas, strict=True
        )
    ]
    assert torch.allclose(found, torch.stack(apart), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("mode", ["robust", "paper"])
def test_gradients_are_those_of_finite_differences(mode):
    logits, labels = world(40, 4)
    loss = AdaFocalLoss(mode=mode, reduction="sum")
    loss.update(*world(900, 4, sharpness=2.0, seed=1))
    logits.requires_grad_()
    assert torch.autograd.gradcheck(lambda z: loss(z, labels), logits, eps=1e-7, atol=1e-5)


def test_gradients_are_finite_for_logits_of_any_size(subtests):
    for dtype in [torch.float32, torch.bfloat16, torch.float16]:
        for gamma in [0.0, 0.2, 0.5, 1.0, 2.0, 5.0, 20.0, -2.0]:
            with subtests.test(f"{dtype}, gamma {gamma}"):
                loss = AdaFocalLoss(gamma_init=gamma, gamma_min=-2.0)
                size = torch.tensor([0.0, 1.0, 17.0, 60.0, 1e4, -1e4, -60.0], dtype=dtype)
                logits = torch.stack([size, torch.zeros_like(size), -size], -1).requires_grad_()
                loss(logits, zeros(len(size))).backward()
                assert logits.grad.isfinite().all()


def test_rows_of_images_and_ignored_rows_count_as_plain_rows_do():
    logits, labels = world(60, 3, dtype=torch.float32)
    loss = AdaFocalLoss()
    loss.update(*world(600, 3, sharpness=2.0))
    image = logits.reshape(4, 3, 5, 3).permute(0, 3, 1, 2)
    assert torch.allclose(loss(image, labels.reshape(4, 3, 5)), loss(logits, labels))
    ignored = labels.clone()
    ignored[::2] = -100
    assert torch.allclose(loss(logits, ignored), loss(logits[1::2], labels[1::2]))


def test_class_weights_stay_outside_the_power():
    logits, labels = world(50, 3)
    loss = AdaFocalLoss(weight=[1.0, 2.0, 4.0], reduction="none")
    plain = AdaFocalLoss(reduction="none")
    weights = torch.tensor([1.0, 2.0, 4.0], dtype=torch.float64)
    assert torch.allclose(loss(logits, labels), plain(logits, labels) * weights[labels])


def test_shares_of_classes_are_refused():
    with refuses(InputError, "AdaFocal needs", "class per row"):
        AdaFocalLoss()(torch.zeros(2, 2), torch.full((2, 2), 0.5))


def test_it_is_found_by_name():
    loss = as_loss("adafocal:mode=paper,n_bins=10,strength=2")
    assert (loss.mode, loss.n_bins, loss.rule.strength, loss.steered) == ("paper", 10, 2, True)
    assert as_loss("adafocal:update_every=50").update_every == 50


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_bins": 0}, ("n_bins", "whole number", "at least 1", "got 0")),
        ({"n_bins": 2.5}, ("n_bins", "whole number")),
        ({"strength": 0.0}, ("strength", "number above 0", "0, up to 100", "got 0.0")),
        ({"strength": float("nan")}, ("strength", "number above 0")),
        ({"gamma_init": 30.0}, ("gamma_init", "between gamma_min -1.5", "gamma_max 20")),
        ({"gamma_min": -9.0}, ("gamma_min", "number", "-5 to 100")),
        ({"gamma_min": 3.0, "gamma_max": 2.0}, ("gamma_min", "below gamma_max", "got 3 and 2")),
        ({"gamma_max": 1e3}, ("gamma_max", "number", "0 to 100")),
        ({"switch": -0.1}, ("switch must", "number", "0 (never switch)", "(never switch) to 1.5")),
        ({"gamma_min": -0.1}, ("to 0.1", "sides")),
        ({"mode": "fast"}, ("mode", "'robust'", "'paper'", "got 'fast'")),
        ({"min_count": 0}, ("min_count", "whole number", "at least 1")),
        ({"min_count": 5, "mode": "paper"}, ("min_count", "omitted", "mode 'paper'")),
        ({"update_every": 0}, ("update_every", "whole number", "at least 1", "got 0")),
        ({"reduction": "max"}, ("reduction", "'mean'", "'sum'", "'none'")),
    ],
)
def test_options_that_make_no_sense_are_refused_in_a_sentence(options, message):
    with refuses(InputError, *message):
        AdaFocalLoss(**options)


@pytest.mark.parametrize(
    ("bins", "message"),
    [
        ({"gammas": [1.0, 2.0], "edges": []}, ("edges must", "1 inner edges", "2 bins")),
        ({"gammas": [1.0] * 3, "edges": [0.5, 0.2]}, ("edges", "ascending order")),
        ({"gammas": 1.0, "edges": []}, ("gammas", "number per bin", "got shape ()")),
        ({"gammas": ["one"], "edges": []}, ("gammas", "list", "numbers", "got ['one']")),
        ({"gammas": [1.0], "edges": [], "scale": "logit"}, ("scale", "'log-odds'", "'prob")),
    ],
)
def test_bins_that_do_not_fit_are_refused_in_a_sentence(bins, message):
    with refuses(InputError, *message):
        adafocal_loss(torch.zeros(1, 2), zeros(1), **bins)


# --- parity with the released code ---


@pytest.mark.parametrize(
    ("strength", "n_bins", "n"), [(1.0, 15, 450), (6.0, 15, 203), (4.0, 10, 300), (1.0, 15, 9)]
)
def test_twenty_updates_in_paper_mode_equal_the_plain_transcription(strength, n_bins, n):
    loss = AdaFocalLoss(n_bins, strength, mode="paper")
    plain = PlainAdaFocal(n_bins, strength)
    rows, labels = world(800, seed=7)
    for step in range(20):  # over-confident, then under-confident, then over-confident again
        sharpness = (3.0, 0.2, 4.0)[step % 20 // 7]
        steer = world(n, sharpness=sharpness, seed=step)
        loss.update(*steer)
        plain.update(*steer)
        assert loss.gammas.tolist() == pytest.approx(plain.gammas, abs=1e-12, rel=1e-12)
        assert loss.edges.tolist() == pytest.approx(plain.lower[1:], abs=1e-12)
        assert loss.history.count[-1].tolist() == plain.counts
        found = np.nan_to_num(loss.history.error[-1])
        assert found.tolist() == pytest.approx(plain.errors, abs=1e-12)
    assert loss(rows, labels).item() * 800 == pytest.approx(
        plain.loss(rows, labels).item(), rel=1e-12
    )
    if strength == 6.0:  # the recorded updates do reach both bounds and cross the switch
        gammas = loss.history.gamma
        assert gammas.max() == 20.0
        assert gammas.min() == -2.0
        assert ((gammas[1:] < 0) & (gammas[:-1] > 0)).any()
        assert ((gammas[1:] > 0) & (gammas[:-1] < 0)).any()


def test_look_up_in_paper_mode_equals_the_plain_one_on_edges_and_beyond_them():
    loss, plain = AdaFocalLoss(5, mode="paper"), PlainAdaFocal(5)
    steer = world(50, 2, seed=3)
    loss.update(*steer)
    plain.update(*steer)
    probs = torch.tensor([0.0, 1.0, *plain.lower, *plain.upper], dtype=torch.float64)
    probs = torch.cat([probs, torch.nextafter(probs, torch.zeros_like(probs))])
    found = torch.searchsorted(loss.edges, probs, right=True)
    assert found.tolist() == [plain.bin_of(p) for p in probs.tolist()]


def test_a_training_in_paper_mode_ends_with_the_weights_of_the_plain_one():
    def trained(loss, update):
        torch.manual_seed(0)
        first, second = torch.nn.Linear(6, 8), torch.nn.Linear(8, 3)
        model = torch.nn.Sequential(first, torch.nn.Tanh(), second).double()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.2, momentum=0.9)
        for _ in range(6):
            for start in range(0, 120, 30):
                optimizer.zero_grad()
                loss(model(x[start : start + 30]), y[start : start + 30]).backward()
                torch.nn.utils.clip_grad_norm_(model.parameters(), 2.0)
                optimizer.step()
            with torch.no_grad():
                update(model(steer_x), steer_y)
        return torch.nn.utils.parameters_to_vector(model.parameters())

    draw = torch.Generator().manual_seed(1)
    features = torch.randn(240, 6, generator=draw, dtype=torch.float64)
    noise = torch.randn(240, 3, generator=draw, dtype=torch.float64)
    classes = (features[:, :3] + noise).argmax(-1)
    x, y, steer_x, steer_y = features[:120], classes[:120], features[120:], classes[120:]
    ours, plain = AdaFocalLoss(strength=3.0, mode="paper", reduction="sum"), PlainAdaFocal(15, 3.0)
    found = trained(ours, ours.update)
    expected = trained(plain.loss, plain.update)
    assert torch.allclose(found, expected, rtol=0, atol=1e-12)
    assert ours.gammas.tolist() == pytest.approx(plain.gammas, abs=1e-11)
    assert max(plain.gammas) > 1.5  # the gammas did move


def test_a_gamma_of_zero_goes_to_plus_switch_as_released():
    loss = AdaFocalLoss(1, gamma_init=0.0, mode="paper")
    logits, labels = world(100)
    entropy = functional.cross_entropy(logits, labels)
    assert loss(logits, labels).item() == pytest.approx(entropy.item())
    loss.update(logits, labels)
    assert loss.gammas.tolist() == [0.2]


# --- on a known truth ---


@pytest.mark.parametrize("start", [3.0, 0.4])
def test_steering_finds_the_true_temperature_where_plain_focal_loss_ends_at_0_78(start):
    """One number to train, labels from the posterior: AdaFocal must undo focal's bias."""
    logits, labels = world(6000, 4, seed=0)
    steer = world(6000, 4, seed=1)
    sharpness = torch.tensor(start, dtype=torch.float64, requires_grad=True)
    loss = AdaFocalLoss(n_bins=8, strength=4.0)
    optimizer = torch.optim.SGD([sharpness], lr=0.1)
    for _ in range(60):
        for _ in range(4):
            optimizer.zero_grad()
            loss(sharpness * logits, labels).backward()
            optimizer.step()
        loss.update(sharpness.detach() * steer[0], steer[1])
    assert sharpness.item() == pytest.approx(1.0, abs=0.12)


def test_what_it_learned_is_no_part_of_its_description():
    loss, fresh = AdaFocalLoss(n_bins=3), AdaFocalLoss(n_bins=3)
    loss.update(torch.randn(100, 3), torch.zeros(100, dtype=torch.long))
    assert describe(loss) == describe(fresh)
    assert describe(loss) != describe(AdaFocalLoss(n_bins=3, strength=2.0))


def test_a_state_of_the_other_mode_is_refused():
    saved = AdaFocalLoss(mode="paper").state_dict()
    with refuses(InputError, "saved edges", "loss", "probability edges"):
        AdaFocalLoss().load_state_dict(saved)
    AdaFocalLoss(mode="paper").load_state_dict(saved)
