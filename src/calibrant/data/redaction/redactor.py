"""Take personal numbers out of texts: e-mail addresses, phone, order, card and account numbers."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, overload

import pyarrow as pa
import pyarrow.compute as pc

from calibrant.data.encoders.table_columns import is_missing
from calibrant.data.redaction import patterns as like
from calibrant.data.redaction.signs import has_odd_signs, plain_signs, replaced
from calibrant.errors import InputError

__all__ = ["TOKENS", "redact", "redacted_column"]

TOKENS = ("_email_", "_iban_", "_card_", "_order_", "_phone_")
"""What stands for what was taken out.

With an underscore at both ends `TextEncoder` reads a token as one word that no customer writes. It
would cut `<email>` into `<`, `email` and `>`, and the word in the middle would be the ordinary one.
"""

_EMAIL, _IBAN, _CARD, _ORDER, _PHONE = TOKENS
_PASSES = 4
"""What was taken out may free a number beside it; more than two passes have never been needed."""

_DATE = re.compile(r"(?:19|20)\d\d-\d{1,2}-\d{1,2}|\d{1,2}-\d{1,2}-(?:19|20)?\d\d")
_DIGITS = re.compile(r"\d+")


@overload
def redact(texts: str) -> str: ...
@overload
def redact(texts: Any) -> list[str | None]: ...
def redact(texts: Any) -> Any:
    """Replace e-mail addresses, phone, order, card and account numbers by a word for their kind.

    The words are `_email_`, `_phone_`, `_order_`, `_card_` and `_iban_`. A card number has 13 to 19
    digits and the right check digit (Luhn). An account number is an IBAN with the right check
    digits, or at least six digits after a word for it ("acct", "Konto"). An order number is known
    by what stands before it ("order #12345", "invoice no. 2041", "ORD-77812") or by the form
    123-1234567-1234567. A phone number is known by its form (international, or national with a
    leading 0, an area code in brackets, or ten digits) or by a word before it.

    Digits of any script are read, also with signs between them that nobody sees.

    Other numbers stay: sizes, prices, versions, dates, times, quantities. So do names, addresses
    of houses, numbers written in words, and "name at example dot com": this is not anonymisation.
    What was redacted once does not change any more.

    Parameters
    ----------
    texts : a list or a column of texts, in which None stays None; or a single text

    Returns
    -------
    a list, or for a single text a text

    Examples
    --------
    >>> redact("Order #12345 broke in 2 weeks, call +1 (555) 010-9999 or write to jo@example.com.")
    'Order #_order_ broke in 2 weeks, call _phone_ or write to _email_.'
    >>> redact(["size 42, 19.99 EUR", None, "card 4111 1111 1111 1111"])
    ['size 42, 19.99 EUR', None, 'card _card_']
    """
    if isinstance(texts, str):
        return _redacted(texts)
    return [_redacted(text) for text in _rows(texts)]


def redacted_column(texts: pa.LargeStringArray) -> pa.LargeStringArray:
    """Redact an Arrow column of texts: those that cannot hold a number never reach Python.

    Examples
    --------
    >>> redacted_column(pa.array(["It broke.", "Order #12345"], pa.large_string())).to_pylist()
    ['It broke.', 'Order #_order_']
    """
    may_hold = pc.match_substring_regex(texts, like.MAY_HOLD_RE2).fill_null(False)
    found = [_redacted(text) for text in texts.filter(may_hold).to_pylist()]
    return pc.replace_with_mask(texts, may_hold, pa.array(found, pa.large_string()))


def _redacted(text: str | None) -> str | None:
    if text is None or like.MAY_HOLD.search(text) is None:
        return text
    for _ in range(_PASSES):
        before = text
        if "@" in text or "＠" in text:
            text = _without_emails(text)
        text = _without_odd_numbers(text) if has_odd_signs(text) else _without_numbers(text)
        if text == before:
            break
    return text


def _without_numbers(text: str) -> str:
    digits = _count(text)
    for least, pattern, put in _STEPS:
        if digits >= least:
            text, n = pattern.subn(put, text)
            digits = _count(text) if n else digits
    return text


def _without_odd_numbers(text: str) -> str:
    """Look at a plain text; what is not taken out stays as it was written."""
    plain, stood = plain_signs(text)
    for least, pattern, put in _STEPS:
        if _count(plain) >= least:
            plain, stood = replaced(pattern, put, plain, stood)
    return "".join(stood)


def _without_emails(text: str) -> str:
    """Look only at the words with an @: an address holds no space, and its pattern is slow."""
    words = text.split(" ")
    for i, word in enumerate(words):
        if "@" in word or "＠" in word:
            words[i] = like.EMAIL.sub(_PUT_EMAIL, word)
    return " ".join(words)


def _count(text: str) -> int:
    return sum(map(len, _DIGITS.findall(text)))


def _rows(texts: Any) -> list[str | None]:
    if texts is None or isinstance(texts, bytes | dict | set) or not hasattr(texts, "__iter__"):
        raise InputError(
            f"texts must be a text or a list or column of texts, got {type(texts).__name__}."
        )
    if isinstance(texts, pa.Array | pa.ChunkedArray):
        rows = texts.to_pylist()
    else:
        rows = texts.tolist() if hasattr(texts, "tolist") else list(texts)
    for i, text in enumerate(rows):
        if isinstance(text, str):
            continue
        if not is_missing(text):
            raise InputError(f"texts row {i} is {text!r}, not a text: choose the column of texts.")
        rows[i] = None
    return list(rows)


def _apart(found: re.Match[str], start: int, end: int, token: str) -> str:
    """Set a token apart from letters that touch it, or the encoder would read one long word."""
    text = found.string
    left = " " if start > 0 and text[start - 1].isalnum() else ""
    right = " " if end < len(text) and text[end].isalnum() else ""
    return f"{left}{token}{right}"


def _whole(token: str) -> Callable[[re.Match[str]], str]:
    def put(found: re.Match[str]) -> str:
        return _apart(found, found.start(), found.end(), token)

    return put


def _value(token: str) -> Callable[[re.Match[str]], str]:
    def put(found: re.Match[str]) -> str:
        start, end = found.span("value")
        return found.string[found.start() : start] + _apart(found, start, end, token)

    return put


def _named_order(found: re.Match[str]) -> str:
    """Take a number out if it is long enough for what calls it a number."""
    value = found["value"]
    digits = sum(sign.isdigit() for sign in value)
    longest = max(len(run) for run in _DIGITS.findall(value))
    if _DATE.fullmatch(value):
        return found[0]
    if any(sign in found["mark"] for sign in "#№°º") or "#" in found[0]:
        enough = digits >= 3
    elif found["mark"]:
        enough = digits >= 4
    elif ":" in found["colon"]:
        enough = digits >= 5
    else:
        enough = longest >= 6 or (digits >= 5 and value[0].isalpha())
    return _value(_ORDER)(found) if enough else found[0]


def _iban(found: re.Match[str]) -> str:
    """Take out the longest beginning whose check digits are right."""
    text = found[0]
    ends = [m.end() for m in re.finditer(r"[A-Za-z0-9]+", text)]
    for end in reversed(ends):
        number = re.sub(r"[^A-Za-z0-9]", "", text[:end])
        if 15 <= len(number) <= 34 and _checks_97(number):
            start = found.start()
            return _apart(found, start, start + end, _IBAN) + text[end:]
    return text


def _checks_97(number: str) -> bool:
    turned = number[4:] + number[:4]
    return int("".join(str(int(sign, 36)) for sign in turned)) % 97 == 1


def _card(found: re.Match[str]) -> str:
    """Take out stretches of whole groups that are card numbers."""
    text = found[0]
    if len(text) < 13:
        return text
    groups = [m.span() for m in _DIGITS.finditer(text)]
    out, done, i = "", 0, 0
    while i < len(groups):
        last = _card_end(text, groups, i)
        if last is None:
            i += 1
            continue
        start, end = groups[i][0], groups[last][1]
        token = _apart(found, found.start() + start, found.start() + end, _CARD)
        out, done, i = out + text[done:start] + token, end, last + 1
    return out + text[done:]


def _card_end(text: str, groups: list[tuple[int, int]], first: int) -> int | None:
    """Return the group that ends the longest card number beginning with group `first`.

    Cards begin with 2 to 6, and are not written in groups of less than three digits.
    """
    digits, best = "", None
    if text[groups[first][0]] not in "23456":
        return None
    for last in range(first, len(groups)):
        start, end = groups[last]
        if end - start < 3 or len(digits) + end - start > 19:
            break
        digits += text[start:end]
        if len(digits) >= 13 and _checks_luhn(digits):
            best = last
    return best


def _checks_luhn(digits: str) -> bool:
    total = 0
    for place, sign in enumerate(reversed(digits)):
        value = int(sign)
        if place % 2:
            value = value * 2 - 9 if value > 4 else value * 2
        total += value
    return total % 10 == 0


_PUT_EMAIL = _whole(_EMAIL)
_STEPS: tuple[tuple[int, re.Pattern[str], Callable[[re.Match[str]], str]], ...] = (
    (17, like.MARKETPLACE_ORDER, _whole(_ORDER)),
    (7, like.IBAN, _iban),
    (13, like.CARD, _card),
    (6, like.NAMED_ACCOUNT, _value(_IBAN)),
    (3, like.NAMED_ORDER, _named_order),
    (3, like.PREFIXED_ORDER, _whole(_ORDER)),
    (8, like.PHONE, _whole(_PHONE)),
    (6, like.NAMED_PHONE, _value(_PHONE)),
)
"""The digits that a text must have, what to look for, and what to put there, in this order: a card
number also looks like an order's after the word "order"."""
