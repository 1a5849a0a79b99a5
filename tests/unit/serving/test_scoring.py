"""Scoring: what a request gets is what the bundle decides, whoever else is in its batch."""

import json

import numpy as np
import pytest
from tests.unit.bundle.parts import rows
from tests.unit.serving.bundles import TABLE, TEXTS, logits_bundle, rows_of, served

from calibrant.bundle.decision_scores import NO_SCORE
from calibrant.client.messages import Input
from calibrant.serving.scoring import (
    InvalidInput,
    ScoreRequest,
    apply_input_policy,
    check_inputs,
    collate,
    score,
)

SCORES = ("decision_rule", "decision_score", "decision_threshold")


def asked(of, *given, **more):
    inputs = [Input.model_validate(each) for each in given]
    made = check_inputs(inputs, of, max_text=1000)
    return ScoreRequest(of, made, [], b"", "request", 0.0, **more)


def given(logits):
    return [{"logits": row} for row in logits.tolist()]


def expected(bundle, found):
    """Return what `decide` says of rows, in the words of the service."""
    return [
        {
            **row,
            "label": str(row["label"]),
            "decision": "out_of_scope" if row["out_of_scope"] else row["decision"],
            "out_of_scope": row["out_of_scope"] if found.scope_checked else None,
        }
        for row in found.to_rows()
    ]


def told(row, classes):
    """Return a scored row in the words of `decide`."""
    names = ("label", "decision", "acted_as", "action", "operating_point", "out_of_scope")
    shown = NO_SCORE if row.decision_score is None else row.decision_score.to_dict()
    return {
        **{name: getattr(row, name) for name in names},
        "probabilities": dict(zip(classes, row.probs, strict=True)),
        **{name: shown[name] for name in SCORES},
    }


def same(found, wanted, *, within):
    for one, other in zip(found, wanted, strict=True):
        one, other = dict(one), dict(other)
        score, same_score = one.pop("decision_score"), other.pop("decision_score")
        assert score == (same_score and pytest.approx(same_score, abs=within))
        assert one.pop("probabilities") == pytest.approx(other.pop("probabilities"), abs=within)
        assert one == other


@pytest.mark.parametrize("kind", ["points", "no calibrator", "two classes", "out of scope"])
def test_logits_are_decided_as_by_the_bundle(tmp_path, kind):
    of = served(logits_bundle(tmp_path / "b", kind).path)
    logits = rows(60, len(of.classes))
    ((_, found),) = score([asked(of, *given(logits))])
    wanted = expected(of.bundle, of.bundle.decide(logits))
    same([told(row, of.classes) for row in found], wanted, within=1e-12)
    assert [row.logits for row in found] == logits.tolist()
    decisions = {row.decision for row in found}
    also = {"two classes": {"clear"}, "out of scope": {"out_of_scope"}}.get(kind, set())
    assert decisions == {"act", "abstain"} | also


def test_out_of_scope_is_a_decision_of_its_own(tmp_path):
    of = served(logits_bundle(tmp_path / "b", "out of scope").path)
    ((_, (inside, outside)),) = score([asked(of, *given(np.array([[9.0, 0, 0], [1.0, -9, -9]])))])
    assert (inside.decision, inside.acted_as, inside.out_of_scope) == ("act", "defect", False)
    assert (outside.decision, outside.acted_as, outside.out_of_scope) == (
        "out_of_scope",
        None,
        True,
    )
    assert outside.operating_point is None
    assert outside.label == "defect"


@pytest.mark.parametrize(
    ("kind", "flags"), [("no points", [None, None]), ("out of scope, no points", [False, True])]
)
def test_without_points_there_are_probabilities_and_no_decision(tmp_path, kind, flags):
    of = served(logits_bundle(tmp_path / "b", kind).path)
    logits = np.array([[9.0, 0.0, 0.0], [-9.0, 1.0, -9.0]])
    ((_, found),) = score([asked(of, *given(logits))])
    assert [row.label for row in found] == ["defect", "parts"]
    assert [row.out_of_scope for row in found] == flags
    for row, probs in zip(found, of.bundle.predict_proba(logits), strict=True):
        assert row.probs == pytest.approx(probs.tolist(), abs=1e-12)
        assert (row.decision, row.acted_as, row.action, row.operating_point) == (None,) * 4


def test_an_alternative_point_decides_where_it_is_asked_for(logits_folder):
    of = served(logits_folder)
    logits = rows(60)
    batch = [asked(of, *given(logits), point=point) for point in (None, 2, 1, 2)]
    found = score(batch)
    assert [each for each, _ in found] == batch
    for each, scored in found:
        wanted = expected(of.bundle, of.bundle.decide(logits, point=each.point))
        same([told(row, of.classes) for row in scored], wanted, within=1e-12)
    acted = [sum(row.acted_as == "defect" for row in scored) for _, scored in found]
    assert acted[1] == acted[3] > acted[0] > acted[2] == 0


