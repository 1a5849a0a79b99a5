"""Loading: the schema, the seal and the hash of every file, each failure one sentence."""

import json
import pickle
import shutil

import pytest
from tests.sentences import assert_mentions
from tests.unit.bundle.parts import point, temperature

from calibrant.bundle import load_bundle
from calibrant.bundle.manifest import FORMAT, seal_manifest
from calibrant.errors import BundleError


def refused(path):
    """Return the sentence with which a folder is refused."""
    with pytest.raises(BundleError) as caught:
        load_bundle(path)
    said = str(caught.value)
    assert said.endswith(".")
    assert "\n" not in said
    assert len(said) < 500
    return said


def edit(path, change):
    found = json.loads(path.read_text(encoding="utf-8"))
    change(found)
    path.write_text(json.dumps(found), encoding="utf-8")


def test_a_folder_that_is_none(tmp_path):
    assert "does not exist" in refused(tmp_path / "nowhere")
    assert "has no manifest.json" in refused(tmp_path)
    (tmp_path / "file").write_text("x")
    assert "has no manifest.json" in refused(tmp_path / "file")


@pytest.mark.parametrize("content", ["", "{", "[1", '{"format": NaN}', "[" * 90_000, "\xff"])
def test_a_manifest_that_is_not_json(packed, content):
    (packed.path / "manifest.json").write_text(content, encoding="latin-1")
    assert_mentions(refused(packed.path), "damaged", "not valid JSON")


@pytest.mark.parametrize("content", ["[]", "null", "{}", '"text"'])
def test_a_manifest_that_is_something_else(packed, content):
    (packed.path / "manifest.json").write_text(content)
    assert_mentions(refused(packed.path), "key 'format'", "missing")


def test_a_newer_format_is_refused_before_anything_else_is_looked_at(packed):
    file = packed.path / "manifest.json"
    file.write_text(json.dumps({"format": FORMAT + 1, "unheard": "of"}))
    assert_mentions(
        refused(packed.path),
        packed.path,
        f"has format {FORMAT + 1}",
        f"up to {FORMAT}",
        "upgrade calibrant",
    )


@pytest.mark.parametrize("version", [0, -1, True, "1", 1.5, None])
def test_a_format_that_is_none(rewrite, version):
    assert "its format is" in refused(rewrite(format=version))


@pytest.mark.parametrize("key", ["threshold", "logit", "guarantee"])
def test_an_edited_point_is_noticed(packed, key):
    def change(found):
        found["operating_points"][0][key] = 0.1 if key != "guarantee" else "always right"

    edit(packed.path / "manifest.json", change)
    assert_mentions(refused(packed.path), "manifest.json", "changed", "packed")


def test_spaces_and_the_order_of_keys_do_not_count(packed):
    file = packed.path / "manifest.json"
    found = json.loads(file.read_text(encoding="utf-8"))
    file.write_text(json.dumps(dict(reversed(found.items())), indent=7, ensure_ascii=True))
    assert load_bundle(packed.path).classes == packed.classes


def test_an_edited_card_and_a_lost_one_are_noticed(packed):
    card = packed.path / "card.md"
    card.write_text(card.read_text(encoding="utf-8") + "It is always right.\n", encoding="utf-8")
    assert_mentions(refused(packed.path), card, "changed", "packed")
    card.unlink()
    assert "lacks its file 'card.md'" in refused(packed.path)
    card.mkdir()
    assert "lacks its file 'card.md'" in refused(packed.path)


def test_a_file_that_cannot_be_read(packed, monkeypatch):
    def torn(path):
        raise OSError(5, "Input/output error")

    monkeypatch.setattr("calibrant.bundle.manifest.sha256_of", torn)
    assert_mentions(refused(packed.path), "card.md", "cannot be read", "Input/output error")


KEYS = ["format", "classes", "scorer", "calibrator", "operating_points", "ood", "actions",
        "metrics", "provenance", "files", "sha256"]  # fmt: skip


@pytest.mark.parametrize("key", KEYS[1:])
def test_a_key_that_is_missing(rewrite, key):
    assert_mentions(refused(rewrite(drop=[key])), f"key '{key}'", "missing")


def test_a_key_that_the_format_does_not_know(rewrite):
    said = refused(rewrite(run_this="import os"))
    assert_mentions(said, "key 'run_this'", f"format {FORMAT}")
    assert_mentions(refused(rewrite(drop=["run_this"], format=1)), "key 'ood'", "format 1")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("classes", ["only"]),
        ("classes", ["a", "a"]),
        ("classes", [1, "1"]),
        ("classes", ["a", None]),
        ("classes", "abc"),
        ("scorer", "none"),
        ("scorer", {}),
        ("scorer", {"kind": "torch"}),
        ("scorer", {"kind": "torch", "input": "text", "columns": {}, "encoder": {}, "model": []}),
        ("ood", []),
        ("calibrator", []),
        ("operating_points", {}),
        ("operating_points", [1]),
        ("actions", []),
        ("actions", {"defect": ""}),
        ("actions", {"defect": 1}),
        ("metrics", []),
        ("provenance", None),
        ("files", ["card.md"]),
        ("files", {"card.md": "abc"}),
        ("files", {"../card.md": "0" * 64}),
        ("files", {"/etc/passwd": "0" * 64}),
        ("files", {"..": "0" * 64}),
        ("files", {"manifest.json": "0" * 64}),
    ],
)
def test_a_value_of_another_kind(rewrite, key, value):
    assert_mentions(refused(rewrite(**{key: value})), "damaged", f"'{key}' must be")


