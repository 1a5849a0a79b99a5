r"""Generative model of the corpus, with exact posteriors.

A reason y is drawn from a prior, then the facts z from :math:`p(z \mid y)`, one after the other:
product, brand, complaint (given the product group), denial (never of the complaint itself), time
in use, request and mood. The text is rendered from z and from randomness independent of y. So
Bayes' rule gives the posterior exactly,

.. math:: P(y \mid text) = P(y \mid z) \propto \pi_y \prod_j p(z_j \mid z_{<j}, y)

and a different prior changes only :math:`\pi_y`.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cache
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from calibrant.convert import probs_from_logits
from calibrant.data.reasons import REASONS
from calibrant.data.return_reasons.lexicon import GROUPS, claims, clauses, products, words

__all__ = ["ACTIONS", "NOISE", "PRIORS", "REASONS", "Facts", "Slot", "draw_facts", "posterior"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


def _read_only(values: list[float] | list[list[float]]) -> FloatArray:
    array = np.array(values, dtype=np.float64)
    array.flags.writeable = False
    return array


PRIORS = MappingProxyType(
    {
        "logs": _read_only([0.15, 0.05, 0.10, 0.24, 0.46]),
        "golden": _read_only([0.30, 0.07, 0.13, 0.16, 0.34]),
    }
)
"""Prior of the true reasons, in the logs and in the golden set (messages in production).

