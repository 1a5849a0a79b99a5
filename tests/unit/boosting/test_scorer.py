"""BoostingScorer: saved and loaded to the bit, from many threads, without torch."""

import re
import subprocess
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from tests.sentences import refuses
from tests.unit.boosting.models import CLASSES, TABLE, boosting_scorer, fitted

from calibrant.boosting import BoostingClassifier, BoostingScorer
from calibrant.boosting.tree_text import check_text
from calibrant.boosting.trees import Trees
from calibrant.bundle.scorers import EnsembleScorer, load_scorer
from calibrant.data.encoders.text_encoder import TextEncoder
from calibrant.errors import InputError, MissingExtra


def saved(tmp_path, **options):
    scorer = boosting_scorer(**options)
    return scorer, scorer.save(tmp_path, "best-")


@pytest.mark.parametrize("options", [{}, {"loss": "balanced_softmax"}, {"classes": CLASSES[:2]}])
def test_a_loaded_scorer_gives_the_same_bits(tmp_path, options):
    scorer, spec = saved(tmp_path, **options)
    loaded = load_scorer(spec, tmp_path, classes=scorer.classes, prefix="best-")
    assert isinstance(loaded, BoostingScorer)
    assert loaded.predict_logits(TABLE).tolist() == scorer.predict_logits(TABLE).tolist()
    assert loaded.explain(TABLE).to_dict() == scorer.explain(TABLE).to_dict()
    assert loaded.trial().tolist() == scorer.trial().tolist()
    assert loaded.config == scorer.config
    assert (tmp_path / "best-model.txt").read_text().startswith("tree\n")


def test_it_gives_the_logits_of_the_classifier():
    for loss in ("ce", "ce:weight=balanced"):
        model = fitted(loss=loss)
        scorer = model.to_scorer()
        assert scorer.predict_logits(TABLE).tolist() == model.predict_logits(TABLE).tolist()
        assert scorer.classes == CLASSES
        assert scorer.size.endswith("leaves")
        assert str(model.n_weights_) in scorer.size.replace(",", "")
        assert scorer.config["model"] == "boosting"
        assert scorer.config["objective"]["name"] == "ce"


def test_far_numbers_and_new_categories_get_equal_logits_and_missing_values_do_not():
    scorer, known = boosting_scorer(), TABLE["shelf"][0]
    rows = {"price": [None, 1e300, 1.0, 1.0], "shelf": [None, known, "never seen", known]}
    assert scorer.is_unscorable(scorer.encoder.match(rows)).tolist() == [False, True, True, False]
    assert scorer.knows_far_numbers
    scored = (scorer.predict_logits(rows) != 0).any(axis=1)
    assert scored.tolist() == [True, False, False, True]


def test_threads_share_a_scorer():
    scorer = boosting_scorer()
    blocks = [{name: values[i::8] for name, values in TABLE.items()} for i in range(8)] * 20
    expected = [scorer.predict_logits(block).tolist() for block in blocks]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda block: scorer.predict_logits(block).tolist(), blocks))
    assert found == expected


def test_it_mixes_with_other_models():
    one, other = boosting_scorer(), boosting_scorer(loss="focal")
    mixed = EnsembleScorer([one, other], [0.5, 0.5])
    assert mixed.networks == ("boosting", "boosting")
    assert mixed.predict_logits(TABLE).shape == (len(TABLE["price"]), 3)


@pytest.mark.parametrize("cut", [0.0, 0.01, 0.2, 0.5, 0.9])
def test_cut_trees_are_refused(cut):
    text = boosting_scorer().trees.text
    damaged = "no trees" if cut == 0.0 else text[: int(cut * len(text))]
    with refuses(InputError, "trees"):
        Trees.read(damaged, [0.0, 0.0, 0.0])


@pytest.mark.parametrize(
    ("line", "damaged"),
    [
        ("version=v4", "version=v5"),
        ("num_class=3", "num_class=1"),
        ("Tree=1\n", "Tree=2\n"),
        ("num_leaves=6", "num_leaves=7"),
        ("num_cat=1", "num_cat=2"),
        ("split_gain=", "gain="),
        ("is_linear=0", "is_linear=1"),
        ("left_child=1", "left_child=0"),  # a cycle
        ("right_child=-", "right_child=-1"),  # a leaf that is not there
        ("split_feature=", "split_feature=9"),
        ("leaf_value=", "leaf_value=nan"),
        ("leaf_value=", "leaf_value= "),
        ("leaf_count=", "leaf_count=1.5"),
        ("decision_type=", "decision_type=9"),
        ("cat_boundaries=0", "cat_boundaries=1"),
    ],
)
def test_a_damaged_line_is_refused(line, damaged):
    """LightGBM itself would end the process, or read beyond its arrays."""
    text = boosting_scorer().trees.text
    assert line in text
    broken = text.replace(line, damaged)
    if "Tree=" not in line:
        broken = with_sizes(broken)
    with refuses(InputError, "trees", "damaged"):
        Trees.read(broken, [0.0, 0.0, 0.0])


def with_sizes(text):
    """Make the sizes of the trees right again, so that another check finds the damage."""
    head, *trees = text.removesuffix("end of trees\n").split("Tree=")
    sizes = " ".join(str(len(f"Tree={tree}")) for tree in trees)
    head = re.sub("tree_sizes=.*", f"tree_sizes={sizes}", head)
    return f"{'Tree='.join([head, *trees])}end of trees\n"


