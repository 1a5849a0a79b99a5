"""The posteriors are the truth: labels follow them, and no text stands for two of them."""

import numpy as np
import pytest
from scipy.stats import chi2
from tests.unit.data.return_reasons.reader import as_facts, read

from calibrant.data import return_reasons
from calibrant.data.return_reasons import NOISE, PRIORS, REASONS
from calibrant.data.return_reasons.world import N_FACTS, draw_facts, posterior

ONE_IN = 1e-5  # how often a test below would fail although all is right


@pytest.fixture(scope="module")
def many():
    """Facts and reasons of 200,000 messages of each source, without their texts."""
    out = {}
    for source, prior in PRIORS.items():
        rng = np.random.default_rng([11, len(out)])
        reason = rng.choice(len(REASONS), size=200_000, p=prior)
        out[source] = reason, draw_facts(reason, rng.random((N_FACTS, len(reason))))
    return out


def follows(labels, scores, groups):
    """Whether labels come as often as the scores say in each group of rows: chi square."""
    events = (np.bincount(groups, weights=labels - scores), scores * (1 - scores))
    gap, spread = events[0], np.bincount(groups, weights=events[1])
    kept = spread > 5
    return (gap[kept] ** 2 / spread[kept]).sum() < chi2.ppf(1 - ONE_IN, kept.sum())


def tenths(scores):
    cuts = np.quantile(scores, np.arange(1, 50) / 50)
    return np.searchsorted(cuts, scores, side="right")


@pytest.mark.parametrize("source", ["logs", "golden"])
def test_reasons_follow_the_posterior(many, source):
    reason, facts = many[source]
    eta = posterior(facts, PRIORS[source])
    np.testing.assert_allclose(eta.sum(axis=1), 1.0, atol=1e-12)
    for k in range(len(REASONS)):
        assert follows(reason == k, eta[:, k], tenths(eta[:, k]))


@pytest.mark.parametrize("slot", ["product", "brand", "claim", "denial", "use", "request"])
def test_reasons_follow_the_posterior_for_each_value_of_a_fact(many, slot):
    reason, facts = many["golden"]
    eta = posterior(facts, PRIORS["golden"])
    for k in range(len(REASONS)):
        assert follows(reason == k, eta[:, k], getattr(facts, slot))


def test_the_wrong_prior_is_noticed(many):
    """The test above has power: the posterior of the logs does not fit the golden set."""
    reason, facts = many["golden"]
    eta = posterior(facts, PRIORS["logs"])[:, 0]
    assert not follows(reason == 0, eta, tenths(eta))


@pytest.mark.parametrize("binary", [False, True])
def test_what_a_draw_says_about_its_labels(binary):
    logs = return_reasons.draw(40_000, seed=21, binary=binary)
    golden = return_reasons.draw(40_000, source="golden", seed=21, binary=binary)
    for k, name in enumerate(logs.classes):
        for labels, scores in (
            (logs.labels, logs.logged),
            (logs.clean, logs.posterior),
            (golden.labels, golden.posterior),
        ):
            assert follows(labels == name, scores[:, k], tenths(scores[:, k]))


def test_the_three_posteriors_belong_together():
    logs = return_reasons.draw(500, seed=22)
    golden = return_reasons.draw(500, source="golden", seed=22)
    np.testing.assert_array_equal(logs.posterior, logs.posterior_under("logs"))
    np.testing.assert_array_equal(golden.posterior, golden.posterior_under("golden"))
    for drawn in (logs, golden):
        tilted = drawn.posterior_under("logs") * (PRIORS["golden"] / PRIORS["logs"])
        tilted /= tilted.sum(axis=1, keepdims=True)
        np.testing.assert_allclose(drawn.posterior_under("golden"), tilted, atol=1e-12)
        np.testing.assert_allclose(drawn.logged, drawn.posterior_under("logs") @ NOISE, atol=1e-12)


def test_the_best_possible_classifier_errs_in_8_to_20_percent(many):
    _, facts = many["golden"]
    eta = posterior(facts, PRIORS["golden"])
    assert 0.08 < 1 - eta.max(axis=1).mean() < 0.20
    assert 0.08 < np.minimum(eta[:, 0], 1 - eta[:, 0]).mean() < 0.20


def test_a_text_tells_its_facts():
    """Every way to read the words of a message, in any order of clauses, has its posterior."""
    drawn = return_reasons.draw(1500, seed=23)
    for text, eta in zip(drawn.texts, drawn.posterior, strict=True):
        readings = read(text)
        assert readings, text
        told = posterior(as_facts(sorted(readings)), PRIORS["logs"])
        np.testing.assert_allclose(told, np.tile(eta, (len(told), 1)), atol=1e-12, err_msg=text)


@pytest.mark.verify
def test_a_million_messages_never_have_one_text_and_two_posteriors():
    keys, etas = [], []
    for seed in range(10):
        drawn = return_reasons.draw(100_000, seed=seed + 1000)
        keys.append(np.array([hash(text.lower()) for text in drawn.texts]))
        etas.append(drawn.posterior[:, :4])
    key, eta = np.concatenate(keys), np.concatenate(etas)
    order = np.argsort(key, kind="stable")
    same = np.flatnonzero(key[order][1:] == key[order][:-1])
    np.testing.assert_array_equal(eta[order[same]], eta[order[same + 1]])


def test_the_facts_can_be_learned_but_not_from_single_words():
    """Negations and contrasts: a bag of words gets far above the prior and far below Bayes."""
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.linear_model import LogisticRegression

    train = return_reasons.draw(10_000, seed=24)
    test = return_reasons.draw(10_000, seed=25)
    bag = CountVectorizer(min_df=2)
    model = LogisticRegression(C=0.3, max_iter=200)
    model.fit(bag.fit_transform(train.texts), train.labels)
    right = (model.predict(bag.transform(test.texts)) == test.clean).mean()
    best, constant = test.posterior.max(axis=1).mean(), PRIORS["logs"].max()
    assert constant + 0.15 < right < best - 0.05
