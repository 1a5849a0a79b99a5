"""CalibratedModel: any scorer with its calibrator, frozen, as a scikit-learn classifier."""

import copy
import pickle
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.base import BaseEstimator, clone
from sklearn.datasets import make_classification
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
from sklearn.utils.estimator_checks import estimator_checks_generator

from calibrant.calibrators import Identity, TemperatureScaling
from calibrant.calibrators.auto import AutoCalibrator
from calibrant.calibrators.folds import stratified_folds
from calibrant.calibrators.model import CalibratedModel
from calibrant.calibrators.platt import PlattScaling
from calibrant.calibrators.prior import PriorCorrection
from calibrant.errors import CalibrantError, InputError, NotFitted
from calibrant.metrics import nll

WITHOUT_ARRAY_API = "check_array_api_input"  # asks for a switch that scipy reads when it is loaded
# Copies of a row fall into different folds, so a weight is a repetition only without cross_fit;
# test_a_weight_is_a_repetition checks that. scikit-learn's check knows folds by the name `cv` only.
NOT_WITH_FOLDS = "check_sample_weight_equivalence"

CHECKED = [
    CalibratedModel(LogisticRegression(), cross_fit=3),
    CalibratedModel(LinearSVC(), PlattScaling(), cross_fit=2, seed=1),
    CalibratedModel(
        RandomForestClassifier(5, random_state=0),
        PriorCorrection().then(TemperatureScaling()),
        cross_fit=2,
    ),
]


def checks():
    for model in CHECKED:
        for estimator, check in estimator_checks_generator(model):
            name = check.func.__name__
            if name != WITHOUT_ARRAY_API and not name.startswith(NOT_WITH_FOLDS):
                inner = type(model.estimator).__name__
                yield pytest.param(estimator, check, id=f"{inner}-{name}")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("estimator", "check"), list(checks()))
def test_scikit_learn_check(estimator, check):
    check(estimator)


def rows(k=2, n=1200, seed=0):
    return make_classification(
        n, n_features=12, n_informative=6, n_classes=k, flip_y=0.1, random_state=seed
    )


def fitted_on_half(estimator, k=2):
    X, y = rows(k)
    return estimator.fit(X[:600], y[:600]), X[600:], y[600:]


def state_of(estimator):
    return pickle.dumps(estimator)


# ---- what is read from which model


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
    calibrated = CalibratedModel(model, Identity()).fit(X, y)
    none = model.predict_proba(X)[:, 1] == 0
    # No vote of 5 counts as a half against 5.
    assert calibrated.predict_proba(X)[none, 1] == pytest.approx(0.5 / 5.5)


def test_pairwise_scores_are_refused():
    model, X, y = fitted_on_half(SVC(decision_function_shape="ovo"), 3)
    for estimator in (model, make_pipeline(model)):
        with pytest.raises(InputError, match="one for each pair"):
            CalibratedModel(estimator, TemperatureScaling()).fit(X, y)


class Boosted:
    """Like a booster's wrapper: predict_proba in float32, classes_, and nothing of scikit-learn."""

    def __init__(self, classes=("no", "yes")):
        self.classes_ = np.array(classes)

    def predict_proba(self, X):
        z = 3 * np.asarray(X, dtype=np.float32)[:, 0]
        p = 1 / (1 + np.exp(-z))
        return np.column_stack([1 - p, p])


def named_rows(n=400):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    return X, np.where(rng.random(n) < 1 / (1 + np.exp(-X[:, 0])), "yes", "no")


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


# ---- torch


class Net(torch.nn.Module):
    def __init__(self, columns=3):
        super().__init__()
        torch.manual_seed(0)
        self.first = torch.nn.Linear(3, 8)
        self.norm = torch.nn.BatchNorm1d(8)
        self.drop = torch.nn.Dropout(0.5)
        self.last = torch.nn.Linear(8, columns)

    def forward(self, x):
        assert not torch.is_grad_enabled()
        assert len(x) <= 512
        return self.last(self.drop(torch.relu(self.norm(self.first(x)))))


def torch_rows(n=1300):
    X = np.random.default_rng(0).normal(size=(n, 3))
    return X, np.arange(n) % 3


def test_torch_module_is_run_in_evaluation_mode_and_left_alone():
    X, y = torch_rows()
    net = Net()
    net.norm.eval()  # a part that its owner has frozen
    kept = copy.deepcopy(net.state_dict())
    calibrated = CalibratedModel(net, TemperatureScaling()).fit(X, y)
    assert calibrated.answer_ == "forward"
    assert net.training
    assert net.drop.training
    assert not net.norm.training
    assert all(torch.equal(kept[name], value) for name, value in net.state_dict().items())
    assert np.array_equal(calibrated.predict_proba(X), calibrated.predict_proba(X))
    tensor = torch.from_numpy(X)
    assert np.array_equal(calibrated.predict_proba(X), calibrated.predict_proba(tensor))
    net.eval()
    with torch.no_grad():
        logits = torch.cat([net(part.float()) for part in tensor.split(512)]).numpy()
    alone = TemperatureScaling().fit(logits, y)
    assert calibrated.calibrator_.temperature_ == pytest.approx(alone.temperature_, rel=1e-6)