def chain(n_leaves):
    """The text of one tree of two classes whose every split has a leaf on its left."""
    n = n_leaves - 1
    arrays = {
        "split_feature": [0] * n,
        "split_gain": [1] * n,
        "threshold": [0] * n,
        "decision_type": [2] * n,
        "left_child": [-i - 1 for i in range(n)],
        "right_child": [*range(1, n), -n_leaves],
        "leaf_value": [1] * n_leaves,
        "leaf_weight": [1] * n_leaves,
        "leaf_count": [1] * n_leaves,
        "internal_value": [1] * n,
        "internal_weight": [1] * n,
        "internal_count": [2] * n,
    }
    lines = "".join(f"{name}={' '.join(map(str, values))}\n" for name, values in arrays.items())
    tree = f"0\nnum_leaves={n_leaves}\nnum_cat=0\n{lines}is_linear=0\nshrinkage=1\n\n\n"
    head = (
        "tree\nversion=v4\nnum_class=1\nnum_tree_per_iteration=1\nlabel_index=0\n"
        "max_feature_idx=0\nfeature_names=Column_0\nfeature_infos=[0:1]\ntree_sizes=\n\n"
    )
    return with_sizes(f"{head}Tree={tree}end of trees\n")


def test_a_tree_whose_contributions_would_end_the_process_is_refused():
    """LightGBM's contributions recurse to the depth of a tree."""
    trees = Trees.read(chain(1001), [0.0, 0.0])
    values, base = trees.contributions(np.array([[1.0]]))
    assert values.sum(axis=2) + base == pytest.approx(trees.predict(np.array([[1.0]]))[None, 0])
    with refuses(InputError, "tree 0", "deeper", "1,000", "pack the bundle again"):
        Trees.read(chain(1002), [0.0, 0.0])
    with refuses(InputError, "tree 0", "131,072 leaves"):
        Trees.read(chain(131_073), [0.0, 0.0])


def test_what_lightgbm_wrote_is_read():
    text = boosting_scorer().trees.text
    assert with_sizes(text) == text
    check_text(text)
    assert "cat_threshold" in text


def test_a_split_that_sets_missing_values_apart_is_saved_and_read(tmp_path):
    rng = np.random.default_rng(0)
    price, sells = rng.normal(size=300), rng.integers(2, size=300)
    table = {"price": np.where(sells == 1, np.nan, price)}
    scorer = BoostingClassifier(n_estimators=3).fit(table, sells).to_scorer()
    assert re.search("threshold=.*inf", scorer.trees.text)
    loaded = load_scorer(scorer.save(tmp_path, "best-"), tmp_path, prefix="best-")
    assert loaded.predict_logits(table).tolist() == scorer.predict_logits(table).tolist()


@pytest.mark.parametrize("seed", range(12))
def test_whatever_lightgbm_writes_is_read(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(40, 400))
    columns = {
        "normal": rng.normal(size=n),
        "rare": np.where(rng.random(n) < 0.9, 0.0, rng.normal(size=n)),
        "large": rng.normal(size=n) * 10.0 ** rng.integers(-12, 12),
        "holes": np.where(rng.random(n) < rng.random(), np.nan, rng.normal(size=n)),
        "kind": rng.choice([f"k{i}" for i in range(int(rng.integers(2, 40)))], n),
    }
    labels = rng.integers(int(rng.integers(2, 5)), size=n)
    loss = ["ce", "focal:gamma=5", "label_smoothing", "adafocal"][seed % 4]
    model = BoostingClassifier(loss=loss, n_estimators=30, min_child_samples=2, patience=None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        scorer = model.fit(columns, labels, steer=(columns, labels)).to_scorer()
    again = Trees.read(scorer.trees.text, scorer.trees.start.tolist())
    features = rng.normal(size=(50, scorer.trees.n_features))
    features[rng.random(features.shape) < 0.2] = np.nan
    assert again.predict(features).tolist() == scorer.trees.predict(features).tolist()


def test_parts_that_do_not_fit_are_refused(tmp_path):
    scorer, spec = saved(tmp_path)
    with refuses(InputError, "classes"):
        load_scorer({**spec, "start": [0.0, 0.0]}, tmp_path, prefix="best-")
    encoder = {**spec["encoder"], "columns": spec["encoder"]["columns"][:1]}
    with refuses(InputError, "columns"):
        load_scorer({**spec, "encoder": encoder}, tmp_path, prefix="best-")
    with refuses(InputError, "tables"):
        load_scorer({**spec, "input": "image"}, tmp_path, prefix="best-")
    with refuses(InputError, "tables"):
        texts = TextEncoder(min_count=1).fit(["one", "two"])
        BoostingScorer(texts, scorer.trees, objective={"name": "ce"})


def test_without_lightgbm_the_extra_is_named(tmp_path, monkeypatch):
    _, spec = saved(tmp_path)
    monkeypatch.setitem(sys.modules, "lightgbm", None)
    with refuses(MissingExtra, "calibrant[boosting]"):
        load_scorer(spec, tmp_path, prefix="best-")


def test_a_forked_process_scores_after_its_parent_used_threads():
    code = """
import multiprocessing, sys
import numpy as np
from tests.unit.boosting.models import TABLE, fitted
model = fitted(n_jobs=2)
big = {name: np.tile(np.array(values, dtype=object), 40) for name, values in TABLE.items()}
expected = model.predict_logits(big).tolist()
def work(queue):
    again = fitted(n_jobs=1)
    queue.put((again.predict_logits(TABLE).tolist(), model.predict_logits(TABLE).tolist()))
context = multiprocessing.get_context("fork")
queue = context.Queue()
child = context.Process(target=work, args=(queue,))
child.start()
again, same = queue.get(timeout=60)
child.join()
assert again == same == expected[: len(again)]
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
