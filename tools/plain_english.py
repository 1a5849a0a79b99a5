"""Deny list of words that this field does not use, over everything that a person reads.

Checked are the strings, docstrings and comments of Python files, the text of templates, scripts
and documentation pages, and names that are participles without a noun (`found`, `told`, ...).
`python tools/plain_english.py [PATH ...]` prints each place and exits with 1 if there is one.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

CHECKED = ("src", "reproductions", "benchmarks", "docs", "README.md", "CONTRIBUTING.md")
SUFFIXES = {".py", ".md", ".j2", ".js", ".toml"}
SKIPPED = (
    "docs/reproductions/results",
    "docs/cli",
    "docs/guarantees.md",
    "site",
    "__pycache__",
    "return_reasons/",
)
"""Records, generated pages, and the built-in corpus, whose texts are customers' own."""

DENIED = {
    r"\bmend(s|ed|ing)?\b": "fix, repair, correct",
    r"\b(gone|goes|go|going|went) on with\b": "resume, continue",
    r"\bby wish\b": "optionally",
    r"\b(told|tell|tells|telling) apart\b": "distinguish",
    r"\btold\b": "reported, said so in the field's word",
    r"\bwhat (has )?(came|comes|become|became) of\b": "the result, the outcome",
    r"\btell-?tales?\b": "target leakage",
    r"(?<!there )\b(is|are|was|were) no (?!(longer|more|less|better|worse|larger|smaller|greater|"
    r"higher|lower|other|different|slower|faster|fewer|later|earlier|wider)\b)[a-z]": "is not a",
    r"(?<!there )\b(is|are) (?-i:none)\b": "is not one, there is none",
    r"\banew\b": "again, from scratch",
    r"\bnothing reads\b": "broken pipe",
    r"\bno such thing\b": "not found",
    r"\bso many\b": "N, at most N",
    r"\b(stands|stood) (there|here|in its place)\b": "exists, is",
    r"\bat its height\b": "peak",
    r"\ball else\b": "everything else",
    r"\bwhat is (?-i:none)\b": "what is not one",
}
"""What is denied, and what to write."""

DENIED_NAMES = {"found", "told", "made", "asked", "given", "said", "kept"}
"""Participles that say nothing of what a value is: name the thing."""

_KEY = "key of stored records, which must stay readable"
ALLOWED: dict[str, dict[str, str]] = {
    "tools/plain_english.py": {"*": "the list itself"},
    "benchmarks/threshold_power.py": {"mended": _KEY},
    "docs/reproduction_extra_tables.py": {"told": _KEY},
    "reproductions/class_report.py": {"told": _KEY},
    "reproductions/extra_words.py": {"told": _KEY},
    "reproductions/tutorial.py": {"told": _KEY},
}
"""Words allowed in a file, each with the reason; `*` allows the whole file.

A word is allowed as a whole string only, as in `record["told"]`, not within a sentence.
"""

_DENIED = [(re.compile(pattern, re.IGNORECASE), better) for pattern, better in DENIED.items()]


def texts_of(path: Path) -> Iterator[tuple[int, str]]:
    """Return the line number and text of everything in a file that a person reads."""
    source = path.read_text(encoding="utf-8")
    if path.suffix != ".py":
        yield 1, source
        return
    kinds = {tokenize.STRING, tokenize.COMMENT, getattr(tokenize, "FSTRING_MIDDLE", -1)}
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type in kinds:
            yield token.start[0], token.string


def names_of(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Return every name that a file defines: variables, arguments, functions, fields."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.lineno, node.name


def name_in_project(path: Path) -> str:
    """Return a path relative to the project, or the path itself outside it."""
    return path.relative_to(ROOT).as_posix() if path.is_relative_to(ROOT) else str(path)


def is_allowed(path: Path, text: str) -> bool:
    """Return whether a text is one string, and that is a word allowed in the file."""
    return text.strip("\"'") in ALLOWED.get(name_in_project(path), {})


def faults_of(path: Path) -> Iterator[tuple[int, str]]:
    """Return the line and description of each denied word or name in a file."""
    for start, text in texts_of(path):
        if is_allowed(path, text):
            continue
        for pattern, better in _DENIED:
            for match in pattern.finditer(text):
                line = start + text.count("\n", 0, match.start())
                yield line, f"'{' '.join(match.group().split())}': write {better}"
    if path.suffix == ".py":
        for line, name in names_of(ast.parse(path.read_text(encoding="utf-8"))):
            if name.strip("_").lower() in DENIED_NAMES:
                yield line, f"name `{name}`: use a noun, or a verb with its object"


def checked_files(names: list[str]) -> Iterator[Path]:
    """Return the files to check below the given paths, in order."""
    for name in names:
        path = (ROOT / name).resolve()
        for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
            inside = name_in_project(file)
            allowed = "*" in ALLOWED.get(inside, {})
            skipped = allowed or any(part in inside for part in SKIPPED)
            if file.is_file() and file.suffix in SUFFIXES and not skipped:
                yield file


def main(arguments: list[str]) -> int:
    """Print every fault below the given paths; return 1 if there is one."""
    faults = [
        f"{file.relative_to(ROOT)}:{line}: {fault}"
        for file in checked_files(arguments or [name for name in CHECKED if (ROOT / name).exists()])
        for line, fault in sorted(set(faults_of(file)))
    ]
    for fault in faults:
        print(fault)
    print(f"{len(faults)} words of the deny list")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
