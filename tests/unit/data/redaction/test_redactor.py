"""Redaction: what must go, what must stay, and that it neither changes twice nor takes long."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.sentences import refuses

from calibrant.data import redact
from calibrant.data.redaction.redactor import TOKENS, redact_column
from calibrant.errors import InputError

GOES = {
    # e-mail addresses
    "write to jo@example.com": "write to _email_",
    "jo@example.com.": "_email_.",
    "<jo.smith+returns@mail.example.co.uk>": "<_email_>",
    "mailto:JO_SMITH-99@EXAMPLE.ORG?": "mailto:_email_?",
    "(a%b@x-y.io), thanks": "(_email_), thanks",
    "müller@bücher.de": "_email_",
    "иван@почта.рф": "_email_",
    "我的邮箱是jo@example.com谢谢": "我的邮箱是 _email_ 谢谢",
    "jo＠example.com": "_email_",
    "a@b.co;c@d.co": "_email_;_email_",
    "a@b.co@c.co": "_email_",
    "http://jo:secret@example.com/": "http://jo:_email_/",
    "jo@example.com.123": "_email_.123",
    # phone numbers
    "call +1 (555) 123-4567 now": "call _phone_ now",
    "+15551234567": "_phone_",
    "+44 (0)20 7946 0958": "_phone_",
    "+44 7700 900123": "_phone_",
    "+49 30 1234567 2 weeks ago": "_phone_ 2 weeks ago",
    "+49-151-12345678": "_phone_",
    "+33 6 12 34 56 78": "_phone_",
    "+91 98765 43210": "_phone_",
    "+86 138 1234 5678": "_phone_",
    "+55 (11) 91234-5678": "_phone_",
    "+34 612 345 678": "_phone_",
    "+61 412 345 678": "_phone_",
    "+81-90-1234-5678": "_phone_",
    "0049 30 1234567": "_phone_",
    "00441632960961": "_phone_",
    "020 7946 0958": "_phone_",
    "(020) 7946 0958": "_phone_",
    "07700 900123": "_phone_",
    "0171/1234567": "_phone_",
    "030-12345678": "_phone_",
    "06 12 34 56 78": "_phone_",
    "06.12.34.56.78": "_phone_",
    "0412 345 678": "_phone_",
    "03-1234-5678": "_phone_",
    "0123456789": "_phone_",
    "(555) 123-4567": "_phone_",
    "555-123-4567": "_phone_",
    "555.123.4567": "_phone_",
    "555 123 4567": "_phone_",
    "5551234567": "_phone_",
    "1-800-555-0199": "_phone_",
    "555-123-4567 ext. 12": "_phone_",
    "555-123-4567x123.": "_phone_.",
    "555–123–4567": "_phone_",
    "555-123-4567/555-987-6543": "_phone_/_phone_",
    "5551234567,5559876543": "_phone_,_phone_",
    "(11) 91234-5678": "_phone_",
    "98765 43210": "_phone_",
    "13812345678": "_phone_",
    "请打13812345678谢谢": "请打 _phone_ 谢谢",
    "8 (916) 123-45-67": "_phone_",
    "call me at 555-0199": "call me at _phone_",
    "Tel. 123456": "Tel. _phone_",
    "phone: 98765432": "phone: _phone_",
    "my phone number is 612 345 678": "my phone number is _phone_",
    "Tlf: 41 23 45 67": "Tlf: _phone_",
    "Handynummer 98765432": "Handynummer _phone_",
    "+٤٩٣٠١٢٣٤٥٦٧": "_phone_",
    # order numbers
    "123-1234567-1234567": "_order_",
    "my order 302-5551234-7654321 is late": "my order _order_ is late",
    "order #12345": "order #_order_",
    "Order # 123": "Order # _order_",
    "order number: AB-123456": "order number: _order_",
    "order number is 4521": "order number is _order_",
    "order no. 20417": "order no. _order_",
    "Order ID A1B2C3D4": "Order ID _order_",
    "Order: 12345": "Order: _order_",
    "order 12345678": "order _order_",
    "order AB-12345": "order _order_",
    "orders #12345 and #67890": "orders #_order_ and _order_",
    "invoice no 2041": "invoice no _order_",
    "my order, order number 12345": "my order, order number _order_",
    "ORD-2024-0012": "_order_",
    "ord_778123": "_order_",
    "ORD77812": "_order_",
    "INV-0042": "_order_",
    "rma#5512": "rma#_order_",
    "PO-12345": "_order_",
    "tracking number 9400110200881234567890": "tracking number _order_",
    "ticket #4711": "ticket #_order_",
    "reference12345678": "reference _order_",
    "Bestellnummer 12345678": "Bestellnummer _order_",
    "Bestellung Nr. 4711-22": "Bestellung Nr. _order_",
    "commande n° 12345": "commande n° _order_",
    "pedido número 45120": "pedido número _order_",
    # card numbers
    "4111 1111 1111 1111": "_card_",
    "4111-1111-1111-1111": "_card_",
    "4111111111111111": "_card_",
    "4222222222222": "_card_",
    "3782 822463 10005": "_card_",
    "378282246310005": "_card_",
    "5555.5555.5555.4444": "_card_",
    "2223003122003222": "_card_",
    "6304000000000000000 with 19 digits": "_card_ with 19 digits",
    "card 4111 1111 1111 1111 12/25": "card _card_ 12/25",
    "order 4111 1111 1111 1111": "order _card_",
    "card:4111111111111111,cvv 123": "card:_card_,cvv 123",
    # accounts
    "DE89 3704 0044 0532 0130 00": "_iban_",
    "DE89370400440532013000": "_iban_",
    "de89 3704 0044 0532 0130 00 is mine": "_iban_ is mine",
    "GB29 NWBK 6016 1331 9268 19": "_iban_",
    "BE68 5390 0754 7034 from my bank": "_iban_ from my bank",
    "NL91ABNA0417164300.": "_iban_.",
    "FR14 2004 1010 0505 0001 3M02 606": "_iban_",
    "acct 12345678": "acct _iban_",
    "Acct. no. 12345678, thanks": "Acct. no. _iban_, thanks",
    "my account number is 123-456-789": "my account number is _iban_",
    "Konto 1234567890": "Konto _iban_",
    "Kontonummer: 532013000 2 weeks ago": "Kontonummer: _iban_ 2 weeks ago",
    "Konto 532 013 000": "Konto _iban_",
    "account 4111 1111 1111 1111": "account _card_",
    "account AB-123456": "account _order_",
    # numbers in other digits, or with signs that nobody sees
    "４１１１　１１１１　１１１１　１１１１": "_card_",
    "card ٤١١١ ١١١١ ١١١١ ١١١١ ٣ times": "card _card_ ٣ times",
    "4111\u200b1111\u200b1111\u200b1111": "_card_",
    "card 4111\u200b 1111\u2060-1111\ufeff 1111, ok": "card _card_, ok",
    "card\u200b4111111111111111": "card\u200b_card_",
    "ＤＥ８９": "ＤＥ８９",
    "DE８９ 3704 0044 0532 0130 00": "_iban_",
    "+49\u200b30\u200b1234567": "_phone_",
    "order #１２３４５": "order #_order_",
    "👩\u200d👩 ４２, ４１１１１１１１１１１１１１１１": "👩\u200d👩 ４２, _card_",
    "phone 12 34 56 78 90": "phone _phone_",
    "Tel 12 34 56 78 90 12 on 3 days": "Tel _phone_ on 3 days",
}

STAYS = [
    "",
    "it broke",
    "2 weeks",
    "size 42",
    "sizes 8, 10, 12 and 14",
    "version 10.2",
    "version 10.0.19041.1234",
    "100%",
    "$19.99",
    "19,99 €",
    "1.299,00 EUR",
    "€ 2345678901",
    "$1,234,567.89",
    "2024",
    "in 2023 and 2024",
    "1999-2024",
    "2024-01-15",
    "2024-01-15 10:30:00",
    "15.01.2024",
    "01.02.2024",
    "01/02/2024 12:30",
    "05.06.2023-12.06.2023",
    "15-01-24",
    "10:30",
    "08:00 - 17:30",
    "08.00-17.30",
    "3.1415926535",
    "0.123456789",
    "1,000,000 rows",
    "60000-75000",
    "192.168.100.200",
    "24/7 365 days",
    "call 24/7 365 days",
    "call 911",
    "iphone 12 2021",
    "phone 128/256 GB",
    "a phone with 128 256 512",
    "model X2000",
    "ISO 9001",
    "B07XJ8C8F5",
    "order 2 shirts",
    "order of 2019",
    "ordered 3 times",
    "order #1 was fine, order #2 was not",
    "order 1000 pieces",
    "order 2024-01-15",
    "order number 2",
    "order: 2 shirts",
    "in order to get 10",
    "return within 30 days",
    "case 3",
    "po box 12",
    "ord 3",
    "@handle",
    "a@b",
    "5 @ 3.50",
    "user@localhost",
    "1 2 3 4 5 6 7 8 9 10 11 12 13",
    "1234567812345678",
    "4111 1111 1111 1112",
    "1700000000000",
    "GB29 NWBK 6016 1331 9268 18",
    "EU 36 / US 5.5 / UK 3",
    "5'8\" and 120 lbs",
    "34C, 32x30",
    "(2019) 12345 6789",
    "12345",
    "123456789",
    "9-10 am, 5-7 days",
    "#1",
    "&#12345678;",
    "½ and ² and Ⅷ",
    "room 101, floor 3",
    "account 2024-01-15",
    "on account of 3 returns",
    "my account of 123456 points",
    "account 12345",
    "Konto 1000000 EUR",
    "Konto 123456.78",
    "size ４２, ٣ times",
    "4\u200b2 and ４\u200b２",
    "👩\u200d👩\u200d👧 2",
    "4111\u200b1111\u200b1111\u200b1112",
]


def test_personal_numbers_go(subtests):
    for text in GOES:
        with subtests.test(text):
            assert redact(text) == GOES[text]


def test_ordinary_numbers_stay(subtests):
    for text in STAYS:
        with subtests.test(text):
            assert redact(text) == text


def test_a_list_or_a_column_of_texts_gives_a_list():
    texts = ["jo@example.com", None, "size 42"]
    expected = ["_email_", None, "size 42"]
    assert redact(texts) == expected
    assert redact(tuple(texts)) == expected
    assert redact(np.array(texts, dtype=object)) == expected
    assert redact(pa.array(texts)) == expected
    assert redact(pa.chunked_array([texts[:1], texts[1:]])) == expected
    assert redact([float("nan")]) == [None]
    assert redact([]) == []


def test_the_input_is_left_as_it_was():
    texts = ["jo@example.com", float("nan")]
    redact(texts)
    assert texts[0] == "jo@example.com"
    assert texts[1] != texts[1]


@pytest.mark.parametrize("texts", [None, b"jo@example.com", {"a": "b"}, 7])
def test_what_is_no_column_of_texts_is_refused(texts):
    with refuses(InputError, "texts must be a text,", "got"):
        redact(texts)


def test_a_row_that_is_no_text_is_named():
    with refuses(InputError, "texts row 1 is 7, not text"):
        redact(["a", 7])


@pytest.mark.parametrize("token", TOKENS)
def test_a_token_is_one_word_of_the_encoder(token):
    pytest.importorskip("tokenizers")
    from calibrant.data import TextEncoder

    encoder = TextEncoder(min_count=1).fit([f"It's {token}, is it? #{token}"])
    assert token in encoder.words
    assert token.strip("_") not in encoder.words


PIECES = st.sampled_from(
    [
        *GOES,
        *STAYS,
        *TOKENS,
        *"0123456789 @.-+#/()_:,xaéß谢\n\t€٣½４\u200b\u200d　",
        "order",
        "tel",
        "ORD-",
        "4111",
        "konto ",
    ]
)


@settings(max_examples=400, deadline=None)
@given(st.lists(PIECES, max_size=12).map("".join))
@example("5551234567-5551234567-5551234567")
@example("a@b.co" + "@b.co" * 50)
@example("order #1234-order #1234")
def test_redacting_twice_changes_nothing_more(text):
    once = redact(text)
    assert redact(once) == once


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=80))
def test_any_text_can_be_redacted_and_texts_without_digits_and_at_signs_stay(text):
    out = redact(text)
    assert isinstance(out, str)
    if not any(sign.isdecimal() or sign in "@＠" for sign in text):
        assert out == text


@settings(max_examples=200, deadline=None)
@given(st.from_regex(r"[2-6][0-9]{11,16}", fullmatch=True))
def test_a_number_goes_as_a_card_exactly_with_the_right_check_digit(digits):
    right = [d for d in "0123456789" if "_card_" in redact(f"no {digits}{d} here")]
    assert len(right) == 1


UNITS = ["1", "@", "1@", "a@", "a.", "a@a.", "1 ", "1-", "12 ", "123 ", "1234 ", "a1", "0", "+1"]
UNITS += ["\u200b", "1\u200b", "1\u200b ", "４", "４ ", "konto ", "konto 1", "acct 12 34 56 "]
UNITS += ["po-", "order ", "order #", "order1", "de89", "de89 ", "(", "(0", "tel ", "call 1", "谢@"]
UNITS += ["555-123-4567", "555-123-4567-", "a@b.co", "a@b.co@", "#1", "01/", "4111 1111 1111 1111 "]


def test_a_long_text_of_anything_ends(subtests):
    for unit in UNITS:
        with subtests.test(unit):
            redact(unit * (200_000 // len(unit)))


@pytest.mark.parametrize("sign", "1@")
def test_a_megabyte_of_digits_or_at_signs_ends(sign):
    assert redact(sign * 1_000_000) == sign * 1_000_000


def test_a_column_is_redacted_as_a_list_is():
    texts = [*GOES, *STAYS, None, "", "no number", "\u0664\u0665\u0666 is of another script"]
    assert redact_column(pa.array(texts, pa.large_string())).to_pylist() == redact(texts)


@given(st.lists(st.lists(PIECES, max_size=6).map("".join) | st.text(max_size=9), min_size=1))
def test_any_column_is_redacted_as_a_list_is(texts):
    assert redact_column(pa.array(texts, pa.large_string())).to_pylist() == redact(texts)
