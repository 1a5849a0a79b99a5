"""The loader of 20 Newsgroups: both copies, the split, made texts, vectors that go with words."""

import io
import tarfile

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from reproductions.data_sets import have
from reproductions.experiment import experiment_named
from reproductions.fitting import classifier_of
from reproductions.glove import WordVectors, write_compact
from reproductions.newsgroups import newsgroups
from tests.data_sets import data_file

from calibrant import TextClassifier
from calibrant.errors import InputError

GROUPS = ("alt.atheism", "rec.autos", "sci.space")
WORDS = ("engine", "orbit", "god", "the")


def posts() -> list[tuple[str, str, str, bytes]]:
    """Return made posts: split, group, file name, and the message as bytes."""
    rng = np.random.default_rng(0)
    made = []
    for i in range(300):
        split, group = ("train", "test")[i % 3 == 0], GROUPS[i % 7 % 3]
        words = " ".join(rng.choice(WORDS, 12))
        body = f"{words} caf\xe9 number{i}\n\n-- \nsigned"
        text = f"From: someone{i}\nSubject: {group}\n\n{body}"
        made.append((split, group, str(1000 - i), text.encode("latin-1")))
    return made


def write_archive(path, rows):
    with tarfile.open(path, "w:gz") as archive:
        for split, group, name, text in rows:
            member = tarfile.TarInfo(f"20news-bydate-{split}/{group}/{name}")
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text))


