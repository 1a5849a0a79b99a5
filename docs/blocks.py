"""The code of the pages: find it, run it, and hold what it prints against what the page shows.

- a fence `python` runs, all of a page in one namespace; `py-no-run` does not;
- a fence `bash` that starts with `calibrant ` runs line by line; a line that ends with a backslash
  goes on in the next;
- a fence with a title (```text title="small.csv") is written to a file of that name first;
- a fence `text` or `json` straight after one that ran shows its output; a line `...` leaves some
  of it out;
- where the words above a `bash` fence say "exit code 2", that code is due instead of 0.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from docs.warm import CALIBRANT, Start, cold

from calibrant.data import return_reasons

_FENCE = re.compile(r"^```([\w-]*)([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_TITLE = re.compile(r'title="([^"]+)"')
_EXIT = re.compile(r"exit code (\d+)")
_TOKEN = re.compile(r"[-+]?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?|[^\s\d]+")


@dataclass(frozen=True)
class Block:
    """A fence of a page; `shown` is the output that follows it and `place` where that stands."""

    kind: str
    code: str
    line: int
    exit_code: int = 0
    file: str | None = None
    shown: str | None = None
    place: tuple[int, int] | None = None


@dataclass(frozen=True)
class Outcome:
    """What a block did."""

    block: Block
    exit_code: int
    output: str


def blocks(text: str) -> list[Block]:
    """Return the fences of a page in order."""
    fences = list(_FENCE.finditer(text))
    out = []
    for i, fence in enumerate(fences):
        following = fences[i + 1] if i + 1 < len(fences) else None
        shown = place = None
        if following is not None and _shows(text, fence, following):
            shown, place = following[3], following.span(3)
        above = text[: fence.start()].rstrip().rpartition("\n")[2]
        due = _EXIT.search(above)
        title = _TITLE.search(fence[2])
        line = text.count("\n", 0, fence.start()) + 1
        code = int(due[1]) if due else 0
        out.append(Block(fence[1], fence[3], line, code, title and title[1], shown, place))
    return out


def run_page(text: str, folder: Path, start: Start = cold) -> Iterator[Outcome]:
    """Run every block of a page in a folder that holds the demo's files; `start` runs commands."""
    names: dict[str, object] = {"__name__": "__page__"}
    for block in blocks(text):
        if block.file is not None:
            (folder / block.file).write_text(block.code, encoding="utf-8")
        elif block.kind == "python":
            yield Outcome(block, 0, _run_python(block, names, folder))
        elif block.kind == "bash" and block.code.startswith("calibrant "):
            yield _run_shell(block, folder, start)


def prepare(folder: Path) -> None:
    """Put the demo's files where the pages expect them; its study takes minutes and is not run."""
    command = [*CALIBRANT, "demo", "--scores", "--json"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True, env=environment())
    for name in ("scores.csv", "ideal.csv"):
        (folder / name).write_bytes((folder / "runs/demo" / name).read_bytes())
    # What the demo trains on, but fewer messages.
    return_reasons.draw(2000, source="logs").write(folder / "runs/demo/logs.csv")
    golden = return_reasons.draw(800, source="golden", out_of_scope=0.04)
    golden.write(folder / "runs/demo/golden.csv")


def environment() -> dict[str, str]:
    """Return an environment in which output looks as on the pages."""
    variables = {k: v for k, v in os.environ.items() if not k.startswith(("CALIBRANT_", "FORCE_"))}
    return {**variables, "COLUMNS": "80", "NO_COLOR": "1", "TERM": "dumb", "PYTHONUTF8": "1"}


def matches(shown: str, output: str) -> bool:
    """Whether the page shows what came: the same words, and numbers up to a few percent.

    So much may differ from machine to machine.
    """
    return renewed(shown, output) is not None


def renewed(shown: str, output: str) -> str | None:
    """Return what the page shows with every digit as it came; None where it shows something else.

    A page that keeps the digits of an older run drifts, by less than a few percent each time.
    """
    tokens, at = _tokens(output), 0
    parts = re.split(r"(^\s*\.\.\.$)", shown, flags=re.MULTILINE)  # every other one is the dots
    for i in range(0, len(parts), 2):
        wanted = _tokens(parts[i])
        starts = [at] if i == 0 else range(at, len(tokens) - len(wanted) + 1)
        start = next((s for s in starts if _same(wanted, tokens[s : s + len(wanted)])), None)
        if start is None:
            return None
        at = start + len(wanted)
        parts[i] = _with_tokens(parts[i], tokens[start:at])
    return None if len(parts) == 1 and at != len(tokens) else "".join(parts)


def _shows(text: str, fence: re.Match[str], following: re.Match[str]) -> bool:
    between = text[fence.end() : following.start()].strip()
    return not between and following[1] in ("text", "json") and not _TITLE.search(following[2])


def _run_python(block: Block, names: dict[str, object], folder: Path) -> str:
    out = io.StringIO()
    with contextlib.chdir(folder), contextlib.redirect_stdout(out):
        exec(compile(block.code, f"line {block.line}", "exec"), names)
    return out.getvalue()


def _run_shell(block: Block, folder: Path, start: Start) -> Outcome:
    code, out = 0, ""
    for line in block.code.replace("\\\n", "").splitlines():
        words = shlex.split(line, comments=True)
        if not words or words[0] != "calibrant":
            raise ValueError(f"line {block.line}: a shell block runs only calibrant, got {line!r}")
        ended, printed = start(words[1:], folder, environment())
        out += printed
        code = max(code, ended)
    return Outcome(block, code, out)


def _tokens(text: str) -> list[str]:
    return [token for token in _TOKEN.findall(text) if not _is_line(token)]


def _with_tokens(text: str, tokens: list[str]) -> str:
    """Put tokens in the places of those of a text, whose breaks and drawn lines stay."""
    came = iter(tokens)
    return _TOKEN.sub(lambda one: one[0] if _is_line(one[0]) else next(came), text)


def _is_line(token: str) -> bool:
    return set(token) <= set("─╭╮╰╯│")


def _same(wanted: list[str], actual: list[str]) -> bool:
    return len(wanted) == len(actual) and all(map(_alike, wanted, actual))


def _alike(a: str, b: str) -> bool:
    if a == b:
        return True
    try:
        x, y = float(a.replace(",", "")), float(b.replace(",", ""))
    except ValueError:
        return False
    return abs(x - y) <= max(0.002, 0.05 * abs(x)) and ("." in a) == ("." in b)
