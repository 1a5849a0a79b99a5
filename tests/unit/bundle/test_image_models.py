"""Bundles that read images: bytes in, the logits of the classifier, and each fault told."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow as pa
import pytest
import torch
from tests.sentences import assert_mentions, refuses
from tests.unit.bundle.model_parts import CLASSES, IMAGES, image_scorer, know_tiny_images
from tests.unit.bundle.parts import point, temperature
from tests.unit.bundle.test_models import refused, reseal

from calibrant.bundle import BundlePoint, load_bundle, pack
from calibrant.convert import ensemble_logits
from calibrant.data.encoders.image_encoder import ImageEncoder
from calibrant.data.encoders.input_columns import InputColumns
from calibrant.errors import InputError
from calibrant.models import ResNet50
from calibrant.models.scorer import Scorer


@pytest.fixture(autouse=True)
def known(monkeypatch):
    know_tiny_images(monkeypatch)


@pytest.fixture
def images(tmp_path):
    return pack(
        tmp_path / "images",
        scorer=image_scorer(shift=(0.5, 0.0, -0.25)),
        calibrator=temperature(),
        points=[BundlePoint(point("defect", 0.5), "calibrated")],
        actions={"defect": "refund"},
    )


def test_what_was_packed_is_what_runs(images):
    loaded = load_bundle(images.path, device="cpu")
    logits = image_scorer(shift=(0.5, 0.0, -0.25)).predict_logits(IMAGES)
    assert (loaded.predict_logits(IMAGES) == logits).all()
    by_hand = loaded.decide(logits=logits)
    found = loaded.decide(IMAGES)
    assert (found.probabilities == by_hand.probabilities).all()
    assert (found.decision == by_hand.decision).all()
    assert (loaded.predict_proba(IMAGES) == found.probabilities).all()


def test_the_manifest_tells_the_model(images):
    spec = images.manifest["scorer"]
    assert (images.manifest["format"], spec["kind"], spec["input"]) == (4, "torch", "image")
    assert spec["encoder"] == ImageEncoder().fit(IMAGES).to_dict()
    assert (spec["columns"], spec["resize"]) == ({"numbers": [], "texts": []}, False)
    assert spec["model"]["model"] == "tiny_image"
    assert spec["module"] == "tests.unit.bundle.model_parts"
    assert set(images.manifest["files"]) == {"card.md", "model.safetensors"}
    assert "transformers" not in images.provenance["packages"]
    assert images.columns == InputColumns()


def test_a_large_network_comes_back_to_the_bit(tmp_path):
    torch.manual_seed(0)
    given = np.random.default_rng(0).integers(0, 256, (5, 8, 8, 1), dtype=np.uint8)
    scorer = Scorer(ImageEncoder().fit(given), ResNet50(1, 3, width=1), classes=CLASSES)
    made = pack(tmp_path / "b", scorer=scorer)
    assert (made.predict_logits(given) == scorer.predict_logits(given)).all()


@pytest.mark.parametrize(
    "make",
    [
        list,
        lambda images: images.astype(np.int64),
        lambda images: torch.from_numpy(images),
        lambda images: [image.tolist() for image in images],
    ],
)
def test_images_may_come_in_other_wrappings(images, make):
    assert (images.predict_logits(make(IMAGES)) == images.predict_logits(IMAGES)).all()


@pytest.mark.parametrize(
    ("inputs", "mentions"),
    [
        (np.zeros((6, 3)), ("rows of numbers", "logits=")),
        ([[0.0, 1.0, 2.0]], ("rows of numbers", "logits=")),
        ([0.5, 0.5], ("rows of numbers", "logits=")),
        (torch.zeros(6, 3), ("rows of numbers", "logits=")),
        (IMAGES[0, :, :, 0], ("a single one", "a list")),
        (IMAGES[0], ("one colour image",)),
        (IMAGES / 255, ("whole numbers", "0..255")),
        (IMAGES[:, :3], ("4 x 5 colour images", "got 3 x 5 colour")),
        (IMAGES[..., :1], ("4 x 5 colour images", "got 4 x 5 grey")),
        (IMAGES[:0], ("inputs is empty",)),
        ([], ("inputs is empty",)),
        (["a.png"], ("use read_images",)),
        ({"image": IMAGES}, ("got a table",)),
        (pa.table({"logit_defect": [0.1]}), ("got a table",)),
        ([{"image": 1}], ("got a table",)),
    ],
)
def test_a_bundle_for_images_refuses_other_things(images, inputs, mentions):
    for ask in (images.predict_logits, images.predict_proba, images.decide):
        with pytest.raises(InputError) as caught:
            ask(inputs)
        told = str(caught.value)
        assert_mentions(told, *mentions)
        assert told.startswith("inputs ")
        assert "\n" not in told
        assert told.endswith(".")


def test_scores_are_given_by_name(images):
    logits = images.predict_logits(IMAGES)
    assert (images.predict_proba(logits=logits) == images.predict_proba(IMAGES)).all()


def test_a_table_holds_no_images(images):
    with refuses(InputError, "images", "a table"):
        images.inputs_of(pa.table({"image": ["a.png"]}))


def test_threads_may_share_a_bundle(tmp_path):
    thinned = Scorer.mc_dropout(image_scorer(), passes=4)
    both = Scorer.ensemble([image_scorer(), image_scorer(start=1)])
    many = np.random.default_rng(0).integers(0, 256, (300, 4, 5, 3), dtype=np.uint8)
    for scorer in (thinned, both):
        shared = load_bundle(pack(tmp_path / "b", scorer=scorer, force=True).path, device="cpu")
        whole = shared.predict_logits(many)
        parts = [many[i : i + 30] for i in range(0, 300, 30)] * 4
        with ThreadPoolExecutor(8) as pool:
            found = list(pool.map(shared.predict_logits, parts))
        assert np.concatenate(found) == pytest.approx(np.tile(whole, (4, 1)), abs=1e-4)


def test_an_ensemble_is_one_bundle(tmp_path):
    members = [image_scorer(shift=(0.5, 0.0, -0.25)), image_scorer(start=1), image_scorer(start=2)]
    made = pack(tmp_path / "b", scorer=Scorer.ensemble(members))
    expected = ensemble_logits([one.predict_logits(IMAGES) for one in members])
    assert made.predict_logits(IMAGES) == pytest.approx(expected, abs=1e-4)
    again = load_bundle(made.path, device="cpu")
    assert (again.predict_logits(IMAGES) == made.predict_logits(IMAGES)).all()
    assert str(again) == "Bundle of 3 classes, ensemble, no calibrator."
    spec = made.manifest["scorer"]
    assert (spec["log_shift"], spec["module"]) == (None, "tests.unit.bundle.model_parts")


def test_a_thinned_model_is_one_bundle(tmp_path):
    scorer = Scorer.mc_dropout(image_scorer(shift=(0.5, 0.0, -0.25)), passes=5, seed=3)
    made = pack(tmp_path / "b", scorer=scorer)
    again = load_bundle(made.path, device="cpu")
    assert (again.predict_logits(IMAGES) == scorer.predict_logits(IMAGES)).all()
    assert (again.predict_logits(IMAGES[2:3]) == scorer.predict_logits(IMAGES[2:3])).all()


def changed(bundle, change):
    return refused(reseal(bundle.path, lambda found: change(found["scorer"])))


@pytest.mark.parametrize(
    ("change", "mentions"),
    [
        (lambda s: s["encoder"].update(format=9), ("image encoder", "format 1")),
        (lambda s: s["encoder"].update(channels=1), ("mean", "one finite number")),
        (lambda s: s["encoder"].update(size=[4]), ("is damaged (ValueError)",)),
        (lambda s: s["encoder"].update(mean=[1.0]), ("mean", "one finite number")),
        (lambda s: s["encoder"].update(std=[1.0, 0.0, 1.0]), ("std", "above 0")),
        (lambda s: s["encoder"].pop("mean"), ("is damaged (KeyError)",)),
        (lambda s: s["model"].update(n_channels=1), ("another network",)),
        (lambda s: s["model"].update(model="my_net"), ("network 'my_net'", "not known")),
        (lambda s: s.update(input="table"), ("not a table",)),
        (lambda s: s.pop("resize"), ("images are resized",)),
    ],
)
def test_a_damaged_entry_of_the_model(images, change, mentions):
    assert_mentions(changed(images, change), *mentions)


def test_a_member_that_is_not_known_here_is_named(tmp_path):
    made = pack(tmp_path / "b", scorer=Scorer.ensemble([image_scorer(), image_scorer(start=1)]))

    def rename(scorer):
        scorer["model"]["members"][1]["model"] = "my_net"

    said = changed(made, rename)
    assert_mentions(said, "network 'my_net'", "not known")
    assert "by the module 'tests.unit.bundle.model_parts'" in said


def test_a_network_for_other_images_is_refused(tmp_path):
    torch.manual_seed(0)
    with refuses(InputError, "its encoder", "images", "at least"):
        Scorer(ImageEncoder().fit(IMAGES), ResNet50(3, 3, width=1))
    with refuses(InputError, "not fit", "its encoder"):
        Scorer(ImageEncoder().fit(IMAGES[..., :1]), image_scorer().model)
