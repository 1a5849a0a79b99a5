"""What the tests of bundles share."""

import json

import pytest
from tests.unit.bundle.parts import point, temperature

from calibrant.bundle import BundlePoint, pack
from calibrant.bundle.manifest import seal_manifest


@pytest.fixture
def packed(tmp_path):
    """Return a bundle with a calibrator and one point that decides on what it gives."""
    return pack(
        tmp_path / "bundle",
        calibrator=temperature(),
        points=[BundlePoint(point(), "calibrated")],
        actions={"defect": "refund"},
    )


@pytest.fixture
def rewrite(packed):
    """Change the manifest and seal it again, as a forger or a faulty program would."""

    def change(drop=(), **new):
        file = packed.path / "manifest.json"
        found = {**json.loads(file.read_text(encoding="utf-8")), **new}
        whole = {key: value for key, value in found.items() if key not in drop}
        file.write_text(json.dumps(seal_manifest(whole) if "sha256" not in drop else whole))
        return packed.path

    return change
