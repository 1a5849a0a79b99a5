"""A source checkout on a bare machine trains, writes a bundle and predicts."""

import json
import os
import re
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest
from tests.unit.study.runs import table_file

import calibrant

SOURCE = Path(calibrant.__file__).parent
BARE = Path(__file__).parent / "bare_machine.py"
SMALL = ("--epochs", "2", "--jobs", "1", "--candidates", "ce", "--model", "mlp", "--pack-anyway")
LISTED = (
    "torch", "lightning-fabric", "numpy", "scipy", "scikit-learn", "threadpoolctl", "joblib",
    "pyarrow", "typer", "rich", "matplotlib", "pillow", "safetensors",
)  # fmt: skip
"""Packages that training may import, besides their own dependencies."""

NEVER = {"jinja2", "markupsafe", "plotly"}
"""Hidden even if one of them requires it, as torch requires jinja2."""


def allowed():
    """Return the modules of the listed packages and of their dependencies."""
    queue, packages = list(LISTED), set()
    while queue:
        name = queue.pop().lower().replace("_", "-")
        if name not in packages | NEVER:
            packages.add(name)
            queue += _requirements(name)
    return {
        module
        for module, homes in metadata.packages_distributions().items()
        if any(home.lower().replace("_", "-") in packages for home in homes)
    }


def _requirements(name):
    try:
        lines = metadata.requires(name) or []
    except metadata.PackageNotFoundError:  # only for another platform or Python version
        return []
    return [re.match(r"[\w.-]+", line)[0] for line in lines if "extra ==" not in line]


class Machine:
    """Run Python with only a checkout and the packages that training needs."""

    def __init__(self, folder):
        self.folder, self.allowed = folder, allowed()
        self.source = folder / "checkout" / "src"
        shutil.copytree(SOURCE, self.source / "calibrant", ignore=shutil.ignore_patterns("__pyc*"))
        shutil.copyfile(SOURCE.parents[1] / "pyproject.toml", self.source.parent / "pyproject.toml")
        shutil.copyfile(BARE, self.folder / "sitecustomize.py")

    def run(self, *words):
        path = os.pathsep.join(map(str, (self.folder, self.source)))
        settings = {"CHECKOUT": str(self.source), "ALLOWED": " ".join(self.allowed)}
        command = [sys.executable, *map(str, words)]
        return subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=300, cwd=self.folder,
            env={**os.environ, **settings, "PYTHONPATH": path},
        )  # fmt: skip

    def verb(self, *words):
        return self.run("-m", "calibrant", *words)


@pytest.fixture(scope="module")
def machine(tmp_path_factory):
    return Machine(tmp_path_factory.mktemp("machine"))


@pytest.fixture(scope="module")
def trained(machine):
    data = table_file(machine.folder, n=600)
    words = ("train", data, "--tabular", "--label", "fraud", "--out", "run", "--json", *SMALL)
    return machine.verb(*words, "--model-option", "hidden=[8]", "--model-option", "dropout=[0.0]")


def test_the_machine_is_bare_and_runs_the_checkout(machine):
    code = """
import importlib.util, importlib.metadata
assert importlib.util.find_spec("plotly") is None
assert importlib.util.find_spec("pandas") is None
try: importlib.metadata.version("calibrant")
except importlib.metadata.PackageNotFoundError: pass
import calibrant
print(calibrant.__file__, calibrant.__version__)
"""
    path, version = machine.run("-c", code).stdout.split()
    assert path == str(machine.source / "calibrant" / "__init__.py")
    assert version == calibrant.__version__


FITS = """
import sys
import numpy as np
import calibrant.training
from calibrant.training import ImageClassifier, TabularClassifier
rng = np.random.default_rng(0)
labels = np.tile(["no", "yes"], 20)
table = TabularClassifier(hidden=[4], dropout=[0.0], epochs=1).fit(rng.normal(size=(40, 3)), labels)
pixels = rng.integers(0, 256, (40, 8, 8, 3), dtype=np.uint8)
images = ImageClassifier(
    model="resnet50", model_options={"width": 4}, epochs=1, batch_size=20, crop=1
).fit(pixels, labels)
print(table.predict_proba(rng.normal(size=(2, 3))).shape, images.predict_proba(pixels[:2]).shape)
from calibrant.study import StudyConfig, run_study
many = rng.integers(0, 256, (120, 8, 8, 3), dtype=np.uint8)
np.savez("images.npz", images=many, labels=[*labels] * 3)
config = StudyConfig(
    "images.npz", images=True, candidates=["ce"], model="resnet50", model_options={"width": 4},
    training={"epochs": 1, "batch_size": 20, "learning_rate": 0.001}, calibrator="temperature",
    jobs=1, pack_anyway=True,
)
print(run_study(config, "pictures").kind, calibrant.load_bundle("pictures/bundle").scorer.kind)
import sitecustomize
sitecustomize.ALLOWED.add("tokenizers")
from calibrant.training import TextClassifier
texts = ["came late", "came broken"] * 20
small = {"embedding": 4, "hidden": 4, "layers": 1}
text = TextClassifier(model_options=small, epochs=1).fit(texts, labels)
print(text.predict_proba(texts[:2]).shape)
hidden = ("plotly", "jinja2", "pydantic", "pandas", "transformers")
print([name for name in hidden if name in sys.modules])
"""


def test_all_three_classifiers_are_fitted_and_images_studied(machine):
    done = machine.run("-c", FITS)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split("\n")[:4] == ["(2, 2) (2, 2)", "image image", "(2, 2)", "[]"]


def test_a_study_of_a_table_ends_with_a_bundle_and_says_why_it_has_no_report(machine, trained):
    assert trained.returncode == 0, trained.stderr
    result = json.loads(trained.stdout)
    words = ("report.html was not written", "plotly and jinja2", "run the same command")
    assert any(all(word in note for word in words) for note in result["notes"])
    assert result["report"] is None
    names = {path.name for path in (machine.folder / "run").iterdir()}
    assert names == {"bundle", "candidates", "result.json", "splits.json", "study.toml"}
    manifest = json.loads((machine.folder / "run" / "bundle" / "manifest.json").read_text())
    assert "report.html" not in manifest["files"]
    assert manifest["provenance"]["packages"]["calibrant"] == calibrant.__version__


def test_its_bundle_predicts(machine, trained):
    done = machine.verb("predict", "run/bundle", "table.csv", "-o", "scored.csv")
    assert done.returncode == 0, done.stderr
    assert len((machine.folder / "scored.csv").read_text().splitlines()) == 601


def test_with_plotly_the_same_command_writes_the_report_without_training(machine, trained):
    from calibrant.study import StudyConfig, run_study
    from calibrant.study.settings.config_file import read_config

    messages = []
    config = StudyConfig.from_dict(read_config(machine.folder / "run" / "study.toml"))
    run_study(config, machine.folder / "run", progress=messages.append)
    assert "ce: trained before, reused" in messages
    assert (machine.folder / "run" / "report.html").exists()


def test_the_doctor_reports_missing_packages(machine):
    done = machine.verb("doctor")
    assert done.returncode == 1
    assert done.stdout.startswith("Missing or too old: plotly, jinja2.")
    assert "report.html is not written" in done.stdout
    assert f"{calibrant.__version__} (a source checkout, not installed)" in done.stdout