def test_requests_of_many_sizes_get_their_own_rows(logits_folder):
    of = served(logits_folder)
    sizes = [1, 5, 2, 17, 1, 1, 9]
    parts = [rows(n, seed=n + 10 * i) for i, n in enumerate(sizes)]
    found = score([asked(of, *given(part)) for part in parts])
    assert [[row.logits for row in scored] for _, scored in found] == [p.tolist() for p in parts]


def test_texts_are_decided_as_by_the_bundle_and_neighbours_do_not_matter(text_folder):
    of = served(text_folder)
    texts = [*TEXTS, "", "broken " * 30, "never seen before"]
    alone = [score([asked(of, {"text": text})])[0][1][0] for text in texts]
    wanted = [expected(of.bundle, of.bundle.decide([text]))[0] for text in texts]
    same([told(row, of.classes) for row in alone], wanted, within=1e-12)
    together = score([asked(of, {"text": text}) for text in texts])
    same([told(scored[0], of.classes) for _, scored in together], wanted, within=1e-6)
    assert len({row.label for row in alone}) > 1


def test_rows_of_tables_are_decided_as_by_the_bundle(table_folder):
    of = served(table_folder)
    given = [{"row": row} for row in rows_of(TABLE)]
    ((_, found),) = score([asked(of, *given)])
    wanted = expected(of.bundle, of.bundle.decide(TABLE))
    same([told(row, of.classes) for row in found], wanted, within=1e-6)
    turned = [{"row": dict(reversed(each["row"].items()))} for each in reversed(given)]
    for (_, (one,)), other in zip(
        score([asked(of, each) for each in turned]), reversed(wanted), strict=True
    ):
        same([told(one, of.classes)], [other], within=1e-6)


def test_each_bundle_decides_about_the_requests_that_were_checked_against_it(tmp_path):
    cool, warm = (served(logits_bundle(tmp_path / str(t), warmth=t).path) for t in (1.0, 4.0))
    logits = rows(3)
    order = [cool, warm, warm, cool]
    for (each, scored), of in zip(
        score([asked(o, *given(logits)) for o in order]), order, strict=True
    ):
        assert each.served is of
        assert [row.probs for row in scored] == of.bundle.predict_proba(logits).tolist()
    assert cool.bundle.predict_proba(logits)[0] != pytest.approx(
        warm.bundle.predict_proba(logits)[0]
    )


def test_classes_that_are_numbers_are_told_as_text(tmp_path):
    from tests.unit.bundle.parts import point

    from calibrant.bundle import pack

    made = pack(tmp_path / "b", points=[point(1, classes=(0, 1, 2))], actions={1: "refund"})
    ((_, (row,)),) = score([asked(served(made.path), {"logits": [0.0, 9.0, 0.0]})])
    assert (row.label, row.acted_as, row.action) == ("1", "1", "refund")


@pytest.fixture(scope="module")
def logits(logits_folder):
    return served(logits_folder)


@pytest.fixture(scope="module")
def texts(text_folder):
    return served(text_folder)


@pytest.fixture(scope="module")
def tables(table_folder):
    return served(table_folder)


def checked(*given, of, max_text=50):
    inputs = [Input.model_validate_json(json.dumps(each)) for each in given]
    return check_inputs(inputs, of, max_text=max_text)


def faulty(*given, of):
    with pytest.raises(InvalidInput) as caught:
        checked(*given, of=of)
    assert str(caught.value) == f"{caught.value.where}: {caught.value.message}."
    return str(caught.value)


def test_texts_stay_texts(texts):
    found = checked({"text": "it came broken"}, {"text": ""}, {"text": "ä" * 50}, of=texts)
    assert collate(found, texts) == ["it came broken", "", "ä" * 50]


def test_rows_come_in_the_order_of_the_columns(tables):
    rows = rows_of(TABLE)
    turned = [dict(reversed(row.items())) for row in rows]
    for given in (rows, turned):
        made = collate(checked(*({"row": row} for row in given), of=tables), tables)
        assert {name: np.asarray(column).tolist() for name, column in made.items()} == TABLE
        assert tables.bundle.predict_logits(made) == pytest.approx(
            tables.bundle.predict_logits(TABLE), abs=0
        )


