"""Drawing messages: same seed, same bytes; labels, shares, files and bad arguments."""

import numpy as np
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest
from tests.sentences import refuses

from calibrant.data import return_reasons
from calibrant.data.return_reasons import BINARY, NOISE, OUT_OF_SCOPE, PRIORS, REASONS
from calibrant.errors import InputError


@pytest.mark.parametrize("source", ["logs", "golden"])
def test_the_same_seed_gives_the_same_messages(source):
    one = return_reasons.draw(300, source=source, seed=7, out_of_scope=0.1)
    two = return_reasons.draw(300, source=source, seed=7, out_of_scope=0.1)
    assert one.texts == two.texts
    np.testing.assert_array_equal(one.labels, two.labels)
    np.testing.assert_array_equal(one.posterior, two.posterior)


def test_a_known_message():
    drawn = return_reasons.draw(1, seed=5)
    assert drawn.texts[0].startswith("good morning, my arvento play kitchen, nobody claims that")


def test_fewer_messages_are_the_first_of_more():
    many = return_reasons.draw(5000, seed=3)
    for n in (0, 1, 4096, 4097):
        few = return_reasons.draw(n, seed=3)
        assert few.texts == many.texts[:n]
        np.testing.assert_array_equal(few.labels, many.labels[:n])
        np.testing.assert_array_equal(few.logged, many.logged[:n])
        np.testing.assert_array_equal(few.ids, many.ids[:n])


def test_sources_and_seeds_share_nothing():
    kinds = [("logs", 0), ("logs", 1), ("golden", 0), ("golden", 1)]
    drawn = [return_reasons.draw(3000, source=source, seed=seed) for source, seed in kinds]
    for i, one in enumerate(drawn):
        for other in drawn[:i]:
            # a short message may be written by two customers
            assert len(set(one.texts) & set(other.texts)) < 10
            assert not set(one.ids) & set(other.ids)


@pytest.mark.parametrize("binary", [False, True])
def test_no_message_at_all(binary, tmp_path):
    drawn = return_reasons.draw(0, binary=binary)
    assert len(drawn) == 0
    assert drawn.texts == []
    k = len(drawn.classes)
    assert drawn.posterior.shape == drawn.logged.shape == (0, k)
    assert drawn.posterior_under("golden").shape == (0, k)
    assert drawn.to_table().num_rows == 0
    assert pq.read_table(drawn.write(tmp_path / "none.parquet")).num_rows == 0


@pytest.mark.parametrize("source", ["logs", "golden"])
def test_the_reasons_come_as_often_as_the_prior_says(source):
    drawn = return_reasons.draw(40_000, source=source, seed=1)
    share = np.array([(drawn.clean == reason).mean() for reason in REASONS])
    prior = PRIORS[source]
    assert (np.abs(share - prior) < 4 * np.sqrt(prior * (1 - prior) / 40_000)).all()
    assert prior.argmax() == REASONS.index("others")
    # so do the posteriors: a mean over messages is the prior
    np.testing.assert_allclose(drawn.posterior.mean(axis=0), prior, atol=0.01)


def test_the_logs_are_noisy_as_stated_and_the_golden_set_is_clean():
    logs = return_reasons.draw(40_000, seed=2)
    for k, reason in enumerate(REASONS):
        rows = logs.clean == reason
        share = np.array([(logs.labels[rows] == other).mean() for other in REASONS])
        room = 4.5 * np.sqrt(NOISE[k] * (1 - NOISE[k]) / rows.sum())
        assert (np.abs(share - NOISE[k]) < room).all(), reason
    assert 0.05 < (logs.labels != logs.clean).mean() < 0.08
    golden = return_reasons.draw(500, source="golden", seed=2)
    np.testing.assert_array_equal(golden.labels, golden.clean)


def test_the_constants_are_distributions_that_cannot_be_changed():
    for prior in PRIORS.values():
        assert prior.sum() == pytest.approx(1.0, abs=1e-12)
    np.testing.assert_allclose(NOISE.sum(axis=1), 1.0, atol=1e-12)
    with pytest.raises(ValueError, match="read-only"):
        NOISE[0, 0] = 1.0
    assert set(return_reasons.ACTIONS) == set(REASONS)


