"""Errors that cross process boundaries."""

import copy
import pickle

from calibrant.errors import MissingExtra


def test_a_missing_extra_survives_copies_and_pickles():
    error = MissingExtra("a study", "torch")
    for twin in (copy.deepcopy(error), pickle.loads(pickle.dumps(error))):
        assert type(twin) is MissingExtra
        assert str(twin) == str(error)
        assert (twin.what, twin.extra) == ("a study", "torch")
