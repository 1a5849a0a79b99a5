"""A running model gives what the classifier gave, and is saved and loaded without a pickle."""

import json

import numpy as np
import pytest
import torch
from tests.sentences import refuses

from calibrant import ImageClassifier, TabularClassifier, TextClassifier
from calibrant.convert import ensemble_logits, probs_from_logits
from calibrant.data.encoders.input_columns import InputColumns
from calibrant.data.encoders.table_encoder import TableEncoder
from calibrant.data.encoders.text_encoder import TextEncoder
from calibrant.errors import InputError
from calibrant.models import MLP, BiLSTM
from calibrant.models.saved_parts import networks_of
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
    scorer = Scorer.from_classifier(text_model, column="reason")
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
    scorer = Scorer.from_classifier(table_model)
    assert scorer.predict_logits(table) == pytest.approx(
        table_model.predict_logits(table), abs=1e-6
    )
    again = saved_and_loaded(scorer, tmp_path)
    assert (again.predict_logits(table) == scorer.predict_logits(table)).all()
    assert [file.name for file in tmp_path.iterdir()] == ["model.safetensors"]
    assert again.columns.to_dict() == {"numbers": ["price", "size"], "texts": ["shelf"]}
    assert (again.kind, again.column, again.classes) == ("table", None, (0, 1))


@pytest.fixture(scope="module")
def images():
    draw = np.random.default_rng(0)
    found = draw.integers(0, 100, (60, 8, 8, 1), dtype=np.uint8)
    found[::2, :4] += 100
    return found


@pytest.fixture(scope="module")
def image_model(images):
    options = {"model_options": {"width": 1}, "crop": 1, "batch_size": 16, **QUICK}
    return ImageClassifier(loss="balanced_softmax", **options).fit(images, ["top", "no"] * 30)


def test_it_gives_what_the_image_classifier_gives(image_model, images, tmp_path):
    scorer = Scorer.from_classifier(image_model, resize=True)
    assert scorer.shift is not None
    assert scorer.predict_logits(images) == pytest.approx(
        image_model.predict_logits(images), rel=1e-5, abs=1e-5
    )
    assert scorer.predict_logits(images).dtype == np.float64
    again = saved_and_loaded(scorer, tmp_path)
    assert (again.predict_logits(images) == scorer.predict_logits(images)).all()
    assert [file.name for file in tmp_path.iterdir()] == ["model.safetensors"]
    assert (again.kind, again.column, again.classes) == ("image", None, ("no", "top"))
    assert (again.columns, again.resize, again.text) == (InputColumns(), True, False)
    assert again.networks == ("resnet50",)
    assert not Scorer.from_classifier(image_model).resize


def test_it_gives_what_a_fine_tuned_transformer_gives(transformer_folder, tmp_path):
    fitted = TextClassifier(model=transformer_folder, epochs=1, max_length=6, device="cpu")
    fitted.fit(TEXTS, WHY)
    scorer = Scorer.from_classifier(fitted, column="reason", redact=True)
    assert scorer.predict_logits(TEXTS) == pytest.approx(fitted.predict_logits(TEXTS), abs=1e-5)
    again = saved_and_loaded(scorer, tmp_path)
    assert (again.predict_logits(TEXTS) == scorer.predict_logits(TEXTS)).all()
    assert sorted(file.name for file in tmp_path.iterdir()) == [
        "model.safetensors",
        "tokenizer.json",
    ]
    assert (again.kind, again.column, again.redact) == ("text", "reason", True)
    assert again.networks == ("transformer",)


@pytest.fixture
def transformer_folder(tmp_path_factory):
    """Write a tiny transformer as `save_pretrained` does."""
    from tests.unit.bundle.model_parts import ARCHITECTURE, subword_tokenizer
    from transformers import BertConfig, BertModel

    folder = tmp_path_factory.mktemp("pretrained")
    torch.manual_seed(0)
    told = {key: value for key, value in ARCHITECTURE.items() if key != "model_type"}
    BertModel(BertConfig(**told)).save_pretrained(folder)
    (folder / "tokenizer.json").write_text(subword_tokenizer(), encoding="utf-8")
    return folder