@pytest.mark.parametrize("source", ["logs", "golden"])
def test_the_binary_form_is_the_same_draw_with_merged_classes(source):
    five = return_reasons.draw(800, source=source, seed=4, out_of_scope=0.1)
    two = return_reasons.draw(800, source=source, seed=4, out_of_scope=0.1, binary=True)
    assert two.texts == five.texts
    assert two.classes == BINARY == ("others", "item_defective")
    for mine, theirs in ((two.labels, five.labels), (two.clean, five.clean)):
        np.testing.assert_array_equal(mine == "item_defective", theirs == "item_defective")
    for mine, theirs in (
        (two.posterior, five.posterior),
        (two.logged, five.logged),
        (two.posterior_under("golden"), five.posterior_under("golden")),
    ):
        np.testing.assert_array_equal(mine[:, 1], theirs[:, 0])
        np.testing.assert_allclose(mine.sum(axis=1)[two.in_scope], 1.0, atol=1e-12)


def test_out_of_scope_messages_have_a_flag_and_no_posterior():
    drawn = return_reasons.draw(5000, seed=5, out_of_scope=0.2)
    outside = ~drawn.in_scope
    assert abs(outside.mean() - 0.2) < 4 * np.sqrt(0.2 * 0.8 / 5000)
    assert (drawn.labels[outside] == OUT_OF_SCOPE).all()
    assert (drawn.clean[outside] == OUT_OF_SCOPE).all()
    for scores in (drawn.posterior, drawn.logged, drawn.posterior_under("golden")):
        assert np.isnan(scores[outside]).all()
        np.testing.assert_allclose(scores[drawn.in_scope].sum(axis=1), 1.0, atol=1e-12)
    assert set(drawn.labels[drawn.in_scope]) == set(REASONS)


def test_out_of_scope_messages_leave_the_others_as_they_are():
    without = return_reasons.draw(1000, seed=6)
    drawn = return_reasons.draw(1000, seed=6, out_of_scope=0.3)
    for i in np.flatnonzero(drawn.in_scope):
        assert drawn.texts[i] == without.texts[i]
    np.testing.assert_array_equal(drawn.labels[drawn.in_scope], without.labels[drawn.in_scope])
    alone = return_reasons.draw(50, seed=6, out_of_scope=1.0)
    assert not alone.in_scope.any()
    assert all(alone.texts)


def test_files_hold_what_was_drawn(tmp_path):
    drawn = return_reasons.draw(200, seed=8, out_of_scope=0.1)
    csv = pacsv.read_csv(drawn.write(tmp_path / "logs.csv"))
    parquet = pq.read_table(drawn.write(tmp_path / "logs.parquet"))
    for table in (csv, parquet):
        assert table.column_names == ["id", "message", "reason"]
        assert table["message"].to_pylist() == drawn.texts
        assert table["reason"].to_pylist() == drawn.labels.tolist()
        assert len(set(table["id"].to_pylist())) == 200
    lines = drawn.write(tmp_path / "logs.jsonl").read_text("utf-8").splitlines()
    assert len(lines) == 200
    again = return_reasons.draw(200, seed=8, out_of_scope=0.1).write(tmp_path / "again.csv")
    assert again.read_bytes() == (tmp_path / "logs.csv").read_bytes()


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"n": -1}, ("n must be",)),
        ({"n": 2.5}, ("n must be",)),
        ({"n": True}, ("n must be",)),
        ({"seed": -1}, ("seed must be",)),
        ({"source": "online"}, ("'logs' or 'golden'",)),
        ({"out_of_scope": 1.5}, ("out_of_scope", "[0, 1]")),
        ({"out_of_scope": float("nan")}, ("out_of_scope",)),
        ({"out_of_scope": "half"}, ("out_of_scope",)),
    ],
)
def test_bad_arguments(options, word):
    with refuses(InputError, *word):
        return_reasons.draw(**{"n": 5, **options})
    with refuses(InputError, "'logs' or 'golden'"):
        return_reasons.draw(1).posterior_under("online")
