"""A running model gives what the classifier gave, and is saved and loaded without a pickle."""

import json

import numpy as np
import pytest
import torch

from calibrant import TabularClassifier, TextClassifier
from calibrant.data.table_encoder import TableEncoder
from calibrant.data.text_encoder import TextEncoder
from calibrant.errors import InputError
from calibrant.models import MLP, BiLSTM
from calibrant.models.scorer import Scorer

TEXTS = ["it came broken", "broken on arrival", "too small for me", "a size too small", ""] * 12
WHY = ["defect", "defect", "size", "size", "size"] * 12
SMALL = {"embedding": 8, "hidden": 4}
QUICK = {"epochs": 2, "learning_rate": 0.02, "device": "cpu"}


@pytest.fixture(scope="module")
def text_model():
    made = TextClassifier(model_options=SMALL, loss="balanced_softmax", **QUICK)
    return made.fit(TEXTS, WHY)


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    shelf = rng.choice(["top", "low", "mid"], 300)
    return {"price": rng.normal(size=300), "shelf": shelf.tolist(), "size": rng.normal(size=300)}


@pytest.fixture(scope="module")
def table_model(table):
    labels = (table["price"] + np.random.default_rng(1).normal(size=300) > 0).astype(int)
    return TabularClassifier(**QUICK).fit(table, labels)


def saved_and_loaded(scorer, folder):
    spec = json.loads(json.dumps(scorer.save(folder)))
    return Scorer.load(spec, folder, classes=scorer.classes, device="cpu")


def test_it_gives_what_the_text_classifier_gives(text_model, tmp_path):
    scorer = Scorer.of(text_model, column="reason")
    expected = text_model.predict_logits(TEXTS)
    assert scorer.shift is not None  # balanced softmax moves the logits
    assert scorer.predict_logits(TEXTS) == pytest.approx(expected, abs=1e-6)
    assert scorer.predict_logits(TEXTS).dtype == np.float64
    again = saved_and_loaded(scorer, tmp_path)
    assert (again.predict_logits(TEXTS) == scorer.predict_logits(TEXTS)).all()
    assert sorted(file.name for file in tmp_path.iterdir()) == [
        "model.safetensors",
        "tokenizer.json",
    ]
    assert (again.kind, again.column, again.classes) == ("text", "reason", ("defect", "size"))


def test_it_gives_what_the_table_classifier_gives(table_model, table, tmp_path):
    scorer = Scorer.of(table_model)
    assert scorer.predict_logits(table) == pytest.approx(
        table_model.predict_logits(table), abs=1e-6
    )
    again = saved_and_loaded(scorer, tmp_path)
    assert (again.predict_logits(table) == scorer.predict_logits(table)).all()
    assert [file.name for file in tmp_path.iterdir()] == ["model.safetensors"]
    assert again.columns.to_dict() == {"numbers": ["price", "size"], "texts": ["shelf"]}
    assert (again.kind, again.column, again.classes) == ("table", None, (0, 1))


def test_tables_without_names_go_by_position(tmp_path):
    values = np.random.default_rng(0).normal(size=(200, 3))
    fitted = TabularClassifier(**QUICK).fit(values, np.arange(200) % 2)
    scorer = saved_and_loaded(Scorer.of(fitted), tmp_path)
    assert scorer.predict_logits(values) == pytest.approx(fitted.predict_logits(values), abs=1e-6)
    with pytest.raises(InputError, match="expecting 3 features"):
        scorer.predict_logits(values[:, :2])


def test_the_classifier_is_left_as_it_is(text_model):
    text_model.model_.train()
    Scorer.of(text_model)
    assert text_model.model_.training
    assert all(part.requires_grad for part in text_model.model_.parameters())


def test_texts_are_told_apart_up_to_rounding_whatever_comes_with_them(text_model):
    scorer = Scorer.of(text_model)
    whole = scorer.predict_logits(TEXTS)
    alone = np.concatenate([scorer.predict_logits([text]) for text in TEXTS[:5]])
    assert alone == pytest.approx(whole[:5], abs=1e-6)


def test_personal_numbers_are_taken_out_first():
    encoder = TextEncoder(min_count=1).fit(["call _phone_ now", "it broke"])
    torch.manual_seed(0)
    model = BiLSTM(len(encoder.words), 2, embedding=8, hidden=32)
    scorer = Scorer(encoder, model, redact=True)
    given = scorer.predict_logits(["call +1 (555) 010-9999 now"])
    assert given == pytest.approx(scorer.predict_logits(["call _phone_ now"]))
    assert given != pytest.approx(Scorer(encoder, model).predict_logits(["call 010 9999 now"]))


def test_a_scorer_for_tables_does_not_redact():
    assert not Scorer(TableEncoder().fit({"a": [1.0, 2.0]}), MLP(1, 2), redact=True).redact


ENCODER = TableEncoder().fit({"a": [1.0, 2.0], "b": [3.0, 1.0]})


class Odd(torch.nn.Module):
    """A network that gives one number."""

    def __init__(self):
        super().__init__()
        self.config = {"model": "odd"}

    def forward(self, features):
        return features[:, :1]


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        (("encoder", MLP(2, 2)), "encoder must be a fitted TextEncoder or TableEncoder"),
        ((ENCODER, torch.nn.Linear(2, 2)), "Linear has no config, so it cannot be saved"),
        ((ENCODER, MLP(3, 2)), "does not fit its encoder: features must have shape"),
        ((ENCODER, BiLSTM(9, 2, **SMALL)), "does not fit its encoder"),
        ((ENCODER, Odd()), "at least two logits, got shape \\(1, 1\\)"),
        ((ENCODER, MLP(2, 2), [1.0]), "shift must hold 2 finite numbers"),
        ((ENCODER, MLP(2, 2), [1.0, float("nan")]), "shift must hold 2 finite numbers"),
    ],
)
def test_parts_that_do_not_fit(parts, said):
    with pytest.raises(InputError, match=said) as caught:
        Scorer(*parts)
    assert "\n" not in str(caught.value)


def test_as_many_classes_as_logits():
    with pytest.raises(InputError, match="gives 2 logits, but there are 3 classes"):
        Scorer(ENCODER, MLP(2, 2), classes="abc")


def test_only_fitted_classifiers_are_taken():
    for odd in (TextClassifier(), object()):
        with pytest.raises(InputError, match="must come from a fitted"):
            Scorer.of(odd)
