"""Packing in Python: what goes in is checked, what comes out is complete."""

import hashlib
import json
from datetime import UTC, datetime

import numpy as np
import pytest
from tests.sentences import refuses
from tests.unit.bundle.parts import band, point, points_of, rows, temperature

from calibrant.bundle import BundlePoint, load_bundle, pack
from calibrant.bundle.packing import add_files
from calibrant.calibrators import AutoCalibrator, TemperatureScaling
from calibrant.errors import BundleError, InputError
from calibrant.testing import WORLDS


def manifest(path):
    return json.loads((path / "manifest.json").read_text(encoding="utf-8"))


def test_the_manifest_says_everything(tmp_path):
    source = tmp_path / "c.json"
    source.write_text("{}")
    made = pack(
        tmp_path / "b",
        calibrator=temperature(),
        points=[BundlePoint(point(), "calibrated"), BundlePoint(point(None), "raw")],
        actions={"defect": "refund"},
        metrics={"nll": {"value": 0.4}},
        sources=[("calibrator", source)],
    )
    found = manifest(made.path)
    assert set(found) == {
        "format", "classes", "scorer", "calibrator", "operating_points", "ood", "actions",
        "metrics", "provenance", "files", "sha256",
    }  # fmt: skip
    assert (found["format"], found["scorer"], found["ood"]) == (4, {"kind": "none"}, None)
    assert found["classes"] == ["defect", "parts", "other"]
    assert found["calibrator"] == temperature().to_dict()
    assert found["operating_points"][0] == {**point().to_dict(), "decides_on": "calibrated"}
    assert found["operating_points"][1]["decides_on"] == "raw"
    assert found["actions"] == {"defect": "refund"}
    assert found["metrics"] == {"nll": {"value": 0.4}}
    card = (made.path / "card.md").read_bytes()
    assert found["files"] == {"card.md": hashlib.sha256(card).hexdigest()}
    made_of = found["provenance"]
    assert made_of["sources"] == [
        {"role": "calibrator", "name": "c.json", "sha256": hashlib.sha256(b"{}").hexdigest()}
    ]
    assert set(made_of["packages"]) == {"calibrant", "numpy", "scipy", "scikit-learn"}
    age = datetime.now(UTC) - datetime.fromisoformat(made_of["created"])
    assert 0 <= age.total_seconds() < 600
    assert str(tmp_path) not in (made.path / "manifest.json").read_text(encoding="utf-8")


def test_a_fitted_calibrator_gives_what_it_gave(tmp_path):
    draw = WORLDS["binary"].draw(500, 0)
    logits = np.log(draw.probs / (1 - draw.probs))
    for fitted in (TemperatureScaling(), AutoCalibrator(candidates=["temperature"])):
        fitted.fit(logits, draw.labels)
        pack(tmp_path / "b", calibrator=fitted, force=True)
        found = load_bundle(tmp_path / "b")
        assert (found.predict_proba(logits)[:, 1] == fitted.predict_proba(logits)).all()
        assert found.calibration.method == getattr(fitted, "chosen_", fitted).method


def test_more_files_may_travel_along(tmp_path):
    report = tmp_path / "page.html"
    report.write_text("<p>")
    made = pack(tmp_path / "b", points=[point()], files={"report.html": report})
    assert (made.path / "report.html").read_text() == "<p>"
    assert set(manifest(made.path)["files"]) == {"card.md", "report.html"}
    for name in ("card.md", "manifest.json", "model.safetensors", "a/b", "../b", ""):
        with refuses(InputError, "plain file names"):
            pack(tmp_path / "c", points=[point()], files={name: report})
    with refuses(InputError, "nowhere", "existing file"):
        pack(tmp_path / "c", points=[point()], files={"a.html": tmp_path / "nowhere"})
    assert not (tmp_path / "c").exists()


def test_a_file_is_added_to_a_bundle_that_stays_whole(tmp_path):
    report = tmp_path / "a.html"
    report.write_text("<p>fine</p>")
    bundle = pack(tmp_path / "b", points=[point()])
    add_files(bundle.path, {"report.html": report})
    both = pack(tmp_path / "c", points=[point()], files={"report.html": report})
    assert load_bundle(bundle.path).manifest["files"] == load_bundle(both.path).manifest["files"]
    with pytest.raises(InputError, match="plain file names other than"):
        add_files(bundle.path, {"card.md": report})
    (bundle.path / "card.md").write_text("changed")
    with pytest.raises(BundleError, match="was changed after it was packed"):
        add_files(bundle.path, {"other.html": report})


@pytest.mark.parametrize(
    ("parts", "mentions"),
    [
        ({}, ("nothing to pack",)),
        ({"calibrator": temperature().to_dict()}, ("fitted calibrator",)),
        ({"points": [1]}, ("operating point", "got 1")),
        ({"calibrator": temperature(), "points": [point()]}, ("scores", "chosen on")),
        (
            {
                "calibrator": temperature(),
                "points": [BundlePoint(point("x", classes=("x", "parts", "other")), "raw")],
            },
            ("class 'x'", "calibrator"),
        ),
        (
            {"points": [point(), point("x", classes=("x", "y"))]},
            ("2 classes", "first point has 3"),
        ),
        ({"points": [BundlePoint(point(), "calibrated")]}, ("no calibrator",)),
        ({"points": [point()], "actions": {"x": "y"}}, ("action for 'x'", "not among")),
        ({"points": [point()], "actions": {"parts": " "}}, ("a name", "got ' '")),
        ({"points": [point()], "metrics": {"nll": float("nan")}}, ("JSON values",)),
        ({"points": [point()], "metrics": {"nll": {1, 2}}}, ("JSON values",)),
    ],
)
def test_parts_that_do_not_belong_together(tmp_path, parts, mentions):
    with refuses(InputError, *mentions):
        pack(tmp_path / "b", **parts)
    assert list(tmp_path.iterdir()) == []


def test_a_calibrator_that_is_not_fitted_is_refused(tmp_path):
    with refuses(Exception, "not fitted"):
        pack(tmp_path / "b", calibrator=TemperatureScaling())
    assert list(tmp_path.iterdir()) == []


def test_names_of_every_language_survive(tmp_path):
    classes = ("größe", "色", "a\udc80", 'qu"ote\n<b>')
    made = pack(tmp_path / "b", points=[point("größe", classes=classes)], actions={"色": "換"})
    loaded = load_bundle(tmp_path / "b")
    assert loaded.classes == made.classes == classes
    assert loaded.actions == {"色": "換"}
    assert "<b>" not in (tmp_path / "b/card.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("result", [points_of(point(), point("parts")), band(), point(None)])
def test_every_kind_of_point_is_packed(tmp_path, result):
    made = pack(tmp_path / "b", points=[result])
    again = load_bundle(tmp_path / "b")
    logits = rows(k=len(made.classes))
    assert (again.decide(logits).decision == made.decide(logits).decision).all()
    assert again.points[0].to_dict() == {**result.to_dict(), "decides_on": "raw"}
