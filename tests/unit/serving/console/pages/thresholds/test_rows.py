"""Examples of serving.console.pages.thresholds.rows."""

from calibrant.serving.console.pages.thresholds.rows import LruCaches


def test_example_of_lrucaches():
    caches = LruCaches({"square": 2})
    assert [caches.get("square", n, lambda n=n: n * n) for n in (3, 4, 3, 5)] == [9, 16, 9, 25]
    assert (
        caches.get("square", 4, lambda: "recomputed"),
        caches.get("square", 5, lambda: "recomputed"),
    ) == ("recomputed", 25)
