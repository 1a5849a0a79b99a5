"""Bundles with a transformer: its tokenizer as it is, its weights, and each fault told."""

import json
import shutil
import subprocess
import sys

import pytest
from tests.sentences import assert_mentions, refuses
from tests.unit.bundle.model_parts import (
    ARCHITECTURE,
    TEXTS,
    subword_scorer,
    subword_tokenizer,
    with_known_weights,
)
from tests.unit.bundle.test_models import refused, reseal

from calibrant.bundle import load_bundle, pack
from calibrant.data.encoders.subword_encoder import SubwordEncoder
from calibrant.errors import InputError
from calibrant.models import Transformer
from calibrant.models.scorer import Scorer


@pytest.fixture
def pieces(tmp_path):
    return pack(tmp_path / "pieces", scorer=subword_scorer(shift=(0.5, 0.0, -0.25)))


@pytest.mark.parametrize("pooling", ["own", "mean"])
def test_what_was_packed_is_what_runs(tmp_path, pooling):
    scorer = subword_scorer(shift=(0.5, 0.0, -0.25), pooling=pooling)
    made = load_bundle(pack(tmp_path / "b", scorer=scorer).path, device="cpu")
    assert (made.predict_logits(TEXTS) == scorer.predict_logits(TEXTS)).all()
    table = {"id": [1, 2, 3, 4], "message": TEXTS}
    assert (made.predict_logits(table) == made.predict_logits(TEXTS)).all()
    assert made.columns.texts == ("message",)


def test_the_manifest_tells_the_model(pieces):
    spec = pieces.manifest["scorer"]
    assert (spec["input"], spec["columns"]) == ("text", {"text": "message"})
    assert spec["encoder"] == {"format": 1, "kind": "subword", "options": {"max_length": 8}}
    assert spec["model"]["model"] == "transformer"
    assert spec["model"]["architecture"]["model_type"] == "bert"
    assert "resize" not in spec
    assert set(pieces.manifest["files"]) == {"card.md", "model.safetensors", "tokenizer.json"}
    assert pieces.provenance["packages"]["transformers"]


def test_an_average_of_transformers_names_the_library_too(tmp_path):
    made = pack(tmp_path / "b", scorer=Scorer.mc_dropout(subword_scorer(), passes=2))
    assert "transformers" in made.provenance["packages"]


def test_the_tokenizer_is_kept_as_it_is(pieces):
    """The tokenizers library reads the file, and so does the transformers library."""
    from tokenizers import Tokenizer
    from transformers import PreTrainedTokenizerFast

    file = pieces.path / "tokenizer.json"
    assert json.loads(file.read_text(encoding="utf-8")) == json.loads(subword_tokenizer())
    ours = pieces.scorer.encoder.encode(TEXTS[:1])[0].tolist()
    assert Tokenizer.from_file(str(file)).encode(TEXTS[0]).ids == ours
    assert PreTrainedTokenizerFast(tokenizer_file=str(file))(TEXTS[0])["input_ids"] == ours


def test_damaged_tokenizers_under_good_hashes(pieces):
    for content in ("{", "{}", '{"model": 1}', "[]"):
        (pieces.path / "tokenizer.json").write_text(content)
        assert "tokenizer.json is damaged" in refused(reseal(pieces.path))


@pytest.mark.parametrize(
    ("change", "mentions"),
    [
        (lambda s: s["encoder"].update(format=9), ("subword encoder", "format 1")),
        (lambda s: s["encoder"]["options"].update(max_length=2), ("max_length", "at least 3")),
        (lambda s: s["encoder"]["options"].update(max_length=99), ("12 tokens", "99")),
        (lambda s: s["model"]["architecture"].update(model_type="odd"), ("'odd' is not known",)),
        (lambda s: s["model"]["architecture"].update(vocab_size=9), ("another network",)),
        (lambda s: s["model"].pop("architecture"), ("not fit", "network 'transformer'")),
    ],
)
def test_a_damaged_entry_of_the_model(pieces, change, mentions):
    assert_mentions(refused(reseal(pieces.path, lambda found: change(found["scorer"]))), *mentions)


def test_a_table_of_tokens_that_is_too_small_is_refused():
    """The trial touches the last token, which no text of a test may ever hold."""
    small = {**ARCHITECTURE, "vocab_size": ARCHITECTURE["vocab_size"] - 1}
    encoder = SubwordEncoder(subword_tokenizer(), max_length=8)
    with refuses(InputError, "its encoder", "tokens", "0..19"):
        Scorer(encoder, with_known_weights(Transformer(small, 3)))


def test_texts_longer_than_the_network_reads_are_refused():
    with refuses(InputError, "12 tokens", "max_length is 13"):
        subword_scorer(max_length=13)
    assert subword_scorer(max_length=12).predict_logits(["it " * 40]).shape == (1, 3)


def test_a_tokenizer_of_another_model_is_refused(pieces, tmp_path):
    whole = json.loads(subword_tokenizer())
    whole["model"]["vocab"]["more"] = len(whole["model"]["vocab"])
    (pieces.path / "tokenizer.json").write_text(json.dumps(whole))
    assert_mentions(refused(reseal(pieces.path)), "its encoder", "tokens", "0..")


RUN = """
import sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "transformers":
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Missing())
import calibrant
from calibrant.errors import MissingExtra
for path in sys.argv[1:]:
    try:
        print(calibrant.load_bundle(path, device="cpu").classes)
    except MissingExtra as error:
        print(error)
"""


def test_only_a_transformer_needs_the_transformers_library(pieces, tmp_path):
    from tests.unit.bundle.model_parts import table_scorer

    tables = pack(tmp_path / "tables", scorer=table_scorer())
    thinned = pack(tmp_path / "thinned", scorer=Scorer.mc_dropout(subword_scorer(), passes=2))
    paths = [tables.path, pieces.path, thinned.path]
    done = subprocess.run([sys.executable, "-c", RUN, *paths],
                          capture_output=True, text=True, check=True)  # fmt: skip
    needs = "needs the optional extra 'transformers': pip install 'calibrant[transformers]'."
    assert done.stdout.splitlines() == [
        "('defect', 'parts', 'other')",
        f"a transformer {needs}",
        f"a transformer {needs}",
    ]


def test_the_folder_needs_nothing_of_where_it_was_made(pieces, tmp_path):
    moved = shutil.move(pieces.path, tmp_path / "elsewhere")
    whole = (tmp_path / "elsewhere/manifest.json").read_text(encoding="utf-8")
    assert str(tmp_path) not in whole
    assert "name_or_path" not in whole
    assert load_bundle(moved, device="cpu").predict_logits(TEXTS).shape == (4, 3)
