"""A linear model of n-grams as a scikit-learn classifier."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from calibrant.data.encoders.ngram_encoder import NgramEncoder
from calibrant.data.encoders.text_encoder import as_texts
from calibrant.data.explanation import Explanation
from calibrant.data.resampling import Resampling
from calibrant.losses.names import LossLike
from calibrant.training.linear_estimator import LinearEstimator
from calibrant.training.linear_path import PENALTIES

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix
    from sklearn.utils import Tags


class NgramClassifier(LinearEstimator):
    r"""A linear model of words, pairs of words and short runs of characters, under any loss.

    $$ z = W^\top x + b $$

    with x the TF-IDF weights of the n-grams of a text, see `NgramEncoder`. W has an L2 penalty,
    whose strength is chosen on the steer rows; see `fit_linear_path`. It needs seconds where a
    network needs minutes, and is often the better model of topics with few train texts. It does
    not know word order beyond pairs.

    `fit` takes a list or a column of texts and splits off steer rows first; the vocabulary is that
    of the train texts. A text without a known n-gram gets equal probabilities for all classes.

    Its probabilities are not calibrated: the steer rows are used up, so pass the fitted
    classifier and other rows to `CalibratedModel`.

    Parameters
    ----------
    words, characters, vocabulary, min_count : see `NgramEncoder`
    loss : a name like "adafocal", "focal:gamma=3" or "0.5*ce + 0.5*soft_f1", a function of
        (logits, labels) or a Module, which is copied
    C : inverse strengths of the penalty to try, see `fit_linear`
    steer_share : share of the rows of every class that is split off as steer rows, if
        `fit` is given none
    resample : how to make the classes of the train rows equally frequent: "over" repeats rows of
        the smaller ones, "under" drops rows of the larger ones; None for no resampling. The
        vocabulary is built before, and steer rows are not resampled. See `resample_rows`
    correct_prior : whether to remove the shift of the logits caused by the loss (class weights,
        balanced softmax) and `resample`, so that probabilities match the class frequencies of the
        train rows
    seed : seed of the split and of `resample`

    Attributes
    ----------
    classes_ : the classes in the order of the columns of `predict_proba`
    encoder_ : the fitted `NgramEncoder`
    layer_ : the `LinearLayer` of the best record
    C_ : its inverse strength of the penalty
    n_weights_ : number of its weights
    loss_ : the trained loss, with state such as AdaFocal's gammas
    records_ : one `PathRecord` for each strength, or for each update of a steered loss at it
    best_epoch_ : position of the best record
    steer_places_ : positions of the rows that were split off for steering
    log_shift_ : (K,) shift that `predict_logits` subtracts from the logits of `layer_`, or None

    Examples
    --------
    >>> from calibrant import NgramClassifier
    >>> texts = ["it came broken", "broken on arrival", "too small for me", "a size too small"] * 10
    >>> why = ["defect", "defect", "size", "size"] * 10
    >>> model = NgramClassifier().fit(texts, why)
    >>> model.predict(["broken", "small size"]).tolist()
    ['defect', 'size']
    >>> model.explain(["broken"]).rows[0].strongest(0, most=1)[0][0]
    'broken'

    References
    ----------
    Wang and Manning (2012), Baselines and bigrams: simple, good sentiment and topic
    classification.
    """

    def __init__(
        self,
        *,
        words: tuple[int, int] | None = (1, 2),
        characters: tuple[int, int] | None = (1, 4),
        vocabulary: int = 200_000,
        min_count: int = 1,
        loss: LossLike = "ce",
        C: float | Sequence[float] = PENALTIES,  # noqa: N803  # as scikit-learn calls it
        steer_share: float = 0.1,
        resample: Resampling | None = None,
        correct_prior: bool = True,
        seed: int = 0,
    ) -> None:
        self.words = words
        self.characters = characters
        self.vocabulary = vocabulary
        self.min_count = min_count
        self.loss = loss
        self.C = C
        self.steer_share = steer_share
        self.resample = resample
        self.correct_prior = correct_prior
        self.seed = seed

    def explain(self, X: Any) -> Explanation:  # noqa: N803
        """Return what each n-gram contributes to the logits of each text."""
        self._check_fitted()
        explanation = self.to_scorer().explain(self._read_input(X, "X", self.encoder_))
        assert explanation is not None
        return explanation

    @property
    def _name(self) -> str:
        return "ngrams"

    def _new_encoder(self) -> NgramEncoder:
        return NgramEncoder(
            words=self.words,
            characters=self.characters,
            vocabulary=self.vocabulary,
            min_count=self.min_count,
        )

    def _read_input(self, X: Any, name: str, encoder: NgramEncoder) -> list[str]:  # noqa: N803
        return as_texts(X, name=name)

    def _fit_encoder(self, encoder: NgramEncoder, rows: list[str]) -> csr_matrix:
        return encoder.fit_transform(rows)

    def _encode_rows(self, encoder: NgramEncoder, rows: list[str]) -> csr_matrix:
        return encoder.transform(rows)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.one_d_array = True
        tags.input_tags.two_d_array = False
        tags.input_tags.string = True
        return tags
