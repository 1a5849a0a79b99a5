"""A linear layer with its encoder as the model of a bundle; runs without torch."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from calibrant.data.encoders.image_encoder import ImageEncoder
from calibrant.data.encoders.ngram_encoder import NgramEncoder
from calibrant.data.encoders.pixel_features import count_pixels, pixel_features
from calibrant.data.encoders.table_encoder import TableEncoder
from calibrant.data.explanation import Explanation, RowExplanation
from calibrant.data.model_inputs import as_inputs
from calibrant.data.redaction.redactor import redact_column
from calibrant.data.row_scorer import RowScorer, read_text_column
from calibrant.errors import InputError
from calibrant.files.tensors import read_tensors, write_tensors
from calibrant.inputs import FloatArray

WEIGHTS = "model.safetensors"
NGRAMS = "ngrams.json"
"""Names of its files."""

LinearEncoder = NgramEncoder | TableEncoder | ImageEncoder

_ROWS = 1024  # Rows of an array at a time, to limit memory


class LinearScorer(RowScorer):
    r"""A linear layer on the features of an encoder: the model of a bundle.

    $$ z = W^\top e(x) + b - s $$

    with e the encoder, W and b the layer and s the shift of the logits; see `RowScorer`. It needs
    NumPy and SciPy only. A text without a known n-gram cannot be scored: its logits are 0.

    Parameters
    ----------
    encoder : a fitted `NgramEncoder`, `TableEncoder` or `ImageEncoder`
    weights : (F, K) W
    bias : (K,) b
    shift : (K,) s, or None
    name : name of the model, such as "ngrams"
    redact, column, resize : see `RowScorer`
    classes : names of the classes in the order of the logits, or None

    Examples
    --------
    >>> encoder = NgramEncoder(characters=None).fit(["broken", "small"])
    >>> scorer = LinearScorer(encoder, np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([0.0, 0.5]))
    >>> scorer.predict_logits(["broken small", "lost"]).round(3).tolist()
    [[0.707, 1.207], [0.0, 0.0]]
    """

    def __init__(
        self,
        encoder: LinearEncoder,
        weights: Any,
        bias: Any,
        shift: Any = None,
        *,
        name: str = "ngrams",
        redact: bool = False,
        column: str | None = None,
        classes: Sequence[Any] | None = None,
        resize: bool = False,
    ) -> None:
        super().__init__(encoder, redact=redact, column=column, resize=resize)
        self.weights = np.ascontiguousarray(weights, dtype=np.float32)
        self.bias = np.ascontiguousarray(bias, dtype=np.float32)
        self.name = name
        n_features = _count_features(encoder)
        if self.weights.shape != (n_features, len(self.bias)) or len(self.bias) < 2:
            raise InputError(
                f"weights must have shape ({n_features}, classes) for this encoder, with one bias "
                f"for each class, got {self.weights.shape} and {self.bias.shape}."
            )
        self._set_classes(len(self.bias), shift, classes)

    @property
    def config(self) -> dict[str, Any]:
        """Name and size of the model."""
        return {
            "model": self.name, "n_features": len(self.weights), "n_classes": len(self.bias)
        }  # fmt: skip

    @property
    def size(self) -> str:
        """Its number of weights, in words."""
        return f"{self.weights.size + self.bias.size:,} weights"

    @property
    def note(self) -> str:
        """A sentence on the model for the model card."""
        what = {"text": "n-grams of the train texts", "table": "numbers of a row"}
        features = what.get(self.kind, "pixel values")
        return f"The model is linear: a weighted sum over {len(self.weights):,} {features}."

    def predict_logits(self, inputs: Any) -> FloatArray:
        """Return logits (n, K)."""
        rows = self._read(inputs)
        features = self._features(rows)
        logits: FloatArray = self._logits(features)
        if self.shift is not None:
            logits = logits - self.shift
        unknown = self._is_unknown(rows, features)
        if unknown is not None:
            logits[unknown] = 0.0
        return logits

    def compute_logits(self, rows: Any) -> NDArray[Any]:
        """Return the layer's own logits (n, K) of rows that were read and redacted."""
        return self._logits(self._features(rows))

    def is_unscorable(self, rows: Any) -> NDArray[np.bool_] | None:
        """Return which rows (n,) the model cannot score."""
        return self._is_unknown(rows, self._features(rows) if self.text else None)

    def trial(self) -> FloatArray:
        """Return the layer's own logits of a made-up row: every feature is 1 divided by F."""
        return np.asarray(self.weights.astype(np.float64).mean(axis=0)[None] + self.bias)

    @property
    def explains(self) -> bool:
        """Whether its features have names: those of images do not."""
        return not isinstance(self.encoder, ImageEncoder)

    def explain(self, inputs: Any) -> Explanation | None:
        """Return what each n-gram, or each column, contributes to the logits; None for images."""
        if isinstance(self.encoder, ImageEncoder):
            return None
        rows = self._read(inputs)
        base = self.bias.astype(np.float64)
        if self.shift is not None:
            base = base - self.shift
        if not isinstance(self.encoder, NgramEncoder):
            return self._explain_columns(rows, base)
        features = self.encoder.transform(rows)
        names = self._ngrams
        explained = []
        for start, end in zip(features.indptr[:-1], features.indptr[1:], strict=True):
            ids = features.indices[start:end]
            values = features.data[start:end, None].astype(np.float64) * self.weights[ids]
            explained.append(RowExplanation(tuple(names[ids].tolist()), values.T))
        return Explanation(base, tuple(explained))

    def save(self, folder: Path, prefix: str = "") -> dict[str, Any]:
        """Write weights and n-grams, with `prefix` before the names; return what `load` takes."""
        write_tensors(folder / f"{prefix}{WEIGHTS}", {"weight": self.weights, "bias": self.bias})
        encoder = self.encoder.to_dict()
        if "ngrams" in encoder:
            learned = json.dumps(encoder.pop("ngrams"), ensure_ascii=True)
            (folder / f"{prefix}{NGRAMS}").write_text(f"{learned}\n", encoding="utf-8")
        return {
            "kind": "linear", "encoder": encoder, "model": self.config, **self.describe_inputs()
        }  # fmt: skip

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
        arrays = read_tensors(folder / f"{prefix}{WEIGHTS}")
        if set(arrays) != {"weight", "bias"}:
            raise InputError(f"{WEIGHTS} is of another model: pack it again, or get a fresh copy.")
        return cls(
            _read_encoder(spec, folder, prefix),
            arrays["weight"],
            arrays["bias"],
            spec["log_shift"],
            name=spec["model"]["model"],
            redact=spec["redact"],
            column=read_text_column(spec),
            resize=spec.get("resize", False),
            classes=classes,
        )

    def _read(self, inputs: Any) -> Any:
        rows = as_inputs(inputs, self.encoder, self.column)
        return redact_column(rows) if self.redact else rows

    def _features(self, rows: Any) -> Any:
        encoder = self.encoder
        if isinstance(encoder, ImageEncoder):
            return pixel_features(encoder, rows)
        assert isinstance(encoder, NgramEncoder | TableEncoder)
        return encoder.transform(rows)

    def _logits(self, features: Any) -> FloatArray:
        """Return the logits row by row, so that they do not depend on the other rows."""
        from scipy.sparse import csr_matrix

        if isinstance(features, np.ndarray):
            blocks = [features[i : i + _ROWS] for i in range(0, len(features), _ROWS)]
            products = np.concatenate([csr_matrix(block) @ self.weights for block in blocks])
        else:
            products = features @ self.weights
        return np.asarray(products, dtype=np.float64) + self.bias

    def _is_unknown(self, rows: Any, features: Any) -> NDArray[np.bool_] | None:
        encoder = self.encoder
        if isinstance(encoder, NgramEncoder):
            return encoder.is_unknown(features)
        return encoder.is_far(rows) if isinstance(encoder, TableEncoder) else None

    @cached_property
    def _ngrams(self) -> NDArray[Any]:
        """The n-grams, listed once: a vocabulary may have 100,000."""
        assert isinstance(self.encoder, NgramEncoder)
        return self.encoder.get_feature_names_out()

    def _explain_columns(self, rows: Any, base: FloatArray) -> Explanation:
        """Sum the contributions of the features of each column."""
        encoder = self.encoder
        assert isinstance(encoder, TableEncoder)
        values = encoder.transform(rows).astype(np.float64)[:, :, None] * self.weights
        widths = [len(column.features) for column in encoder.columns_]
        starts = np.cumsum([0, *widths[:-1]])
        summed = np.add.reduceat(values, starts, axis=1)
        names = [column.name for column in encoder.columns_]
        return Explanation.from_array(names, summed.transpose(0, 2, 1), base=base)


def _count_features(encoder: LinearEncoder) -> int:
    if isinstance(encoder, NgramEncoder):
        return encoder.n_features
    if isinstance(encoder, ImageEncoder):
        return count_pixels(encoder)
    return len(encoder.get_feature_names_out())


def _read_encoder(spec: Mapping[str, Any], folder: Path, prefix: str) -> LinearEncoder:
    if spec["input"] == "table":
        return TableEncoder.from_dict(spec["encoder"])
    if spec["input"] == "image":
        return ImageEncoder.from_dict(spec["encoder"])
    if spec["input"] != "text":
        raise InputError(
            f"a linear model must read 'text', 'table' or 'image', got {spec['input']!r}."
        )
    try:
        learned = json.loads((folder / f"{prefix}{NGRAMS}").read_text(encoding="utf-8"))
        return NgramEncoder.from_dict({**spec["encoder"], "ngrams": learned})
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(
            f"{NGRAMS} is damaged ({error}): pack it again, or get a fresh copy."
        ) from error
