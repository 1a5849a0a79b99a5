"""Read the facts of a message back from its words, in every way that the words allow.

A slow and plain reader that knows the wordings, and nothing of the order in which clauses come. It
takes no notice of capitals and marks. If all its readings of a text agree, the text tells its
facts.
"""

import re
from collections import defaultdict
from functools import cache

import numpy as np

from calibrant.data.return_reasons.lexicon import claims, clauses, lines, products, words
from calibrant.data.return_reasons.rendering import word_typos
from calibrant.data.return_reasons.world import Facts

_FACTS = ("product", "brand", "claim", "denial", "use", "request", "feeling")
_TAIL_GAPS = {
    "order": r"\d{3}-\d{7}-\d{7}",
    "mail": r"\S+@example\.\w+",
    "phone": r"\+49 \d{3} \d{7}",
    "invoice": r"INV-\d{4}-\d{6}",
}


def without_tail(text):
    """Take the order number or address off the end."""
    for phrase in clauses()["tails"]["phrases"]:
        pattern = re.escape(phrase)
        for gap, shape in _TAIL_GAPS.items():
            pattern = pattern.replace(re.escape("{" + gap + "}"), shape)
        found = re.search(f" {pattern}$", text)
        if found:
            return text[: found.start()]
    return text


def read(text):
    """Return the set of all readings, each a tuple of the seven facts."""
    tokens = tuple(_undone().get(word, word) for word in _words(without_tail(text)))

    @cache
    def rest(start):
        """Return all readings of the words from a place on, as sets of (slot, value) pairs."""
        if start == len(tokens):
            return {frozenset()}
        readings = set()
        for slot, pieces, value in _candidates(tokens[start]):
            for end, found in _ends(tokens, start, pieces):
                said = frozenset(found | (frozenset() if slot is None else {(slot, value)}))
                readings |= {said | more for more in rest(end) if _fit(said, more)}
        return readings

    return {_facts(reading) for reading in rest(0)} - {None}


def as_facts(readings):
    return Facts(*(np.array(column) for column in zip(*readings, strict=True)))


def _fit(one, other):
    """Whether two halves of a reading tell each fact once; a product may be named again."""
    if not one or not other:
        return True
    slots = {slot for slot, _ in one}
    return all(slot not in slots or (slot, value) in one for slot, value in other)


def _facts(reading):
    """Return the seven facts of a whole reading; None where it is none."""
    said = dict(reading)
    if "product" not in said or "claim" not in said:
        return None
    product, (claim, phrase) = said["product"], said["claim"]
    if phrase not in claims()[claim].phrases[products()[product].group]:
        return None
    rest = [said.get(slot, 0) for slot in _FACTS[3:]]  # a clause that is left out is value 0
    return (product, said.get("brand", 0), claim, *rest)


def _words(text):
    return re.findall(r"[a-z]+|\{\w+\}", text.lower().replace("'", ""))


@cache
def _undone():
    return {slip: word for word, found in word_typos().items() for slip in found}


def _candidates(token):
    table = _templates()
    return table[token] + table[None]


@cache
def _templates():
    """Return (slot, pieces, value) of every wording, by its first word; None for a gap."""
    rows = [(None, phrase, 0) for phrase in ("but", *_nothing_said())]
    rows += _complaints()
    for slot in ("denial", "use", "request", "feeling"):
        for i, value in enumerate(clauses()[f"{slot}s"].values()):
            rows += [(slot, phrase, i) for phrase in value["phrases"] if phrase]
    table = defaultdict(list)
    for slot, phrase, value in rows:
        pieces = tuple(_words(phrase))
        table[None if pieces[0][0] == "{" else pieces[0]].append((slot, pieces, value))
    return table


def _complaints():
    rows = []
    for i, claim in enumerate(claims()):
        said = {phrase for phrases in claim.phrases for phrase in phrases}
        frames = clauses()["contrasts"] if claim.short else ()
        for phrase in said:
            framed = [frame.replace("{a}", phrase) for frame in frames]
            named = [s + phrase[2:] for s in ("{the}", "{my}") if phrase.startswith("it ")]
            rows += [("claim", wording, (i, phrase)) for wording in (phrase, *framed, *named)]
    return rows


def _nothing_said():
    """Return the wordings that belong to no fact but, through their gaps, to the product."""
    kinds = clauses()
    others = [kinds[kind]["phrases"] for kind in ("greetings", "leads", "contexts", "closings")]
    return sorted({phrase for phrases in (kinds["openings"], *others) for phrase in phrases})


def _ends(tokens, start, pieces):
    """Yield where a wording can end, with what its gaps tell."""
    if not pieces:
        yield start, frozenset()
        return
    head, tail = pieces[0], pieces[1:]
    if head[0] != "{":
        if start < len(tokens) and tokens[start] == head:
            yield from _ends(tokens, start + 1, tail)
        return
    for end, told in _gap(tokens, start, head[1:-1]):
        for last, more in _ends(tokens, end, tail):
            yield last, told | more


def _gap(tokens, start, gap):
    if gap in ("ap", "the", "my"):
        articles = ("a", "an") if gap == "ap" else (gap,)
        if start < len(tokens) and tokens[start] in articles:
            yield from _named(tokens, start + 1)
        return
    for end, value in _entries(tokens, start, gap):
        yield end, frozenset({("product", value)} if gap == "p" else ())


def _named(tokens, start):
    """Yield the ends of colour, brand, line and product, all but the last may be left out."""
    for after_colour, _ in ((start, 0), *_entries(tokens, start, "colour")):
        for after_brand, brand in ((after_colour, None), *_entries(tokens, after_colour, "brand")):
            for after, _ in ((after_brand, 0), *_entries(tokens, after_brand, "line")):
                for end, product in _entries(tokens, after, "p"):
                    told = {("product", product), ("brand", 0 if brand is None else brand + 1)}
                    yield end, frozenset(told)


def _entries(tokens, start, gap):
    found = _gap_lists()[gap].get(tokens[start] if start < len(tokens) else None, ())
    for entry, value in found:
        if tokens[start : start + len(entry)] == entry:
            yield start + len(entry), value


@cache
def _gap_lists():
    lists = words()
    short = [phrase for claim in claims() if claim.short for phrase in claim.phrases[0]]
    entries = {
        "p": [product.name for product in products()],
        "part": sorted({part for product in products() for part in product.parts}),
        "brand": lists["brands"],
        "line": lines(),
        "colour": lists["colours"],
        "time": lists["times"],
        "person": lists["people"],
        "occasion": lists["occasions"],
        "city": lists["cities"],
        "name": lists["names"],
        "surname": lists["surnames"],
        "b": short,
    }
    out = {}
    for gap, values in entries.items():
        out[gap] = defaultdict(list)
        for i, value in enumerate(values):
            entry = tuple(_words(value))
            out[gap][entry[0]].append((entry, i))
    return out
