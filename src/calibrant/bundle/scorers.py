"""Models of a bundle by kind: a network, a linear layer, boosted trees, or an ensemble of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.convert import log_probs_from_logits
from calibrant.data.linear_scorer import LinearScorer
from calibrant.data.row_scorer import RowScorer
from calibrant.errors import InputError, MissingExtra
from calibrant.inputs import FloatArray

_SUM = 1e-9  # Largest distance of the sum of weights from 1


def load_scorer(
    spec: Mapping[str, Any],
    folder: Path,
    *,
    classes: Sequence[Any] | None = None,
    device: str = "auto",
    prefix: str = "",
) -> RowScorer:
    """Load a model from what its `save` returned and wrote; runs no code from the folder.

    Parameters
    ----------
    spec : the saved record; "kind" is "torch", "linear", "boosting" or "ensemble"
    folder : folder with its files
    classes : class names in the order of the logits
    device : device of networks: "cpu", "cuda", "cuda:1", or "auto" for a GPU if available
    prefix : prefix of the names of its files
    """
    kind = spec["kind"]
    if kind == "linear":
        return LinearScorer.load(spec, folder, classes=classes, prefix=prefix)
    if kind == "ensemble":
        members = [
            load_scorer(
                member, folder, classes=classes, device=device, prefix=member_prefix(prefix, i)
            )
            for i, member in enumerate(spec["members"])
        ]
        return EnsembleScorer(members, spec["weights"], spec.get("temperatures"))
    if kind == "boosting":
        from calibrant.boosting.scorer import BoostingScorer

        return BoostingScorer.load(spec, folder, classes=classes, prefix=prefix)
    try:
        from calibrant.models.saved_parts import device_named
        from calibrant.models.scorer import Scorer
    except ImportError:
        raise MissingExtra("a bundle with a network", "torch") from None
    device_named(device)
    return Scorer.load(spec, folder, classes=classes, device=device, prefix=prefix)


def list_files(spec: Mapping[str, Any], prefix: str = "") -> list[str]:
    """Return the names of the files that a model needs."""
    if spec["kind"] == "ensemble":
        members = enumerate(spec["members"])
        return [name for i, each in members for name in list_files(each, member_prefix(prefix, i))]
    if spec["kind"] == "boosting":
        return [f"{prefix}model.txt"]
    words = "ngrams.json" if spec["kind"] == "linear" else "tokenizer.json"
    names = ["model.safetensors", *([words] if spec["input"] == "text" else [])]
    return [f"{prefix}{name}" for name in names]


def member_prefix(prefix: str, position: int) -> str:
    """Return the prefix of the files of a member of an ensemble."""
    return f"{prefix}member-{position}-"


def mix_logits(
    member_logits: Sequence[FloatArray],
    weights: Sequence[float],
    temperatures: Sequence[float] | None = None,
) -> FloatArray:
    r"""Return the logits (n, K) of a weighted average of probabilities.

    $$ z = \log \sum_m w_m \operatorname{softmax}(z_m / T_m) $$

    A row that a member with a weight leaves unscored (equal logits) gets 0 for every class, so that
    an out-of-scope rule recognises it: members differ in what they can read, and the weights hold
    for rows that all of them read.

    Parameters
    ----------
    member_logits : (n, K) logits of each member
    weights : one for each member, at least 0, with sum 1
    temperatures : one for each member, above 0; None for 1
    """
    scales = [1.0] * len(member_logits) if temperatures is None else temperatures
    pairs = zip(member_logits, scales, strict=True)
    log_probs = np.stack([log_probs_from_logits(logits / scale) for logits, scale in pairs])
    log_weights = np.log(np.maximum(np.asarray(weights, dtype=np.float64), 1e-300))
    mixed = np.asarray(np.logaddexp.reduce(log_probs + log_weights[:, None, None], axis=0))
    for logits, weight in zip(member_logits, weights, strict=True):
        if weight > 0:
            mixed[(logits == logits[:, :1]).all(axis=1)] = 0.0
    return mixed


class EnsembleScorer(RowScorer):
    r"""A weighted average of the probabilities of several models, which may be of different kinds.

    $$ z = \log \sum_m w_m \operatorname{softmax}(z_m / T_m) $$

    with z_m the logits of member m, w_m its weight and T_m its temperature. Members read the same
    rows, each with its own encoder; a member's shift is subtracted before its probabilities are
    averaged. A row that any member with a weight cannot score has z = 0 for every class. It is not
    the ensemble of equal networks with one encoder, which `Scorer.ensemble` runs as one network.
    Its logits are not a weighted mean of the members' logits, so contributions of the members do
    not add up to them, and it explains nothing.

    Parameters
    ----------
    members : at least two scorers of the same kind, classes and columns
    weights : one for each member, at least 0, with sum 1
    temperatures : one for each member, above 0; None for 1
    """

    def __init__(
        self,
        members: Sequence[RowScorer],
        weights: Sequence[float],
        temperatures: Sequence[float] | None = None,
    ) -> None:
        first = _check_members(members)
        super().__init__(
            first.encoder, redact=first.redact, column=first.column, resize=first.resize
        )
        self.members, self.weights = tuple(members), _check_weights(weights, len(members))
        self.temperatures = _check_temperatures(temperatures, len(members))
        self._set_classes(first.n_classes, None, first.classes)

    @property
    def config(self) -> dict[str, Any]:
        """The members' configs and their weights."""
        members = [member.config for member in self.members]
        return {"model": "ensemble", "members": members, **self._mixture()}

    def _mixture(self) -> dict[str, Any]:
        return {"weights": list(self.weights), "temperatures": list(self.temperatures)}

    @property
    def networks(self) -> tuple[str, ...]:
        """Names of the members' models."""
        return tuple(name for member in self.members for name in member.networks)

    @property
    def size(self) -> str:
        """Sizes of the members."""
        return " and ".join(member.size for member in self.members)

    @property
    def packages(self) -> tuple[str, ...]:
        """Packages that run the members."""
        names = (name for member in self.members for name in member.packages)
        return tuple(dict.fromkeys(names))

    @property
    def is_deep(self) -> bool:
        """Whether one batch keeps all cores busy."""
        return any(member.is_deep for member in self.members)

    @property
    def device_type(self) -> str:
        """Where its networks run."""
        types = {member.device_type for member in self.members}
        return "cuda" if "cuda" in types else "cpu"

    def predict_logits(self, inputs: Any) -> FloatArray:
        """Return logits (n, K)."""
        logits = [each.predict_logits(inputs) for each in self.members]
        return mix_logits(logits, self.weights, self.temperatures)

    def compute_logits(self, rows: Any) -> NDArray[Any]:
        """Return logits (n, K); the members read and redact the rows again."""
        return self.predict_logits(rows)

    def is_unscorable(self, rows: Any) -> NDArray[np.bool_]:
        """Return which rows (n,) a member with a weight cannot score."""
        logits = self.predict_logits(rows)
        return np.asarray((logits == logits[:, :1]).all(axis=1))

    def trial(self) -> FloatArray:
        """Return the logits of a made-up row."""
        logits = [each.trial() for each in self.members]
        return mix_logits(logits, self.weights, self.temperatures)

    def save(self, folder: Path, prefix: str = "") -> dict[str, Any]:
        """Write the files of all members; return what `load_scorer` takes."""
        members = [
            each.save(folder, member_prefix(prefix, i)) for i, each in enumerate(self.members)
        ]
        return {
            "kind": "ensemble",
            "members": members,
            **self._mixture(),
            **self.describe_inputs(),
        }


