"""CalibratedModel: any scorer with its calibrator, frozen, as a scikit-learn classifier."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, clone
from sklearn.ensemble import AdaBoostClassifier, RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC
from tests.sentences import refuses
from tests.unit.calibrators.model_rows import Boosted, fitted_on_half, named_rows, rows, state_of

from calibrant.calibrators import Identity, TemperatureScaling
from calibrant.calibrators.choice.auto import AutoCalibrator
from calibrant.calibrators.methods.platt import PlattScaling
from calibrant.calibrators.model import CalibratedModel
from calibrant.errors import CalibrantError, InputError, NotFitted
from calibrant.metrics import nll


@pytest.mark.parametrize("k", [2, 4])
@pytest.mark.parametrize(
    ("estimator", "two", "more"),
    [
        (LogisticRegression(), "decision_function", "decision_function"),
        (AdaBoostClassifier(n_estimators=5), "decision_function", "predict_log_proba"),
        (LinearSVC(), "decision_function", "decision_function"),
        (SVC(), "decision_function", "decision_function"),
        (GaussianNB(), "predict_log_proba", "predict_log_proba"),
        (RandomForestClassifier(7, random_state=0), "predict_log_proba", "predict_log_proba"),
        (KNeighborsClassifier(algorithm="brute"), "predict_proba", "predict_proba"),
        (make_pipeline(StandardScaler(), LogisticRegression()), *["decision_function"] * 2),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseEstimator) else None,
)
def test_logits_are_read_from_the_best_answer(estimator, two, more, k):
    model, X, y = fitted_on_half(clone(estimator), k)
    kept = state_of(model)
    calibrated = CalibratedModel(model, TemperatureScaling()).fit(X, y)
    assert calibrated.answer_ == (two if k == 2 else more)
    assert calibrated.estimator_ is model
    assert calibrated.classes_.tolist() == list(range(k))
    probs = calibrated.predict_proba(X)
    assert probs.shape == (len(X), k)
    assert probs.sum(axis=1) == pytest.approx(np.ones(len(X)))
    assert np.array_equal(calibrated.predict(X), probs.argmax(axis=1))
    assert np.log(probs) == pytest.approx(calibrated.predict_log_proba(X))
    if hasattr(model, "predict_proba") and not np.isin(model.predict_proba(X), (0, 1)).any():
        given = CalibratedModel(model, Identity()).fit(X, y).predict_proba(X)
        assert given == pytest.approx(model.predict_proba(X), abs=1e-9)
    assert state_of(model) == kept


def test_temperature_of_logits_is_that_of_the_calibrator_alone():
    model, X, y = fitted_on_half(LogisticRegression(), 4)
    calibrated = CalibratedModel(model, TemperatureScaling()).fit(X, y)
    alone = TemperatureScaling().fit(model.decision_function(X), y)
    assert calibrated.calibrator_.temperature_ == alone.temperature_
    assert np.array_equal(
        calibrated.predict_proba(X), alone.predict_proba(model.decision_function(X))
    )


def test_naive_bayes_keeps_what_rounds_to_zero():
    X, y = rows()
    model = GaussianNB().fit(X[:600], y[:600])
    far = 60 * X[600:]
    assert (model.predict_proba(far) == 0).any()
    calibrated = CalibratedModel(model, TemperatureScaling()).fit(far, y[600:])
    assert calibrated._floor == model.predict_log_proba(far).min()


def test_zero_votes_count_as_half_of_the_least():
    model, X, y = fitted_on_half(KNeighborsClassifier(5))
    assert (model.predict_proba(X) == 0).any()
    none = model.predict_proba(X)[:, 1] == 0
    calibrated = CalibratedModel(model, TemperatureScaling()).fit(X, y)
    calibrated.calibrator_.temperature_ = 1.0
    # No vote of 5 counts as a half against 5.
    assert calibrated.predict_proba(X)[none, 1] == pytest.approx(0.5 / 5.5)
    untouched = CalibratedModel(model, Identity()).fit(X, y)
    assert untouched.predict_proba(X) == pytest.approx(model.predict_proba(X), abs=1e-12)


def test_pairwise_scores_are_refused():
    model, X, y = fitted_on_half(SVC(decision_function_shape="ovo"), 3)
    for estimator in (model, make_pipeline(model)):
        with refuses(InputError, "pair"):
            CalibratedModel(estimator, TemperatureScaling()).fit(X, y)


def test_booster_like_model_with_class_names():
    X, y = named_rows()
    calibrated = CalibratedModel(Boosted(), TemperatureScaling()).fit(X, y)
    assert calibrated.answer_ == "predict_proba"
    assert calibrated.classes_.tolist() == ["no", "yes"]
    assert calibrated.calibrator_.temperature_ == pytest.approx(3, rel=0.3)
    assert set(calibrated.predict(X)) == {"no", "yes"}
    assert calibrated.score(X, y) > 0.6
    assert not hasattr(calibrated, "n_features_in_")


def test_columns_follow_the_model_not_the_alphabet():
    X, y = named_rows()
    turned = np.where(y == "yes", "aye", "nay")  # "aye" sorts first but is the second column
    plain = CalibratedModel(Boosted(), TemperatureScaling()).fit(X, y)
    other = CalibratedModel(Boosted(("nay", "aye")), TemperatureScaling()).fit(X, turned)
    assert other.classes_.tolist() == ["nay", "aye"]
    assert np.array_equal(plain.predict_proba(X), other.predict_proba(X))


def test_function_from_rows_to_logits():
    X, y = named_rows()
    for function in (lambda X: 3 * X[:, 0], lambda X: 3 * X[:, :1]):
        calibrated = CalibratedModel(function, TemperatureScaling()).fit(X, y)
        assert calibrated.answer_ == "call"
        assert calibrated.classes_.tolist() == ["no", "yes"]
        assert calibrated.predict_proba(X).shape == (len(X), 2)
    three = CalibratedModel(lambda X: X, TemperatureScaling()).fit(X, np.arange(len(X)) % 3)
    assert three.classes_.tolist() == [0, 1, 2]


def test_frozen_estimator_and_text_pipeline():
    texts = ["good", "bad", "good good", "bad bad"] * 10
    y = np.array(["plus", "minus", "plus", "minus"] * 10)
    pipeline = make_pipeline(CountVectorizer(), LogisticRegression()).fit(texts, y)
    calibrated = CalibratedModel(FrozenEstimator(pipeline), TemperatureScaling()).fit(texts, y)
    assert calibrated.predict(["good", "bad"]).tolist() == ["plus", "minus"]
    crossed = CalibratedModel(clone(pipeline), TemperatureScaling(), cross_fit=4).fit(texts, y)
    assert crossed.predict(["good", "bad"]).tolist() == ["plus", "minus"]


def test_clone_shares_the_model_and_forgets_the_calibrator():
    model, X, y = fitted_on_half(LogisticRegression())
    calibrated = CalibratedModel(model, TemperatureScaling()).fit(X, y)
    copied = clone(calibrated)
    assert copied.estimator is model
    assert copied.calibrator is not calibrated.calibrator
    assert not hasattr(copied, "calibrator_")
    with pytest.raises(NotFitted):
        copied.predict(X)


def test_search_and_cross_validation_leave_the_model_alone():
    model, X, y = fitted_on_half(GaussianNB())
    kept = state_of(model)
    calibrated = CalibratedModel(model, TemperatureScaling())
    assert len(cross_val_score(calibrated, X, y, scoring="neg_log_loss", cv=3)) == 3
    pipeline = make_pipeline("passthrough", calibrated)
    grid = {"calibratedmodel__calibrator": [Identity(), TemperatureScaling()]}
    search = GridSearchCV(pipeline, grid, scoring="neg_log_loss", cv=3).fit(X, y)
    assert isinstance(search.best_params_["calibratedmodel__calibrator"], TemperatureScaling)
    nested = GridSearchCV(calibrated, {"calibrator__lowest": [0.1, 0.2]}, cv=3).fit(X, y)
    assert nested.best_estimator_.estimator_ is model
    assert state_of(model) == kept


def test_parameters_of_a_frozen_model_are_out_of_reach():
    model, _, _ = fitted_on_half(LogisticRegression())
    calibrated = CalibratedModel(model, TemperatureScaling())
    assert "estimator__C" not in calibrated.get_params()
    assert "calibrator__lowest" in calibrated.get_params()
    with refuses(InputError, "'estimator__C' cannot be set"):
        calibrated.set_params(estimator__C=2.0)
    assert model.C == 1.0
    open_ = CalibratedModel(LogisticRegression(), cross_fit=2)
    assert open_.set_params(estimator__C=2.0).estimator.C == 2.0
    assert calibrated.set_params(**calibrated.get_params()) is calibrated
    assert calibrated.set_params(estimator=LogisticRegression(), cross_fit=2, estimator__C=3.0)


def test_features_are_the_models():
    model, X, y = fitted_on_half(LogisticRegression())
    assert CalibratedModel(model).fit(X, y).n_features_in_ == 12
    table = pd.DataFrame(X, columns=[f"x{i}" for i in range(12)])
    named = CalibratedModel(LogisticRegression().fit(table, y), Identity()).fit(table, y)
    assert named.feature_names_in_.tolist() == table.columns.tolist()
    named.set_params(estimator=model).fit(X, y)
    assert not hasattr(named, "feature_names_in_")


def test_default_calibrator_is_chosen_automatically():
    model, X, y = fitted_on_half(GaussianNB())
    calibrated = CalibratedModel(model).fit(X, y)
    assert isinstance(calibrated.calibrator_, AutoCalibrator)
    assert nll(y, calibrated.predict_proba(X)) <= nll(y, model.predict_proba(X))
    few = CalibratedModel(model).fit(X[:19], y[:19])
    assert isinstance(few.calibrator_, Identity)
    weight = np.r_[np.ones(19), 0]
    assert isinstance(CalibratedModel(model).fit(X[:20], y[:20], weight).calibrator_, Identity)


def test_calibrator_is_copied():
    model, X, y = fitted_on_half(LogisticRegression())
    given = TemperatureScaling()
    calibrated = CalibratedModel(model, given).fit(X, y)
    assert not hasattr(given, "temperature_")
    assert calibrated.calibrator is given


def test_absent_class_is_left_to_the_calibrator():
    model, X, y = fitted_on_half(LogisticRegression(), 4)
    some = y != 2
    calibrated = CalibratedModel(model, TemperatureScaling()).fit(X[some], y[some])
    assert calibrated.predict_proba(X).shape == (len(X), 4)
    with refuses(InputError, "needs rows", "class", "none", "label 2"):
        CalibratedModel(model, PlattScaling()).fit(X[some], y[some])


def test_label_that_the_model_has_never_seen():
    X, y = named_rows()
    strange = y.astype(object)
    strange[3] = "perhaps"
    message = ("y", "'perhaps'", "not among", "classes", "estimator ['no'")
    with refuses(InputError, *message):
        CalibratedModel(Boosted(), TemperatureScaling()).fit(X, strange)


def test_a_weight_is_a_repetition():
    model, X, y = fitted_on_half(GaussianNB(), 4)
    times = np.random.default_rng(0).integers(0, 4, len(y))
    weighed = CalibratedModel(model, TemperatureScaling()).fit(X, y, sample_weight=times)
    repeated = CalibratedModel(model, TemperatureScaling()).fit(
        X.repeat(times, axis=0), y.repeat(times)
    )
    assert weighed.predict_proba(X) == pytest.approx(repeated.predict_proba(X), abs=1e-8)


class NoWeights(TemperatureScaling):
    takes_weights = False


def test_calibrator_without_weights_refuses_them():
    model, X, y = fitted_on_half(LogisticRegression())
    with refuses(InputError, "NoWeights", "not support weights"):
        CalibratedModel(model, NoWeights()).fit(X, y, np.ones(len(y)))


def test_unfitted_estimator_is_named():
    X, y = rows()
    for estimator in (LogisticRegression(), make_pipeline(StandardScaler(), GaussianNB())):
        with refuses(NotFittedError, "not fitted", "other rows first") as e:
            CalibratedModel(estimator).fit(X, y)
        assert isinstance(e.value, CalibrantError)
    with pytest.raises(NotFittedError, match="call fit first"):
        CalibratedModel(LogisticRegression()).predict(X)


class Pairs(LogisticRegression):
    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = True
        return tags


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (CalibratedModel(), ("estimator is missing",)),
        (CalibratedModel(LogisticRegression), ("got the", "class LogisticRegression")),
        (CalibratedModel(StandardScaler()), ("function from X", "logits", "got StandardScaler")),
        (CalibratedModel(Boosted(), "platt"), ("calibrator must be a calibrator", "got 'platt'")),
        (CalibratedModel(LogisticRegression(), cross_fit=1), ("at least 2", "None", "got 1")),
        (CalibratedModel(LogisticRegression(), cross_fit=True), ("at least 2", "None", "got True")),
        (CalibratedModel(LogisticRegression(), cross_fit=2.5), ("at least 2", "None", "got 2.5")),
        (CalibratedModel(np.tanh, cross_fit=3), ("estimator", "fit", "got ufunc")),
        (CalibratedModel(Pairs(), cross_fit=3), ("cannot split", "pairwise matrix")),
        (CalibratedModel(lambda X: np.zeros((len(X), 2, 2))), ("must have shape",)),
        (CalibratedModel(lambda X: np.full(len(X), np.nan)), ("finite", "got nan", "row 0")),
        (CalibratedModel(lambda X: X[:-1, 0]), ("same length",)),
        (CalibratedModel(Boosted(["only"])), ("one class only",)),
    ],
)
def test_bad_settings_get_one_sentence(model, message):
    X, y = rows(n=60)
    with refuses(InputError, *message) as caught:
        model.fit(X[:, :1], y)
    assert "\n" not in str(caught.value)


def test_a_function_is_told_the_order_of_its_classes():
    rng = np.random.default_rng(0)
    logits = 2.0 * rng.normal(size=(400, 3))
    order = np.array(["returns", "billing", "other"])  # not sorted, as a network's head
    y = order[(logits + rng.gumbel(size=(400, 3))).argmax(axis=1)]
    model = CalibratedModel(lambda x: x, TemperatureScaling(), classes=order.tolist())
    model.fit(logits, y)
    assert model.classes_.tolist() == order.tolist()
    assert 0.7 < model.calibrator_.temperature_ < 1.4
    two = CalibratedModel(lambda x: x, TemperatureScaling(), classes=order.tolist())
    assert two.fit(logits[y != "other"], y[y != "other"]).classes_.tolist() == order.tolist()


def test_truths_stay_truths():
    z = np.linspace(-3, 3, 60)
    model = CalibratedModel(lambda x: x, TemperatureScaling()).fit(z, np.sin(5 * z) + z > 0)
    assert model.predict(z).dtype == bool


def test_normalised_weights_are_numbers_of_rows_again():
    rng = np.random.default_rng(1)
    z = 3.0 * rng.normal(size=500)
    y = (rng.random(500) < 1 / (1 + np.exp(-z / 3))).astype(int)
    weights = rng.uniform(0.5, 1.5, 500)
    weights /= weights.mean()
    plain = CalibratedModel(lambda x: x, PlattScaling()).fit(z, y, weights)
    scaled = CalibratedModel(lambda x: x, PlattScaling()).fit(z, y, weights / 500)
    assert scaled.predict_proba(z) == pytest.approx(plain.predict_proba(z), abs=1e-9)
