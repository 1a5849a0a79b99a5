"""Reasons of a bundle: by hand, additive in every family, and refused where there are none."""

import numpy as np
import pytest
from tests.sentences import refuses
from tests.unit.bundle.explained import (
    FAMILIES,
    UNEXPLAINED,
    ensemble_scorer,
    explained_bundle,
    linear_scorer,
    ngram_scorer,
    wet_scorer,
)
from tests.unit.bundle.model_parts import TABLE, TEXTS
from tests.unit.bundle.parts import temperature

from calibrant.bundle import load_bundle, pack
from calibrant.bundle.reasons import list_reasons
from calibrant.bundle.scorers import mix_logits
from calibrant.errors import InputError

HALF = np.sqrt(0.5)  # The value of each of two words of a text


def test_two_classes_by_hand(tmp_path):
    bundle = load_bundle(explained_bundle(tmp_path / "b", scorer=wet_scorer()).path)
    logits = bundle.predict_logits(["dry wet"])
    assert logits[0] == pytest.approx([0.5 + 2 * HALF, 3 * HALF], abs=1e-6)
    (row,) = bundle.explain(["dry wet"]).rows
    for label, sign in ((1, 1.0), (0, -1.0)):
        reasons = row.reasons(label)
        assert [each.part for each in reasons] == ["dry", "wet"]
        wanted = [sign * 3 * HALF, -sign * 2 * HALF]
        assert [each.contribution for each in reasons] == pytest.approx(wanted, abs=1e-6)


@pytest.mark.parametrize("family", FAMILIES)
def test_base_and_contributions_add_up_to_the_logits(tmp_path, family):
    rows = FAMILIES[family][1]
    bundle = load_bundle(explained_bundle(tmp_path / "b", family).path)
    logits, explanation = bundle.predict_logits(rows), bundle.explain(rows)
    judged = np.ptp(logits, axis=1) > 0
    assert judged.mean() > 0.5
    assert explanation.logits[judged] == pytest.approx(logits[judged], abs=1e-5)
    labels = logits.argmax(axis=1).tolist()
    reasons = list_reasons(bundle.explain(rows).rows, logits, labels, 10_000)
    for row in np.flatnonzero(judged).tolist():
        k, base = labels[row], explanation.base
        ahead = logits[row, k] - np.delete(logits[row], k).mean()
        from_start = base[k] - np.delete(base, k).mean()
        total = from_start + sum(each.contribution for each in reasons[row])
        assert total == pytest.approx(ahead, abs=1e-5)


@pytest.mark.parametrize("family", FAMILIES)
def test_the_strongest_come_first_and_fewer_are_the_first_of_more(family):
    make, rows = FAMILIES[family]
    scorer = make()
    logits = scorer.predict_logits(rows)
    labels = logits.argmax(axis=1).tolist()
    every = list_reasons(scorer.explain(rows).rows, logits, labels, 10_000)
    for reasons in every:
        sizes = [abs(each.contribution) for each in reasons]
        assert sizes == sorted(sizes, reverse=True)
        assert 0.0 not in sizes
    assert list_reasons(scorer.explain(rows).rows, logits, labels, 2) == [
        reasons[:2] for reasons in every
    ]


def test_a_row_that_the_model_cannot_judge_has_no_reasons():
    scorer, rows = FAMILIES["boosting"][0](), {"price": [1.0, 1e300], "shelf": ["top", "top"]}
    known, unknown = list_reasons(scorer.explain(rows).rows, scorer.predict_logits(rows), [0, 0], 5)
    assert known
    assert unknown == []
    texts, scorer = ["it broken", "zzz"], ngram_scorer()
    known, unknown = list_reasons(
        scorer.explain(texts).rows, scorer.predict_logits(texts), [0, 0], 5
    )
    assert known
    assert unknown == []


def test_redacted_texts_are_explained_without_what_was_redacted():
    texts = ["write to missing@arrival.com about a broken part", "call +49 170 1234567, it broke"]
    scorer = ngram_scorer([*TEXTS, *texts], redact=True)
    explanation = scorer.explain(texts)
    assert explanation.logits == pytest.approx(scorer.predict_logits(texts), abs=1e-5)
    parts = " ".join(part for row in explanation.rows for part in row.parts)
    assert "broken" in parts
    for secret in ("missing@", "arrival", "1234567", "@"):
        assert secret not in parts
    raw = ngram_scorer([*TEXTS, *texts]).explain(texts)
    assert "arrival" in " ".join(raw.rows[0].parts)  # without redaction it is read


@pytest.mark.parametrize("kind", UNEXPLAINED)
def test_models_without_reasons_are_refused(tmp_path, kind):
    bundle = load_bundle(explained_bundle(tmp_path / "b", scorer=UNEXPLAINED[kind]()).path)
    name = {"network": "bilstm", "network of a table": "mlp"}.get(kind, kind)
    rows = TEXTS if kind == "network" else TABLE
    assert bundle.predict_logits(rows).shape == (4, 3)
    with refuses(InputError, name, "boosting", "ngrams", "linear"):
        bundle.explain(rows)


def test_a_bundle_without_a_model_is_refused(tmp_path):
    bundle = pack(tmp_path / "b", calibrator=temperature(), force=True)
    with refuses(InputError, "no model", "boosting"):
        bundle.explain(np.zeros((1, 3)))


def test_an_average_of_contributions_would_not_be_that_of_an_ensemble():
    scorer = linear_scorer()
    assert scorer.explains
    assert not ensemble_scorer().explains
    # Members that differ: the logarithm of a mean is not the mean of logarithms.
    one, other = np.array([[4.0, 0.0]]), np.array([[0.0, 4.0]])
    mixed, mean = mix_logits([one, 0.5 * other], [0.5, 0.5]), (one + 0.5 * other) / 2
    assert abs(np.diff(mixed)[0, 0] - np.diff(mean)[0, 0]) > 0.1
