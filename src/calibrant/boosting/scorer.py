"""The model of a bundle: boosted trees with their encoder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from calibrant.boosting.features import tree_feature_names, tree_features, unreadable_rows
from calibrant.boosting.trees import Trees
from calibrant.data.encoders.table_encoder import TableEncoder
from calibrant.data.explanation import Explanation
from calibrant.data.row_scorer import RowScorer
from calibrant.errors import InputError
from calibrant.formatting import format_count
from calibrant.inputs import FloatArray

MODEL = "model.txt"


class BoostingScorer(RowScorer):
    """Boosted trees with their encoder: the model of a bundle; see `RowScorer`.

    A row with a number far outside the train rows, or with a category that they lack, gets equal
    logits: trees would score it like the farthest known number, or like a missing category.

    Parameters
    ----------
    encoder : a fitted `TableEncoder`
    trees : the trees
    shift : (K,) subtracted from the logits, or None
    objective : name and options of the loss that the trees were grown with
    classes : names of the classes in the order of the logits; None where they are not known

    Examples
    --------
    >>> from calibrant import BoostingClassifier
    >>> table = {"weight": [float(i) for i in range(100)]}
    >>> model = BoostingClassifier().fit(table, ["light"] * 50 + ["heavy"] * 50)
    >>> model.to_scorer().predict_logits({"weight": [3.0, 90.0]}).argmax(axis=1)
    array([1, 0])
    """

    def __init__(
        self,
        encoder: TableEncoder,
        trees: Trees,
        shift: Any = None,
        *,
        objective: Mapping[str, Any],
        classes: Sequence[Any] | None = None,
    ) -> None:
        super().__init__(encoder)
        if not isinstance(encoder, TableEncoder):
            raise InputError(f"boosted trees read tables, but the encoder is of a {self.kind}.")
        names = tree_feature_names(encoder)
        if trees.n_features not in (None, len(names)):
            raise InputError(
                f"the trees read {trees.n_features} columns, but the encoder gives {len(names)}."
            )
        self.trees, self.objective = trees, dict(objective)
        self._set_classes(len(trees.start), shift, classes)

    @property
    def config(self) -> dict[str, Any]:
        """Objective and number of rounds; "model" is "boosting"."""
        return {"model": "boosting", "objective": self.objective, "rounds": self.trees.n_rounds}

    @property
    def size(self) -> str:
        """Its number of leaves, in words."""
        return f"{self.trees.n_leaves:,} leaves"

    @property
    def note(self) -> str:
        """A sentence on the rounds and the loss."""
        rounds = format_count(self.trees.n_rounds, "round")
        return f"Its trees were boosted in {rounds} with the loss `{self.objective['name']}`."

    @property
    def packages(self) -> tuple[str, ...]:
        """Packages that run the trees."""
        return ("lightgbm",)

    def compute_logits(self, rows: Any) -> NDArray[Any]:
        """Return the trees' own logits (n, K)."""
        return self.trees.predict(tree_features(self._table_encoder, rows))

    def is_unscorable(self, rows: Any) -> NDArray[np.bool_]:
        """Return which rows (n,) have a number far from the train rows, or a new category."""
        return unreadable_rows(self._table_encoder, rows)

    @property
    def explains(self) -> bool:
        """Whether `explain` can tell what the columns of a row contribute: always."""
        return True

    def explain(self, inputs: Any) -> Explanation:
        """Return what each column contributes to the logits of each row, by TreeSHAP.

        A contribution is the mean change of the logit when the column is made known, over all
        orders of the columns. Columns that tell the same share their contribution. A row that gets
        equal logits is explained as the trees would have scored it.
        """
        features = tree_features(self._table_encoder, inputs)
        values, base = self.trees.contributions(features)
        names = tree_feature_names(self._table_encoder)
        base = base if self.shift is None else base - self.shift
        return Explanation.from_array(names, values, base=base)

    def trial(self) -> FloatArray:
        """Return the trees' own logits of one made-up row."""
        return self.trees.predict(np.zeros((1, len(tree_feature_names(self._table_encoder)))))

    def save(self, folder: Path, prefix: str = "") -> dict[str, Any]:
        """Write `model.txt`; return what `load` takes."""
        (folder / f"{prefix}{MODEL}").write_bytes(self.trees.text.encode())
        return {
            "kind": "boosting",
            "encoder": self._table_encoder.to_dict(),
            "model": self.config,
            "start": self.trees.start.tolist(),
            **self.describe_inputs(),
        }

    @classmethod
    def load(
        cls,
        spec: Mapping[str, Any],
        folder: Path,
        *,
        classes: Sequence[Any] | None = None,
        prefix: str = "",
    ) -> Self:
        """Rebuild from what `save` returned and wrote; runs no code of the folder."""
        if spec["input"] != "table":
            raise InputError(f"boosted trees read tables, but the model reads {spec['input']!r}.")
        text = (folder / f"{prefix}{MODEL}").read_bytes().decode("utf-8", errors="replace")
        return cls(
            TableEncoder.from_dict(spec["encoder"]),
            Trees.read(text, spec["start"]),
            spec["log_shift"],
            objective=spec["model"]["objective"],
            classes=classes,
        )

    @property
    def _table_encoder(self) -> TableEncoder:
        assert isinstance(self.encoder, TableEncoder)
        return self.encoder
