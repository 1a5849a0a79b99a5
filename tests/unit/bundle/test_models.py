"""Bundles with a model: texts or tables in, the logits of the classifier, each fault told."""

import json
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow as pa
import pytest
import torch
from tests.sentences import assert_mentions, refuses
from tests.unit.bundle.model_parts import (
    CLASSES,
    TABLE,
    TEXTS,
    table_scorer,
    text_scorer,
    with_known_weights,
)
from tests.unit.bundle.parts import point, temperature

from calibrant.bundle import BundlePoint, load_bundle, pack
from calibrant.bundle.files import sha256_of
from calibrant.bundle.manifest import seal_manifest
from calibrant.convert import probs_from_logits
from calibrant.errors import BundleError, InputError
from calibrant.models import BiLSTM, models, register
from calibrant.models.scorer import Scorer
from calibrant.ood import OodRule


@pytest.fixture
def texts(tmp_path):
    return pack(
        tmp_path / "texts",
        scorer=text_scorer(),
        calibrator=temperature(),
        points=[BundlePoint(point("parts", 0.5), "calibrated")],
    )


@pytest.fixture
def tables(tmp_path):
    return pack(tmp_path / "tables", scorer=table_scorer(), points=[point("defect", 0.5)])


def refused(path):
    with pytest.raises(BundleError) as caught:
        load_bundle(path, device="cpu")
    said = str(caught.value)
    assert said.endswith(".")
    assert "\n" not in said
    assert len(said) < 500
    return said


def reseal(path, change=lambda found: None):
    """Change the manifest and seal it and the files again, as a faulty program would."""
    file = path / "manifest.json"
    found = json.loads(file.read_text(encoding="utf-8"))
    change(found)
    found["files"] = {name: sha256_of(path / name) for name in found["files"]}
    file.write_text(json.dumps(seal_manifest(found)), encoding="utf-8")
    return path


@pytest.mark.parametrize("kind", ["texts", "tables"])
def test_what_was_packed_is_what_runs(kind, request):
    made = request.getfixturevalue(kind)
    scorer, inputs = (text_scorer(), TEXTS) if kind == "texts" else (table_scorer(), TABLE)
    loaded = load_bundle(made.path, device="cpu")
    logits = scorer.predict_logits(inputs)
    assert loaded.predict_logits(inputs) == pytest.approx(logits, abs=1e-6)
    by_hand = load_bundle(made.path, device="cpu").decide(logits=logits)
    found = loaded.decide(inputs)
    assert found.probabilities == pytest.approx(by_hand.probabilities, abs=1e-6)
    assert (found.decision == by_hand.decision).all()
    assert loaded.predict_proba(inputs) == pytest.approx(by_hand.probabilities, abs=1e-6)
    assert set(found.decision.tolist()) == {"act", "abstain"}


def test_the_manifest_tells_the_model(texts, tables):
    spec = texts.manifest["scorer"]
    assert (spec["kind"], spec["input"]) == ("torch", "text")
    assert spec["columns"] == {"text": "message"}
    assert spec["encoder"] == {
        "format": 1, "kind": "text",
        "options": {"vocabulary": 20_000, "min_count": 1, "max_length": 8},
    }  # fmt: skip
    assert (spec["model"]["model"], spec["model"]["hidden"]) == ("bilstm", 3)
    assert spec["log_shift"] == [0.5, 0.0, -0.25]
    assert (spec["redact"], spec["module"]) == (False, "calibrant.models.bilstm")
    assert set(texts.manifest["files"]) == {"card.md", "model.safetensors", "tokenizer.json"}
    assert set(texts.provenance["packages"]) >= {"torch", "safetensors", "tokenizers"}
    other = tables.manifest["scorer"]
    assert other["input"] == "table"
    assert other["columns"] == {"numbers": ["price"], "texts": ["shelf"]}
    assert other["log_shift"] is None
    assert set(tables.manifest["files"]) == {"card.md", "model.safetensors"}
    assert_mentions(texts, "3 classes", "bilstm", "temperature")


