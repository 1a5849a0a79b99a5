"""Display of train and steer confidence over epochs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, get_args

from calibrant.errors import InputError
from calibrant.reports.displays.bin_history import BinHistory
from calibrant.reports.displays.epoch_panels import (
    Panels,
    bin_title,
    check_histories,
    choose_bins,
    draw_line,
    filled_bins,
    finish_figure,
    make_grid,
    name_axes,
    run_style,
)
from calibrant.reports.displays.style import EVENT, GREY, OTHER

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_STARS: dict[str, Any] = {"marker": "*", "markersize": 6, "linewidth": 0.9}
Match = Literal["common", "independent", "true_top"]


@dataclass(frozen=True)
class _Pair:
    """The two compared figures and their labels."""

    solid: str
    solid_label: str
    starred: str
    starred_label: str
    how: str


_TRAIN = "train rows, true class"
_STEER = "steer (validation) rows, predicted class"
_PAIRS: dict[str, _Pair] = {
    "common": _Pair(
        "train_confidence", _TRAIN, "confidence", _STEER,
        "Train and steer rows in the same bins. Where the two lines move together, "
        "what the loss does to train rows reaches new rows too.",
    ),
    "independent": _Pair(
        "own_confidence", _TRAIN, "confidence", _STEER,
        "Train and steer rows, each in equally filled bins of their own. Where the two lines move "
        "together, what the loss does to train rows reaches new rows too.",
    ),
    "true_top": _Pair(
        "train_confidence", _TRAIN, "train_top", "train rows, predicted class",
        "Train rows, grouped by the probability of their true class. The two lines meet "
        "where every row is predicted right.",
    ),
}  # fmt: skip


@dataclass
class ConfidenceMatchDisplay:
    """Mean probability in a few bins over epochs: train rows (solid) against steer rows (stars).

    AdaFocal changes the confidence of train rows and assumes that the confidence of new rows
    follows; this figure shows whether it does. `kind` selects the comparison: "common" puts train
    rows into the bins of the steer rows; "independent" puts each into separate equal-mass bins;
    "true_top" compares, for train rows, the probability of the true class with that of the
    predicted class, with the train accuracy in an extra panel.

    Rows that share a bin have means between its edges: in an inner bin of "common" they agree by
    construction, and only the first bin and "independent" are informative. Nothing is drawn for an
    empty bin. Panels have separate scales.

    Parameters
    ----------
    histories : history recorded by `calibrant.training.BinTrace`, by name of the run
    kind : "common", "independent" or "true_top"
    bins : which bins to draw; the lowest, middle and highest by default

    Attributes
    ----------
    axes_ : the axes drawn on, one for each bin; with "true_top" one more for the accuracy
    figure_ : the figure

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from calibrant.reports import BinHistory
    >>> sure = [0.55, 0.65, 0.75, 0.85, 0.95, 0.99]
    >>> right = [0, 1, 0, 1, 1, 1]
    >>> history = BinHistory.from_rows(
    ...     sure, right, true=sure, top=sure, train_right=right, n_bins=3)
    >>> display = ConfidenceMatchDisplay.from_history(history)
    >>> [line.get_ydata().round(2).tolist() for line in display.axes_[2].lines]
    [[0.97], [0.97]]

    References
    ----------
    Ghosh, Schaaf & Gormley (2022), AdaFocal, NeurIPS, section 4 and Figures 2, 8 and 9.
    """

    histories: Mapping[str, BinHistory]
    kind: Match = "common"
    bins: Sequence[int] | None = None
    axes_: Panels = field(init=False, repr=False)
    figure_: Figure = field(init=False, repr=False)

    @classmethod
    def from_history(
        cls,
        history: BinHistory,
        *,
        kind: Match = "common",
        bins: Sequence[int] | None = None,
        name: str = "",
        ax: Any = None,
    ) -> ConfidenceMatchDisplay:
        """Draw one run.

        Parameters
        ----------
        history : `BinTrace.history`
        kind : "common", "independent" or "true_top"
        bins : which bins to draw; the lowest, middle and highest by default
        name : of the run
        ax : see `plot`
        """
        return cls({name: history}, kind, bins).plot(ax)

    @classmethod
    def from_histories(
        cls,
        histories: Mapping[str, BinHistory],
        *,
        kind: Match = "common",
        bins: Sequence[int] | None = None,
        ax: Any = None,
    ) -> ConfidenceMatchDisplay:
        """Draw several runs in the same panels, by their names; see `from_history`."""
        return cls(histories, kind, bins).plot(ax)

    def plot(self, ax: Any = None) -> ConfidenceMatchDisplay:
        """Draw the lines.

        Parameters
        ----------
        ax : one axes for each panel; a new figure by default
        """
        if self.kind not in get_args(Match):
            raise InputError(
                f"kind must be one of {', '.join(map(repr, get_args(Match)))}, got {self.kind!r}."
            )
        check_histories(self.histories)
        pair = _PAIRS[self.kind]
        first = next(iter(self.histories.values()))
        filled = filled_bins(first.confidence)
        bins = choose_bins(first.n_bins, self.bins, filled)
        extra = self.kind == "true_top"
        axes = make_grid(ax, len(bins) + extra, size=(2.9, 2.2))
        for panel, b in zip(axes, bins, strict=False):
            self._draw_bin(panel, b, pair)
            name_axes(panel, x="epoch", y="mean probability", title=bin_title(b, filled))
        if extra:
            self._draw_accuracy(axes[-1])
        self.axes_ = axes
        names = list(self.histories)
        self.figure_ = finish_figure(
            axes, pair.how, own=ax is None, handles=self._handles(pair),
            name=names[0] if len(names) == 1 else None,
        )  # fmt: skip
        return self

    def _styles(self) -> list[tuple[dict[str, Any], dict[str, Any]]]:
        """Return the style of both lines of each run; one colour per run if there are several."""
        if len(self.histories) == 1:
            return [({"color": EVENT}, {"color": OTHER})]
        runs = [run_style(number, name) for number, name in enumerate(self.histories)]
        return [(style, style) for style in runs]

    def _draw_bin(self, ax: Axes, b: int, pair: _Pair) -> None:
        runs = zip(self.histories.values(), self._styles(), strict=True)
        for number, (history, (solid, starred)) in enumerate(runs):
            first, second = (getattr(history, name)[:, b] for name in (pair.solid, pair.starred))
            draw_line(ax, history.epoch, first, **{**solid, "linewidth": 2.2})
            every = max(1, len(history) // 10)
            stars = {**_STARS, "markevery": (number % every, every)}
            draw_line(ax, history.epoch, second, **{**starred, **stars})

    def _draw_accuracy(self, ax: Axes) -> None:
        for history, (style, _) in zip(self.histories.values(), self._styles(), strict=True):
            draw_line(ax, history.epoch, history.train_accuracy, **style)
        name_axes(ax, x="epoch", y="share of train rows", title="train rows predicted right")

    def _handles(self, pair: _Pair) -> list[Any]:
        """Return the legend handles: line, stars, and the colour of each run."""
        from matplotlib.lines import Line2D

        styles = self._styles()
        if len(styles) == 1:
            solid, starred = (style["color"] for style in styles[0])
            runs = []
        else:
            solid = starred = GREY
            runs = [Line2D([], [], linewidth=2.2, **style) for style, _ in styles]
        return [
            Line2D([], [], color=solid, linewidth=2.2, label=pair.solid_label),
            Line2D([], [], color=starred, label=pair.starred_label, **_STARS),
            *runs,
        ]
