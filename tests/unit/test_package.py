"""The whole package: fast to import, documented, and usable without optional extras."""

import ast
import importlib
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import calibrant

HEAVY = ("torch", "plotly", "matplotlib", "pandas", "sklearn", "scipy.stats", "pyarrow")
MOST_WITH_ONE_IMPORTER = 60
SOURCES = Path(calibrant.__file__).parent
MODULES = [
    name
    for _, name, _ in pkgutil.walk_packages([str(SOURCES)], "calibrant.")
    if "__main__" not in name
]


def run(code):
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout


def test_importing_calibrant_imports_nothing_heavy():
    code = f"import calibrant, sys; print([m for m in {HEAVY} if m in sys.modules])"
    assert run(code).strip() == "[]"


def test_help_imports_nothing_heavy():
    code = (
        "import sys; sys.argv = ['calibrant', '--help']\n"
        "from calibrant.cli.main import run\n"
        "try: run()\n"
        f"except SystemExit: print([m for m in {HEAVY} if m in sys.modules])"
    )
    assert run(code).strip().splitlines()[-1] == "[]"


def test_evaluate_and_compare_work_without_torch(tmp_path):
    code = f"""
import sys
sys.modules["torch"] = None
import calibrant
from calibrant.data import write_example
scores = write_example(r"{tmp_path / "scores.csv"}", n=300)
from calibrant.cli.main import run
for words in (["evaluate", str(scores), "--json"], ["compare", str(scores), str(scores)],
              ["evaluate", "--help"], ["compare", "--help"], ["demo", "--help"], ["doctor"]):
    sys.argv = ["calibrant", *words]
    try: run()
    except SystemExit as end: assert end.code == 0, (words, end.code)
print("all ran")
"""
    assert run(code).strip().endswith("all ran")


def test_every_exported_name_exists():
    for name in calibrant.__all__:
        assert getattr(calibrant, name) is not None
    assert set(calibrant.__all__) <= set(dir(calibrant))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = calibrant.nothing


def test_every_module_has_a_docstring_and_a_correct_all():
    assert len(MODULES) > 400
    faults = []
    for name in MODULES:
        module = importlib.import_module(name)
        if not module.__doc__:
            faults.append(f"{name} has no docstring")
        faults += [
            f"{name}.__all__ lists {public}, which does not exist"
            for public in getattr(module, "__all__", ())
            if not hasattr(module, public)
        ]
    assert not faults, "\n".join(faults)


def test_files_and_functions_stay_small():
    for path in SOURCES.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        assert text.count("\n") <= 500, f"{path.name} is longer than 500 lines"
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                body = node.body[1:] if ast.get_docstring(node) and node.body[1:] else node.body
                length = node.end_lineno - body[0].lineno + 1
                assert length <= 50, f"{path.name}: {node.name} has {length} lines"


def parse_modules():
    """Return the syntax tree of each module by its dotted name, without `__init__`."""
    trees = {}
    for path in SOURCES.rglob("*.py"):
        name = ".".join(path.relative_to(SOURCES.parent).with_suffix("").parts)
        trees[name] = ast.parse(path.read_text(encoding="utf-8"))
    return trees


def find_importers(trees):
    """Return the modules that import each module, itself and packages (`__init__`) apart."""
    importers = {name: set() for name in trees if not name.endswith("__init__")}
    for name, tree in trees.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module:
                imported = {node.module, *(f"{node.module}.{each.name}" for each in node.names)}
            elif isinstance(node, ast.Import):
                imported = {each.name for each in node.names}
            else:
                continue
            for module in imported & importers.keys() - {name}:
                importers[module].add(name)
    return importers


REGISTRIES = {
    "calibrant.cli.app",  # verbs
    "calibrant.serving.console.routes",  # pages
    "calibrant.boosting.names",  # objectives
}
"""Modules that list the members of a family; each member is a concept."""


def test_few_modules_serve_one_other_module_only():
    """A file that one other file imports is often a piece of it, cut off by its length."""
    apart = {
        name
        for name, users in find_importers(parse_modules()).items()
        if len(users) == 1 and not users & REGISTRIES and not next(iter(users)).endswith("__init__")
    }
    assert len(apart) <= MOST_WITH_ONE_IMPORTER, "\n".join(sorted(apart))


def test_a_public_class_name_has_one_meaning():
    homes = {}
    for module, tree in parse_modules().items():
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes.setdefault(node.name, []).append(module)
    shared = {name: modules for name, modules in homes.items() if len(modules) > 1}
    assert not shared, f"rename all but one of {shared}"


def test_the_version_is_that_of_the_installed_package():
    from importlib.metadata import version

    assert calibrant.__version__ == version("calibrant")
