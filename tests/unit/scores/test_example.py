"""The built-in example: what it promises about prior, channels and over-confidence."""

import numpy as np
import pytest

from calibrant.data import write_example
from calibrant.data.example import REASONS
from calibrant.errors import InputError
from calibrant.scores import read_scores


@pytest.fixture(scope="module")
def example(tmp_path_factory):
    file = write_example(tmp_path_factory.mktemp("example") / "scores.csv", n=8000)
    return read_scores(file, group="channel", ids="id")


def test_the_reasons_are_imbalanced_as_stated(example):
    share = np.bincount(example.labels, minlength=5) / example.n
    np.testing.assert_allclose(share, [0.12, 0.08, 0.15, 0.22, 0.43], atol=0.02)
    assert example.classes == REASONS


def test_the_model_is_over_confident_and_most_on_the_phone(example):
    right = example.probs.argmax(axis=1) == example.labels
    gap = example.probs.max(axis=1) - right
    by_channel = {c: gap[example.groups == c].mean() for c in ("chat", "email", "phone")}
    assert min(by_channel.values()) > 0.02
    assert by_channel["phone"] > 2 * max(by_channel["chat"], by_channel["email"])


def test_the_ideal_scores_are_the_true_posterior(tmp_path, example):
    file = write_example(tmp_path / "ideal.csv", n=8000, ideal=True)
    ideal = read_scores(file, ids="id")
    np.testing.assert_array_equal(ideal.labels, example.labels)
    right = ideal.probs.argmax(axis=1) == ideal.labels
    # four standard errors of a mean of 8,000 differences, each of size below 0.5
    assert abs((ideal.probs.max(axis=1) - right).mean()) < 4 * 0.5 / np.sqrt(8000)


def test_no_label_gets_probability_zero(example):
    assert example.probs[np.arange(example.n), example.labels].min() > 0


def test_the_same_seed_writes_the_same_bytes(tmp_path):
    one = write_example(tmp_path / "a.csv", n=50, seed=3).read_bytes()
    assert one == write_example(tmp_path / "b.csv", n=50, seed=3).read_bytes()
    assert one != write_example(tmp_path / "c.csv", n=50, seed=4).read_bytes()


def test_csv_and_parquet_hold_the_same(tmp_path):
    one = read_scores(write_example(tmp_path / "a.csv", n=200))
    two = read_scores(write_example(tmp_path / "a.parquet", n=200))
    np.testing.assert_array_equal(one.probs, two.probs)
    np.testing.assert_array_equal(one.labels, two.labels)


@pytest.mark.parametrize(
    ("name", "n", "word"), [("a.xlsx", 5, ".csv or .parquet"), ("a.csv", 0, "at least 1")]
)
def test_bad_arguments(tmp_path, name, n, word):
    with pytest.raises(InputError, match=word):
        write_example(tmp_path / name, n=n)
    assert list(tmp_path.iterdir()) == []