def test_files_may_be_read_by_others(texts):
    modes = {file.name: file.stat().st_mode & 0o777 for file in texts.path.iterdir()}
    assert len(set(modes.values())) == 1, modes


def test_the_shift_is_taken_off_before_calibration(tmp_path):
    """Logits of a model with a shift are those without it, less the shift."""
    plain, moved = (text_scorer(shift=s).predict_logits(TEXTS) for s in (None, (1.0, 0.0, -1.0)))
    assert plain - moved == pytest.approx(np.tile([1.0, 0.0, -1.0], (4, 1)))
    made = pack(tmp_path / "b", scorer=text_scorer(shift=(1.0, 0.0, -1.0)))
    assert made.predict_proba(TEXTS) == pytest.approx(probs_from_logits(moved), abs=1e-6)


def test_scores_may_still_come_in(texts):
    logits = texts.predict_logits(TEXTS)
    probs = texts.predict_proba(TEXTS)
    assert texts.predict_proba(logits=logits) == pytest.approx(probs)
    assert texts.predict_proba(probs=probs_from_logits(logits)) == pytest.approx(probs)
    with refuses(InputError, "only one", "inputs, logits and probs"):
        texts.decide(TEXTS, logits=logits)


def test_the_rule_looks_at_the_shifted_logits_before_calibration(tmp_path):
    logits = text_scorer().predict_logits(TEXTS)
    rule = OodRule.fit(logits, score="energy", quantile=0.5)
    made = pack(tmp_path / "b", scorer=text_scorer(), calibrator=temperature(), ood=rule,
                points=[BundlePoint(point("parts", 0.01), "calibrated")])  # fmt: skip
    found = made.decide(TEXTS)
    assert found.out_of_scope.sum() == 2
    assert (found.out_of_scope == rule.flags(logits)).all()
    sure = made.predict_proba(TEXTS)[:, 1] >= 0.01
    assert sure[found.out_of_scope].any()
    assert ((found.decision == "act") == (sure & ~found.out_of_scope)).all()


def test_log_odds_are_no_logits_for_the_rule(tmp_path):
    from calibrant.models import MLP

    scorer = Scorer(table_scorer().encoder, MLP(3, 2, hidden=[2], dropout=[0.0]))
    rule = OodRule("energy", -1.0, 0.95, 10)
    made = pack(tmp_path / "b", scorer=scorer, ood=rule,
                points=[point("yes", classes=("no", "yes"))])  # fmt: skip
    assert made.decide(logits=[[0.0, 5.0]]).decision.tolist() == ["act"]
    with refuses(InputError, "logits", "both classes"):
        made.decide(logits=[5.0])


def test_redacted_texts_are_what_the_model_reads(tmp_path):
    encoder = text_scorer().encoder
    encoder.fit([*TEXTS, "mail _email_ today"])
    options = {"embedding": 4, "hidden": 3, "layers": 1, "dense": 6}
    network = with_known_weights(BiLSTM(len(encoder.words), 3, **options))
    raw = Scorer(encoder, network, column="message", classes=CLASSES)
    clean = Scorer(encoder, network, column="message", classes=CLASSES, redact=True)
    made = pack(tmp_path / "b", scorer=clean)
    given = ["mail jo@example.com today"]
    assert made.predict_logits(given) == pytest.approx(raw.predict_logits(["mail _email_ today"]))
    assert made.predict_logits(given) != pytest.approx(raw.predict_logits(given))
    assert_mentions((made.path / "card.md").read_text(encoding="utf-8"), "redacted from", "text")


@pytest.mark.parametrize("make", [pa.table, dict, lambda t: pa.table(t).to_pylist(),
                                  lambda t: pa.table(t).to_pandas()])  # fmt: skip
def test_texts_may_come_in_a_table(texts, make):
    table = make({"id": [1, 2, 3, 4], "message": TEXTS})
    assert (texts.predict_logits(table) == texts.predict_logits(TEXTS)).all()


