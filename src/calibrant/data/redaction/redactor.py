"""Redaction of e-mail addresses and of phone, order, card and account numbers in texts."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from typing import Any, overload

import pyarrow as pa
import pyarrow.compute as pc

from calibrant.data.encoders.table_columns import is_missing
from calibrant.data.redaction import patterns
from calibrant.errors import InputError

# Zero-width spaces, joiners, soft hyphens and directional marks.
_INVISIBLE = r"\u00ad\u034f\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff"


_SPACES = "".join(map(chr, (*range(0x2000, 0x200B), 0x205F, 0x3000)))


_ASCII_FORM = {
    **dict.fromkeys(_SPACES, " "),
    **dict(zip("−－＋（）．／：＃", "--+()./:#", strict=True)),
}


_WIDE = "".join(_ASCII_FORM)


_UNUSUAL = re.compile(rf"[{_INVISIBLE}{re.escape(_WIDE)}]|(?![0-9])\d")


_NUMBER_CHARACTERS = rf"[\d \t\u00a0\u202f{re.escape(_WIDE)}\-\u2010\u2011\u2013./()+:#]"


_HIDDEN = re.compile(rf"(?<={_NUMBER_CHARACTERS})[{_INVISIBLE}]++(?={_NUMBER_CHARACTERS})")
"""Within numbers only: next to a word, an invisible character may be the separator."""


def has_unusual_characters(text: str) -> bool:
    """Return whether a text has non-ASCII digits, or invisible or full-width characters."""
    return not text.isascii() and _UNUSUAL.search(text) is not None


def normalise_characters(text: str) -> tuple[str, list[str]]:
    r"""Return the normalised text, and the original of each of its characters.

    Examples
    --------
    >>> normalise_characters("no ４\u200b２")
    ('no 42', ['n', 'o', ' ', '４\u200b', '２'])
    """
    original: list[str] = []
    end = 0
    for match in _HIDDEN.finditer(text):
        original += text[end : match.start()]
        original[-1] += match[0]
        end = match.end()
    original += text[end:]
    return "".join(map(_normalise, original)), original


def substitute(
    pattern: re.Pattern[str],
    replace: Callable[[re.Match[str]], str],
    plain: str,
    original: list[str],
) -> tuple[str, list[str]]:
    """Replace matches in the normalised text and in the list of originals.

    Examples
    --------
    >>> plain, original = normalise_characters("nos. ４２, ７")
    >>> substitute(re.compile("[0-9]{2}"), lambda match: "_n_", plain, original)[1]
    ['n', 'o', 's', '.', ' ', '_', 'n', '_', ',', ' ', '７']
    """
    pieces: list[str] = []
    result_original: list[str] = []
    end_of_last = 0
    for match in pattern.finditer(plain):
        old, new = match[0], replace(match)
        head = _common_prefix(old, new)
        rest, inserted = old[head:], new[head:]
        tail = _common_prefix(rest[::-1], inserted[::-1])
        start, end = match.start() + head, match.end() - tail
        inserted = inserted[: len(inserted) - tail]
        pieces += [plain[end_of_last:start], inserted]
        result_original += original[end_of_last:start]
        result_original += inserted
        end_of_last = end
    return "".join([*pieces, plain[end_of_last:]]), result_original + original[end_of_last:]


def _common_prefix(a: str, b: str) -> int:
    """Return the length of the common prefix of two texts."""
    pairs = enumerate(zip(a, b, strict=False))
    return next((i for i, (x, y) in pairs if x != y), min(len(a), len(b)))


def _normalise(original: str) -> str:
    """Return the normalised form of an original character."""
    character = original[0]
    if character.isascii():
        return character
    return (
        str(unicodedata.decimal(character))
        if character.isdecimal()
        else _ASCII_FORM.get(character, character)
    )


TOKENS = ("_email_", "_iban_", "_card_", "_order_", "_phone_")
"""Replacement tokens.