def test_tables_without_names_go_by_position(tmp_path):
    values = np.random.default_rng(0).normal(size=(200, 3))
    fitted = TabularClassifier(**QUICK).fit(values, np.arange(200) % 2)
    scorer = saved_and_loaded(Scorer.from_classifier(fitted), tmp_path)
    assert scorer.predict_logits(values) == pytest.approx(fitted.predict_logits(values), abs=1e-6)
    with pytest.raises(InputError, match="expecting 3 features"):
        scorer.predict_logits(values[:, :2])


def test_the_classifier_is_left_as_it_is(text_model):
    text_model.model_.train()
    Scorer.from_classifier(text_model)
    assert text_model.model_.training
    assert all(part.requires_grad for part in text_model.model_.parameters())


def test_texts_are_told_apart_up_to_rounding_whatever_comes_with_them(text_model):
    scorer = Scorer.from_classifier(text_model)
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
        (("encoder", MLP(2, 2)), ("encoder", "fitted TextEncoder", "SubwordEncoder")),
        ((ENCODER, torch.nn.Linear(2, 2)), ("Linear", "no config", "cannot be saved")),
        ((ENCODER, MLP(3, 2)), ("not fit", "encoder", "features", "shape")),
        ((ENCODER, BiLSTM(9, 2, **SMALL)), ("not fit", "encoder")),
        ((ENCODER, Odd()), ("at least two logits", "got shape (1, 1)")),
        ((ENCODER, MLP(2, 2), [1.0]), ("shift", "2 finite numbers")),
        ((ENCODER, MLP(2, 2), [1.0, float("nan")]), ("shift", "2 finite numbers")),
    ],
)
def test_parts_that_do_not_fit(parts, said):
    with refuses(InputError, *said) as caught:
        Scorer(*parts)
    assert "\n" not in str(caught.value)


def test_as_many_classes_as_logits():
    with refuses(InputError, "gives 2 logits", "3 classes"):
        Scorer(ENCODER, MLP(2, 2), classes="abc")


def test_only_fitted_classifiers_are_taken():
    for odd in (TextClassifier(), object()):
        with refuses(InputError, "come from a fitted"):
            Scorer.from_classifier(odd)


def small_ones(table_model, *, shifts=(None, None)):
    """Return models for one table with different weights."""
    encoder, made = table_model.encoder_, []
    for seed, shift in enumerate(shifts):
        torch.manual_seed(seed)
        network = MLP(len(encoder.get_feature_names_out()), 2, hidden=[9], dropout=[0.25])
        made.append(Scorer(encoder, network, shift, classes=["no", "yes"]))
    return made


@pytest.mark.parametrize("shifts", [(None, None), ((0.5, -0.5), None), ((0.5, 0), (0, 2), (1, 1))])
def test_models_together_average_their_probabilities(table_model, table, tmp_path, shifts):
    members = small_ones(table_model, shifts=shifts)
    both = Scorer.ensemble(members)
    mean = np.mean([probs_from_logits(one.predict_logits(table)) for one in members], axis=0)
    found = both.predict_logits(table)
    assert probs_from_logits(found) == pytest.approx(mean, abs=1e-6)
    expected = ensemble_logits([one.predict_logits(table) for one in members])
    assert found == pytest.approx(expected, abs=1e-5)
    assert both.shift is None
    assert (both.classes, both.kind) == (("no", "yes"), "table")
    again = saved_and_loaded(both, tmp_path)
    assert (again.predict_logits(table) == found).all()
    assert again.networks == ("mlp",) * len(members)


def test_members_are_left_as_they_are(table_model, table):
    members = small_ones(table_model)
    before = [one.predict_logits(table) for one in members]
    both = Scorer.ensemble(members)
    with torch.no_grad():
        for part in both.model.parameters():
            part.zero_()
    after = [one.predict_logits(table) for one in members]
    assert all((a == b).all() for a, b in zip(before, after, strict=True))


def test_texts_may_be_read_together(text_model):
    one = Scorer.from_classifier(text_model, column="reason", redact=True)
    both = Scorer.ensemble([one, one])
    assert both.predict_logits(TEXTS) == pytest.approx(one.predict_logits(TEXTS), abs=1e-5)
    assert (both.column, both.redact, both.classes) == ("reason", True, ("defect", "size"))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"column": "other"}, ("same column", "got 'reason' and, of", "model 1", "'other'")),
        ({"redact": True}, ("same redact", "got False and, of", "model 1", "True")),
    ],
)
def test_models_that_read_otherwise_do_not_go_together(text_model, change, said):
    one = Scorer.from_classifier(text_model, column="reason")
    with refuses(InputError, *said):
        Scorer.ensemble([one, Scorer.from_classifier(text_model, **{"column": "reason", **change})])


