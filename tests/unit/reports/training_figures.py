"""Small histories, and a look at where the words of a figure stand, for tests of its displays."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from calibrant.fitting.gamma_history import GammaHistory
from calibrant.reports import BinHistory


def a_history(epochs: int = 12, n_bins: int = 5, seed: int = 0, drift: float = 0.1) -> BinHistory:
    """A run that becomes surer and over-confident; train rows are surer than steer rows."""
    rng = np.random.default_rng(seed)
    history = BinHistory.empty(n_bins)
    for epoch in range(epochs):
        sure = 0.4 + 0.6 * rng.beta(2 + epoch, 4, size=200)
        true = np.clip(sure + 0.05 * rng.normal(size=200), 0, 1)
        history = history.then(
            BinHistory.from_rows(
                sure,
                rng.random(200) < sure - drift,
                true=true,
                top=np.maximum(true, 1 - true),
                train_right=true > 0.5,
                epoch=epoch,
                n_bins=n_bins,
            )
        )
    return history


def gammas(values, error=None, count=None) -> GammaHistory:
    """A history of these (T, M) gammas."""
    gamma = np.asarray(values, dtype=np.float64)
    error = np.zeros_like(gamma) if error is None else np.asarray(error, dtype=np.float64)
    count = np.full(gamma.shape, 40) if count is None else np.asarray(count)
    share = np.linspace(0.3, 0.9, gamma.shape[1] - 1)
    return GammaHistory(
        step=np.arange(1, len(gamma) + 1),
        edges=np.tile(share, (len(gamma), 1)),
        error=error,
        count=count,
        gamma=gamma,
        confidence=0.5 + error / 2,
        accuracy=0.5 - error / 2,
    )


def steered(updates: int = 40, n_bins: int = 15) -> GammaHistory:
    """Gammas by the paper's rule: the lowest climbs to 20, the highest falls to -2."""
    pull = np.linspace(0.3, -0.2, n_bins)
    gamma, found = np.ones(n_bins), []
    for _ in range(updates):
        moved = gamma * np.exp(np.where(gamma > 0, pull, -pull))
        small = np.abs(moved) < 0.2
        gamma = np.clip(np.where(small, np.where(gamma > 0, -0.2, 0.2), moved), -2, 20)
        found.append(gamma)
    return gammas(found, error=np.tile(pull, (updates, 1)))


def words_of(figure):
    """Every text that is drawn, with the box it takes in pixels."""
    figure.canvas.draw()
    renderer = figure.canvas.get_renderer()
    texts = [figure._suptitle] if figure._suptitle is not None else []
    for legend in figure.legends:
        texts += legend.get_texts()
    for ax in figure.axes:
        texts += [ax.title, ax.xaxis.label, ax.yaxis.label]
        for axis in (ax.xaxis, ax.yaxis):
            low, high = sorted(axis.get_view_interval())
            ticks = zip(axis.get_majorticklocs(), axis.get_majorticklabels(), strict=True)
            texts += [label for place, label in ticks if low <= place <= high]
    drawn = [text for text in texts if text.get_visible() and text.get_text()]
    return [(text.get_text(), text.get_window_extent(renderer)) for text in drawn]


def assert_readable(figure) -> None:
    """No two texts may touch, and none may leave the figure."""
    words = words_of(figure)
    for text, box in words:
        inside = box.x0 >= -1 and box.y0 >= -1
        inside &= box.x1 <= figure.bbox.x1 + 1 and box.y1 <= figure.bbox.y1 + 1
        assert inside, f"{text!r} leaves the figure"
    for (one, first), (other, second) in combinations(words, 2):
        across = min(first.x1, second.x1) - max(first.x0, second.x0)
        upward = min(first.y1, second.y1) - max(first.y0, second.y0)
        assert min(across, upward) < 1, f"{one!r} touches {other!r}"