def test_the_columns_of_a_table_are_picked(texts, tables):
    whole = pa.table({"id": [1, 2, 3, 4], **TABLE, "message": TEXTS})
    assert (texts.predict_logits(texts.inputs_of(whole)) == texts.predict_logits(TEXTS)).all()
    assert (tables.predict_logits(tables.inputs_of(whole)) == tables.predict_logits(TABLE)).all()
    assert (texts.columns.numbers, texts.columns.texts) == ((), ("message",))
    assert (tables.columns.numbers, tables.columns.texts) == (("price",), ("shelf",))
    for bundle, lacking in ((texts, "message"), (tables, "shelf")):
        with pytest.raises(InputError) as caught:
            bundle.inputs_of(whole.drop_columns(lacking))
        said = str(caught.value)
        assert_mentions(said, f"column '{lacking}'", "columns: 'id', ")


def test_a_bundle_without_a_model_picks_logits(packed):
    table = pa.table({"id": [1], "logit_other": [0.0], "logit_defect": [4.0], "logit_parts": [1.0]})
    assert packed.columns.numbers == ("logit_defect", "logit_parts", "logit_other")
    found = packed.predict_logits(packed.inputs_of(table))
    assert found.tolist() == [[4.0, 1.0, 0.0]]
    with refuses(InputError, "lacks the column 'logit_parts'"):
        packed.inputs_of(table.drop_columns("logit_parts"))


@pytest.mark.parametrize(
    ("inputs", "mentions"),
    [
        ([1.0, 2.0], ("got numbers", "logits=")),
        (np.zeros((2, 3)), ("got numbers", "logits=")),
        ([[0.0, 1.0, 2.0]], ("got numbers", "logits=")),
        (["a", None], ("inputs row 1", "missing")),
        (pa.array(["a", None]), ("inputs row 1", "missing")),
        ([], ("inputs is empty",)),
        ("one text", ("single text", "a list")),
        ({"text": ["a"]}, ("lacks the column 'message'", "'text'")),
        ([{"text": "a"}], ("lacks the column 'message'",)),
        (pa.table({"a": ["b"]}), ("lacks the column 'message'",)),
    ],
)
def test_a_bundle_for_texts_refuses_other_things(texts, inputs, mentions):
    for ask in (texts.predict_logits, texts.predict_proba, texts.decide):
        with refuses(InputError, *mentions) as caught:
            ask(inputs)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("inputs", "mentions"),
    [
        (["a text"], ("must be a table", "list of texts")),
        ({"price": [1.0]}, ("lacks the column 'shelf'", "'price'")),
        ([{"shelf": "top"}], ("lacks the column 'price'",)),
        ({"price": ["a"], "shelf": ["b"]}, ("column 'price'", "numeric")),
        (np.zeros((2, 2)), ("no column names",)),
        ({"price": [float("inf")], "shelf": ["b"]}, ("infinity",)),
        ({"price": [], "shelf": []}, ("no rows",)),
    ],
)
def test_a_bundle_for_tables_refuses_other_things(tables, inputs, mentions):
    with refuses(InputError, *mentions) as caught:
        tables.predict_proba(inputs)
    assert "\n" not in str(caught.value)


def test_threads_may_share_a_bundle(texts):
    many = [f"{TEXTS[i % 4]} {i % 7}" for i in range(300)]
    whole = texts.predict_logits(many)
    parts = [many[i : i + 30] for i in range(0, 300, 30)] * 4
    fresh = load_bundle(texts.path, device="cpu")
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(fresh.predict_logits, parts))
    assert np.concatenate(found) == pytest.approx(np.tile(whole, (4, 1)), abs=1e-5)


def test_loading_leaves_the_callers_random_numbers_alone(texts):
    torch.manual_seed(0)
    expected = torch.rand(3)
    torch.manual_seed(0)
    load_bundle(texts.path, device="cpu")
    assert (torch.rand(3) == expected).all()