def _check_members(members: Sequence[RowScorer]) -> RowScorer:
    if len(members) < 2:
        raise InputError(f"an ensemble needs at least two models, got {len(members)}.")
    first = members[0]
    for i, other in enumerate(members[1:], start=1):
        for name in ("kind", "classes", "n_classes", "columns", "redact", "resize"):
            mine, theirs = getattr(first, name), getattr(other, name)
            if mine != theirs:
                raise InputError(
                    f"models of an ensemble must have the same {name}, got {mine!r} and, of model "
                    f"{i}, {theirs!r}."
                )
    return first


def _check_temperatures(temperatures: Sequence[float] | None, n: int) -> tuple[float, ...]:
    values = (1.0,) * n if temperatures is None else tuple(float(each) for each in temperatures)
    if len(values) != n or not all(0.0 < each < np.inf for each in values):
        raise InputError(f"temperatures must be {n} finite numbers above 0, got {temperatures!r}.")
    return values


def _check_weights(weights: Sequence[float], n: int) -> tuple[float, ...]:
    values = tuple(float(weight) for weight in weights)
    total = sum(values)
    if len(values) != n or min(values, default=-1.0) < 0.0 or not abs(total - 1.0) < _SUM:
        raise InputError(
            f"weights must be {n} numbers of at least 0 with sum 1, got {list(weights)!r}."
        )
    return values
