"""The return-reason rows: sizes of the paper, no row in two parts, labels as the world says."""

from __future__ import annotations

import numpy as np
import pytest
from reproductions.corpus import fresh_messages, return_reasons

from calibrant.data.return_reasons import NOISE, PRIORS
from calibrant.errors import InputError

SMALL = {"logs": 4500, "test": 3000}


@pytest.fixture(scope="module")
def parts():
    return return_reasons(SMALL)


@pytest.mark.parametrize(("binary", "golden"), [(True, 1013), (False, 1839)])
def test_the_golden_set_has_the_size_of_the_paper(binary, golden):
    found = return_reasons({"binary": binary, "logs": 90, "test": 50})
    assert len(found.calib) == golden
    assert len(found.classes) == (2 if binary else 5)
    assert found.calib.posterior.shape == (golden, len(found.classes))


def test_logs_are_cut_eight_to_one(parts):
    assert 8 * len(parts.steer) == pytest.approx(len(parts.train), abs=8)
    assert len(parts.train) + len(parts.steer) == pytest.approx(4500, rel=0.01)


def test_no_message_stands_in_two_parts(parts):
    seen: set[str] = set()
    for part in (parts.test, parts.calib, parts.steer, parts.train):
        assert not seen & set(part.inputs)
        seen |= set(part.inputs)
    logs = [*parts.train.inputs, *parts.steer.inputs]
    assert len(set(logs)) == len(logs)


def test_repeated_messages_do_occur_and_are_left_out_of_the_logs():
    """With many fresh messages some have stood in the logs: dropping them is no idle step."""
    logs = return_reasons({"logs": 9000, "test": 10, "golden": 10})
    drawn = fresh_messages({"fresh": 30_000}, ())
    known = {*logs.train.inputs, *logs.steer.inputs}
    assert any(text in known for text in drawn.inputs)
    kept = fresh_messages({"fresh": 30_000}, known)
    assert len(kept) == 30_000
    assert not any(text in known for text in kept.inputs)


def test_labels_follow_the_priors_of_their_source(parts):
    logged = PRIORS["logs"] @ NOISE
    for part, prior in ((parts.train, logged), (parts.test, PRIORS["golden"])):
        share = np.bincount(part.labels, minlength=5) / len(part)
        assert share == pytest.approx(prior, abs=4 * 0.5 / np.sqrt(len(part)))


def test_the_posterior_is_that_of_the_labels(parts):
    """Whatever is predicted, labels come true as often as the posterior says."""
    for part in (parts.train, parts.test):
        top = part.posterior.argmax(axis=1)
        said = part.posterior[np.arange(len(part)), top].mean()
        assert (part.labels == top).mean() == pytest.approx(said, abs=0.03)


def test_the_same_seed_gives_the_same_rows(parts):
    again, other = return_reasons(SMALL), return_reasons({**SMALL, "seed": 1})
    assert again.train.inputs == parts.train.inputs
    assert again.test.inputs == parts.test.inputs
    assert not set(other.test.inputs[:50]) & set(parts.test.inputs[:50])


def test_fresh_messages_are_no_part(parts):
    fresh = fresh_messages({**SMALL, "fresh": 200}, ())
    for part in (parts.calib, parts.test):
        assert fresh.inputs[:100] != part.inputs[:100]
        assert len(set(fresh.inputs) & set(part.inputs)) < 5


def test_an_unknown_option_is_refused():
    with pytest.raises(InputError, match=r"'log'.*does not know.*logs"):
        return_reasons({"log": 90})
