"""Linear models of tables and of images as scikit-learn classifiers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from calibrant.data.encoders.image_encoder import ImageEncoder, as_images
from calibrant.data.encoders.pixel_features import pixel_features
from calibrant.data.encoders.table_columns import Table
from calibrant.data.encoders.table_encoder import TableEncoder
from calibrant.data.explanation import Explanation
from calibrant.data.resampling import Resampling
from calibrant.fitting.table_input import TableInput
from calibrant.losses.names import LossLike
from calibrant.training.linear_estimator import LinearEstimator

if TYPE_CHECKING:
    from sklearn.utils import Tags

_TABLE_PENALTIES = (0.001, 0.01, 0.1, 1.0, 10.0, 100.0)
_PIXEL_PENALTIES = (1e-5, 1e-4, 1e-3, 1e-2, 1e-1)


class LinearClassifier(LinearEstimator, TableInput):
    r"""A linear model of a table, with its `TableEncoder`, under any loss.

    $$ z = W^\top x + b $$

    with x the standardised numbers and the categories of a row. With cross-entropy it is logistic
    regression; the strength of its L2 penalty is chosen on the steer rows, see `fit_linear_path`.
    It does not know interactions of columns.

    `fit` takes tables of any kind (see `TableEncoder`) and splits off steer rows first. A column
    that separates the classes without error gives a warning about target leakage. A row with a
    number far outside the range of the train rows gets equal probabilities for all classes.

    Its probabilities are not calibrated: the steer rows are used up, so pass the fitted
    classifier and other rows to `CalibratedModel`.

    Parameters
    ----------
    clean, categories, drop, max_categories, fold_case, decimal, missing, dates : see `TableEncoder`
    loss, C, steer_share, resample, correct_prior, seed : see `NgramClassifier`

    Attributes
    ----------
    classes_, layer_, C_, n_weights_, loss_, records_, best_epoch_, steer_places_, log_shift_ :
        see `NgramClassifier`
    encoder_ : the fitted `TableEncoder`
    n_features_in_, feature_names_in_ : the columns of the table, where it names them

    Examples
    --------
    >>> from calibrant.training import LinearClassifier
    >>> table = {"weight": [1.0, 2.0, None, 8.0, 9.0, 7.0] * 20, "fat": ["low", "Low"] * 60}
    >>> sold = ["few", "few", "few", "many", "many", "many"] * 20
    >>> model = LinearClassifier().fit(table, sold)
    >>> model.predict([{"fat": "LOW", "weight": 1.5}, {"fat": "low", "weight": 8.5}]).tolist()
    ['few', 'many']
    >>> model.explain({"weight": [9.0], "fat": ["low"]}).rows[0].strongest(1, most=1)[0][0]
    'weight'
    """

    def __init__(  # noqa: PLR0913  # scikit-learn finds and sets parameters one by one
        self,
        *,
        clean: Mapping[str, Mapping[str, str | None]] | None = None,
        categories: Sequence[str] = (),
        drop: Sequence[str] = (),
        max_categories: int = 50,
        fold_case: bool = True,
        decimal: str | None = None,
        missing: Sequence[str] = (),
        dates: str | None = None,
        loss: LossLike = "ce",
        C: float | Sequence[float] = _TABLE_PENALTIES,  # noqa: N803  # as scikit-learn calls it
        steer_share: float = 0.1,
        resample: Resampling | None = None,
        correct_prior: bool = True,
        seed: int = 0,
    ) -> None:
        self.clean = clean
        self.categories = categories
        self.drop = drop
        self.max_categories = max_categories
        self.fold_case = fold_case
        self.decimal = decimal
        self.missing = missing
        self.dates = dates
        self.loss = loss
        self.C = C
        self.steer_share = steer_share
        self.resample = resample
        self.correct_prior = correct_prior
        self.seed = seed

    def explain(self, X: Any) -> Explanation:  # noqa: N803
        """Return what each column contributes to the logits of each row."""
        self._check_fitted()
        explanation = self.to_scorer().explain(self._read_input(X, "X", self.encoder_))
        assert explanation is not None
        return explanation

    @property
    def _name(self) -> str:
        return "linear"

    def _fit_encoder(self, encoder: TableEncoder, rows: Table) -> NDArray[np.float32]:
        return encoder.fit(rows).transform(rows)

    def _encode_rows(self, encoder: TableEncoder, rows: Table) -> NDArray[np.float32]:
        return encoder.transform(rows)


class LinearImageClassifier(LinearEstimator):
    """A linear model of the pixels of images, with its `ImageEncoder`, under any loss.

    Images of more than 32 x 32 pixels are averaged to that size; pixels are normalised by the
    train images. It is a baseline that trains in seconds: it knows at which places a class is
    bright, and no shapes. `fit` takes images as `ImageClassifier` does, and changes none of them.

    Its probabilities are not calibrated: the steer rows are used up, so pass the fitted
    classifier and other rows to `CalibratedModel`.

    Parameters
    ----------
    loss, C, steer_share, resample, correct_prior, seed : see `NgramClassifier`

    Attributes
    ----------
    classes_, layer_, C_, n_weights_, loss_, records_, best_epoch_, steer_places_, log_shift_ :
        see `NgramClassifier`
    encoder_ : the fitted `ImageEncoder`

    Examples
    --------
    >>> import numpy as np
    >>> from calibrant.training import LinearImageClassifier
    >>> images = np.random.default_rng(0).integers(0, 100, size=(80, 8, 8, 1), dtype=np.uint8)
    >>> images[::2, :4] += 100  # every other one is bright at the top
    >>> model = LinearImageClassifier().fit(images, ["top", "nowhere"] * 40)
    >>> model.predict(images[:2]).tolist()
    ['top', 'nowhere']
    """

    def __init__(
        self,
        *,
        loss: LossLike = "ce",
        C: float | Sequence[float] = _PIXEL_PENALTIES,  # noqa: N803  # as scikit-learn calls it
        steer_share: float = 0.1,
        resample: Resampling | None = None,
        correct_prior: bool = True,
        seed: int = 0,
    ) -> None:
        self.loss = loss
        self.C = C
        self.steer_share = steer_share
        self.resample = resample
        self.correct_prior = correct_prior
        self.seed = seed

    @property
    def _name(self) -> str:
        return "linear"

    def _new_encoder(self) -> ImageEncoder:
        return ImageEncoder()

    def _read_input(self, X: Any, name: str, encoder: ImageEncoder) -> NDArray[np.uint8]:  # noqa: N803
        if hasattr(encoder, "size_"):
            return encoder.check_images(X, name=name)
        return as_images(X, name=name)

    def _fit_encoder(self, encoder: ImageEncoder, rows: NDArray[np.uint8]) -> NDArray[np.float32]:
        return pixel_features(encoder.fit(rows), rows)

    def _encode_rows(self, encoder: ImageEncoder, rows: NDArray[np.uint8]) -> NDArray[np.float32]:
        return pixel_features(encoder, encoder.check_images(rows, name="steer X"))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.three_d_array = True
        return tags
