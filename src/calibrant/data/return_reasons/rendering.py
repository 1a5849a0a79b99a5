"""From facts to text: wording, order, style and slips, by chance that does not know the reason.

Every number comes from one table of uniform numbers, a row of it for each choice. A fact has
wordings of its own, and leaving a clause out is a value of the fact too, so that a text tells its
facts: `tests/unit/data/return_reasons/reader.py` reads them back.
"""

from __future__ import annotations

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
from calibrant.data.return_reasons.typos import misspelt
from calibrant.data.return_reasons.world import Facts

__all__ = ["N_CHOICES", "outside_texts", "texts"]

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
"""Rows of the table of uniform numbers that a text is rendered with."""

_COLOURED = (0.3, 0.3, 0.3, 0.0, 0.0)  # by group: nobody writes of a navy puzzle or a teal tea
_LINED = 0.25
_CONTRASTED = 0.17
_SUBJECT = 0.6  # of complaints about "it": they name the thing and need no opening
_TURNED = 0.3
_SLIPS = (0.20, 0.05)
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
    """Render one message for each row of facts."""
    chance = _Chance(dict(zip(_CHOICES, uniform, strict=True)))
    columns = _details(facts, chance)
    complaints, opened = _complaints(facts, chance)
    columns["body"] = _bodies(facts, chance, _filled(complaints, columns))
    columns["opening"] = _filled(
        _kept(chance.pick("opening", clauses()["openings"]), opened), columns
    )
    for name in ("use", "request", "feeling"):
        wordings = _sentence_wordings(f"{name}s")
        columns[name] = wordings.pick(getattr(facts, name), chance[name])
    columns["context"] = _filled(chance.pick_some("context"), columns)
    return _finished(_laid_out(columns, chance), columns, chance)


def outside_texts(uniform: FloatArray) -> list[str]:
    """Render messages that are about something else than a return."""
    chance = _Chance(dict(zip(_CHOICES, uniform, strict=True)))
    columns = _names(chance)
    columns["p"] = chance.pick("product", [product.name for product in products()])
    columns["brand"] = chance.pick("brand", words()["brands"])
    columns["brand2"] = chance.pick("part", words()["brands"])
    columns["colour"] = chance.pick("colour", words()["colours"])
    greeting = chance.pick_some("greeting")
    body = _filled(chance.pick("outside", outside()), columns)
    closing = _filled(chance.pick_some("closing"), columns)
    rows = [
        " ".join(filter(None, (hello, _small(text) if hello else text, bye)))
        for hello, text, bye in zip(greeting, body, closing, strict=True)
    ]
    return _finished(rows, columns, chance)


@dataclass(frozen=True)
class _Chance:
    """The uniform numbers of each choice."""

    rows: dict[str, FloatArray]

    def __getitem__(self, choice: str) -> FloatArray:
        return self.rows[choice]

    def index(self, choice: str, sizes: int | IntArray) -> IntArray:
        return np.asarray(self[choice] * sizes).astype(np.int64)

    def pick(self, choice: str, values: Sequence[str]) -> list[str]:
        """Return one of the values for each row."""
        return [values[i] for i in self.index(choice, len(values)).tolist()]

    def pick_some(self, clause: str) -> list[str]:
        """Return one of the wordings of a clause in its share of the rows, else nothing."""
        entry = clauses()[f"{clause}s"]
        return _kept(self.pick(clause, entry["phrases"]), self[f"with_{clause}"] < entry["share"])

    def pick_rare(self, choice: str, values: Sequence[str]) -> list[str]:
        """Return one of the values, early ones more often: late ones are rare."""
        place = (self[choice] ** 2 * len(values)).astype(np.int64)
        return [values[i] for i in place.tolist()]


@dataclass(frozen=True)
class _Wordings:
    """Wordings of many values in one list: those of value v are `start[v]` and the next ones."""

    phrases: tuple[str, ...]
    start: IntArray
    count: IntArray

    def pick(self, value: IntArray, uniform: FloatArray) -> list[str]:
        place = self.start[value] + (uniform * self.count[value]).astype(np.int64)
        return [self.phrases[i] for i in place.tolist()]


