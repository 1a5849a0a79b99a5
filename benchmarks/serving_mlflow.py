"""The bundle as a model of MLflow: run with the interpreter of `.venv-bench`, which has MLflow.

`python serving_mlflow.py BUNDLE FOLDER` writes the model; `mlflow models serve` serves it. MLflow
reads this file again there, as the model's code.
"""

from __future__ import annotations

import sys
from typing import Any

import mlflow
from mlflow.pyfunc import PythonModel

__all__ = ["Texts"]


class Texts(PythonModel):
    """Decides about messages as the bundle does."""

    def load_context(self, context: Any) -> None:
        """Load the bundle once, when the server starts."""
        from calibrant import load_bundle

        self.bundle = load_bundle(context.artifacts["bundle"], device="cpu")

    def predict(self, model_input: list[str], params: dict[str, Any] | None = None) -> list[Any]:
        """Decide about the messages of one request."""
        return self.bundle.decide(list(model_input)).to_rows()


if __name__ == "__main__":
    mlflow.pyfunc.save_model(
        sys.argv[2],
        python_model=__file__,
        artifacts={"bundle": sys.argv[1]},
        pip_requirements=[f"mlflow=={mlflow.__version__}"],
    )
else:
    mlflow.models.set_model(Texts())
