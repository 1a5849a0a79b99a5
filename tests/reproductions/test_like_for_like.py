"""The recipe beside cross-entropy with the same options: what is left of its lead."""

import pytest
from reproductions.experiment import Method
from tests.reproductions.made_records import made_losses, made_record, made_summary

CE = Method("ce", "CE", {"loss": "ce"})
TWIN = Method("ce_long", "CE, long", {"loss": "ce", "epochs": 50})
OURS = Method("focal", "FL-3, long", {"loss": "focal", "epochs": 50})
FEWER = Method("focal", "FL-3", {"loss": "focal"})
OTHER_EPOCH = Method("focal", "CE, best epoch", {"loss": "ce", "choose_by": "refinement"})


def found(*methods, losses=None):
    runs = [
        made_record(each.name, seed, refinement=0.5 if each.name == "focal" else 0.6, error=error)
        for each, error in zip(methods, (0.25, 0.203, 0.22), strict=False)
        for seed in range(3)
    ]
    return made_summary(runs, losses, methods=methods)


def test_a_recipe_that_differs_in_its_loss_alone_needs_no_word():
    assert found(CE, FEWER).fair is None


def test_a_recipe_with_the_loss_of_the_baseline_has_no_loss_to_thank():
    one = found(CE, OTHER_EPOCH)
    assert one.fair == (
        "The recipe has the loss of CE: what it gains comes from the epoch that is kept and from "
        "its calibrator."
    )
    assert one.fair in one.sentences


@pytest.mark.parametrize(
    ("gap", "words"),
    [
        (-0.5, "beside CE its log loss is lower by 0.5"),
        (0.5, "beside CE its log loss is higher by 0.4"),
        (0.0158, "(SE over test rows): level."),
    ],
)
def test_what_the_epoch_gains_is_told_with_the_same_choice_of_calibrator_for_both(gap, words):
    assert words in found(CE, OTHER_EPOCH, losses=made_losses(gap)).fair


@pytest.mark.parametrize(
    ("gap", "words"),
    [(-0.5, "log loss is lower by 0.5"), (0.5, "higher by 0.4"), (0.0158, "): level.")],
)
def test_cross_entropy_with_the_same_options_is_held_against_it(gap, words):
    losses = made_losses(gap)
    losses.update({("ce_long", seed): losses["ce", seed] for seed in range(3)})
    told = found(CE, OURS, TWIN, losses=losses).fair
    assert told.startswith(
        "The recipe differs from CE in more than the loss. Cross-entropy with the same options is "
        '"CE, long": after the automatic choice its error is 22.00 % (the recipe: 20.30), and '
        "beside it the recipe's "
    )
    assert words in told


def test_without_losses_the_errors_stand_alone():
    assert found(CE, OURS, TWIN).fair.endswith("its error is 22.00 % (the recipe: 20.30).")


def test_without_such_a_run_nothing_is_said():
    assert found(CE, OURS).fair is None
    assert found(OURS).fair is None
    assert found(CE).fair is None