@pytest.mark.parametrize("name", ["model.safetensors", "tokenizer.json"])
def test_a_changed_or_lost_file_is_noticed(texts, name):
    file = texts.path / name
    file.write_bytes(file.read_bytes() + b" ")
    assert_mentions(refused(texts.path), name, "changed", "packed")
    file.unlink()
    assert f"lacks its file '{name}'" in refused(texts.path)


def test_damaged_files_under_good_hashes(texts):
    file = texts.path / "model.safetensors"
    whole = file.read_bytes()
    file.write_bytes(whole[:-8])
    assert "model.safetensors is damaged" in refused(reseal(texts.path))
    file.write_bytes(whole)
    tokenizer = texts.path / "tokenizer.json"
    for content in ("{", "{}", '{"model": 1}', "[]"):
        tokenizer.write_text(content)
        assert "tokenizer.json is damaged" in refused(reseal(texts.path))


def test_files_that_nobody_listed_are_not_taken_for_the_models(texts):
    def unlist(found):
        del found["files"]["tokenizer.json"]

    said = refused(reseal(texts.path, unlist))
    assert_mentions(said, "manifest", "not list 'tokenizer.json'")


def test_weights_of_another_network(texts, tables, tmp_path):
    wide = pack(tmp_path / "wide", scorer=text_scorer(hidden=5))
    shutil.copy(wide.path / "model.safetensors", texts.path)
    said = refused(reseal(texts.path))
    assert_mentions(said, "model.safetensors", "another network", "'lstm.weight_ih_l0'", "(20, 4)")
    assert "needs (12, 4)" in said
    shutil.copy(tables.path / "model.safetensors", texts.path)
    assert_mentions(refused(reseal(texts.path)), "another network", "lacks 'embedding.weight'")


def test_a_tokenizer_of_another_model(texts, tmp_path):
    scorer = text_scorer()
    scorer.encoder.fit([*TEXTS, "and many more words than that"])
    scorer.encoder.to_dict()
    file = texts.path / "tokenizer.json"
    file.write_text(scorer.encoder.tokenizer_)
    said = refused(reseal(texts.path))
    assert_mentions(said, "its encoder", "tokens", "0..")


def test_a_network_that_is_not_known_here(texts):
    def rename(found):
        found["scorer"]["model"]["model"] = "my_net"
        found["scorer"]["module"] = "mypackage.nets"

    said = refused(reseal(texts.path, rename))
    assert_mentions(said, "network 'my_net'", "not known")
    assert "by the module 'mypackage.nets'" in said


@pytest.mark.parametrize(
    ("change", "mentions"),
    [
        (lambda s: s["model"].pop("n_classes"), ("not fit", "network 'bilstm'")),
        (lambda s: s["model"].update(magic=1), ("names 'magic'",)),
        (lambda s: s["model"].update(hidden=-1), ("hidden", "whole number")),
        (lambda s: s["model"].pop("model"), ("network None", "not known")),
        (lambda s: s["encoder"].update(format=9), ("text encoder", "format 1")),
        (lambda s: s["encoder"].pop("options"), ("tokenizer.json is damaged",)),
        (lambda s: s.update(input="audio"), ("'text', 'table' or 'image'", "got 'audio'")),
        (lambda s: s.update(input="image", resize=False), ("image encoder", "format 1")),
        (lambda s: s["encoder"].update(kind="subword"), ("tokenizer.json is damaged",)),
        (lambda s: s.update(model={"model": "ensemble"}), ("damaged",)),
        (lambda s: s.update(model={"model": "ensemble", "members": [3]}), ("damaged",)),
        (lambda s: s.update(input="table"), ("not a table",)),
        (lambda s: s.update(log_shift=[1.0]), ("3 finite numbers",)),
        (lambda s: s.update(log_shift="abc"), ("3 finite numbers",)),
        (lambda s: s.pop("log_shift"), ("damaged",)),
        (lambda s: s.update(columns={}), ("column of texts",)),
    ],
)
def test_a_damaged_entry_of_the_model(texts, change, mentions):
    assert_mentions(refused(reseal(texts.path, lambda found: change(found["scorer"]))), *mentions)


