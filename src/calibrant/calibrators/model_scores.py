"""Logits of scikit-learn classifiers, torch modules and functions."""

from __future__ import annotations

import sys
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from calibrant.calibrators.base.rows import two_columns
from calibrant.convert import probs_from_logits
from calibrant.errors import InputError
from calibrant.inputs import FloatArray, as_logits, as_probs

ResponseMethod = Literal[
    "decision_function", "predict_log_proba", "predict_proba", "forward", "call"
]
"""How logits are read from a model; the first three are its methods."""

_MIN_LOG_PROB = float(np.log(1e-12))
_TOLERANCE = 1e-6
_BATCH = 512  # Batch size for torch modules


def choose_response_method(model: Any, X: Any) -> ResponseMethod:  # noqa: N803
    """Choose the response method of a model from its interface and its output for X.

    `decision_function` is used if its softmax equals `predict_proba`, because logits keep precision
    where probabilities round to 0 and 1, or if the model has no probabilities. Otherwise
    log-probabilities are used: other scores are not logits.
    """
    if isinstance(model, type):
        raise InputError(
            f"estimator must be an object, got the class {model.__name__}: write "
            f"{model.__name__}(...)."
        )
    probs, scores = hasattr(model, "predict_proba"), hasattr(model, "decision_function")
    if scores and (not probs or _are_logits(model, X)):
        return "decision_function"
    if probs:
        return "predict_log_proba" if hasattr(model, "predict_log_proba") else "predict_proba"
    if hasattr(model, "forward") and hasattr(model, "named_parameters"):
        return "forward"
    if callable(model):
        return "call"
    raise InputError(
        "estimator must be a classifier with predict_proba or decision_function, a torch module, "
        f"or a function from X to logits, got {type(model).__name__}."
    )


def read_logits(model: Any, X: Any, response_method: ResponseMethod) -> FloatArray:  # noqa: N803
    """Return logits (n, K), with minus infinity for a probability of exactly 0."""
    if response_method in ("predict_log_proba", "predict_proba"):
        return _read_log_probs(model, X, response_method)
    if response_method == "forward":
        output = _run_module(model, X)
    else:
        output = model(X) if response_method == "call" else model.decision_function(X)
    array = np.asarray(output) if not hasattr(output, "detach") else output
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    name = (
        "the result of the function"
        if response_method == "call"
        else f"the result of {response_method}"
    )
    logits = as_logits(array, name=name).astype(np.float64)
    if response_method == "decision_function":
        _check_columns(model, logits)
    return two_columns(logits)


def choose_log_zero(logits: FloatArray, response_method: ResponseMethod) -> float:
    """Return the replacement of log 0, which is also the lower bound of every logit.

    If the rows have probabilities of exactly 0 (a forest's votes, neighbours, rounding), it is half
    the smallest positive one, divided among all classes but one: less than one vote, but not by
    orders of magnitude. Otherwise it is far below all logits.
    """
    if response_method not in ("predict_log_proba", "predict_proba"):
        return -np.inf
    finite = np.isfinite(logits)
    least = float(logits[finite].min())
    if finite.all():
        return min(least, _MIN_LOG_PROB)
    return max(least - float(np.log(2.0 * (logits.shape[1] - 1))), _MIN_LOG_PROB)


def take_rows(X: Any, rows: NDArray[Any]) -> Any:  # noqa: N803
    """Return the rows of a table, array or list at these indices."""
    if hasattr(X, "iloc"):
        return X.iloc[rows]
    if type(X).__module__.partition(".")[0] == "pyarrow":  # indexing selects columns
        return X.take(rows)
    if hasattr(X, "shape"):
        return X[rows]
    return [X[i] for i in rows]


def _are_logits(model: Any, X: Any) -> bool:  # noqa: N803
    """Return whether the softmax of the model's scores equals its probabilities."""
    scores = np.asarray(model.decision_function(X), dtype=np.float64)
    probs = np.asarray(model.predict_proba(X), dtype=np.float64)
    if scores.ndim == 1:
        scores = two_columns(scores)
    same = scores.shape == probs.shape and np.isfinite(scores).all()
    return bool(same and np.abs(probs_from_logits(scores) - probs).max() < _TOLERANCE)


def _read_log_probs(model: Any, X: Any, response_method: ResponseMethod) -> FloatArray:  # noqa: N803
    with np.errstate(divide="ignore"):  # log 0 is minus infinity
        if response_method == "predict_log_proba":
            log_probs = np.asarray(model.predict_log_proba(X), dtype=np.float64)
            as_probs(np.exp(log_probs), name="the exponential of predict_log_proba")
            return log_probs
        probs = as_probs(model.predict_proba(X), name="the result of predict_proba")
        wide = probs.astype(np.float64)
        return np.log(np.column_stack([1.0 - wide, wide]) if wide.ndim == 1 else wide)


def _check_columns(model: Any, logits: FloatArray) -> None:
    """Refuse scores that do not belong to classes."""
    last = model.steps[-1][1] if hasattr(model, "steps") else model
    k = len(model.classes_) if hasattr(model, "classes_") else None
    columns = 2 if logits.ndim == 1 else logits.shape[1]
    pairs = k is not None and k > 2 and getattr(last, "decision_function_shape", "") == "ovo"
    if pairs or (k is not None and columns != k):
        raise InputError(
            f"decision_function must have one column for each of the {k} classes, got "
            f"{'one for each pair of them' if pairs else columns}: set "
            "decision_function_shape='ovr', or pass a model with predict_proba."
        )


def _run_module(module: Any, X: Any) -> FloatArray:  # noqa: N803
    """Run a torch module in evaluation mode without gradients, then restore its mode."""
    torch = sys.modules["torch"]  # imported already, because a module exists
    modes = [(part, part.training) for part in module.modules()]
    if any(training for _, training in modes):
        module.eval()
    try:
        with torch.no_grad():
            return _in_batches(torch, module, X)
    finally:
        for part, training in modes:
            part.training = training


def _in_batches(torch: Any, module: Any, X: Any) -> FloatArray:  # noqa: N803
    if not isinstance(X, torch.Tensor):
        X = torch.as_tensor(np.asarray(X))  # noqa: N806
    parameter = next((p for p in module.parameters() if p.is_floating_point()), None)
    parts = []
    for start in range(0, len(X), _BATCH):
        batch = X[start : start + _BATCH]
        if parameter is not None:
            batch = batch.to(
                parameter.device, parameter.dtype if batch.is_floating_point() else batch.dtype
            )
        output = module(batch)
        output = getattr(output, "logits", output)  # output object of transformers
        if not isinstance(output, torch.Tensor):
            raise InputError(
                f"a torch module must return one tensor of logits, got {type(output).__name__}: "
                "wrap it in a function from X to logits."
            )
        parts.append(output.detach().cpu().double().numpy())
    if not parts:
        raise InputError("X is empty: at least one row is needed.")
    return np.concatenate(parts)