With an underscore at both ends, `TextEncoder` reads a token as one word that customers do not
write. It would split `<email>` into `<`, the ordinary word `email`, and `>`.
"""


_EMAIL, _IBAN, _CARD, _ORDER, _PHONE = TOKENS


_PASSES = 4
"""A replacement may expose an adjacent number; more than two passes have never been needed."""


_DATE = re.compile(r"(?:19|20)\d\d-\d{1,2}-\d{1,2}|\d{1,2}-\d{1,2}-(?:19|20)?\d\d")


_DIGITS = re.compile(r"\d+")


@overload
def redact(texts: str) -> str: ...


@overload
def redact(texts: Any) -> list[str | None]: ...


def redact(texts: Any) -> Any:
    """Replace e-mail addresses and phone, order, card and account numbers by tokens.

    The tokens are `_email_`, `_phone_`, `_order_`, `_card_` and `_iban_`. A card number has 13 to
    19 digits with a valid check digit (Luhn). An account number is an IBAN with valid check digits,
    or at least six digits after a word such as "acct" or "Konto". An order number is recognised by
    a preceding word or prefix ("order #12345", "invoice no. 2041", "ORD-77812") or by the form
    123-1234567-1234567. A phone number is recognised by its form (international, or national with
    a leading 0, an area code in brackets, or ten digits) or by a preceding word.

    Digits of any script are recognised, also with invisible characters between them.

    Other numbers stay: sizes, prices, versions, dates, times, quantities. So do names, postal
    addresses, numbers written as words, and "name at example dot com": this is not anonymisation.
    Redaction is idempotent.

    Parameters
    ----------
    texts : a text, or a list or column of texts; None stays None

    Returns
    -------
    a text for a single text, else a list

    Examples
    --------
    >>> redact("Order #12345 broke in 2 weeks, call +1 (555) 010-9999 or write to jo@example.com.")
    'Order #_order_ broke in 2 weeks, call _phone_ or write to _email_.'
    >>> redact(["size 42, 19.99 EUR", None, "card 4111 1111 1111 1111"])
    ['size 42, 19.99 EUR', None, 'card _card_']
    """
    if isinstance(texts, str):
        return _redact_text(texts)
    return [_redact_text(text) for text in _rows(texts)]


def redact_column(texts: pa.LargeStringArray) -> pa.LargeStringArray:
    """Redact an Arrow column of texts; texts without digits or @ never reach Python.

    Examples
    --------
    >>> redact_column(pa.array(["It broke.", "Order #12345"], pa.large_string())).to_pylist()
    ['It broke.', 'Order #_order_']
    """
    may_hold = pc.match_substring_regex(texts, patterns.MAY_HOLD_RE2).fill_null(False)
    redacted = [_redact_text(text) for text in texts.filter(may_hold).to_pylist()]
    return pc.replace_with_mask(texts, may_hold, pa.array(redacted, pa.large_string()))


def _redact_text(text: str | None) -> str | None:
    if text is None or patterns.MAY_HOLD.search(text) is None:
        return text
    for _ in range(_PASSES):
        before = text
        if "@" in text or "＠" in text:
            text = _replace_emails(text)
        text = (
            _replace_unusual_numbers(text)
            if has_unusual_characters(text)
            else _replace_numbers(text)
        )
        if text == before:
            break
    return text


def _replace_numbers(text: str) -> str:
    digits = _count_digits(text)
    for least, pattern, replace in _STEPS:
        if digits >= least:
            text, n = pattern.subn(replace, text)
            digits = _count_digits(text) if n else digits
    return text


def _replace_unusual_numbers(text: str) -> str:
    """Match against the normalised text; unmatched characters keep their original form."""
    plain, original = normalise_characters(text)
    for least, pattern, replace in _STEPS:
        if _count_digits(plain) >= least:
            plain, original = substitute(pattern, replace, plain, original)
    return "".join(original)


def _replace_emails(text: str) -> str:
    """Search only words with an @: addresses have no spaces, and the pattern is slow."""
    words = text.split(" ")
    for i, word in enumerate(words):
        if "@" in word or "＠" in word:
            words[i] = patterns.EMAIL.sub(_REPLACE_EMAIL, word)
    return " ".join(words)


def _count_digits(text: str) -> int:
    return sum(map(len, _DIGITS.findall(text)))


def _rows(texts: Any) -> list[str | None]:
    if texts is None or isinstance(texts, bytes | dict | set) or not hasattr(texts, "__iter__"):
        raise InputError(
            f"texts must be a text, or a list or column of texts, got {type(texts).__name__}."
        )
    if isinstance(texts, pa.Array | pa.ChunkedArray):
        rows = texts.to_pylist()
    else:
        rows = texts.tolist() if hasattr(texts, "tolist") else list(texts)
    for i, text in enumerate(rows):
        if isinstance(text, str):
            continue
        if not is_missing(text):
            raise InputError(f"texts row {i} is {text!r}, not text: choose a text column.")
        rows[i] = None
    return list(rows)


def _separate(match: re.Match[str], start: int, end: int, token: str) -> str:
    """Separate a token from adjacent letters, so that the encoder reads it as a word."""
    text = match.string
    left = " " if start > 0 and text[start - 1].isalnum() else ""
    right = " " if end < len(text) and text[end].isalnum() else ""
    return f"{left}{token}{right}"


def _replace_match(token: str) -> Callable[[re.Match[str]], str]:
    def replace(match: re.Match[str]) -> str:
        return _separate(match, match.start(), match.end(), token)

    return replace


def _replace_value(token: str) -> Callable[[re.Match[str]], str]:
    def replace(match: re.Match[str]) -> str:
        start, end = match.span("value")
        return match.string[match.start() : start] + _separate(match, start, end, token)

    return replace


def _replace_named_order(match: re.Match[str]) -> str:
    """Replace a number if it is long enough for the word that precedes it."""
    value = match["value"]
    digits = sum(character.isdigit() for character in value)
    longest = max(len(run) for run in _DIGITS.findall(value))
    if _DATE.fullmatch(value):
        return match[0]
    if any(character in match["mark"] for character in "#№°º") or "#" in match[0]:
        long_enough = digits >= 3
    elif match["mark"]:
        long_enough = digits >= 4
    elif ":" in match["colon"]:
        long_enough = digits >= 5
    else:
        long_enough = longest >= 6 or (digits >= 5 and value[0].isalpha())
    return _replace_value(_ORDER)(match) if long_enough else match[0]


def _replace_iban(match: re.Match[str]) -> str:
    """Replace the longest prefix with valid check digits."""
    text = match[0]
    ends = [m.end() for m in re.finditer(r"[A-Za-z0-9]+", text)]
    for end in reversed(ends):
        number = re.sub(r"[^A-Za-z0-9]", "", text[:end])
        if 15 <= len(number) <= 34 and _is_valid_iban(number):
            start = match.start()
            return _separate(match, start, start + end, _IBAN) + text[end:]
    return text


def _is_valid_iban(number: str) -> bool:
    rotated = number[4:] + number[:4]
    return int("".join(str(int(character, 36)) for character in rotated)) % 97 == 1


def _replace_card(match: re.Match[str]) -> str:
    """Replace runs of whole digit groups that form card numbers."""
    text = match[0]
    if len(text) < 13:
        return text
    groups = [m.span() for m in _DIGITS.finditer(text)]
    result, copied, i = "", 0, 0
    while i < len(groups):
        last = _find_card_end(text, groups, i)
        if last is None:
            i += 1
            continue
        start, end = groups[i][0], groups[last][1]
        token = _separate(match, match.start() + start, match.start() + end, _CARD)
        result, copied, i = result + text[copied:start] + token, end, last + 1
    return result + text[copied:]


def _find_card_end(text: str, groups: list[tuple[int, int]], first: int) -> int | None:
    """Return the last group of the longest card number starting at group `first`.

    Card numbers start with 2 to 6 and are not written in groups of fewer than three digits.
    """
    digits, best = "", None
    if text[groups[first][0]] not in "23456":
        return None
    for last in range(first, len(groups)):
        start, end = groups[last]
        if end - start < 3 or len(digits) + end - start > 19:
            break
        digits += text[start:end]
        if len(digits) >= 13 and _is_valid_card(digits):
            best = last
    return best


def _is_valid_card(digits: str) -> bool:
    total = 0
    for position, digit in enumerate(reversed(digits)):
        value = int(digit)
        if position % 2:
            value = value * 2 - 9 if value > 4 else value * 2
        total += value
    return total % 10 == 0


_REPLACE_EMAIL = _replace_match(_EMAIL)


_STEPS: tuple[tuple[int, re.Pattern[str], Callable[[re.Match[str]], str]], ...] = (
    (17, patterns.MARKETPLACE_ORDER, _replace_match(_ORDER)),
    (7, patterns.IBAN, _replace_iban),
    (13, patterns.CARD, _replace_card),
    (6, patterns.NAMED_ACCOUNT, _replace_value(_IBAN)),
    (3, patterns.NAMED_ORDER, _replace_named_order),
    (3, patterns.PREFIXED_ORDER, _replace_match(_ORDER)),
    (8, patterns.PHONE, _replace_match(_PHONE)),
    (6, patterns.NAMED_PHONE, _replace_value(_PHONE)),
)
"""Minimum number of digits, pattern and replacement, in this order: after the word "order", a card
number also looks like an order number."""
