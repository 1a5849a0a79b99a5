"""Marks of rules: the same where a rule acts on the same rows."""

import json

from tests.unit.bundle.model_parts import text_scorer
from tests.unit.bundle.parts import band, point, points_of, temperature, without_promise

from calibrant.bundle import BundlePoint, pack
from calibrant.bundle.versions.rule_marks import rule_marks
from calibrant.ood import OodRule
from calibrant.thresholds.rates import precision


def marks(folder, *points, on="calibrated", warmth=2.0, **parts):
    """Pack a bundle of these points; return its marks."""
    chosen = [BundlePoint(each, on) for each in points]
    made = pack(folder, calibrator=temperature(warmth), points=chosen, force=True, **parts)
    return rule_marks(made.manifest)


def test_other_points_do_not_matter(tmp_path):
    both = marks(tmp_path / "b", point("defect", 0.75), point("parts", 0.4))
    moved = marks(tmp_path / "b", point("defect", 0.6), point("parts", 0.4))
    assert both[1, 0] == moved[1, 0]
    assert both[0, 0] != moved[0, 0]
    turned = marks(tmp_path / "b", point("parts", 0.4), point("defect", 0.75))
    assert (turned[0, 0], turned[1, 0]) == (both[1, 0], both[0, 0])
    together = marks(tmp_path / "b", points_of(point("defect", 0.75), point("parts", 0.4)))
    assert (together[0, 0], together[0, 1]) == (both[0, 0], both[1, 0])


def test_what_is_promised_does_not_matter(tmp_path):
    first = marks(tmp_path / "b", point("defect", 0.75))
    assert first == marks(tmp_path / "b", without_promise("defect", 0.75))
    assert first == marks(tmp_path / "b", point("defect", 0.75, hold=(precision >= 0.7,)))


def test_whatever_else_decides_does_matter(tmp_path):
    found = [
        marks(tmp_path / "b", point("defect", 0.75)),
        marks(tmp_path / "b", point("parts", 0.75)),
        marks(tmp_path / "b", point(None, 0.75)),
        marks(tmp_path / "b", point("defect", 0.75, on="probs")),
        marks(tmp_path / "b", point("defect", 0.75), on="raw"),
        marks(tmp_path / "b", point("defect", 0.75), warmth=2.1),
        marks(tmp_path / "b", point("defect", 0.75), ood=OodRule("max_logit", -1.0, 0.95, 9)),
        marks(tmp_path / "b", point("defect", 0.75), scorer=text_scorer()),
    ]
    assert len({each[0, 0] for each in found}) == len(found)


def test_weights_are_part_of_the_model(tmp_path):
    made = pack(tmp_path / "b", scorer=text_scorer(), points=[point("defect", 0.75)])
    other = json.loads(json.dumps(made.manifest))
    other["files"]["model.safetensors"] = "0" * 64
    card = json.loads(json.dumps(made.manifest))
    card["files"]["card.md"] = "0" * 64
    assert rule_marks(made.manifest) == rule_marks(card) != rule_marks(other)


def test_only_rules_that_act_without_being_asked_have_a_mark(tmp_path):
    found = marks(tmp_path / "b", point("defect", 0.75), point("defect", 0.5), point("parts", 0.4))
    assert list(found) == [(0, 0), (2, 0)]
    assert list(rule_marks(pack(tmp_path / "c", points=[band()]).manifest)) == [(0, 0)]


def test_a_database_may_give_whole_numbers_back_for_floats(tmp_path):
    made = pack(tmp_path / "b", calibrator=temperature(2.0), points=[BundlePoint(point(), "raw")])
    text = json.dumps(made.manifest)
    assert '"temperature": 2.0' in text
    assert rule_marks(json.loads(text.replace('"temperature": 2.0', '"temperature": 2'))) == (
        rule_marks(made.manifest)
    )


def test_what_cannot_be_read_has_no_marks():
    assert rule_marks({}) == {}
    assert rule_marks({"operating_points": [{"format": 99}]}) == {}
