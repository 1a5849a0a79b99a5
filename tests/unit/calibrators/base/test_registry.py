"""Methods by name: registering, looking up, and plugins of other packages."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest
from tests.sentences import refuses

from calibrant.calibrators import (
    Calibrator,
    Identity,
    TemperatureScaling,
    from_dict,
    list_methods,
    register,
)
from calibrant.calibrators.base import registry
from calibrant.errors import InputError


@pytest.fixture(autouse=True)
def own_registry(monkeypatch):
    """Let a test register what it likes, and look for plugins anew."""
    list_methods()
    monkeypatch.setattr(registry, "_METHODS", dict(registry._METHODS))
    registry._load_plugins.cache_clear()
    yield
    registry._load_plugins.cache_clear()


def make(name, method):
    return type(name, (Identity,), {"method": method, "__qualname__": name})


def test_methods_are_listed_by_name():
    known = list_methods()
    assert list(known) == sorted(known)
    assert known["identity"] is Identity
    assert known["temperature"] is TemperatureScaling
    assert all(issubclass(found, Calibrator) for found in known.values())


def test_the_list_is_a_copy():
    list_methods().clear()
    assert "temperature" in list_methods()


def test_registering_returns_the_class():
    mine = make("Mine", "mine")
    assert register(mine) is mine
    assert registry.find_method("mine") is mine


def test_registering_again_is_fine_but_not_another_class():
    mine = register(make("Mine", "mine"))
    assert register(mine) is mine
    reloaded = make("Mine", "mine")  # as when a module is imported anew
    assert register(reloaded) is reloaded
    assert registry.find_method("mine") is reloaded
    with refuses(InputError, "'mine'", "taken", "Mine", "choose another"):
        register(make("Other", "mine"))
    assert registry.find_method("mine") is reloaded


def test_a_wrong_name_is_answered_with_the_nearest():
    with refuses(InputError, "no calibration method", "'tempera' (did you", "mean 'tem"):
        registry.find_method("tempera")
    with refuses(InputError, "'xyzzy'", "choose", "identity", "temperature"):
        registry.find_method("xyzzy")


def test_a_plugin_is_loaded_when_methods_are_looked_up(monkeypatch):
    loaded = []

    def load():
        loaded.append("once")
        register(make("FromAfar", "from_afar"))

    def entry_points(*, group):
        assert group == "calibrant.plugins"
        return [SimpleNamespace(name="afar", load=load)]

    monkeypatch.setattr(registry, "entry_points", entry_points)
    assert "from_afar" in list_methods()
    calibrator = registry.find_method("from_afar")().fit([0.0, 1.0], [0, 1])
    again = from_dict(calibrator.to_dict())
    assert type(again).__name__ == "FromAfar"
    assert np.array_equal(again.predict_proba([0.3]), calibrator.predict_proba([0.3]))
    assert loaded == ["once"]


def test_a_plugin_is_found_by_its_entry_point(tmp_path, monkeypatch):
    (tmp_path / "calibrant_afar.py").write_text(
        "from calibrant.calibrators import Identity, register\n"
        "@register\n"
        "class Afar(Identity):\n"
        '    method = "afar"\n'
    )
    info = tmp_path / "calibrant_afar-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: calibrant-afar\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[calibrant.plugins]\nafar = calibrant_afar\n")
    monkeypatch.syspath_prepend(tmp_path)
    try:
        assert list_methods()["afar"].__name__ == "Afar"
    finally:
        sys.modules.pop("calibrant_afar", None)