def test_models_of_other_classes_or_encoders_do_not_go_together(text_model, table_model):
    one, other = small_ones(table_model)
    other.classes = ("yes", "no")
    with refuses(InputError, "same classes"):
        Scorer.ensemble([one, other])
    more = TextEncoder(min_count=1).fit(["other words", "than those"])
    strange = Scorer(more, BiLSTM(len(more.words), 2, **SMALL), classes=["defect", "size"])
    with refuses(InputError, "same encoder", "model 1"):
        Scorer.ensemble([Scorer.from_classifier(text_model), strange])
    for few in ([], [one]):
        with refuses(InputError, "at least two models", f"got {len(few)}"):
            Scorer.ensemble(few)


def test_a_thinned_model_averages_copies_and_answers_the_same_every_time(
    table_model, table, tmp_path
):
    (whole,) = small_ones(table_model, shifts=[(0.5, -0.5)])
    thin = Scorer.mc_dropout(whole, 7, seed=3)
    found = thin.predict_logits(table)
    assert (found == thin.predict_logits(table)).all()
    assert (thin.shift, thin.classes) == (None, ("no", "yes"))
    assert np.abs(found - whole.predict_logits(table)).max() > 1e-3
    assert (found != Scorer.mc_dropout(whole, 7, seed=4).predict_logits(table)).any()
    again = saved_and_loaded(thin, tmp_path)
    assert (again.predict_logits(table) == found).all()
    assert (again.config["passes"], again.config["seed"]) == (7, 3)
    assert again.networks == ("mlp",)


def test_one_pass_of_a_network_that_drops_next_to_nothing_is_the_network(table_model, table):
    network = MLP(len(table_model.encoder_.get_feature_names_out()), 2, [9], [1e-9])
    whole = Scorer(table_model.encoder_, network, [0.5, -0.5])
    thin = Scorer.mc_dropout(whole, 1)
    assert thin.predict_logits(table) == pytest.approx(whole.predict_logits(table), abs=1e-5)


def test_a_network_without_dropout_cannot_be_thinned():
    whole = Scorer(ENCODER, MLP(2, 2, [4], [0.0]))
    with refuses(InputError, "mlp", "no dropout", "keep"):
        Scorer.mc_dropout(whole)
    with refuses(InputError, "passes", "whole number"):
        Scorer.mc_dropout(Scorer(ENCODER, MLP(2, 2)), 0)


def test_averages_of_averages_tell_their_networks():
    member = {"model": "mlp", "n_features": 3, "n_classes": 2}
    thin = {"model": "mc_dropout", "member": member}
    assert networks_of({"model": "ensemble", "members": [thin, member]}) == ("mlp", "mlp")


def test_a_number_far_from_all_train_rows_says_nothing_of_any_class(table_model, table, tmp_path):
    far = {name: list(column[:3]) for name, column in table.items()}
    far["price"][1] = -1e6
    scorer = Scorer.from_classifier(table_model)
    again = saved_and_loaded(scorer, tmp_path)
    both = Scorer.ensemble([scorer, again])
    for model in (table_model, scorer, again, both):
        logits = model.predict_logits(far)
        assert logits[1].tolist() == [0.0, 0.0]
        assert (np.ptp(logits[[0, 2]], axis=1) > 0).all()
    assert table_model.predict_proba(far)[1].tolist() == [0.5, 0.5]


def test_it_says_whether_it_knows_far_numbers(table_model, text_model, tmp_path):
    scorer = Scorer.from_classifier(table_model)
    assert scorer.knows_far_numbers
    assert not Scorer.from_classifier(text_model).knows_far_numbers
    spec = json.loads(json.dumps(scorer.save(tmp_path)))
    for column in spec["encoder"]["columns"]:  # as they were learned before there were limits
        column.pop("least", None)
        column.pop("most", None)
    earlier = Scorer.load(spec, tmp_path, classes=scorer.classes, device="cpu")
    assert not earlier.knows_far_numbers
    far = {"price": [-1e6], "shelf": ["top"], "size": [0.0]}
    assert np.ptp(earlier.predict_logits(far)) > 0