def write_parquet(path, rows):
    split, group, name, text = zip(*rows, strict=True)
    texts = [each.decode("latin-1") for each in text]
    labels = [GROUPS.index(each) for each in group]
    told = {"text": texts, "label": labels, "label_name": group, "split": split, "file_id": name}
    pq.write_table(pa.table(told), path)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty folder of 20 Newsgroups."""
    made = tmp_path / "newsgroups20"
    made.mkdir()
    monkeypatch.setenv("CALIBRANT_DATA", str(tmp_path))
    return made


@pytest.fixture
def made_vectors(tmp_path, folder):
    """Vectors of some words, next to made posts."""
    write_parquet(folder / "newsgroups20.parquet", posts())
    (tmp_path / "glove_6b_100d").mkdir()
    numbers = np.arange(1.0, 13.0, dtype=np.float32).reshape(4, 3)
    known = WordVectors(("orbit", "engine", "god", "signed"), numbers)
    write_compact(tmp_path / "glove_6b_100d" / "glove_6b_100d.npz", known)
    return known


def test_both_copies_give_the_same_rows(folder):
    write_archive(folder / "20news-bydate.tar.gz", posts())
    public = newsgroups({})
    write_parquet(folder / "newsgroups20.parquet", posts()[::-1])
    local = newsgroups({})
    assert public.classes == local.classes == GROUPS
    for name in ("train", "steer", "calib", "test"):
        ours, theirs = getattr(local, name), getattr(public, name)
        assert ours.inputs == theirs.inputs
        np.testing.assert_array_equal(ours.labels, theirs.labels)


def test_the_header_is_cut_at_the_first_blank_line_and_the_rest_stays(folder):
    write_archive(folder / "20news-bydate.tar.gz", posts())
    for text in newsgroups({}).train.inputs:
        assert "Subject:" not in text
        assert "café" in text
        assert text.endswith("\n\n-- \nsigned")


def test_a_post_without_a_blank_line_is_all_body(folder):
    rows = [(split, group, name, b"no header at all") for split, group, name, _ in posts()]
    write_archive(folder / "20news-bydate.tar.gz", rows)
    assert set(newsgroups({}).train.inputs) == {"no header at all"}


def test_parts_share_no_post_and_labels_go_with_texts(folder):
    write_parquet(folder / "newsgroups20.parquet", posts())
    parts = newsgroups({})
    assert parts.sizes() == {"train": 212, "steer": 14, "calib": 14, "test": 60}
    group_of = {text.decode("latin-1").partition("\n\n")[2]: group for _, group, _, text in posts()}
    seen = []
    for part in (parts.train, parts.steer, parts.calib, parts.test):
        seen += part.inputs
        assert [parts.classes[label] for label in part.labels] == [group_of[t] for t in part.inputs]
    assert sorted(seen) == sorted(group_of)
    assert "19,997" in parts.note


def test_fewer_rows_keep_the_shares(folder):
    write_parquet(folder / "newsgroups20.parquet", posts())
    assert newsgroups({"rows": 100}).sizes() == {"train": 72, "steer": 4, "calib": 4, "test": 20}
    assert sum(newsgroups({"rows": 9999}).sizes().values()) == 300


@pytest.mark.parametrize("damage", ["other", "cut", "flat"])
def test_a_damaged_archive_is_one_sentence(folder, damage):
    path = folder / "20news-bydate.tar.gz"
    write_archive(path, posts())
    if damage == "flat":
        with tarfile.open(path, "w:gz") as archive:
            archive.addfile(tarfile.TarInfo("post"))
    else:
        path.write_bytes(path.read_bytes()[:2000] if damage == "cut" else b"<html>moved</html>")
    told = r"^20news-bydate.tar.gz is not the archive of 20 Newsgroups \(.*\): get it again\.$"
    with pytest.raises(InputError, match=told):
        newsgroups({})


@pytest.mark.parametrize(
    ("reading", "told"),
    [
        ({"row": 5}, "no option 'row': choose from rows, vectors"),
        ({"rows": 10}, "rows must be a whole number >= 100"),
        ({"rows": "many"}, "rows must be a whole number >= 100"),
        ({"made": True, "vectors": "gloves"}, "no data set 'gloves'"),
    ],
)
def test_bad_options_are_told(reading, told):
    with pytest.raises(InputError, match=told):
        newsgroups(reading)


def test_made_texts_need_no_file_and_can_be_learned_in_part(monkeypatch):
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.naive_bayes import MultinomialNB

    monkeypatch.delenv("CALIBRANT_DATA", raising=False)
    parts = newsgroups({"made": True})
    assert sum(parts.sizes().values()) == 600
    assert all(set(part.labels) == {0, 1, 2, 3} for part in (parts.train, parts.steer, parts.test))
    counts = CountVectorizer().fit(parts.train.inputs)
    model = MultinomialNB().fit(counts.transform(parts.train.inputs), parts.train.labels)
    assert 0.6 < model.score(counts.transform(parts.test.inputs), parts.test.labels) < 0.95
    assert newsgroups({"made": True}).train.inputs == parts.train.inputs


def test_vectors_belong_to_the_words_of_the_fitted_classifier(made_vectors):
    options = {"vocabulary": 40, "min_count": 1, "max_length": 30}
    parts = newsgroups({"vectors": "glove_6b_100d", **options})
    model = TextClassifier(
        model="text_cnn",
        model_options={"filters": 4, **parts.model_options},
        epochs=1,
        device="cpu",
        **options,
    )
    steer = (parts.steer.inputs, parts.steer.labels)
    model.fit(parts.train.inputs, parts.train.labels, steer=steer)
    words = model.encoder_.words
    assert len(words) == 40
    expected = made_vectors.of(words)
    assert expected[words.index("orbit")].tolist() == [1.0, 2.0, 3.0]
    np.testing.assert_array_equal(parts.model_options["vectors"], expected)
    weights = model.model_.embedding.weight
    np.testing.assert_array_equal(weights.detach().numpy(), expected)  # training left them alone
    assert not weights.requires_grad


def test_the_note_tells_how_many_words_have_vectors(made_vectors):
    parts = newsgroups({"vectors": "glove_6b_100d", "max_length": 1000})
    assert "and 4 of the" in parts.note
    words = [word for text in parts.train.inputs for word in text.replace("--", " ").split()]
    known = sum(word in made_vectors.words for word in words)
    share = known / (len(words) + len(parts.train.inputs))  # "--" is a word, too
    assert f"({100 * share:.1f} % of what is read in the train posts)" in parts.note


def test_the_config_reads_and_trains_with_the_same_words():
    experiment = experiment_named("newsgroups-cnn")
    for name in ("vocabulary", "min_count", "max_length"):
        assert experiment.reading[name] == experiment.training[name]


@pytest.mark.data
def test_the_real_posts():
    data_file("newsgroups20", "newsgroups20.parquet")
    parts = newsgroups({})
    assert parts.sizes() == {"train": 13_381, "steer": 848, "calib": 848, "test": 3_769}
    assert len(parts.classes) == 20
    assert np.bincount(parts.train.labels).min() > 400
    assert parts.classes[0] == "alt.atheism"


@pytest.mark.data
def test_the_real_vectors_go_with_the_real_posts():
    data_file("newsgroups20", "newsgroups20.parquet")
    if not have("glove_6b_100d"):
        pytest.skip("CALIBRANT_DATA holds no glove_6b_100d")
    experiment = experiment_named("newsgroups-cnn")
    parts = newsgroups({**experiment.reading, "rows": 2_000})
    vectors = parts.model_options["vectors"]
    model = classifier_of(experiment, experiment.methods[0], 0, parts)
    words = model._new_encoder().fit(parts.train.inputs).words
    assert vectors.shape == (len(words), 100)
    near = {word: vectors[words.index(word)] for word in ("god", "jesus", "windows", "dos")}
    assert cosine(near["god"], near["jesus"]) > 0.5 > cosine(near["god"], near["dos"])
    assert cosine(near["windows"], near["dos"]) > 0.4
    np.testing.assert_allclose(vectors[words.index("the")][:2], [-0.0382, -0.2449], atol=1e-4)


def cosine(a, b) -> float:
    return float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))