def _wordings(lists: Iterable[Iterable[str]]) -> _Wordings:
    kept = [tuple(phrases) for phrases in lists]
    count = np.array([len(phrases) for phrases in kept])
    return _Wordings(sum(kept, ()), np.cumsum(count) - count, count)


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


def _names(chance: _Chance) -> dict[str, list[str]]:
    """Return the words that say nothing about the reason."""
    return {
        "time": chance.pick_rare("time", words()["times"]),
        "person": chance.pick_rare("person", words()["people"]),
        "occasion": chance.pick_rare("occasion", words()["occasions"]),
        "city": chance.pick_rare("city", words()["cities"]),
        "name": chance.pick_rare("name", words()["names"]),
        "surname": chance.pick_rare("surname", words()["surnames"]),
    }


def _details(facts: Facts, chance: _Chance) -> dict[str, list[str]]:
    """Return the words that go into the gaps of the clauses."""
    goods = [products()[i] for i in facts.product.tolist()]
    brands = ["", *(f"{brand} " for brand in words()["brands"])]
    hue = np.array(_COLOURED)[[product.group for product in goods]]
    colours = _spaced(chance.pick_rare("colour", words()["colours"]), chance["coloured"] < hue)
    series = _spaced(chance.pick("line", lines()), chance["with_line"] < _LINED)
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


def _complaints(facts: Facts, chance: _Chance) -> tuple[list[str], NDArray[np.bool_]]:
    """Return the complaints, and which of them need an opening that names the thing."""
    group = np.array([good.group for good in products()])[facts.product]
    said = _claim_wordings().pick(group * len(claims()) + facts.claim, chance["claim"])
    leads = chance.pick_some("lead")
    out = [lead + claim for lead, claim in zip(leads, said, strict=True)]
    opened = np.full(len(out), fill_value=True)
    for i in np.flatnonzero(chance["subject"] < _SUBJECT).tolist():
        if said[i].startswith("it "):
            subject = "{the}" if chance["subject"][i] < _SUBJECT / 2 else "{my}"
            out[i], opened[i] = leads[i] + subject + said[i][2:], False
    for i, contrast in _contrasts(facts, chance, said):
        out[i], opened[i] = contrast, True
    return out, opened


def _bodies(facts: Facts, chance: _Chance, complaints: list[str]) -> list[str]:
    """Return the complaints, each with what is denied."""
    alone = _contrasted(facts, chance).tolist()  # contrasts are long enough to stand alone
    joins = [
        ". " if a else join for a, join in zip(alone, chance.pick("joined", _JOINS), strict=True)
    ]
    denied = _clause_wordings("denials").pick(facts.denial, chance["denial"])
    turned = (chance["turned"] < _TURNED).tolist()
    out = []
    for claim, denial, join, turn in zip(complaints, denied, joins, turned, strict=True):
        if not denial:
            out.append(claim + ".")
        elif turn:
            out.append(_capital(denial) + join + _within(claim, join) + ".")
        else:
            out.append(claim + join + _within(denial, join) + ".")
    return out


def _contrasted(facts: Facts, chance: _Chance) -> NDArray[np.bool_]:
    """Return which complaints are set against another one: some of the short ones."""
    short = np.array([claim.short for claim in claims()])
    return np.asarray(short[facts.claim] & (chance["contrasted"] < _CONTRASTED))


def _contrasts(facts: Facts, chance: _Chance, said: list[str]) -> Iterator[tuple[int, str]]:
    """Yield complaints that are set against another one, with their rows.

    The other complaint is one of the other short ones, whatever the reason.
    """
    shorts = np.flatnonzero([claim.short for claim in claims()])
    step = 1 + chance.index("other", len(shorts) - 1)
    other = shorts[(np.searchsorted(shorts, facts.claim) + step) % len(shorts)]
    others = _claim_wordings().pick(other, chance["other_claim"])
    frames = chance.pick("contrast", clauses()["contrasts"])
    for i in np.flatnonzero(_contrasted(facts, chance)).tolist():
        yield i, _capital(frames[i].replace("{a}", said[i]).replace("{b}", others[i]))


