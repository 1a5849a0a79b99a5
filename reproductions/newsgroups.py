"""20 Newsgroups as in the papers on calibration, from a repacked or the public copy."""

from __future__ import annotations

import tarfile
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.errors import InputError
from calibrant.inputs import IntArray
from reproductions.data_sets import find
from reproductions.glove import read_vectors
from reproductions.parts import Part, Parts

__all__ = ["newsgroups"]

STEER, TEST = 0.045, 0.2
"""Shares of all posts; the train posts are what remains, 75.5 %."""

_OPTIONS: dict[str, Any] = {
    "rows": None, "vectors": "", "vocabulary": 20_000, "min_count": 1, "max_length": 1_000,
    "made": False,
}  # fmt: skip

_MADE_ROWS = 600
_TOPICS = {
    "cars": "engine wheel brake gear clutch dealer driver tyre fuel motor road exhaust",
    "faith": "church prayer god belief sin bible soul heaven priest scripture grace saint",
    "hockey": "goal puck team season coach playoff rink score league goalie fan trade",
    "space": "orbit rocket launch moon shuttle satellite nasa planet mission lunar probe sky",
}
_COMMON = (
    "the of to and in that it is for you on be have are not with this but as they was or what if "
    "from there can all would about one will do like just know think time people year good new"
)


def newsgroups(reading: Mapping[str, Any]) -> Parts:
    """Read the posts of 20 Newsgroups, each without its header.

    All posts are pooled, as the papers do, and drawn with numpy's seed 1 into 75.5 % train, 4.5 %
    steer and 20 % test rows. Their papers steer and calibrate on the same rows; here as many rows
    as there are to steer by are cut off the train rows to calibrate on. A header ends at the first
    blank line; quotes and signatures stay.

    It is not the split by date that scikit-learn's loader gives.

    Parameters
    ----------
    reading : options
        - rows : how many posts to use at most
        - vectors : the data set of vectors of words, such as "glove_6b_100d", or "" for none
        - vocabulary, min_count, max_length : of the classifier, which the vectors go with; see
          `TextEncoder`
        - made : whether to make a few hundred texts of 4 topics up instead of reading files

    Examples
    --------
    >>> newsgroups({"made": True, "rows": 200}).sizes()
    {'train': 142, 'steer': 9, 'calib': 9, 'test': 40}
    """
    options = _checked(reading)
    texts, labels, classes = _make_posts(options["rows"]) if options["made"] else _posts()
    drawn = np.random.default_rng(1).permutation(len(texts))[: options["rows"]]
    n_steer, n_test = round(STEER * len(drawn)), round(TEST * len(drawn))
    n_train = len(drawn) - n_test - 2 * n_steer
    cut = np.split(drawn, np.cumsum([n_train, n_steer, n_steer]))
    train, calib, steer, test = (Part([texts[i] for i in part], labels[part]) for part in cut)
    network, covered = _vectors(options, train.inputs)
    note = _note(len(drawn), n_steer, synthetic_posts=bool(options["made"])) + covered
    return Parts(train, steer, calib, test, classes, model_options=network, note=note)


def _checked(reading: Mapping[str, Any]) -> dict[str, Any]:
    unknown = sorted(set(reading) - set(_OPTIONS))
    if unknown:
        raise InputError(
            f"reading of newsgroups has no option {unknown[0]!r}: choose from "
            f"{', '.join(_OPTIONS)}."
        )
    options = {**_OPTIONS, **reading}
    rows = options["rows"]
    if rows is not None and (not isinstance(rows, int) or rows < 100):
        raise InputError(f"rows must be a whole number >= 100, for four parts, got {rows!r}.")
    return options


def _posts() -> tuple[Sequence[str], IntArray, tuple[str, ...]]:
    """Return posts, classes as numbers, and their names; the same from either copy."""
    path = find("newsgroups20")[0]
    read = _of_parquet(path) if path.suffix == ".parquet" else _of_archive(path)
    # in the order of the folders of the public copy: what is drawn must not depend on the file
    posts = sorted(read, key=lambda post: (post[0] != "train", post[1], post[2]))
    classes = tuple(sorted({post[1] for post in posts}))
    number = {name: i for i, name in enumerate(classes)}
    labels = np.array([number[post[1]] for post in posts], dtype=np.int64)
    return [_body(post[3]) for post in posts], labels, classes