def test_a_model_that_cannot_be_run_here(rewrite):
    said = refused(rewrite(scorer={"kind": "onnx"}))
    assert_mentions(said, "kind 'onnx'", "cannot run")
    parts = {"input": "text", "columns": {}, "encoder": {}, "model": {}, "redact": False}
    said = refused(rewrite(drop=["ood"], format=1, scorer={"kind": "torch", **parts}))
    assert_mentions(said, "kind 'torch'")


@pytest.mark.parametrize(
    ("change", "read"),
    [
        ({"input": "image", "encoder": {"kind": "image"}, "resize": False}, "image"),
        ({"encoder": {"kind": "subword"}}, "subword"),
    ],
)
def test_what_a_format_cannot_hold_is_damage(rewrite, change, read):
    parts = {"input": "text", "columns": {}, "encoder": {}, "model": {}, "redact": False}
    scorer = {"kind": "torch", **parts, **change}
    said = refused(rewrite(format=2, scorer=scorer))
    assert_mentions(said, "damaged", f"reads '{read}'", "format 2")
    assert "does not know" not in refused(rewrite(format=3, scorer=scorer))


@pytest.mark.parametrize("resize", [None, "yes", 1])
def test_a_model_for_images_must_say_whether_they_are_resized(rewrite, resize):
    parts = {"input": "image", "columns": {}, "encoder": {}, "model": {}, "redact": False}
    said = refused(rewrite(scorer={"kind": "torch", **parts, "resize": resize}))
    assert_mentions(said, "damaged", "images are resized")


@pytest.mark.parametrize(
    ("change", "mentions"),
    [
        ({"calibrator": {"format": 9, "method": "temperature"}}, ("format 9",)),
        ({"calibrator": {**temperature().to_dict(), "method": "magic"}}, ("magic",)),
        ({"calibrator": {**temperature().to_dict(), "params": {}}}, ("incomplete or damaged",)),
        ({"calibrator": {**temperature().to_dict(), "zero_as": 3}}, ("zero_as",)),
        (
            {"calibrator": temperature(classes=("a", "b", "c")).to_dict()},
            ("those of the bundle",),
        ),
        ({"calibrator": None}, ("no calibrator",)),
        ({"operating_points": [{**point().to_dict(), "decides_on": "magic"}]}, ("decides_on",)),
        ({"operating_points": [{"decides_on": "raw"}]}, ("operating point",)),
        ({"operating_points": [{**point().to_dict(), "format": 7}]}, ("format",)),
        ({"operating_points": [{"points": 1, "decides_on": "raw"}]}, ("damaged",)),
        ({"operating_points": [{"upper": 1, "decides_on": "raw"}]}, ("saved operating point",)),
        (
            {
                "operating_points": [
                    {**point("x", classes=("x", "y", "z")).to_dict(), "decides_on": "raw"}
                ]
            },
            ("class 'x'", "the bundle"),
        ),
        ({"ood": {}}, ("out-of-scope rule", "key 'format'", "missing")),
        (
            {"ood": {"format": 1, "score": "magic", "threshold": 0, "quantile": 0.9, "n": 5}},
            ("magic",),
        ),
        ({"actions": {"unheard": "of"}}, ("action for 'unheard'", "not a class")),
    ],
)
def test_parts_that_do_not_fit_under_a_good_seal(rewrite, change, mentions):
    path = rewrite(**change)
    assert_mentions(refused(path), *mentions)
    assert "manifest.json" in refused(path)


def test_nothing_is_unpickled_or_run(packed):
    """Files that nobody listed are left alone, whatever they hold."""

    class Trap:
        def __reduce__(self):
            return exec, ("raise SystemExit('ran')",)

    (packed.path / "model.pkl").write_bytes(pickle.dumps(Trap()))
    (packed.path / "__init__.py").write_text("raise SystemExit('ran')")
    assert load_bundle(packed.path).classes == packed.classes


def test_a_bundle_may_be_moved_and_copied(packed, tmp_path):
    moved = shutil.move(packed.path, tmp_path / "elsewhere")
    assert load_bundle(moved).to_dict() == packed.to_dict()


def test_the_seal_covers_every_key():
    whole = seal_manifest({"format": 1, "classes": ["a", "b"]})
    assert seal_manifest(whole) == whole
    assert seal_manifest({**whole, "format": 2})["sha256"] != whole["sha256"]
