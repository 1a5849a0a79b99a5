"""Versions of a bundle: other points, the same model, and every way back."""

import json
import os
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.sentences import assert_mentions
from tests.unit.bundle.model_parts import TABLE, TEXTS, table_scorer, text_scorer
from tests.unit.bundle.parts import point, points_of, rows, temperature, without_promise
from tests.unit.bundle.version_parts import CALIB, TOLD, back, bundle_in, content, place, save, seal

from calibrant.bundle import BundlePoint, Versions, load_bundle, pack
from calibrant.bundle.versions import exchange


@pytest.fixture
def bundle(tmp_path):
    return bundle_in(tmp_path)


def test_a_version_has_other_points_and_all_else_as_it_was(bundle):
    old, before = load_bundle(bundle), content(bundle)[0]
    assert "## Changes" not in (bundle / "card.md").read_text(encoding="utf-8")
    made = save(bundle, point("parts", 0.6), change=TOLD)
    new, after = load_bundle(bundle), content(bundle)[0]
    assert new.manifest["sha256"] == made != old.manifest["sha256"]
    assert [each.to_dict() for each in new.points] == [
        {**point("parts", 0.6).to_dict(), "decides_on": "raw"}
    ]
    assert set(after) == set(before)
    for name in set(before) - {"manifest.json", "card.md"}:
        assert after[name] == before[name]
    for key in ("format", "classes", "scorer", "calibrator", "ood", "actions", "metrics"):
        assert new.manifest[key] == old.manifest[key]
    assert new.calib.hash == CALIB.hash
    assert (new.predict_proba(rows()) == old.predict_proba(rows())).all()
    assert new.provenance["created"] == old.provenance["created"]


def test_what_was_told_is_in_the_manifest_and_on_the_card(bundle):
    base = seal(bundle)
    save(bundle, change=TOLD)
    (change,) = load_bundle(bundle).provenance["changes"]
    assert {key: change[key] for key in TOLD} == TOLD
    assert change["base"] == base
    age = datetime.now(UTC) - datetime.fromisoformat(change["at"])
    assert timedelta() <= age < timedelta(minutes=10)
    save(bundle, point("other"))
    card = (bundle / "card.md").read_text(encoding="utf-8")
    changes = card.partition("## Changes\n\n")[2].splitlines()
    assert len(changes) == 2  # the newest comes first
    last = load_bundle(bundle).provenance["changes"][1]["base"][:12]
    said = "The operating points were changed. No reason was given. Before that it was version"
    assert changes[0].endswith(f"{said} {last}.")
    assert_mentions(
        changes[1],
        "by Ann &lt;admin&gt;:",
        "Act on 'parts' at 0.6.",
        "Reason: Fewer mistakes please.",
    )
    assert_mentions(changes[1], f"version {base[:12]}")
    assert "- Returns of one shop." in card  # words of the one who packed it
    assert "P(other)" in card
    assert (bundle / "report.html").read_text() == "<p>the study's</p>"


def test_what_points_promise_together_is_told_anew(bundle):
    save(bundle, point("parts"), point("other"))
    assert "confidence_together" not in load_bundle(bundle).provenance
    card = (bundle / "card.md").read_text(encoding="utf-8")
    assert_mentions(card, "hold together", "at least 90 %")
    save(bundle, point("parts"), point("other"), provenance={"confidence_together": 0.925})
    assert load_bundle(bundle).provenance["confidence_together"] == 0.925
    assert "with 92.5 % confidence" in (bundle / "card.md").read_text(encoding="utf-8")


def test_going_back_gives_every_byte(bundle):
    states = {seal(bundle): content(bundle)}
    for threshold in (0.6, 0.7, 0.8):
        made = save(bundle, point("parts", threshold), change=TOLD)
        states[made] = content(bundle)
    assert len(states) == 4
    for made in [*states, *reversed(states)]:
        if made != seal(bundle):
            assert back(bundle, made) == made
        assert content(bundle) == states[made]
        assert load_bundle(bundle).manifest["sha256"] == made
    assert sorted(path.name for path in place(bundle).iterdir() if path.is_dir()) == sorted(
        made[:12] for made in states
    )


@pytest.mark.parametrize("scorer", [text_scorer(), table_scorer()])
def test_a_model_stays_as_it_is(tmp_path, scorer):
    folder = tmp_path / "bundle"
    pack(folder, scorer=scorer, calibrator=temperature(), points=[BundlePoint(point(), "raw")])
    first, before, inputs = seal(folder), content(folder), TEXTS if scorer.text else TABLE
    logits = load_bundle(folder, device="cpu").predict_logits(inputs)
    save(folder, point("parts", 0.5))
    new = load_bundle(folder, device="cpu")
    assert (new.predict_logits(inputs) == logits).all()
    assert new.points[0].acts_on == {"parts"}
    weights = place(folder) / first[:12] / "model.safetensors"
    assert weights.read_bytes() == (folder / "model.safetensors").read_bytes()
    back(folder, first)
    assert content(folder) == before


@pytest.mark.parametrize("name", ["format_1", "format_1_band", "format_2_table", "format_3_band"])
def test_bundles_of_every_format_can_be_changed(tmp_path, name):
    source = Path(__file__).parents[1] / "fixtures" / name
    folder = shutil.copytree(source, tmp_path / "bundle")
    before, points = content(folder), list(load_bundle(folder, device="cpu").points)
    first, version = seal(folder), load_bundle(folder, device="cpu").manifest["format"]
    versions = Versions(folder)
    made = versions.save_points(points[:1], base=first, change=TOLD, begin=lambda made: None)
    found = load_bundle(folder, device="cpu")
    assert (found.manifest["format"], found.manifest["sha256"]) == (version, made)
    versions.restore(first, base=made, begin=lambda made: None)
    assert content(folder) == before


