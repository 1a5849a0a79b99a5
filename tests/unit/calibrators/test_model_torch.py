"""CalibratedModel of a torch module: evaluation mode, batches, and no torch at all."""

import copy
import subprocess
import sys

import numpy as np
import pytest
import torch
from sklearn.base import clone
from tests.sentences import refuses

from calibrant.calibrators import TemperatureScaling
from calibrant.calibrators.model import CalibratedModel
from calibrant.errors import InputError


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
    with refuses(InputError, "tensor", "logits", "got tuple"):
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


def test_clone_shares_the_module():
    net = Net()
    assert clone(CalibratedModel(net)).estimator is net
