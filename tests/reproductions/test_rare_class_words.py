"""Sentences on a rare class: means over seeds, ranges over methods, nothing without runs."""

from reproductions.rare_class_words import rare_class_words


def record(method, seed, score, *, shift=True, corrected=False):
    """A record whose figures all follow from one number, so that sentences can be foretold."""

    def figures(part):
        value = score * part
        return {
            "recall": [0.9, value],
            "mean_score": value,
            "event_rate": 0.02,
            "ece_em": {"value": value / 2},
            "auprc": {"value": 0.7},
        }

    extra = {
        "class": "fraud",
        "place": 1,
        "corrected": corrected,
        "log_shift": [-1.0, 2.0] if shift else None,
        "raw": figures(1.0),
        "temperature": figures(0.5),
        "platt": figures(0.1),
    }
    return {"method": method, "seed": seed, "extras": {"rare_class": extra}}


RUNS = [
    record("ce", 0, 0.021, shift=False, corrected=True),
    record("over", 0, 0.020, corrected=True),
    record("over_left", 0, 0.10),
    record("over_left", 1, 0.30),
    record("under_left", 0, 0.40),
]


def test_means_over_seeds_and_ranges_over_methods():
    one, two, three = rare_class_words(RUNS)
    assert one.startswith("Fraud is the class of 2.0 % of the test rows.")
    assert "give it 20.0 to 40.0 % on average where nothing is put right" in one
    assert "and 2.0 % where the log" in one
    assert "(plain cross-entropy: 2.1 %)" in one
    assert "10.0 to 20.0 % uncorrected and 1.0 % corrected" in two
    assert "leaves the uncorrected at 5.0 to 10.0 %" in two
    assert "brings them to 1.0 to 2.0 %" in two
    assert "20.0 to 40.0 % of the class is found uncorrected and 2.0 % corrected" in three
    assert "corrected (plain cross-entropy: 2.1 %), and a threshold" in three
    assert "the AUPRC is 70.0 % uncorrected and 70.0 % corrected" in three


def test_without_both_kinds_there_is_nothing_to_tell():
    assert rare_class_words([]) == ()
    assert rare_class_words(RUNS[:2]) == ()
    assert rare_class_words([{"method": "ce", "seed": 0, "extras": {}}]) == ()


def test_without_plain_cross_entropy_nothing_stands_beside():
    told = rare_class_words(RUNS[1:])
    assert len(told) == 3
    assert not any("plain" in sentence for sentence in told)
