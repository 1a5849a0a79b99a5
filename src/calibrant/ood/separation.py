"""Separation of rows in scope and out of scope by a score."""

from __future__ import annotations

import html
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from calibrant.errors import InputError
from calibrant.inputs import FloatArray, as_logits
from calibrant.ood.rule import upper_quantile

_PASS_RATE = 0.95  # Share of rows in scope that pass at FPR95


@dataclass(frozen=True)
class Separation:
    """Result of `separation`.

    Parameters
    ----------
    auroc : probability that a row out of scope scores higher than one in scope, ties half
    fpr95 : share of rows out of scope that pass when 95 % of rows in scope pass
    n_inside, n_outside : number of rows of each kind
    """

    auroc: float
    fpr95: float
    n_inside: int
    n_outside: int

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values; keys may be added, never renamed."""
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
    0.95: the smallest score of a row in scope that at most 5 % of them exceed. A row passes if
    its score is at most t. For an uninformative score AUROC is 1/2 and FPR95 is 0.95. Both depend
    only on the order of the scores.

    FPR95 is taken as in most papers since ODIN: rows in scope are the positives, 95 % of them pass,
    and the false positives are rows out of scope that pass with them. Some papers (Hendrycks et
    al. 2019) use the reverse: 95 % of the rows out of scope are flagged, and the false positives
    are rows in scope flagged with them. The two figures differ; this is the first.

    It holds only for rows out of scope like those passed.

    Parameters
    ----------
    inside : (n,) scores of rows in scope, higher for rows less like the train rows
    outside : (m,) scores of rows out of scope

    Examples
    --------
    Three of four pairs are in order and one ties. The threshold is 2, at which a score of 2 passes:

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
    passed = int(np.count_nonzero(beyond <= upper_quantile(within, _PASS_RATE)))
    return Separation(auroc, passed / len(beyond), len(within), len(beyond))


def _scores(values: Any, name: str) -> FloatArray:
    array = as_logits(values, name=name)  # the same checks: finite numbers, at least one
    if array.ndim != 1:
        raise InputError(
            f"{name} must have shape (n,), got {array.shape}: pass one score per row, "
            "such as energy(logits)."
        )
    return array.astype(np.float64, copy=False)