def _of_parquet(path: Path) -> list[tuple[str, str, str, str]]:
    """Return the split, class, file name and text of each post."""
    import pyarrow.parquet as pq

    names = ("split", "label_name", "file_id", "text")
    table = pq.read_table(path, columns=list(names))
    return list(zip(*(table[name].to_pylist() for name in names), strict=True))


def _of_archive(path: Path) -> list[tuple[str, str, str, str]]:
    """Return the same from the public archive, whose folders are 20news-bydate-train and -test."""
    posts = []
    try:
        with tarfile.open(path, "r:gz") as archive:
            for member in archive:
                if member.isfile():
                    folder, label, name = member.name.split("/")[-3:]
                    file = archive.extractfile(member)
                    text = b"" if file is None else file.read()
                    posts.append((folder.rpartition("-")[2], label, name, text.decode("latin-1")))
    except (tarfile.TarError, OSError, EOFError, ValueError, zlib.error) as error:
        raise InputError(
            f"{path.name} is not the archive of 20 Newsgroups ({error}): get it again."
        ) from None
    return posts


def _body(post: str) -> str:
    """Cut the header off; a post without a blank line is all body."""
    header, blank, body = post.partition("\n\n")
    return body if blank else header


def _vectors(options: Mapping[str, Any], texts: Sequence[str]) -> tuple[dict[str, Any], str]:
    """Return the network's option with a vector for each word that a classifier will number.

    A `TextEncoder` depends on its options and the train texts only, so the one that is fitted here
    and the classifier's own number the same words alike.
    """
    from calibrant.data.encoders.text_encoder import TextEncoder

    if not options["vectors"]:
        return {}, ""
    taken = {name: options[name] for name in ("vocabulary", "min_count", "max_length")}
    encoder = TextEncoder(**taken).fit(texts)
    words = encoder.words
    known = read_vectors(find(options["vectors"])[0], words)
    vectors = known.of(words)
    tokens, _ = encoder.encode(texts)
    is_known = np.asarray(np.any(vectors != 0, axis=1))
    share = 100 * float(np.mean(is_known[tokens]))
    of_words = f"{len(known.words):,} of the {len(words):,} words"
    return {"vectors": vectors, "embedding": vectors.shape[1]}, (
        f", and {of_words} have given vectors ({share:.1f} % of what is read in the train posts), "
        "the others zeros"
    )


def _note(n: int, n_steer: int, *, synthetic_posts: bool) -> str:
    if synthetic_posts:
        return f"{n:,} texts of 4 topics are made up"
    return (
        f"the paper drew from 19,997 posts, here are {n:,} of the copy by date; {n_steer:,} rows "
        "to calibrate on were cut off the train rows, where the paper calibrates on the rows that "
        "it steers by"
    )


def _make_posts(rows: int | None) -> tuple[list[str], IntArray, tuple[str, ...]]:
    """Make texts up: one word in six is of its topic, and half as many are of another."""
    rng = np.random.default_rng(1)
    n, classes = rows or _MADE_ROWS, tuple(_TOPICS)
    own = [np.array(_TOPICS[name].split()) for name in classes]
    labels = np.arange(n) % len(classes)
    other = (labels + rng.integers(1, len(classes), n)) % len(classes)
    texts = [_text(rng, own[a], own[b]) for a, b in zip(labels, other, strict=True)]
    return texts, labels, classes


def _text(rng: np.random.Generator, own: NDArray[np.str_], other: NDArray[np.str_]) -> str:
    lists = [np.array(_COMMON.split()), own, other]
    kinds = rng.choice(3, size=rng.integers(15, 40), p=[0.77, 0.16, 0.07])
    return " ".join(str(rng.choice(lists[kind])) for kind in kinds)
