"""A linear layer as the model of a bundle: by hand, row by row, saved and loaded to the bit."""

import json

import numpy as np
import pytest
from tests.sentences import refuses

from calibrant.data import NgramEncoder, TableEncoder
from calibrant.data.linear_scorer import LinearScorer
from calibrant.errors import InputError

TEXTS = ["it came broken", "broken on arrival", "a part is missing", "it is too small 👍"]
TABLE = {"price": [1.0, 2.0, 4.0, 8.0], "shelf": ["Top", "low", "top", "Low"]}


def known_weights(width, n_classes=3):
    return np.sin(5.0 * np.arange(width * n_classes)).reshape(width, n_classes)


def ngram_scorer(**options):
    encoder = NgramEncoder(min_count=1).fit(TEXTS)
    weights = known_weights(encoder.n_features)
    return LinearScorer(encoder, weights, [0.25, -0.5, 0.0], **options)


def table_scorer(**options):
    encoder = TableEncoder().fit(TABLE)
    weights = known_weights(len(encoder.get_feature_names_out()))
    return LinearScorer(encoder, weights, [0.25, -0.5, 0.0], name="linear", **options)


def test_logits_by_hand():
    encoder = NgramEncoder(words=(1, 1), characters=None, min_count=1).fit(["wet", "dry"])
    weights = [[2.0, 0.0], [0.0, 3.0]] if encoder.get_feature_names_out()[0] == "wet" else None
    weights = weights or [[0.0, 3.0], [2.0, 0.0]]
    scorer = LinearScorer(encoder, weights, [0.5, 0.0], shift=[0.0, 1.0])
    half = np.sqrt(0.5)
    expected = [[2.5, -1.0], [0.5 + 2 * half, 3 * half - 1.0], [0.0, 0.0]]
    found = scorer.predict_logits(["wet", "dry wet", "lost"])
    assert found == pytest.approx(np.array(expected), abs=1e-6)
    assert scorer.is_unscorable(["wet", "lost"]).tolist() == [False, True]


@pytest.mark.parametrize(("make", "rows"), [
    (ngram_scorer, [*TEXTS, "", "broken 商品", "part part"]),
    (table_scorer, [{"price": p, "shelf": s} for p, s in [(1, "top"), (None, "low"), (7, None)]]),
])  # fmt: skip
def test_the_logits_of_a_row_do_not_depend_on_the_others(make, rows):
    scorer = make(shift=[0.5, 0.0, -0.25])
    together = scorer.predict_logits(rows)
    for i, row in enumerate(rows):
        assert np.array_equal(scorer.predict_logits([row])[0], together[i])


def test_a_number_far_from_the_train_rows_cannot_be_scored():
    prices = np.linspace(1.0, 9.0, 200)
    encoder = TableEncoder().fit({"price": prices})
    scorer = LinearScorer(encoder, known_weights(1, 2), [0.0, 1.0], name="linear")
    far = {"price": [5.0, 1e9]}
    assert scorer.is_unscorable(scorer._read(far)).tolist() == [False, True]
    assert scorer.predict_logits(far)[1].tolist() == [0.0, 0.0]


@pytest.mark.parametrize(("make", "rows"), [(ngram_scorer, [*TEXTS, "lost", ""]),
                                            (table_scorer, TABLE)])  # fmt: skip
def test_what_is_loaded_gives_the_same_bits(tmp_path, make, rows):
    scorer = make(shift=[0.5, 0.0, -0.25], classes=["a", "b", "c"])
    spec = json.loads(json.dumps(scorer.save(tmp_path, prefix="member-0-")))
    loaded = LinearScorer.load(spec, tmp_path, classes=["a", "b", "c"], prefix="member-0-")
    assert np.array_equal(loaded.predict_logits(rows), scorer.predict_logits(rows))
    assert np.array_equal(loaded.trial(), scorer.trial())
    assert loaded.config == scorer.config
    assert loaded.columns == scorer.columns
    assert spec["kind"] == "linear"


@pytest.mark.parametrize(("make", "rows"), [
    (ngram_scorer, TEXTS), (table_scorer, {"price": [1.0, None], "shelf": ["low", None]}),
])  # fmt: skip
def test_contributions_sum_to_the_logits(make, rows):
    scorer = make(shift=[0.5, 0.0, -0.25])
    found = scorer.explain(rows)
    assert found.logits == pytest.approx(scorer.predict_logits(rows), abs=1e-5)


def test_contributions_are_those_of_ngrams_and_columns():
    parts = ngram_scorer().explain(["it broken"]).rows[0].parts
    assert {"it", "broken", "'brok'"} <= set(parts)
    assert "it broken" not in parts
    assert table_scorer().explain(TABLE).rows[0].parts == ("price", "shelf")
    lost = ngram_scorer().explain(["zzz"]).rows[0]
    assert lost.parts == ()
    assert lost.values.shape == (3, 0)


def test_redaction_comes_first():
    plain, redacted = ngram_scorer(), ngram_scorer(redact=True)
    text = "it broke, write to missing@arrival.com"
    from calibrant.data import redact

    assert np.array_equal(redacted.predict_logits([text]), plain.predict_logits([redact(text)]))
    assert not np.array_equal(redacted.predict_logits([text]), plain.predict_logits([text]))


def test_texts_are_found_by_their_column():
    scorer = ngram_scorer(column="message")
    assert scorer.columns.texts == ("message",)
    table = {"id": [1, 2], "message": TEXTS[:2]}
    assert np.array_equal(scorer.predict_logits(table), scorer.predict_logits(TEXTS[:2]))


@pytest.mark.parametrize("shape", [(3, 3), (0, 3)])
def test_weights_must_fit_the_encoder(shape):
    encoder = NgramEncoder(min_count=1).fit(TEXTS)
    with refuses(InputError, "weights", str(encoder.n_features)):
        LinearScorer(encoder, np.zeros(shape), np.zeros(3))


@pytest.mark.parametrize("damage", ["[", "{}", '{"words": 1}', '{"words": {"names": [1]}}'])
def test_damaged_ngrams_are_refused(tmp_path, damage):
    spec = ngram_scorer().save(tmp_path)
    (tmp_path / "ngrams.json").write_text(damage)
    with refuses(InputError, "ngrams.json", "damaged"):
        LinearScorer.load(spec, tmp_path)


def test_weights_of_another_model_are_refused(tmp_path):
    spec = ngram_scorer().save(tmp_path)
    table_scorer().save(tmp_path)
    with refuses(InputError, "weights"):
        LinearScorer.load(spec, tmp_path)
