"""Rendering of facts as text: wording, order, style and typos, independent of the reason.

All choices use one table of uniform random numbers, with a row per choice. Each fact has its own
wordings, and the omission of a clause is a value of the fact too, so that the facts can be read
back from a text, as in `tests/unit/data/return_reasons/reader.py`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from calibrant.data.return_reasons.lexicon import (
    claims,
    clauses,
    lines,
    outside,
    products,
    words,
)
from calibrant.data.return_reasons.world import Facts

_SHORTEST = 4


_WORD = re.compile(r"[a-z]+")


def add_typo(text: str, where: float, which: float) -> str:
    """Add a typo to one word of a text, or return it unchanged if the word has none."""
    parts = text.split(" ")
    position = int(where * len(parts))
    word = parts[position]
    core = word.rstrip(".,!?:")
    options = word_typos().get(core.lower())
    if not options:
        return text
    typo = options[int(which * len(options))]
    if core.isupper():
        typo = typo.upper()
    elif core[0].isupper():
        typo = typo.capitalize()
    parts[position] = typo + word[len(core) :]
    return " ".join(parts)


@cache
def word_typos() -> dict[str, tuple[str, ...]]:
    """Return the typos of each word that are unique to it."""
    known = vocabulary()
    long = sorted(word for word in known if len(word) >= _SHORTEST)
    candidates = {word: sorted(set(_typos_of(word)) - known) for word in long}
    owners = Counter(typo for typos in candidates.values() for typo in typos)
    return {
        w: tuple(typo for typo in typos if owners[typo] == 1) for w, typos in candidates.items()
    }


@cache
def vocabulary() -> frozenset[str]:
    """Return every word of the corpus in lower case, without punctuation."""
    return frozenset(word for text in _texts() for word in _WORD.findall(_without_marks(text)))


def _typos_of(word: str) -> Iterator[str]:
    """Swap two letters, drop one, or double one; the first letter is unchanged."""
    for i in range(1, len(word)):
        if i + 1 < len(word):
            yield word[:i] + word[i + 1] + word[i] + word[i + 2 :]
        yield word[:i] + word[i + 1 :]
        yield word[: i + 1] + word[i:]


def _texts() -> Iterator[str]:
    yield from outside()
    yield from lines()
    for product in products():
        yield product.name
        yield from product.parts
    for claim in claims():
        for phrases in claim.phrases:
            yield from phrases
    for entries in words().values():
        yield from entries
    yield from _strings(clauses())


def _strings(node: object) -> Iterator[str]:
    if isinstance(node, str):
        yield node
    elif isinstance(node, dict):
        yield from _strings(list(node.values()))
    elif isinstance(node, Iterable):
        for item in node:
            yield from _strings(item)


def _without_marks(text: str) -> str:
    return text.lower().replace("'", "")


FloatArray = NDArray[np.float64]


IntArray = NDArray[np.int64]


_CHOICES = (
    "greeting", "with_greeting", "opening", "subject", "colour", "coloured", "time", "lead",
    "with_lead", "claim", "part", "contrasted", "contrast", "other", "other_claim", "denial",
    "joined", "turned", "use", "context", "with_context", "person", "occasion", "city", "feeling",
    "request", "closing", "with_closing", "name", "surname", "layout", "tail", "with_tail",
    "digits_1", "digits_2", "digits_3", "style", "slip_1", "where_1", "which_1", "slip_2",
    "where_2", "which_2", "outside", "product", "brand", "line", "with_line",
)  # fmt: skip


N_CHOICES = len(_CHOICES)
"""Number of rows in the table of uniform numbers."""


_COLOUR_SHARE = (0.3, 0.3, 0.3, 0.0, 0.0)  # by group: puzzles and teas have no colour


_LINE_SHARE = 0.25


_CONTRAST_SHARE = 0.17


_SUBJECT_SHARE = 0.6  # share of complaints about "it" that name the product and need no opening


_TURNED_SHARE = 0.3


_TYPO_SHARES = (0.20, 0.05)


_JOINS = (". ", ". ", ", ", " but ", ", but ")


_LAYOUTS = (
    ("opening", "body", "use", "context", "feeling", "request"),
    ("opening", "use", "body", "feeling", "context", "request"),
    ("opening", "context", "body", "use", "request", "feeling"),
    ("body", "opening", "use", "feeling", "request", "context"),
    ("opening", "body", "request", "use", "feeling", "context"),
)


_MARKS = str.maketrans("", "", ".,!?:'")


def texts(facts: Facts, uniform: FloatArray) -> list[str]:
    """Render one message per row of facts."""
    chance = _Choices(dict(zip(_CHOICES, uniform, strict=True)))
    columns = _details(facts, chance)
    complaints, opened = _complaints(facts, chance)
    columns["body"] = _bodies(facts, chance, _fill_gaps(complaints, columns))
    columns["opening"] = _fill_gaps(
        _keep_where(chance.pick("opening", clauses()["openings"]), opened), columns
    )
    for name in ("use", "request", "feeling"):
        wordings = _sentence_wordings(f"{name}s")
        columns[name] = wordings.pick(getattr(facts, name), chance[name])
    columns["context"] = _fill_gaps(chance.pick_some("context"), columns)
    return _apply_style(_arrange_clauses(columns, chance), columns, chance)


def outside_texts(uniform: FloatArray) -> list[str]:
    """Render out-of-scope messages."""
    chance = _Choices(dict(zip(_CHOICES, uniform, strict=True)))
    columns = _names(chance)
    columns["p"] = chance.pick("product", [product.name for product in products()])
    columns["brand"] = chance.pick("brand", words()["brands"])
    columns["brand2"] = chance.pick("part", words()["brands"])
    columns["colour"] = chance.pick("colour", words()["colours"])
    greeting = chance.pick_some("greeting")
    body = _fill_gaps(chance.pick("outside", outside()), columns)
    closing = _fill_gaps(chance.pick_some("closing"), columns)
    rows = [
        " ".join(filter(None, (hello, _lower_first(text) if hello else text, bye)))
        for hello, text, bye in zip(greeting, body, closing, strict=True)
    ]
    return _apply_style(rows, columns, chance)


@dataclass(frozen=True)
class _Choices:
    """Uniform random numbers by choice."""

    rows: dict[str, FloatArray]

    def __getitem__(self, choice: str) -> FloatArray:
        return self.rows[choice]

    def index(self, choice: str, sizes: int | IntArray) -> IntArray:
        return np.asarray(self[choice] * sizes).astype(np.int64)

    def pick(self, choice: str, values: Sequence[str]) -> list[str]:
        """Choose a value for each row."""
        return [values[i] for i in self.index(choice, len(values)).tolist()]

    def pick_some(self, clause: str) -> list[str]:
        """Choose a wording of a clause in its share of the rows, else ''."""
        entry = clauses()[f"{clause}s"]
        return _keep_where(
            self.pick(clause, entry["phrases"]), self[f"with_{clause}"] < entry["share"]
        )

    def pick_rare(self, choice: str, values: Sequence[str]) -> list[str]:
        """Choose a value for each row; later values are rarer."""
        place = (self[choice] ** 2 * len(values)).astype(np.int64)
        return [values[i] for i in place.tolist()]


@dataclass(frozen=True)
class _Wordings:
    """Wordings of many values in one list; those of value v start at `start[v]`."""

    phrases: tuple[str, ...]
    start: IntArray
    count: IntArray

    def pick(self, value: IntArray, uniform: FloatArray) -> list[str]:
        place = self.start[value] + (uniform * self.count[value]).astype(np.int64)
        return [self.phrases[i] for i in place.tolist()]


def _wordings(lists: Iterable[Iterable[str]]) -> _Wordings:
    groups = [tuple(phrases) for phrases in lists]
    count = np.array([len(phrases) for phrases in groups])
    return _Wordings(sum(groups, ()), np.cumsum(count) - count, count)


@cache
def _claim_wordings() -> _Wordings:
    n_groups = len(claims()[0].phrases)
    return _wordings(claim.phrases[group] for group in range(n_groups) for claim in claims())


@cache
def _clause_wordings(slot: str) -> _Wordings:
    return _wordings(value["phrases"] for value in clauses()[slot].values())


@cache
def _sentence_wordings(slot: str) -> _Wordings:
    return _wordings(map(_sentence, value["phrases"]) for value in clauses()[slot].values())


def _names(chance: _Choices) -> dict[str, list[str]]:
    """Choose names that are independent of the reason."""
    return {
        "time": chance.pick_rare("time", words()["times"]),
        "person": chance.pick_rare("person", words()["people"]),
        "occasion": chance.pick_rare("occasion", words()["occasions"]),
        "city": chance.pick_rare("city", words()["cities"]),
        "name": chance.pick_rare("name", words()["names"]),
        "surname": chance.pick_rare("surname", words()["surnames"]),
    }


def _details(facts: Facts, chance: _Choices) -> dict[str, list[str]]:
    """Choose the words that fill the gaps of the clauses."""
    goods = [products()[i] for i in facts.product.tolist()]
    brands = ["", *(f"{brand} " for brand in words()["brands"])]
    hue = np.array(_COLOUR_SHARE)[[product.group for product in goods]]
    colours = _space_where(chance.pick_rare("colour", words()["colours"]), chance["coloured"] < hue)
    series = _space_where(chance.pick("line", lines()), chance["with_line"] < _LINE_SHARE)
    full = [
        f"{colour}{brands[brand]}{line}{product.name}"
        for colour, brand, line, product in zip(
            colours, facts.brand.tolist(), series, goods, strict=True
        )
    ]
    parts = chance.index("part", np.array([len(product.parts) for product in goods]))
    return _names(chance) | {
        "p": [product.name for product in goods],
        "ap": [_article(name) + name for name in full],
        "the": ["the " + name for name in full],
        "my": ["my " + name for name in full],
        "part": [product.parts[i] for product, i in zip(goods, parts.tolist(), strict=True)],
    }


def _complaints(facts: Facts, chance: _Choices) -> tuple[list[str], NDArray[np.bool_]]:
    """Choose the complaints, and return which need an opening that names the product."""
    group = np.array([good.group for good in products()])[facts.product]
    wordings = _claim_wordings().pick(group * len(claims()) + facts.claim, chance["claim"])
    leads = chance.pick_some("lead")
    complaints = [lead + claim for lead, claim in zip(leads, wordings, strict=True)]
    opened = np.full(len(complaints), fill_value=True)
    for i in np.flatnonzero(chance["subject"] < _SUBJECT_SHARE).tolist():
        if wordings[i].startswith("it "):
            subject = "{the}" if chance["subject"][i] < _SUBJECT_SHARE / 2 else "{my}"
            complaints[i], opened[i] = leads[i] + subject + wordings[i][2:], False
    for i, contrast in _contrasts(facts, chance, wordings):
        complaints[i], opened[i] = contrast, True
    return complaints, opened


def _bodies(facts: Facts, chance: _Choices, complaints: list[str]) -> list[str]:
    """Join each complaint with its denial."""
    standalone = _has_contrast(facts, chance).tolist()  # contrasts form a sentence by themselves
    joins = [
        ". " if a else join
        for a, join in zip(standalone, chance.pick("joined", _JOINS), strict=True)
    ]
    denied = _clause_wordings("denials").pick(facts.denial, chance["denial"])
    turned = (chance["turned"] < _TURNED_SHARE).tolist()
    out = []
    for claim, denial, join, turn in zip(complaints, denied, joins, turned, strict=True):
        if not denial:
            out.append(claim + ".")
        elif turn:
            out.append(_upper_first(denial) + join + _after_join(claim, join) + ".")
        else:
            out.append(claim + join + _after_join(denial, join) + ".")
    return out


def _has_contrast(facts: Facts, chance: _Choices) -> NDArray[np.bool_]:
    """Return which complaints are contrasted with another: some of the short ones."""
    short = np.array([claim.short for claim in claims()])
    return np.asarray(short[facts.claim] & (chance["contrasted"] < _CONTRAST_SHARE))


def _contrasts(facts: Facts, chance: _Choices, wordings: list[str]) -> Iterator[tuple[int, str]]:
    """Yield the rows and texts of complaints contrasted with another short one.

    The other complaint is independent of the reason.
    """
    shorts = np.flatnonzero([claim.short for claim in claims()])
    step = 1 + chance.index("other", len(shorts) - 1)
    other = shorts[(np.searchsorted(shorts, facts.claim) + step) % len(shorts)]
    others = _claim_wordings().pick(other, chance["other_claim"])
    frames = chance.pick("contrast", clauses()["contrasts"])
    for i in np.flatnonzero(_has_contrast(facts, chance)).tolist():
        yield i, _upper_first(frames[i].replace("{a}", wordings[i]).replace("{b}", others[i]))


def _after_join(clause: str, join: str) -> str:
    """Adapt a clause to the join before it: upper case only after a full stop."""
    if join == ". ":
        return _upper_first(clause)
    return _lower_first(clause)


def _arrange_clauses(columns: dict[str, list[str]], chance: _Choices) -> list[str]:
    """Arrange the clauses of each message between greeting and closing."""
    greetings = chance.pick_some("greeting")
    closings = _fill_gaps(chance.pick_some("closing"), columns)
    names = _LAYOUTS[0]
    orders = [[names.index(name) for name in layout] for layout in _LAYOUTS]
    layouts = chance.index("layout", len(_LAYOUTS)).tolist()
    rows = zip(*(columns[name] for name in names), strict=True)
    out = []
    for greeting, closing, layout, row in zip(greetings, closings, layouts, rows, strict=True):
        middle = [row[i] for i in orders[layout] if row[i]]
        if greeting:
            middle[0] = _lower_first(middle[0])
        out.append(" ".join([part for part in (greeting, *middle, closing) if part]))
    return out


_STYLES: tuple[tuple[float, Callable[[str], str]], ...] = (
    (0.58, lambda text: text),
    (0.75, lambda text: text.lower()),
    (0.87, lambda text: text.lower().translate(_MARKS)),
    (0.94, lambda text: text.lower().replace(". ", ", ")),
    (0.98, lambda text: text.replace(".", "!")),
    (1.00, lambda text: text.upper()),
)
"""Writing styles with cumulative shares, from tidy to untidy."""


def _apply_style(rows: list[str], columns: dict[str, list[str]], chance: _Choices) -> list[str]:
    """Apply style and typos to each message, then append order numbers and addresses."""
    style = np.searchsorted([share for share, _ in _STYLES], chance["style"], side="right")
    out = [_STYLES[i][1](text) for i, text in zip(style.tolist(), rows, strict=True)]
    for number, share in enumerate(_TYPO_SHARES, start=1):
        where, which = chance[f"where_{number}"], chance[f"which_{number}"]
        for i in np.flatnonzero(chance[f"slip_{number}"] < share).tolist():
            out[i] = add_typo(out[i], where[i], which[i])
    tails = chance.pick("tail", clauses()["tails"]["phrases"])
    for i in np.flatnonzero(chance["with_tail"] < clauses()["tails"]["share"]).tolist():
        out[i] += " " + _tail(tails[i], columns, chance, i)
    return out


def _tail(phrase: str, columns: dict[str, list[str]], chance: _Choices, i: int) -> str:
    first, second, third = (int(chance[f"digits_{k}"][i] * 1e7) for k in (1, 2, 3))
    person = f"{columns['name'][i]}.{columns['surname'][i]}".lower()
    return phrase.format(
        order=f"{first % 1000:03d}-{second:07d}-{third:07d}",
        mail=f"{person}{first % 100}@example.{('com', 'org', 'net')[second % 3]}",
        phone=f"+49 {150 + first % 30} {1_000_000 + second % 9_000_000}",
        invoice=f"INV-{2020 + first % 6}-{third % 1_000_000:06d}",
    )


def _fill_gaps(phrases: list[str], columns: dict[str, list[str]]) -> list[str]:
    """Fill the {placeholders} of each phrase and capitalise it."""
    out = []
    for i, phrase in enumerate(phrases):
        pieces, gaps = _pieces(phrase)
        for gap, piece in gaps:
            pieces += columns[gap][i] + piece
        out.append(pieces[:1].upper() + pieces[1:])
    return out


@cache
def _pieces(phrase: str) -> tuple[str, tuple[tuple[str, str], ...]]:
    """Split a phrase into its start and pairs of placeholder name and following text."""
    start, *rest = phrase.split("{")
    pairs = (piece.split("}") for piece in rest)
    return start, tuple((gap, piece) for gap, piece in pairs)


def _article(name: str) -> str:
    return "an " if name[0] in "aeiouAEIOU" and name != "ukulele" else "a "


def _keep_where(values: list[str], mask: NDArray[np.bool_]) -> list[str]:
    return [value if keep else "" for value, keep in zip(values, mask.tolist(), strict=True)]


def _space_where(values: list[str], mask: NDArray[np.bool_]) -> list[str]:
    return [value + " " if keep else "" for value, keep in zip(values, mask.tolist(), strict=True)]


def _sentence(text: str) -> str:
    return _upper_first(text) + ("." if text and text[-1] not in ".?" else "")


def _upper_first(text: str) -> str:
    return text[:1].upper() + text[1:]


def _lower_first(text: str) -> str:
    return text if text.startswith("I ") else text[:1].lower() + text[1:]
