from reproductions.agreement import agreement_sentence
from tests.reproductions.made_records import made_runs, made_summary

# Intervals of the made runs are a point wide on both sides; ECE_EM before calibrating is 8 % with
# CE and 4 % with FL-3, and half of it after temperature scaling.


def sentence(ce, focal):
    return agreement_sentence(made_summary(published={"ce": ce, "focal": focal}).methods)


def test_all_within():
    found = sentence({"ece_em": 8.5, "ece_em_scaled": 3.5}, {"ece_em": 4.5, "error": 20.5})
    assert found == (
        "Of the 4 figures that were printed of these methods (ECE_EM before calibrating, "
        "ECE_EM after temperature scaling and error), all lie within the intervals of ours."
    )


def test_those_outside_are_named_with_both_figures():
    found = sentence({"ece_em": 12.0}, {"ece_em": 4.5})
    assert "1 lies within the intervals of ours; outside: CE, ECE_EM before calibrating" in found
    assert found.endswith("8.00 %, printed 12.00 %.")


def test_of_many_the_furthest_come_first():
    far = {"ece_em": 20.0, "ece_em_scaled": 30.0, "error": 60.0}
    found = sentence(far, {"ece_em": 90.0})
    assert "none lie within the intervals of ours; furthest off: FL-3" in found
    assert found.index("90.00 %") < found.index("60.00 %") < found.index("30.00 %")
    assert "20.00 % the" not in found


def test_nothing_printed_says_nothing():
    assert sentence({}, {}) is None


def test_only_runs_on_the_papers_schedule_are_held_against_its_figures():
    def told(**other):
        return any("that were printed of" in each for each in made_summary(**other).sentences)

    assert told()
    assert not told(faithful=False)


def test_one_method_alone_is_no_comparison():
    runs = [each for each in made_runs() if each["method"] == "ce"]
    found = made_summary(runs).sentences
    assert found[0].startswith("CE is the only method here; on the steer rows its log loss after")
    assert any("that were printed of CE (" in each for each in found)