def test_as_many_logits_as_classes(texts, tmp_path):
    def two(found):
        found.update(classes=["a", "b"], calibrator=None, operating_points=[])

    assert_mentions(refused(reseal(texts.path, two)), "3 logits", "2 classes")
    with refuses(InputError, "2 classes", "model has 3"):
        pack(tmp_path / "c", scorer=text_scorer(), points=[point("a", classes=("a", "b"))])
    with refuses(InputError, "those of the model"):
        pack(tmp_path / "c", scorer=text_scorer(), classes=("parts", "defect", "other"))
    turned = temperature(classes=("parts", "defect", "other"))
    with refuses(InputError, "classes of the calibrator", "those of the bundle"):
        pack(tmp_path / "c", scorer=text_scorer(), calibrator=turned)
    assert not (tmp_path / "c").exists()


def test_a_model_alone_can_be_packed(tmp_path):
    made = pack(tmp_path / "b", scorer=table_scorer())
    assert made.classes == CLASSES
    assert made.predict_proba(TABLE).sum(axis=1) == pytest.approx(1.0)
    again = pack(tmp_path / "c", scorer=made.scorer, calibrator=temperature())
    assert again.predict_logits(TABLE) == pytest.approx(made.predict_logits(TABLE))


def test_a_config_that_tells_only_half_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("calibrant.models.registry._MODELS", models())

    @register("forgetful")
    class Forgetful(torch.nn.Module):
        def __init__(self, n_features, n_classes, factor=1.0):
            super().__init__()
            self.layer, self.factor = torch.nn.Linear(n_features, n_classes), factor
            self.config = {"model": "forgetful", "n_features": 3, "n_classes": 3}

        def forward(self, features):
            return self.factor * self.layer(features)

    encoder = table_scorer().encoder
    with refuses(InputError, "config", "every option"):
        pack(tmp_path / "b", scorer=Scorer(encoder, Forgetful(3, 3, 9.0), classes=CLASSES))
    assert not (tmp_path / "b").exists()
    made = pack(tmp_path / "b", scorer=Scorer(encoder, Forgetful(3, 3), classes=CLASSES))
    assert made.manifest["scorer"]["module"] == __name__


def test_a_device_that_is_not_here_is_the_callers_fault(texts):
    for device in ("tpu", "cuda:99", "cuda:x"):
        with refuses(InputError, "device"):
            load_bundle(texts.path, device=device)


RUN = """
import sys
class NoTorch:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "torch":
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, NoTorch())
import calibrant
from calibrant.errors import MissingExtra
path, with_model = sys.argv[1:]
bundle = calibrant.load_bundle(path)
print(bundle.decide([[9.0, 0.0, 0.0]]).decision.tolist())
from calibrant.bundle import pack
pack(path + "2", calibrator=bundle.calibration)
try:
    calibrant.load_bundle(with_model)
except MissingExtra as error:
    print(error)
"""


def test_only_a_bundle_with_a_model_needs_torch(packed, texts):
    done = subprocess.run([sys.executable, "-c", RUN, packed.path, texts.path],
                          capture_output=True, text=True, check=True)  # fmt: skip
    assert done.stdout.splitlines() == [
        "['act']",
        "a bundle with a network needs the optional extra 'torch': pip install 'calibrant[torch]'.",
    ]


def test_loading_does_not_import_training(texts, packed):
    code = (
        "import sys, calibrant\n"
        f"calibrant.load_bundle({str(packed.path)!r})\n"
        "print('torch' in sys.modules)\n"
        f"calibrant.load_bundle({str(texts.path)!r}, device='cpu').predict_proba(['broken'])\n"
        "print([m for m in ('lightning_fabric', 'calibrant.training') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split("\n")[:2] == ["False", "[]"]