def test_empty_cells_whole_numbers_and_numbers_for_words(tables):
    rows = [{"price": None, "shelf": None}, {"price": 3, "shelf": 7}, {"price": True, "shelf": ""}]
    made = collate(checked(*({"row": row} for row in rows), of=tables), tables)
    assert np.isnan(made["price"][0])
    assert made["price"][1:].tolist() == [3.0, 1.0]
    assert made["shelf"].to_pylist() == [None, "7", ""]


def test_logits_come_in_order_or_by_name(logits):
    named = {"other": 3.0, "defect": 1.0, "parts": 2}
    made = collate(checked({"logits": [1, 2.0, 3.0]}, {"logits": named}, of=logits), logits)
    assert made.dtype == np.float64
    assert made.tolist() == [[1.0, 2.0, 3.0]] * 2


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"row": {"a": 1}}, 'inputs[0]: the bundle takes texts: send {"text": "…"}.'),
        ({"logits": [1.0]}, 'inputs[0]: the bundle takes texts: send {"text": "…"}.'),
        (
            {"text": "x" * 51},
            "inputs[0].text: the text has 51 characters, at most 50 are allowed.",
        ),
    ],
)
def test_what_is_no_text(texts, given, says):
    assert faulty(given, of=texts) == says


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"text": "x"}, "inputs[0]: the bundle takes table rows"),
        ({"row": {}}, "inputs[0].row: column 'price' is missing"),
        ({"row": {"price": 1}}, "inputs[0].row: column 'shelf' is missing"),
        ({"row": {"price": 1, "shelf": "a", "x": 1}}, "inputs[0].row: unknown column"),
        ({"row": {"price": "1,5", "shelf": "a"}}, "price: must be a number like '4.05' or null"),
        ({"row": {"price": 10**400, "shelf": "a"}}, "inputs[0].row.price: the number is too large"),
        ({"row": {"price": 1, "shelf": 1.5}}, "inputs[0].row.shelf: must be a text or null"),
        ({"row": {"price": 1, "shelf": True}}, "must be a text or null, got true"),
        ({"row": {"price": 1, "shelf": "x" * 51}}, "inputs[0].row.shelf: the text has 51 char"),
        ({"row": {"price": 1, "shelf": 10**60}}, "inputs[0].row.shelf: the text has 61 char"),
    ],
)
def test_what_is_no_row(tables, given, says):
    assert says in faulty(given, of=tables)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"text": "x"}, "inputs[0]: the bundle has no model: send"),
        ({"logits": []}, "inputs[0].logits: 3 logits are required"),
        ({"logits": [1.0] * 4}, "one for each of 'defect', 'parts', 'other', got 4"),
        ({"logits": {"defect": 1, "parts": 1}}, "inputs[0].logits: class 'other' is missing"),
        (
            {"logits": {"defect": 1, "parts": 1, "other": 1, "more": 1}},
            "'more' is not a class: the classes are 'defect', 'parts', 'other'",
        ),
    ],
)
def test_what_are_no_logits(logits, given, says):
    assert says in faulty(given, of=logits)


def test_the_first_fault_is_told_with_its_place(texts):
    said = faulty({"text": "a"}, {"text": "b"}, {"row": {}}, {"row": {}}, of=texts)
    assert said.startswith("inputs[2]: ")


def test_values_as_long_as_a_body_are_not_sent_back(tables):
    long = "secret" * 1000
    for row in ({"price": long, "shelf": "a"}, {"price": 1, "shelf": "a", long: 1}):
        assert len(faulty({"row": row}, of=tables)) < 300


TEXT = Input(text="mail jane@example.org, order #12345")
ROW = Input(row={"note": "jane@example.org", "n": 12345, "none": None})
LOGITS = Input(logits=[1.0, 2.0])


def test_what_is_kept_of_an_input():
    assert apply_input_policy(TEXT, "keep") == {"text": "mail jane@example.org, order #12345"}
    assert apply_input_policy(ROW, "keep") == {
        "row": {"note": "jane@example.org", "n": 12345, "none": None}
    }
    assert apply_input_policy(LOGITS, "keep") == {"logits": [1.0, 2.0]}
    assert apply_input_policy(TEXT, "redacted") == {"text": "mail _email_, order #_order_"}
    assert apply_input_policy(ROW, "redacted") == {
        "row": {"note": "_email_", "n": 12345, "none": None}
    }
    assert apply_input_policy(LOGITS, "redacted") == {"logits": [1.0, 2.0]}
    card = Input(row={"note": 4111111111111111, "n": 7, "yes": True})
    assert apply_input_policy(card, "redacted") == {"row": {"note": "_card_", "n": 7, "yes": True}}
    assert [apply_input_policy(each, "hash") for each in (TEXT, ROW, LOGITS)] == [None] * 3
