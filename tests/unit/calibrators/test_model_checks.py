"""CalibratedModel passes scikit-learn's own checks of classifiers."""

import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import estimator_checks_generator

from calibrant.calibrators import TemperatureScaling
from calibrant.calibrators.methods.platt import PlattScaling
from calibrant.calibrators.methods.prior import PriorCorrection
from calibrant.calibrators.model import CalibratedModel

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
