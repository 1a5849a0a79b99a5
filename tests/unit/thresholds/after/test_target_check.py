"""Examples of thresholds.after.target_check."""

from calibrant.thresholds.after.target_check import check_share, find_further_rows


def test_example_of_check_share():
    from calibrant.thresholds.rates import precision

    check = check_share(precision >= 0.85, 384, 485, 0.05)
    assert (check.verdict, round(check.p_broken, 5)) == ("broken", 0.00036)


def test_example_of_find_further_rows():
    assert find_further_rows(10, lambda rows: rows >= 57) == 47