def _within(clause: str, join: str) -> str:
    """Return a clause as it stands after a join: with a capital only after a full stop."""
    if join == ". ":
        return _capital(clause)
    return _small(clause)


def _laid_out(columns: dict[str, list[str]], chance: _Chance) -> list[str]:
    """Put the clauses of each message in an order, between greeting and closing."""
    greetings = chance.pick_some("greeting")
    closings = _filled(chance.pick_some("closing"), columns)
    names = _LAYOUTS[0]
    orders = [[names.index(name) for name in layout] for layout in _LAYOUTS]
    layouts = chance.index("layout", len(_LAYOUTS)).tolist()
    rows = zip(*(columns[name] for name in names), strict=True)
    out = []
    for greeting, closing, layout, row in zip(greetings, closings, layouts, rows, strict=True):
        middle = [row[i] for i in orders[layout] if row[i]]
        if greeting:
            middle[0] = _small(middle[0])
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
"""How tidily people write, with the share of those who write so or tidier."""


def _finished(rows: list[str], columns: dict[str, list[str]], chance: _Chance) -> list[str]:
    """Give each message its style and slips, then order numbers and addresses."""
    style = np.searchsorted([share for share, _ in _STYLES], chance["style"], side="right")
    out = [_STYLES[i][1](text) for i, text in zip(style.tolist(), rows, strict=True)]
    for number, share in enumerate(_SLIPS, start=1):
        where, which = chance[f"where_{number}"], chance[f"which_{number}"]
        for i in np.flatnonzero(chance[f"slip_{number}"] < share).tolist():
            out[i] = misspelt(out[i], where[i], which[i])
    tails = chance.pick("tail", clauses()["tails"]["phrases"])
    for i in np.flatnonzero(chance["with_tail"] < clauses()["tails"]["share"]).tolist():
        out[i] += " " + _tail(tails[i], columns, chance, i)
    return out


def _tail(phrase: str, columns: dict[str, list[str]], chance: _Chance, i: int) -> str:
    first, second, third = (int(chance[f"digits_{k}"][i] * 1e7) for k in (1, 2, 3))
    person = f"{columns['name'][i]}.{columns['surname'][i]}".lower()
    return phrase.format(
        order=f"{first % 1000:03d}-{second:07d}-{third:07d}",
        mail=f"{person}{first % 100}@example.{('com', 'org', 'net')[second % 3]}",
        phone=f"+49 {150 + first % 30} {1_000_000 + second % 9_000_000}",
        invoice=f"INV-{2020 + first % 6}-{third % 1_000_000:06d}",
    )


def _filled(phrases: list[str], columns: dict[str, list[str]]) -> list[str]:
    """Fill the gaps {like this} of each phrase, and start it with a capital."""
    out = []
    for i, phrase in enumerate(phrases):
        pieces, gaps = _pieces(phrase)
        for gap, piece in gaps:
            pieces += columns[gap][i] + piece
        out.append(pieces[:1].upper() + pieces[1:])
    return out


@cache
def _pieces(phrase: str) -> tuple[str, tuple[tuple[str, str], ...]]:
    """Cut a phrase into its start and, for each gap, the gap's name and what follows it."""
    start, *rest = phrase.split("{")
    pairs = (piece.split("}") for piece in rest)
    return start, tuple((gap, piece) for gap, piece in pairs)


def _article(name: str) -> str:
    return "an " if name[0] in "aeiouAEIOU" and name != "ukulele" else "a "


def _kept(values: list[str], mask: NDArray[np.bool_]) -> list[str]:
    return [value if keep else "" for value, keep in zip(values, mask.tolist(), strict=True)]


def _spaced(values: list[str], mask: NDArray[np.bool_]) -> list[str]:
    return [value + " " if keep else "" for value, keep in zip(values, mask.tolist(), strict=True)]


def _sentence(text: str) -> str:
    return _capital(text) + ("." if text and text[-1] not in ".?" else "")


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _small(text: str) -> str:
    return text if text.startswith("I ") else text[:1].lower() + text[1:]
