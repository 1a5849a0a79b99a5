"""The bundle that serves: swapped for a newer one, kept where the newer one is damaged."""

import logging
import shutil
from datetime import UTC, datetime, timedelta

import pytest
from tests.sentences import assert_mentions, refuses
from tests.unit.bundle.model_parts import image_scorer, know_tiny_images
from tests.unit.serving.bundles import CLASSES, logits_bundle

from calibrant.bundle import pack
from calibrant.errors import BundleError
from calibrant.serving.bundle_slot import BundleSlot
from calibrant.store.schema import LONGEST_NAME


@pytest.fixture
def folder(tmp_path):
    return logits_bundle(tmp_path / "returns").path


@pytest.fixture
def slot(folder):
    slot = BundleSlot(folder, "cpu")
    slot.load()
    return slot


@pytest.fixture
def newer(tmp_path):
    return logits_bundle(tmp_path / "newer", "no points")


def put(source, folder):
    """Replace the bundle in a folder, as a rename would."""
    shutil.rmtree(folder)
    shutil.copytree(source, folder)


def test_what_is_loaded_goes_by_its_names(folder):
    slot = BundleSlot(folder, "cpu")
    served = slot.load()
    assert slot.current is served
    assert slot.refused is None
    assert served.hash == served.bundle.manifest["sha256"] == served.manifest["sha256"]
    assert len(served.hash) == 64
    assert served.id == served.hash[:12]
    assert (served.name, served.reads, served.classes) == ("returns", "logits", CLASSES)
    assert timedelta(0) <= datetime.now(UTC) - served.loaded_at < timedelta(minutes=10)


def test_classes_that_are_numbers_go_by_their_text(tmp_path):
    made = pack(tmp_path / "numbers", classes=[0, 1, 2])
    assert BundleSlot(made.path, "cpu").load().classes == ("0", "1", "2")


def test_the_name_is_that_of_the_folder_however_it_is_reached(folder, monkeypatch):
    monkeypatch.chdir(folder)
    assert BundleSlot(type(folder)("."), "cpu").load().name == "returns"


def test_nothing_to_load_is_told(tmp_path):
    with pytest.raises(BundleError, match="nowhere"):
        BundleSlot(tmp_path / "nowhere").load()


def test_images_are_not_served(tmp_path, monkeypatch):
    know_tiny_images(monkeypatch)
    made = pack(tmp_path / "images", scorer=image_scorer())
    with refuses(BundleError, "takes images", "cannot be served", "use calibrant predict"):
        BundleSlot(made.path, "cpu").load()


def test_a_newer_bundle_takes_over_and_what_holds_the_old_one_keeps_it(slot, folder, newer):
    old = slot.current
    assert slot.look() is False
    put(newer.path, folder)
    assert slot.look() is True
    assert slot.current.hash == newer.manifest["sha256"] != old.hash
    assert old.bundle.predict_proba([[1.0, 0.0, 0.0]])[0, 0] == pytest.approx(0.4519, abs=1e-4)
    assert slot.look() is False


def test_nothing_is_read_again_where_nothing_changed(slot, monkeypatch):
    monkeypatch.setattr("calibrant.serving.bundle_slot.load_bundle", None)  # would fail
    assert slot.look() is False
    assert slot.refused is None


def test_the_same_bundle_written_again_is_no_swap(slot, folder, tmp_path):
    before = slot.current
    put(shutil.copytree(folder, tmp_path / "copy"), folder)
    assert slot.look() is False
    assert slot.reload() is before
    assert slot.current is before


def damage(file):
    file.write_bytes(file.read_bytes().replace(b"e", b"f", 1))


def test_a_damaged_one_is_refused_and_the_old_one_goes_on(slot, folder, newer, caplog):
    before = slot.current
    put(newer.path, folder)
    damage(folder / "card.md")
    with caplog.at_level(logging.WARNING, logger="calibrant.serving"):
        assert slot.look() is False
        assert slot.look() is False
        with pytest.raises(BundleError, match=r"card\.md"):
            slot.reload()
    assert slot.current is before
    assert "card.md" in slot.refused
    assert caplog.text.count("is refused, the old one stays") == 1  # said once, not every second


def test_a_damaged_file_under_an_old_manifest_is_found_by_a_reload(slot, folder):
    damage(folder / "card.md")
    assert slot.look() is False
    assert slot.refused is None
    with pytest.raises(BundleError, match=r"card\.md"):
        slot.reload()
    assert slot.refused is not None


