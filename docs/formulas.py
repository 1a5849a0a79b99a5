"""Formulas without a network: LaTeX becomes inline SVG, drawn by matplotlib's mathtext.

This file is used twice by mkdocs: as a hook (pages) and as a griffe extension (docstrings).
Formulas travel through markdown as a token, so that no character of theirs is taken for markup,
and become SVG in the finished page. What mathtext cannot draw is shown as monospaced LaTeX.
"""

from __future__ import annotations

import html
import itertools
import re
from functools import cache
from typing import Any

import griffe
from matplotlib import rc_context
from matplotlib.font_manager import FontProperties
from matplotlib.mathtext import MathTextParser
from matplotlib.path import Path
from matplotlib.textpath import text_to_path

_SIZE = 10.0
_TOKEN = re.compile(r"⟦math([di]):([0-9a-f]+)⟧")
_BLOCK = re.compile(r"^\.\. math::[ ]?(.*(?:\n[ \t]+\S.*)*)", re.MULTILINE)
_ROLE = re.compile(r":math:`([^`]+)`")
_PAGE_BLOCK = re.compile(r"^\$\$\s*(.+?)\s*\$\$$", re.MULTILINE | re.DOTALL)
_PAGE_INLINE = re.compile(r"\$`([^`]+)`\$")
_DOC_INLINE = re.compile(r"(?<![\\$\w])\$(?![\s$])([^$]+?)(?<!\s)\$(?![$\w])")
_EXAMPLES = re.compile(r"^(Examples\n-+\n.*?)(?=^\w+\n-+\n|\Z)", re.MULTILINE | re.DOTALL)
_FENCE = re.compile(r"^(```.*?^```)", re.MULTILINE | re.DOTALL)
_PARAMETER = re.compile(r"^(\*{0,2}\w+(?:, \*{0,2}\w+)*) : (.*)$")
_SPELLINGS = {
    r"\tfrac12": r"\frac{1}{2}",
    r"\tfrac{": r"\frac{",
    r"\le ": r"\leq ",
    r"\ge ": r"\geq ",
    r"\iff ": r"\Leftrightarrow ",
    **{rf"\{size}{mark}": rf"\left{mark}" for size in ("big", "Big") for mark in "(["},
    **{rf"\{size}{mark}": rf"\right{mark}" for size in ("big", "Big") for mark in ")]"},
}


# --- docstrings ---------------------------------------------------------------------------------


class Docstrings(griffe.Extension):
    """Turn our docstrings into what mkdocstrings understands."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = _described(with_tokens(obj.docstring.value))


def with_tokens(text: str) -> str:
    """Replace the math of a docstring by tokens: roles, or `$$ ... $$` and `$...$`."""
    text = _BLOCK.sub(lambda m: _token(m[1], "d"), text)
    text = _ROLE.sub(lambda m: _token(m[1], "i"), text)
    parts = _EXAMPLES.split(text)
    for i in range(0, len(parts), 2):  # a dollar sign of an example is one
        parts[i] = _PAGE_BLOCK.sub(lambda m: _token(m[1], "d"), parts[i])
        parts[i] = _DOC_INLINE.sub(lambda m: _token(m[1], "i"), parts[i])
    return "".join(parts)


def _described(text: str) -> str:
    """Move `name : words` under the name: in our docstrings words describe, types are typed.

    Names that share their words get an entry each, as their types and defaults differ.
    """
    lines = text.split("\n")
    out, inside, i = [], False, 0
    while i < len(lines):
        line, i = lines[i], i + 1
        if i < len(lines) and lines[i].startswith("---"):
            inside = line in ("Parameters", "Attributes")
        while inside and re.fullmatch(r"\*{0,2}\w+(, \*{0,2}\w+)*,", line):  # names go on below
            line, i = f"{line} {lines[i].strip()}", i + 1
        match = _PARAMETER.match(line) if inside else None
        if match is None:
            out.append(line)
            continue
        words = [f"    {match[2]}"]
        while i < len(lines) and lines[i].startswith(" "):
            words, i = [*words, lines[i]], i + 1
        for name in match[1].split(", "):
            out += [name, *words]
    return "\n".join(out)


# --- pages --------------------------------------------------------------------------------------


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Replace `$$ ... $$` and ``$`...`$`` by tokens, outside of code."""
    parts = _FENCE.split(markdown)
    for i in range(0, len(parts), 2):
        parts[i] = _PAGE_BLOCK.sub(lambda m: _token(m[1], "d"), parts[i])
        parts[i] = _PAGE_INLINE.sub(lambda m: _token(m[1], "i"), parts[i])
    return "".join(parts)


def on_page_content(html: str, **_: Any) -> str:
    """Draw the tokens."""
    return _TOKEN.sub(lambda m: drawn(bytes.fromhex(m[2]).decode(), display=m[1] == "d"), html)


def _token(latex: str, kind: str) -> str:
    return f"⟦math{kind}:{' '.join(latex.split()).encode().hex()}⟧"


# --- drawing ------------------------------------------------------------------------------------


@cache
def drawn(latex: str, *, display: bool = False) -> str:
    """Return a formula as inline SVG in the colour of the text around it."""
    label = html.escape(latex, quote=True)
    try:
        spelled = _mathtext(latex)
        picture = _svg(spelled.replace(r"\frac", r"\dfrac") if display else spelled, label)
    except ValueError:
        picture = f'<code class="formula">{label}</code>'
    return f'<span class="formula-block">{picture}</span>' if display else picture


def _mathtext(latex: str) -> str:
    """Spell out what mathtext does not know."""
    for theirs, ours in _SPELLINGS.items():
        latex = latex.replace(theirs, ours)
    sides = itertools.cycle((r"\left", r"\right"))
    return re.sub(r"\\[Bb]ig(\\?\|)", lambda bar: next(sides) + bar[1], latex)


def _svg(latex: str, label: str) -> str:
    font = FontProperties(size=_SIZE)
    with rc_context({"mathtext.fontset": "cm"}):
        width, height, depth, *_ = MathTextParser("path").parse(f"${latex}$", 72, font)
        vertices, codes = text_to_path.get_text_path(font, f"${latex}$", ismath=True)
    scale = _SIZE / text_to_path.FONT_SCALE
    path = _path_data([(x * scale, -y * scale) for x, y in vertices], codes)
    pad = 0.4
    box = (-pad, -height + depth - pad, width + 2 * pad, height + 2 * pad)
    # One em of the formula is a little more than one of the text: its letters are smaller.
    em = 1.12 / _SIZE
    style = (
        f"width:{box[2] * em:.3f}em;height:{box[3] * em:.3f}em;"
        f"vertical-align:{-(depth + pad) * em:.3f}em"
    )
    view = " ".join(f"{value:.2f}" for value in box)
    return (
        f'<svg class="formula" role="img" aria-label="{label}" viewBox="{view}" style="{style}">'
        f'<path d="{path}"/></svg>'
    )


def _path_data(points: list[tuple[float, float]], codes: Any) -> str:
    letters = {Path.MOVETO: "M", Path.LINETO: "L", Path.CURVE3: "Q", Path.CURVE4: "C"}
    out, left = [], 0
    for (x, y), code in zip(points, codes, strict=True):
        if code == Path.CLOSEPOLY:
            out.append("Z")
            continue
        if left == 0:
            out.append(letters[code])
            left = {Path.CURVE3: 2, Path.CURVE4: 3}.get(code, 1)
        out.append(f"{x:.2f} {y:.2f} ")
        left -= 1
    return "".join(out)
