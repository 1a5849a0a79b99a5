r"""Patterns of e-mail addresses and of phone, order, card and account numbers.

Every pattern takes linear time: repetitions are possessive, bounded, or unambiguous. Every pattern
starts with a character set and uses look-behind for the context before it, because `re` skips
quickly to the next character of a set: that makes the patterns ten times as fast.
"""

from __future__ import annotations

import re
from itertools import groupby

MAY_HOLD = re.compile(r"[\d@＠]")
"""Quick check: most texts have neither a digit nor an @."""

MAY_HOLD_RE2 = r"[0-9@]|[^\x00-\x7F]"
"""The same check in RE2 syntax. Libraries disagree on digits beyond ASCII, so any text with
non-ASCII characters passes."""

# Scripts without spaces between words: their letters end an address or a number.
_DENSE = r"\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff"
_LATIN = r"A-Za-z\u00c0-\u024f"
_SIGN = rf"(?:(?![{_DENSE}])[\w.%+-])"
_LABEL = rf"(?:(?:(?![{_DENSE}])[\w-])+|[{_DENSE}]+)"
_SPACE = r" \t\u00a0\u2009\u202f"
_DASH = r"\-\u2010\u2011\u2013"
_GAP = rf"[{_SPACE}{_DASH}./()]"
# The dot in a look-behind is the first character of the match.
_APART = rf"(?<![\d_{_LATIN}].)"
_ENDS = rf"(?![\d_{_LATIN}])"


def _words(words: str) -> str:
    """Return a case-insensitive pattern of whole words, listed in alphabetical order."""
    listed = words.split()
    firsts = {first: [w[1:] for w in some] for first, some in groupby(listed, lambda w: w[0])}
    rest = "|".join(
        rf"(?<=[{first}{first.upper()}])(?i:{'|'.join(sorted(ends, key=len, reverse=True))})"
        for first, ends in firsts.items()
    )
    signs = "".join(firsts)
    return rf"[{signs}{signs.upper()}](?<!\w.)(?:{rest})"


EMAIL = re.compile(
    rf"(?:(?<!{_SIGN}){_SIGN}++|(?<![{_DENSE}])[{_DENSE}]++)"
    rf"(?:[@＠](?:{_LABEL}\.)+(?:[A-Za-z]{{2,}}|[^\W\d_A-Za-z]{{2,}}))++"
)
"""An e-mail address, or several without a separator; the top-level domain is letters."""

IBAN = re.compile(
    rf"[A-Za-z]{_APART}[A-Za-z][0-9]{{2}}(?:[{_SPACE}-]?[A-Za-z0-9]{{4}}){{2,7}}"
    rf"(?:[{_SPACE}-]?[A-Za-z0-9]{{1,3}})?{_ENDS}"
)
"""A candidate for an IBAN; the check digits decide."""

CARD = re.compile(rf"\d{_APART}(?<!\+.)\d*+(?:[{_SPACE}{_DASH}.]\d++)*+{_ENDS}")
"""A run of digit groups, in which check digits identify card numbers."""

MARKETPLACE_ORDER = re.compile(rf"\d{_APART}\d{{2}}-\d{{7}}-\d{{7}}{_ENDS}")

_ORDER_WORDS = """
    account auftrag auftragsnummer bestellnummer bestelling bestellung bestelnummer booking case
    commande confirmation customer factura facture fattura invoice kundennummer order orders ordine
    parcel pedido purchase receipt rechnung rechnungsnummer ref reference reservation return rma
    sendungsnummer shipment ticket tracking zamówienie
"""
_NUMBER_WORDS = "number|numbers|num|no|nr|id|code|ref|reference|nummer|numéro|número|numero"
_MARK = rf"(?P<mark>(?:[{_SPACE}:.]{{0,2}}(?:[#№]|[nN][°º]|(?i:{_NUMBER_WORDS})(?!\w))){{0,2}})"
_IS = rf"(?:(?i:is|was|ist|war|est|es|è)[{_SPACE}:]{{1,2}})?#?"  # codespell:ignore ist
NAMED_ORDER = re.compile(
    rf"{_words(_ORDER_WORDS)}{_MARK}(?P<colon>[{_SPACE}.=:]{{0,3}}){_IS}"
    rf"(?P<value>(?=[A-Za-z{_DASH}]{{0,8}}\d)[A-Za-z\d]++(?:[{_DASH}][A-Za-z\d]++)*+)"
)
"""A number after a word for an order or another customer number."""

PREFIXED_ORDER = re.compile(
    rf"[iopr#IOPR](?<!\w.)(?:(?:(?<=[oO])(?i:rd)|(?<=[iI])(?i:nv)|(?<=[rR])(?i:ma)|(?<=[pP])[oO])"
    rf"(?:(?<=[dD])(?=\d{{4}})|[_#{_DASH}](?=[A-Za-z\d{_DASH}]{{0,20}}\d{{3}}))"
    rf"[A-Za-z\d]++(?:[_{_DASH}][A-Za-z\d]++)*+|(?<=#)(?<![#&]#)\d{{5,}}+{_ENDS})"
)
"""ORD-2024-0012, INV_0042, #123456."""

