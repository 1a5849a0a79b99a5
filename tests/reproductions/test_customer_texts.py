"""Real customer texts: their numbers, their cut, and made-up rows without files."""

from __future__ import annotations

import numpy as np
import pytest
from reproductions.customer_texts import (
    REVIEWS,
    clinc150,
    it_tickets,
    made_texts,
    womens_clothing,
)
from tests.data_sets import data_file

from calibrant.errors import InputError

LOADERS = (it_tickets, womens_clothing, clinc150)


def all_rows(parts):
    return [parts.train, parts.steer, parts.calib, parts.test]


def check_apart(parts):
    seen: set[str] = set()
    for part in all_rows(parts):
        assert not seen & set(part.inputs)
        seen |= set(part.inputs)
        assert part.labels.min() >= 0
        assert part.labels.max() < len(parts.classes)


@pytest.mark.parametrize("loader", LOADERS)
def test_rows_can_be_made_without_files(loader, monkeypatch):
    monkeypatch.delenv("CALIBRANT_DATA", raising=False)
    parts = loader({"rows": 300, "calib": 60, "test": 60, "made": True})
    assert parts.sizes() == {"train": 160, "steer": 20, "calib": 60, "test": 60}
    check_apart(parts)
    for part in (parts.train, parts.calib, parts.test):
        assert len(np.unique(part.labels)) == len(parts.classes)


def test_made_texts_show_their_class():
    made = made_texts(200, REVIEWS)
    shown = [any(word.startswith("not_") for word in text.split()) for text in made.texts]
    assert (np.array(shown) == (made.codes == 1)).mean() > 0.95


def test_an_unknown_option_is_refused():
    with pytest.raises(InputError, match="'lines'"):
        it_tickets({"lines": 3})


def test_tickets():
    data_file("it_tickets", "it_tickets.parquet")
    parts = it_tickets({})
    assert sum(parts.sizes().values()) == 47_837
    assert parts.sizes()["calib"] == 1839
    assert parts.sizes()["test"] == 5000
    assert len(parts.classes) == 8
    check_apart(parts)
    labels = np.concatenate([part.labels for part in all_rows(parts)])
    counts = dict(zip(parts.classes, np.bincount(labels).tolist(), strict=True))
    assert counts["Hardware"] == 13_617
    assert counts["Administrative rights"] == 1760


def test_fewer_tickets_are_some_of_them():
    data_file("it_tickets", "it_tickets.parquet")
    parts = it_tickets({"rows": 1000})
    assert parts.sizes() == {"train": 534, "steer": 66, "calib": 200, "test": 200}


def test_reviews():
    data_file("womens_clothing", "womens_clothing_reviews.csv.gz")
    parts = womens_clothing({"calib": 1013})
    assert parts.sizes()["calib"] == 1013
    assert 22_600 < sum(parts.sizes().values()) <= 22_641
    check_apart(parts)
    labels = np.concatenate([part.labels for part in all_rows(parts)])
    assert labels.mean() == pytest.approx(0.18, abs=0.005)
    sure = [text for part in all_rows(parts) for text in part.inputs if "design flaws" in text]
    assert any(text.startswith("Some major design flaws I had such high hopes") for text in sure)


def test_requests():
    data_file("clinc150", "clinc150_imbalanced.jsonl.gz")
    parts = clinc150({})
    sizes = parts.sizes()
    assert (sizes["calib"], sizes["test"]) == (3000, 4500)
    assert sizes["train"] + sizes["steer"] == 10_525 - 3  # three stand in val or test too
    assert len(parts.outside["oos"]) == 1200
    assert len(parts.classes) == 150
    check_apart(parts)
    assert np.bincount(parts.test.labels).tolist() == [30] * 150
    for part in (parts.train, parts.steer):
        assert len(np.unique(part.labels)) == 150


def test_fewer_requests_keep_the_shares_of_the_parts():
    data_file("clinc150", "clinc150_imbalanced.jsonl.gz")
    parts = clinc150({"rows": 1802})
    assert parts.sizes()["test"] == 450
    assert parts.sizes()["calib"] == 300