The return-reason paper shows its shares in a figure without numbers. These are our own: a long
tail headed by OTHERS.
"""

NOISE = _read_only(
    [
        [0.915, 0.005, 0.025, 0.010, 0.045],
        [0.020, 0.910, 0.005, 0.010, 0.055],
        [0.035, 0.005, 0.885, 0.035, 0.040],
        [0.005, 0.005, 0.015, 0.940, 0.035],
        [0.005, 0.005, 0.005, 0.025, 0.960],
    ]
)
"""P(logged label | true reason), rows are true reasons; hurried clerks choose "others"."""

ACTIONS = MappingProxyType(
    {
        "item_defective": "replacement",
        "missing_parts": "send the missing part",
        "quality_not_adequate": "refund",
        "customer_preference": "return label and refund",
        "others": "hand over to a person",
    }
)
"""Action of the shop for each reason."""

_KINDS = ("defect", "missing", "quality", "liking", "service", "open", "gone")
_USES = {
    "any": ("none", "sealed", "looked", "days", "weeks", "long"),
    "opened": ("none", "looked", "days", "weeks", "long"),
    "used": ("none", "days", "weeks", "long"),
    "unused": ("none", "sealed", "looked"),
    "none": ("none",),
}
"""Possible statements about the use of a product, given the complaint."""

_NO_BRAND = 0.55
_SPREAD = 0.30
"""Standard deviation of the log-odds of a reason across products or brands."""


@dataclass(frozen=True)
class Slot:
    """Distribution of a fact: `chances` (conditions, reasons, values) sum to 1 over values."""

    chances: FloatArray

    def draw(self, condition: IntArray, reason: IntArray, uniform: FloatArray) -> IntArray:
        """Sample a value for each row by inverting the distribution function."""
        _, n_reasons, n_values = self.chances.shape
        row = condition * n_reasons + reason
        # Concatenate the rows, each offset by its index, so that one search serves all.
        steps = np.cumsum(self.chances, axis=2).reshape(-1, n_values)
        flat = (steps + np.arange(len(steps))[:, None]).ravel()
        place = np.searchsorted(flat, row + uniform, side="right") - row * n_values
        # Rounding of the sums must not select a value of probability 0 at the end of a row.
        last = n_values - 1 - (self.chances.reshape(-1, n_values)[:, ::-1] > 0).argmax(axis=1)
        return np.asarray(np.minimum(place, last[row]))

    def log_likelihood(self, condition: IntArray, value: IntArray) -> FloatArray:
        """Return log p(value | given, reason) of each row and reason."""
        return np.asarray(np.log(self.chances[condition, :, value]))


@dataclass(frozen=True)
class Facts:
    """Facts of n messages, as positions."""

    product: IntArray
    brand: IntArray
    claim: IntArray
    denial: IntArray
    use: IntArray
    request: IntArray
    feeling: IntArray


N_FACTS = len(fields(Facts))


def draw_facts(reason: IntArray, uniform: FloatArray) -> Facts:
    """Sample the facts of each message given its reason; `uniform` has a row per fact."""
    drawn: dict[str, IntArray] = {}
    for row, (name, slot) in zip(uniform, _slots().items(), strict=True):
        drawn[name] = slot.draw(_condition(name, drawn, len(reason)), reason, row)
    return Facts(**drawn)


def posterior(facts: Facts, prior: FloatArray) -> FloatArray:
    """Return P(reason | facts) under a prior."""
    values = {field.name: getattr(facts, field.name) for field in fields(facts)}
    score = np.tile(np.log(prior), (len(facts.product), 1))
    for name, slot in _slots().items():
        score += slot.log_likelihood(_condition(name, values, len(score)), values[name])
    return probs_from_logits(score)


def _condition(name: str, values: dict[str, IntArray], n: int) -> IntArray:
    """Return the condition of a fact, besides the reason."""
    if name == "claim":
        return np.array([product.group for product in products()])[values["product"]]
    if name == "denial":
        return np.array([_KINDS.index(claim.kind) for claim in claims()])[values["claim"]]
    if name == "use":
        return np.array([list(_USES).index(claim.use) for claim in claims()])[values["claim"]]
    return np.zeros(n, dtype=np.int64)


@cache
def _slots() -> dict[str, Slot]:
    """Return the slots in sampling order."""
    # Fixed seed: which product breaks more often is part of the model, not of a sample.
    rng = np.random.default_rng(20_220)
    return {
        "product": _product_slot(rng),
        "brand": _brand_slot(rng),
        "claim": _claim_slot(),
        "denial": _denial_slot(),
        "use": _use_slot(),
        "request": Slot(_odds("requests")[None]),
        "feeling": Slot(_odds("feelings")[None]),
    }


def _product_slot(rng: np.random.Generator) -> Slot:
    category = np.array([product.category for product in products()])
    share = 1.0 / (5.0 + rng.permutation(len(category)))
    tilt = _SPREAD * rng.standard_normal((len(REASONS), category.max() + 1))[:, category]
    tilt += _SPREAD * rng.standard_normal((len(REASONS), len(category)))
    return Slot(_normalise(share * np.exp(tilt))[None])


def _brand_slot(rng: np.random.Generator) -> Slot:
    n = len(words()["brands"])
    share = 1.0 / (5.0 + rng.permutation(n))
    tilt = _SPREAD * rng.standard_normal((len(REASONS), n))
    named = (1.0 - _NO_BRAND) * _normalise(share * np.exp(tilt))
    none = np.full((len(REASONS), 1), _NO_BRAND)
    return Slot(np.hstack([none, named])[None])


def _claim_slot() -> Slot:
    lean = np.array([claim.lean for claim in claims()]).T
    share = np.array([claim.share for claim in claims()])
    available = np.array(
        [[bool(claim.phrases[g]) for claim in claims()] for g in range(len(GROUPS))]
    )
    return Slot(_normalise(available[:, None, :] * share * lean))


def _denial_slot() -> Slot:
    # The complaint itself is never denied, nor is a product praised that did not arrive.
    allowed = np.array(
        [
            [denied == "none" or kind not in (denied, "gone") for denied in clauses()["denials"]]
            for kind in _KINDS
        ]
    )
    return Slot(_normalise(allowed[:, None, :] * _odds("denials")))


def _use_slot() -> Slot:
    allowed = np.array(
        [[v in allowed_uses for v in clauses()["uses"]] for allowed_uses in _USES.values()]
    )
    return Slot(_normalise(allowed[:, None, :] * _odds("uses")))


def _odds(slot: str) -> FloatArray:
    """Return the (reasons, values) probabilities of a clause slot."""
    return _normalise(np.array([value["odds"] for value in clauses()[slot].values()]).T)


def _normalise(weights: NDArray[np.floating]) -> FloatArray:
    return np.asarray(weights / weights.sum(axis=-1, keepdims=True), dtype=np.float64)