@pytest.mark.parametrize("content", ["", "{}", "not json", '{"format": 999}', "[" * 5000])
def test_a_manifest_that_is_none_is_refused(slot, folder, content):
    before = slot.current
    (folder / "manifest.json").write_text(content)
    assert slot.look() is False
    assert slot.current is before
    assert slot.refused


def test_a_folder_that_goes_away_is_told(slot, folder):
    before = slot.current
    shutil.rmtree(folder)
    assert slot.look() is False
    assert slot.current is before
    assert "no longer exists" in slot.refused


def test_half_a_copy_is_refused_and_taken_when_it_is_whole(slot, folder, newer, monkeypatch):
    shutil.copy(newer.path / "manifest.json", folder)
    assert slot.look() is False
    assert slot.refused
    shutil.copy(newer.path / "card.md", folder)  # the manifest stays as it is
    assert slot.look() is False  # the folder was read a moment ago
    monkeypatch.setattr("calibrant.serving.bundle_slot.time.monotonic", lambda: float("inf"))
    assert slot.look() is True
    assert slot.current.hash == newer.manifest["sha256"]
    assert slot.refused is None


def test_what_was_refused_may_be_taken_back(slot, folder, tmp_path):
    before = slot.current
    kept = shutil.copytree(folder, tmp_path / "kept")
    (folder / "manifest.json").write_text("{}")
    slot.look()
    assert slot.refused
    put(kept, folder)
    assert slot.look() is False
    assert slot.current is before
    assert slot.refused is None


def test_a_newer_bundle_of_images_is_refused(slot, folder, tmp_path, monkeypatch):
    know_tiny_images(monkeypatch)
    put(pack(tmp_path / "images", scorer=image_scorer()).path, folder)
    assert slot.look() is False
    assert "takes images" in slot.refused


def names_of(length):
    return ["a", "b", "c" * length]


def test_names_that_cannot_go_on_record_are_refused(tmp_path):
    long = pack(tmp_path / "long", classes=names_of(LONGEST_NAME + 1)).path
    with pytest.raises(BundleError) as caught:
        BundleSlot(long, "cpu").load()
    assert f"of {LONGEST_NAME + 1} characters" in str(caught.value)
    assert_mentions(caught.value, f"at most {LONGEST_NAME}", "stored", "use", "shorter name")
    fits = pack(tmp_path / "fits", classes=names_of(LONGEST_NAME)).path
    assert BundleSlot(fits, "cpu").load().classes[2] == "c" * LONGEST_NAME


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (MemoryError(), "cannot be used (MemoryError)."),
        (OSError("too many\nopen files."), "cannot be used (OSError: too many open files)."),
        (ZeroDivisionError("of ours"), "cannot be used (ZeroDivisionError: of ours)."),
    ],
)
def test_whatever_goes_wrong_is_a_refusal_in_one_sentence(
    slot, folder, newer, monkeypatch, caplog, error, says
):
    before = slot.current
    put(newer.path, folder)

    def broken(*about, **more):
        raise error

    with monkeypatch.context() as patch:
        patch.setattr("calibrant.serving.bundle_slot.load_bundle", broken)
        for _ in range(3):
            slot._next_try = 0.0
            assert slot.look() is False
        with pytest.raises(BundleError) as caught:
            slot.reload()
    assert slot.refused == str(caught.value)
    assert slot.refused.endswith(says)
    assert slot.current is before
    assert caplog.text.count("Traceback") == 1  # with the details, but once
    assert slot.reload().hash == newer.manifest["sha256"]


@pytest.mark.parametrize("kind", ["logits", "points", "texts"])
def test_a_bundle_that_cannot_score_does_not_take_over(
    slot, folder, tmp_path, text_folder, monkeypatch, kind
):
    before = slot.current
    source = {
        "logits": lambda: logits_bundle(tmp_path / "new", "no points").path,
        "points": lambda: logits_bundle(tmp_path / "new", warmth=3.0).path,
        "texts": lambda: text_folder,
    }[kind]()
    put(source, folder)
    method = {
        "logits": "calibrant.bundle.Bundle.predict_proba",
        "points": "calibrant.bundle.Bundle.decide",
        "texts": "calibrant.models.scorer.Scorer.trial",
    }[kind]

    def broken(bundle, **given):
        raise RuntimeError("CUDA out of memory")

    with monkeypatch.context() as patch:
        patch.setattr(method, broken)
        assert slot.look() is False
    assert slot.current is before
    assert_mentions(slot.refused, "CUDA", "memory")
    assert slot.reload() is not before