# These start after the first digit.
_NO_DATE = (
    r"(?!\d?(?P<a>[./-])\d{1,2}(?P=a)(?:19|20)?\d\d(?!\d|(?P=a)\d))"
    r"(?!(?:(?<=1)9|(?<=2)0)\d\d(?P<b>[./-])\d{1,2}(?P=b)\d{1,2}(?!\d|(?P=b)\d))"
)
# Not part of an amount, a decimal number, a range or a longer number.
_NO_PIECE = (
    rf"(?<![\d_+$€£¥#{_LATIN}].)(?<!\b\d[.,].)(?<!\b\d\d[.,].)(?<!\b\d\d\d[.,].)"
    rf"(?<!\d[:{_DASH}].)(?<![$€£¥][{_SPACE}].)"
)
_NUMBER_ENDS = (
    rf"(?:[{_SPACE}]?(?i:x|ext\.?)[{_SPACE}]?\d{{1,5}}+)?"
    rf"{_ENDS}(?![:{_DASH}]\d)(?![.,]\d{{1,3}}(?!\d))"
    rf"(?![{_SPACE}]?(?:[%€$£¥]|(?i:gb|mb|tb|mah|ml|kg|eur|usd|gbp|euros?|dollars?)(?!\w)))"
)
_TWO = r"(?<=\d\d)"  # does not end with a single digit: "... 1234567 2 weeks ago"
_FORMS = (
    rf"(?<=\+)\d(?:{_GAP}{{0,3}}\d){{7,14}}{_TWO}",  # +44 (0)20 7946 0958
    rf"(?<=0)0[1-9](?:{_GAP}{{0,2}}\d){{7,13}}{_TWO}",  # 0049 30 1234567
    rf"(?:(?<=\()0|(?<=0))[1-9](?:{_GAP}{{0,2}}\d){{7,9}}{_TWO}",  # 06 12 34 56 78, (030) 123456-78
    rf"(?:(?<=1)[ .\-]?(?:\([2-9]\d\d\)[ .\-]?|[2-9]\d\d[ .{_DASH}]?)"
    rf"|(?<=\()[2-9]\d\d\)[ .\-]?|(?<=[2-9])\d\d[ .{_DASH}]?)\d{{3}}[ .{_DASH}]?\d{{4}}",
    rf"(?<=\()(?!(?:19|20)\d\d\))\d{{2,5}}\)[{_SPACE}]?\d{{3,5}}[ .{_DASH}]?\d{{3,5}}",
    r"(?<=1)[3-9]\d[ \-]?\d{4}[ \-]?\d{4}",  # 138 1234 5678
    r"(?<=[6-9])\d{4} \d{5}",  # 98765 43210
    r"(?<=[78])[ \-]?\(?9\d\d\)?[ \-]?\d{3}[ \-]?\d{2}[ \-]?\d{2}",  # 8 (916) 123-45-67
)
PHONE = re.compile(rf"[+(\d]{_NO_PIECE}{_NO_DATE}(?:{'|'.join(_FORMS)}){_NUMBER_ENDS}")
"""A phone number recognised by its form."""

_PHONE_WORDS = """
    call cell cellphone dial fax handy handynummer mobile móvil phone ring rufnummer sms tel telefon
    telefonnummer telefono telephone teléfono text tlf téléphone whatsapp
"""
_PHONE_FILL = (
    "me|us|back|number|num|nr|no|is|at|on|under|nummer|ist|unter"  # codespell:ignore ist,unter
)
NAMED_PHONE = re.compile(
    rf"{_words(_PHONE_WORDS)}(?:[{_SPACE}:.]{{1,2}}(?i:{_PHONE_FILL})(?!\w)){{0,3}}"
    rf"[{_SPACE}:.#=]{{0,3}}(?P<value>\(?\d{_NO_DATE}"
    rf"(?:\d{{2}}(?:{_GAP}{{0,2}}\d){{4,12}}{_TWO}|\d{{5}}|\d(?:[{_SPACE}]\d\d){{3,6}})"
    rf"{_NUMBER_ENDS})"
)
"""A shorter number after a word for a phone."""

_ACCOUNT_WORDS = """
    account acct compte conto cuenta konto kontonr kontonummer rekening rekeningnummer
"""
NAMED_ACCOUNT = re.compile(
    rf"{_words(_ACCOUNT_WORDS)}{_MARK}[{_SPACE}.=:]{{0,3}}{_IS}"
    rf"(?P<value>\d{_NO_DATE}(?:\d{{5,19}}|\d{{1,3}}(?:[{_SPACE}{_DASH}]\d{{2,4}}){{2,6}})){_NUMBER_ENDS}"
)
"""Six or more digits after a word for an account, in one piece or at least three groups."""
