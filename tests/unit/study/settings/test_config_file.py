"""study.toml: what is written is read again, and what is no toml is told in one sentence."""

import tomllib

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.sentences import assert_mentions, refuses

from calibrant.errors import InputError
from calibrant.study import StudyConfig
from calibrant.study.settings.config_file import read_config, write_config

TEXT = {"data": "tickets.csv", "label": "reason", "text": "message", "model": "bilstm"}

words = st.text(min_size=1).filter(str.strip).map(str.strip).filter(
    lambda text: text.encode("utf-8", "ignore").decode() == text
)  # fmt: skip
seeds = st.integers(0, 2**32 - 1)
studies = st.fixed_dictionaries(
    {
        "data": words,
        "label": words.map(lambda text: f"label {text}"),
        "text": words.map(lambda text: f"text {text}"),
        "model": st.just("bilstm"),
        "title": words,
        "seeds": st.lists(seeds, min_size=1, max_size=3, unique=True).map(tuple),
        "shares": st.none() | st.tuples(*[st.floats(1e-9, 1e9)] * 3),
        "rows": st.none() | st.integers(1, 10**12),
        "redact": st.booleans(),
        "confidence": st.floats(0.01, 0.99),
        "actions": st.dictionaries(words, words, max_size=3),
        "training": st.fixed_dictionaries(
            {},
            optional={
                "epochs": st.integers(1, 1000),
                "learning_rate": st.floats(1e-12, 10),
                "patience": st.none() | st.integers(1, 9),
                "milestones": st.lists(st.integers(0, 9), max_size=3),
                "correct_prior": st.booleans(),
            },
        ),
    }
)


@settings(
    max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(study=studies)
def test_what_is_written_is_read_again(study, tmp_path):
    config = StudyConfig(**study)
    file = write_config(config, tmp_path / "study.toml")
    assert StudyConfig.from_dict(read_config(file)) == config


def test_the_file_says_how_to_run_it_again_and_reads_well(tmp_path):
    config = StudyConfig(
        **TEXT, hold=['a "b": precision>=0.8'], training={"epochs": 5},
        actions={"item defective": "refund"},
    )  # fmt: skip
    text = write_config(config, tmp_path / "study.toml").read_text(encoding="utf-8")
    head, *lines = text.splitlines()
    assert head.startswith("#")
    assert "calibrant train --config study.toml" in head
    assert_mentions(lines[0], "folder of this")
    assert 'hold = ["a \\"b\\": precision>=0.8"]' in lines
    assert lines[lines.index("[training]") + 1] == "epochs = 5"
    assert lines[lines.index("[actions]") + 1] == '"item defective" = "refund"'
    assert "[model_options]" not in lines


def test_tables_within_options_are_written_in_one_line(tmp_path):
    clean = {"fat": {"low fat": "low", "LF": "none"}}
    config = StudyConfig("shop.csv", "sold", model="mlp", training={"clean": clean})
    text = write_config(config, tmp_path / "study.toml").read_text(encoding="utf-8")
    assert 'clean = {fat = {"low fat" = "low", LF = "none"}}' in text
    assert tomllib.loads(text)["tabular"] is True


def test_a_study_of_images_is_written_and_read_again(tmp_path):
    config = StudyConfig(
        "photos", images=True, image_size=64, golden="audited", seeds=(0, 1), ensemble=True,
        mc_dropout=20, devices=2, training={"flip": False}, model="wrn_26_10",
        model_options={"dropout": 0.3, "widen": 1},
    )  # fmt: skip
    file = write_config(config, tmp_path / "study.toml")
    lines = file.read_text(encoding="utf-8").splitlines()
    assert {"images = true", "image_size = 64", "ensemble = true", "mc_dropout = 20"} <= set(lines)
    assert not any(line.startswith(("label", "tabular", "redact")) for line in lines)
    assert StudyConfig.from_dict(read_config(file)) == config


def test_what_cannot_be_saved_is_named_and_nothing_is_left_behind(tmp_path):
    config = StudyConfig("shop.csv", "sold", model="mlp", training={"clean": {"fat": object()}})
    with refuses(InputError, "saved", "got <object"):
        write_config(config, tmp_path / "study.toml")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("content", "mentions"),
    [
        (b"data = tickets.csv\n", ("not valid TOML",)),
        (b'data = "a.csv"\ncandidate = ["ce"]\n', ("did you mean 'candidates'?",)),
        (b"epochs = 3\n", ("below [training]",)),
        (b"\xff\xfe\x00", ("not UTF-8 text",)),
        (b'{"data": "a.csv"}', ("not valid TOML",)),
    ],
)
def test_what_is_no_settings_file_is_told_in_one_sentence(tmp_path, content, mentions):
    file = tmp_path / "study.toml"
    file.write_bytes(content)
    with pytest.raises(InputError) as error:
        read_config(file)
    assert_mentions(error.value, *mentions)
    assert str(file) in str(error.value)
    assert "\n" not in str(error.value)


def test_a_missing_file_and_a_folder_are_named(tmp_path):
    with pytest.raises(InputError, match="does not exist"):
        read_config(tmp_path / "nowhere.toml")
    with refuses(InputError, "not a file"):
        read_config(tmp_path)


def test_a_mark_at_the_start_of_the_file_is_no_error(tmp_path):
    file = tmp_path / "study.toml"
    file.write_bytes('data = "a.csv"\n'.encode("utf-8-sig"))
    assert read_config(file) == {"data": "a.csv"}