@pytest.mark.parametrize(
    "result", [points_of(point(), point("parts")), without_promise(), point(None)]
)
def test_every_kind_of_point_can_be_saved(bundle, result):
    save(bundle, result)
    assert load_bundle(bundle).points[0].to_dict() == {**result.to_dict(), "decides_on": "raw"}


def test_no_point_at_all_can_be_saved(bundle):
    Versions(bundle).save_points([], base=seal(bundle), change={}, begin=lambda made: None)
    assert load_bundle(bundle).points == ()


def test_all_versions_the_newest_first(bundle):
    assert [(each.hash, each.current) for each in Versions(bundle).all()] == [(seal(bundle), True)]
    assert not place(bundle).exists()  # looking writes nothing
    first = seal(bundle)
    second = save(bundle, change=TOLD)
    third = save(bundle, point("other"))
    found = Versions(bundle).all()
    assert [each.hash for each in found] == [third, second, first]
    assert [each.current for each in found] == [True, False, False]
    assert [each.id for each in found] == [each.hash[:12] for each in found]
    assert found[0].path == bundle
    assert [load_bundle(each.path).manifest["sha256"] for each in found] == [third, second, first]
    assert found[2].change is None
    assert found[1].change["reason"] == TOLD["reason"]
    assert found[1].manifest["operating_points"][0]["class"] == "parts"
    assert found[0].created >= found[1].created >= found[2].created
    back(bundle, first)
    found = Versions(bundle).all()
    assert [each.hash for each in found] == [third, second, first]
    assert [each.current for each in found] == [False, False, True]


def test_what_is_no_version_is_not_listed(bundle):
    first = seal(bundle)
    second = save(bundle)
    shutil.copytree(place(bundle) / first[:12], place(bundle) / "another name")
    (place(bundle) / "empty").mkdir()
    (place(bundle) / "notes.txt").write_text("mine")
    assert [each.hash for each in Versions(bundle).all()] == [second, first]
    manifest = place(bundle) / first[:12] / "manifest.json"
    manifest.write_text(manifest.read_text().replace("0.95", "0.99"))
    assert [each.hash for each in Versions(bundle).all()] == [second]


def test_no_bundle_has_no_versions(tmp_path):
    assert Versions(tmp_path / "nowhere").all() == []


def test_begin_is_called_when_all_is_ready_and_nothing_changed_yet(bundle):
    before, seen = content(bundle), []

    def begin(made):
        assert content(bundle) == before
        (draft,) = place(bundle).glob(".draft-*")
        assert load_bundle(draft).manifest["sha256"] == made
        assert seal(bundle)[:12] in os.listdir(place(bundle))
        seen.append(made)

    assert [save(bundle, begin=begin)] == seen
    assert back(bundle, before_seal(before), begin=lambda made: seen.append(made)) == seen[1]


def before_seal(before):
    return json.loads(before[0]["manifest.json"][0])["sha256"]


def test_two_renames_do_where_one_step_cannot(bundle, monkeypatch):
    monkeypatch.setattr(exchange, "exchange_folders", lambda first, second: False)
    first, before = seal(bundle), content(bundle)
    made = save(bundle)
    assert load_bundle(bundle).manifest["sha256"] == made
    back(bundle, first)
    assert content(bundle) == before
    assert [path.name for path in place(bundle).glob(".draft*")] == []


def test_files_are_copied_where_they_cannot_be_shared(bundle, monkeypatch):
    def unable(*_, **__):
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr("os.link", unable)
    first, before = seal(bundle), content(bundle)
    second = save(bundle)
    save(bundle)
    kept = [place(bundle) / each[:12] / "calib.npz" for each in (first, second)]
    assert not kept[0].samefile(kept[1])
    back(bundle, first)
    assert content(bundle) == before


def test_kept_versions_share_big_files_with_each_other_but_not_with_the_bundle(bundle):
    first, before = seal(bundle), content(bundle)
    second = save(bundle)
    save(bundle)
    kept = [place(bundle) / each[:12] / "calib.npz" for each in (first, second)]
    assert kept[0].samefile(kept[1])
    for file in bundle.iterdir():  # another program writes into the files that serve
        with file.open("r+b") as there:
            there.write(b"other")
    load_bundle(place(bundle) / second[:12])
    shutil.rmtree(bundle)
    shutil.copytree(place(bundle) / second[:12], bundle)
    back(bundle, first)
    assert content(bundle) == before


def test_through_a_link_the_folder_changes_and_not_the_link(bundle, tmp_path):
    link = tmp_path / "current"
    link.symlink_to(bundle)
    first = seal(bundle)
    made = save(link)
    assert link.is_symlink()
    assert seal(link) == seal(bundle) == made
    assert place(bundle).is_dir()
    assert not place(link).exists()
    assert [each.hash for each in Versions(link).all()] == [made, first]
    back(link, first)
    assert seal(bundle) == first


def test_files_that_are_links_become_files(bundle, tmp_path):
    (bundle / "calib.npz").rename(tmp_path / "blob")
    (bundle / "calib.npz").symlink_to(tmp_path / "blob")
    first = seal(bundle)
    save(bundle)
    back(bundle, first)
    (tmp_path / "blob").unlink()
    assert load_bundle(bundle).calib.hash == CALIB.hash


def test_rights_are_those_of_the_old_files(bundle):
    for path in bundle.iterdir():
        path.chmod(0o640)
    bundle.chmod(0o750)
    save(bundle)
    assert {path.stat().st_mode & 0o777 for path in bundle.iterdir()} == {0o640}
    assert bundle.stat().st_mode & 0o777 == 0o750
    assert place(bundle).stat().st_mode & 0o007 == 0
