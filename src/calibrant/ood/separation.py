"""How well a score tells rows out of scope from rows in scope."""

from __future__ import annotations

import html
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from calibrant.errors import InputError
from calibrant.inputs import FloatArray, as_logits
from calibrant.ood.rule import upper_quantile

__all__ = ["Separation", "separation"]

_KEPT = 0.95
"""Share of rows in scope that FPR95 lets through."""


@dataclass(frozen=True)
class Separation:
    """How well a score tells both kinds of rows apart; `separation` makes one.

    Parameters
    ----------
    auroc : chance that a row out of scope scores higher than one in scope, ties half
    fpr95 : share of rows out of scope let through where 95 % of rows in scope are
    n_inside, n_outside : number of rows of each kind
    """

    auroc: float
    fpr95: float
    n_inside: int
    n_outside: int

    def to_dict(self) -> dict[str, Any]:
        """Return the stable JSON shape: keys may be added, never renamed."""
        return asdict(self)

    def __str__(self) -> str:
        return (
            f"AUROC {self.auroc:.4f}, FPR95 {self.fpr95:.4f} ({self.n_inside:,} rows in scope, "
            f"{self.n_outside:,} out of scope)."
        )

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"


def separation(inside: Any, outside: Any) -> Separation:
    r"""Compare the scores of rows in scope with those of rows out of scope.

    .. math:: \mathrm{AUROC} = P(S_o > S_i) + \tfrac12 P(S_o = S_i), \qquad
              \mathrm{FPR95} = P(S_o \le t)

    S_i is the score of a row in scope, S_o of one out of scope, and t the threshold of `OodRule` at
    0.95: the smallest score of a row in scope that at most 5 % of them exceed. A row is let through
    where its score is at most t. AUROC is 1/2 for a score that tells nothing, and then FPR95 is
    0.95. Both see only the order of the scores.

    FPR95 is taken as in most papers since ODIN: rows in scope are the positives, 95 % of them pass,
    and the false positives are rows out of scope that pass with them. Some papers (Hendrycks et
    al. 2019) turn it round: 95 % of the rows out of scope are caught, and the false positives are
    rows in scope caught with them. The two figures differ; this is the first.

    It is not a figure about the wide world: it holds for rows out of scope like those given.

    Parameters
    ----------
    inside : (n,) scores of rows in scope, higher for rows less like the train rows
    outside : (m,) scores of rows out of scope

    Examples
    --------
    Three of four pairs are in order and one ties. The threshold is 2, which lets 2 through:

    >>> separation([1.0, 2.0], [2.0, 3.0])
    Separation(auroc=0.875, fpr95=0.5, n_inside=2, n_outside=2)

    References
    ----------
    Liang, Li & Srikant, Enhancing the reliability of out-of-distribution image detection in neural
    networks (ODIN), ICLR 2018, section 4.3.
    """
    within, beyond = np.sort(_scores(inside, "inside")), _scores(outside, "outside")
    below = np.searchsorted(within, beyond, side="left")
    not_above = np.searchsorted(within, beyond, side="right")
    auroc = int((below + not_above).sum()) / (2 * len(within) * len(beyond))
    passed = int(np.count_nonzero(beyond <= upper_quantile(within, _KEPT)))
    return Separation(auroc, passed / len(beyond), len(within), len(beyond))


def _scores(values: Any, name: str) -> FloatArray:
    array = as_logits(values, name=name)  # the same checks: finite numbers, at least one
    if array.ndim != 1:
        raise InputError(
            f"{name} must have shape (n,), got {array.shape}: give one score for each row, "
            "such as energy(logits)."
        )
    return array.astype(np.float64, copy=False)