def test_torch_module_with_one_column_of_any_precision():
    X, y = torch_rows()
    calibrated = CalibratedModel(Net(1).to(torch.bfloat16), TemperatureScaling()).fit(X, y > 0)
    assert calibrated.predict_proba(X).shape == (len(X), 2)


def test_torch_module_of_whole_numbers_and_named_output():
    class Output:
        def __init__(self, logits):
            self.logits = logits

    class Words(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.table = torch.nn.EmbeddingBag(5, 2)

        def forward(self, x):
            return Output(self.table(x))

    X = np.arange(100).reshape(50, 2) % 5
    calibrated = CalibratedModel(Words(), TemperatureScaling()).fit(X, np.arange(50) % 2)
    assert calibrated.predict_proba(X).shape == (50, 2)


def test_torch_module_that_returns_a_tuple_is_refused():
    class Pair(torch.nn.Module):
        def forward(self, x):
            return x, x

    X, y = torch_rows()
    with pytest.raises(InputError, match="one tensor of logits, got tuple"):
        CalibratedModel(Pair(), TemperatureScaling()).fit(X, y)
    with pytest.raises(InputError, match="X is empty"):
        CalibratedModel(Net(), TemperatureScaling()).fit(X, y).predict(X[:0])


def test_mode_is_restored_after_an_error():
    X, y = torch_rows()
    net = Net()
    with pytest.raises(RuntimeError):
        CalibratedModel(net, TemperatureScaling()).fit(X[:, :2], y)
    assert net.training
    assert net.norm.training


def test_works_without_torch():
    code = """
import sys
import numpy as np
from sklearn.linear_model import LogisticRegression
from calibrant.calibrators.model import CalibratedModel
assert "torch" not in sys.modules
sys.modules["torch"] = None
X = np.random.default_rng(0).normal(size=(100, 2))
y = (X[:, 0] > 0) * 1
model = CalibratedModel(LogisticRegression().fit(X[:50], y[:50])).fit(X[50:], y[50:])
assert CalibratedModel(lambda X: X[:, 0]).fit(X, y).predict(X).shape == (100,)
"""
    subprocess.run([sys.executable, "-c", code], check=True)


# ---- frozen


def test_clone_shares_the_model_and_forgets_the_calibrator():
    model, X, y = fitted_on_half(LogisticRegression())
    calibrated = CalibratedModel(model, TemperatureScaling()).fit(X, y)
    copied = clone(calibrated)
    assert copied.estimator is model
    assert copied.calibrator is not calibrated.calibrator
    assert not hasattr(copied, "calibrator_")
    with pytest.raises(NotFitted):
        copied.predict(X)
    net = Net()
    assert clone(CalibratedModel(net)).estimator is net


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
    with pytest.raises(InputError, match="'estimator__C' cannot be set"):
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


# ---- calibrators, labels, weights


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
    with pytest.raises(InputError, match="needs rows of every class, but none has the label 2"):
        CalibratedModel(model, PlattScaling()).fit(X[some], y[some])


def test_label_that_the_model_has_never_seen():
    X, y = named_rows()
    strange = y.astype(object)
    strange[3] = "perhaps"
    message = r"y holds 'perhaps', which the estimator has never seen among its classes \['no'"
    with pytest.raises(InputError, match=message):
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
    with pytest.raises(InputError, match="NoWeights takes no weights"):
        CalibratedModel(model, NoWeights()).fit(X, y, np.ones(len(y)))


# ---- cross-fitting


@pytest.mark.parametrize("weighted", [False, True])
def test_cross_fit_by_hand(weighted):
    X, y = rows(3, 300)
    names = np.array(["red", "green", "blue"])[y]
    weights = np.random.default_rng(1).uniform(0.5, 2, len(y)) if weighted else None
    given = LogisticRegression(class_weight={"red": 1, "green": 2, "blue": 1})
    model = CalibratedModel(given, TemperatureScaling(), cross_fit=4, seed=7)
    model.fit(X, names, sample_weight=weights)

    _, codes = np.unique(names, return_inverse=True)
    fold = stratified_folds(codes, 4, np.random.default_rng(7))
    logits = np.empty((300, 3))
    for f in range(4):
        seen, held = fold != f, fold == f
        part = None if weights is None else weights[seen]
        logits[held] = clone(given).fit(X[seen], names[seen], part).decision_function(X[held])
    final = clone(given).fit(X, names, weights)
    by_hand = TemperatureScaling().fit(logits, codes, weights)
    assert model.calibrator_.temperature_ == pytest.approx(by_hand.temperature_, rel=1e-9)
    expected = by_hand.predict_proba(final.decision_function(X))
    assert model.predict_proba(X) == pytest.approx(expected, abs=1e-9)
    assert model.classes_.tolist() == ["blue", "green", "red"]
    assert not hasattr(given, "coef_")


def test_cross_fit_is_honest_where_training_rows_are_not():
    X, y = rows(n=900)
    forest = RandomForestClassifier(30, random_state=0)
    honest = CalibratedModel(forest, TemperatureScaling(), cross_fit=5).fit(X[:400], y[:400])
    seen = CalibratedModel(clone(forest).fit(X[:400], y[:400]), TemperatureScaling())
    seen.fit(X[:400], y[:400])
    fresh, labels = X[400:], y[400:]
    assert nll(labels, honest.predict_proba(fresh)) < nll(labels, seen.predict_proba(fresh))


def test_weights_reach_only_estimators_that_take_them():
    X, y = rows(n=200)
    weights = np.linspace(0.1, 3, 200)
    neighbours = CalibratedModel(KNeighborsClassifier(), TemperatureScaling(), cross_fit=3)
    assert neighbours.fit(X, y, weights).predict_proba(X).shape == (200, 2)


def test_row_of_weight_zero_is_not_there():
    X, y = rows(n=200)
    weights = np.r_[np.ones(150), np.zeros(50)]
    model = CalibratedModel(LogisticRegression(), TemperatureScaling(), cross_fit=3)
    weighed = clone(model).fit(X, y, weights).predict_proba(X)
    assert np.array_equal(
        weighed, clone(model).fit(X[:150], y[:150], np.ones(150)).predict_proba(X)
    )


def test_seed_decides_the_folds():
    X, y = rows(n=120)

    def temperature(seed):
        model = CalibratedModel(LogisticRegression(), TemperatureScaling(), cross_fit=3, seed=seed)
        return model.fit(X, y).calibrator_.temperature_

    assert temperature(1) == temperature(1)
    assert temperature(1) != temperature(2)


# ---- what is refused


def test_unfitted_estimator_is_named():
    X, y = rows()
    for estimator in (LogisticRegression(), make_pipeline(StandardScaler(), GaussianNB())):
        with pytest.raises(NotFittedError, match=r"is not fitted: fit it on other rows first") as e:
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
        (CalibratedModel(), "estimator is missing"),
        (CalibratedModel(LogisticRegression), "got the class LogisticRegression"),
        (CalibratedModel(StandardScaler()), "a function from X to logits, got StandardScaler"),
        (CalibratedModel(Boosted(), "platt"), "calibrator must be a calibrator .* got 'platt'"),
        (CalibratedModel(LogisticRegression(), cross_fit=1), "at least 2, or None, got 1"),
        (CalibratedModel(LogisticRegression(), cross_fit=True), "at least 2, or None, got True"),
        (CalibratedModel(LogisticRegression(), cross_fit=2.5), "at least 2, or None, got 2.5"),
        (CalibratedModel(np.tanh, cross_fit=3), "an estimator with fit, got ufunc"),
        (CalibratedModel(Pairs(), cross_fit=3), "cannot split a matrix of pairs"),
        (CalibratedModel(lambda X: np.zeros((len(X), 2, 2))), "must have shape"),
        (CalibratedModel(lambda X: np.full(len(X), np.nan)), "must be finite, got nan in row 0"),
        (CalibratedModel(lambda X: X[:-1, 0]), "must have the same length"),
        (CalibratedModel(Boosted(["only"])), "one class only"),
    ],
)
def test_bad_settings_get_one_sentence(model, message):
    X, y = rows(n=60)
    with pytest.raises(InputError, match=message) as caught:
        model.fit(X[:, :1], y)
    assert "\n" not in str(caught.value)


def test_bad_rows_get_one_sentence():
    X, y = rows(n=60)
    model = CalibratedModel(LogisticRegression(), cross_fit=3)
    with pytest.raises(InputError, match="one class only, 0"):
        model.fit(X, np.zeros(60, int))
    with pytest.raises(InputError, match="at least 2 rows of each class, but 7 has 1"):
        model.fit(X, np.where(np.arange(60) == 4, 7, y))
    with pytest.raises(InputError, match="y is empty"):
        model.fit(X[:0], y[:0])
    with pytest.raises(InputError, match="target y is None"):
        model.fit(X, None)
    with pytest.raises(InputError, match="sample_weight must have shape"):
        model.fit(X, y, np.ones(3))
