"""The cost-sensitive loss: expected costs by hand and as a product of tables."""

import numpy as np
import pytest
import torch
from tests.sentences import refuses

from calibrant.errors import InputError
from calibrant.losses import CostSensitiveLoss, as_loss, cost_sensitive_loss
from calibrant.testing import check_loss
from calibrant.testing.loss_cases import drawn

COSTS = [[0.0, 1.0, 2.0], [5.0, 0.0, 1.0], [3.0, 0.5, 0.0]]


def test_each_true_class_by_hand():
    p = torch.tensor([[0.5, 0.3, 0.2]], dtype=torch.float64)
    each = [float(cost_sensitive_loss(p.log(), torch.tensor([y]), costs=COSTS)) for y in range(3)]
    assert each == pytest.approx([0.3 + 0.4, 2.5 + 0.2, 1.5 + 0.15], rel=1e-12)


def test_it_is_a_product_of_tables():
    logits, labels = drawn(3, 0)
    p, whole = logits.softmax(-1).numpy(), np.eye(3)[labels.numpy()]
    shares = (whole + p[::-1]) / 2
    for target, table in ((labels, whole), (torch.from_numpy(shares), shares)):
        found = cost_sensitive_loss(logits, target, costs=COSTS, reduction="none")
        np.testing.assert_allclose(
            found.numpy(), np.einsum("iy,yk,ik->i", table, np.array(COSTS), p), rtol=1e-12
        )


def test_equal_costs_are_the_chance_of_an_error():
    logits, labels = drawn(4, 1)
    costs = 1 - torch.eye(4)
    wrong = 1 - logits.softmax(-1).gather(-1, labels[:, None]).mean()
    torch.testing.assert_close(cost_sensitive_loss(logits, labels, costs=costs), wrong)


def test_sure_answers_cost_what_the_table_says():
    predicted, labels = torch.tensor([0, 1, 2, 0, 1]), torch.tensor([0, 0, 0, 1, 2])
    logits = 1e3 * torch.nn.functional.one_hot(predicted, 3).double()
    found = CostSensitiveLoss(COSTS, reduction="none")(logits, labels)
    assert found.tolist() == pytest.approx([0, 1, 2, 5, 0.5], abs=1e-9)


def test_it_asks_for_the_cheapest_answer_and_not_for_the_posterior():
    eta = torch.tensor([[0.7, 0.3]], dtype=torch.float64)  # answer 1 costs 0.7, answer 0 costs 1.5
    costs = [[0, 1], [5, 0]]
    answers = torch.tensor([[0.999, 0.001], [0.7, 0.3], [0.001, 0.999]], dtype=torch.float64)
    each = [float(cost_sensitive_loss(p[None].log(), eta, costs=costs)) for p in answers]
    assert each[0] > each[1] > each[2] == pytest.approx(0.7, abs=0.01)


def test_classes_can_be_renamed():
    logits, labels = drawn(3, 2)
    order = torch.tensor([2, 0, 1])
    costs = torch.tensor(COSTS)
    found = cost_sensitive_loss(
        logits[:, order], order.argsort()[labels], costs=costs[order][:, order]
    )
    torch.testing.assert_close(found, cost_sensitive_loss(logits, labels, costs=costs))


def test_it_keeps_the_contract():
    check_loss(CostSensitiveLoss([[0, 1], [5, 0]]), n_classes=(2,))
    check_loss(CostSensitiveLoss(COSTS), n_classes=(3,))


def test_costs_come_from_text_also_in_a_sum():
    loss = as_loss("ce + 0.1*cost_sensitive:costs=[[0,1],[5,0]]")
    assert loss.factors == (1.0, 0.1)
    assert loss.terms[1].costs.tolist() == [[0, 1], [5, 0]]
    assert "costs=[[0.0, 1.0], [5.0, 0.0]]" in repr(loss)


def test_costs_are_saved_with_the_loss():
    old, new = CostSensitiveLoss([[0, 1], [5, 0]]), CostSensitiveLoss([[0, 1], [1, 0]])
    new.load_state_dict(old.state_dict())
    assert new.costs.tolist() == [[0, 1], [5, 0]]


@pytest.mark.parametrize(
    "costs",
    [
        [[0, 1]],
        [0, 1],
        [[0]],
        [[0, 1], [1]],
        [[1, 1], [5, 0]],
        [[0, -1], [5, 0]],
        [[0, float("inf")], [5, 0]],
        "cheap",
    ],
)
def test_a_table_that_is_none_is_refused(costs):
    with refuses(InputError, "costs", "square table"):
        CostSensitiveLoss(costs)


def test_a_table_for_other_classes_is_refused():
    with refuses(InputError, "costs", "(3, 3) table"):
        cost_sensitive_loss(*drawn(3, 3), costs=[[0, 1], [5, 0]])
