"""Check of the text of trees, since LightGBM ends the process when it reads a damaged one."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import numpy as np

from calibrant.errors import InputError
from calibrant.inputs import FloatArray, IntArray

_END = "end of trees\n"
_HEAD = (
    "version", "num_class", "num_tree_per_iteration", "label_index", "max_feature_idx",
    "feature_names", "feature_infos", "tree_sizes",
)  # fmt: skip
_SPLITS = ("split_feature", "split_gain", "threshold", "decision_type", "left_child", "right_child")
_LEAVES = ("leaf_value", "leaf_weight", "leaf_count")
_INNER = ("internal_value", "internal_weight", "internal_count")
_SETS = ("cat_boundaries", "cat_threshold")
_WHOLE = {"split_feature", "decision_type", "left_child", "right_child", "leaf_count",
          "internal_count", *_SETS}  # fmt: skip
_NUMBERS = re.compile(r"[-+.e0-9 ]*", re.ASCII)
_INFINITE = re.compile(r"(?<![^ ])inf(?![^ ])")
_INFOS = re.compile(r"[-+.:\[\]a-z0-9 ]*", re.ASCII)
_CATEGORY, _KNOWN_TYPES = 1, 16

DEEPEST = 1000
"""Most splits between the root and a leaf: LightGBM's contributions recurse, and need memory of the
depth squared."""
MOST_LEAVES = 131_072
"""Most leaves of a tree, which is LightGBM's own limit."""


def strip_text(text: str) -> str:
    """Return the trees without what LightGBM writes after them: parameters and importances."""
    return text[: text.index(_END) + len(_END)]


def check_text(text: str) -> None:
    """Refuse a text that LightGBM would not have written.

    The lines must be in its order, arrays have their lengths, every child exist once and come after
    its parent, and features and categories be in range. So must the size and depth of a tree.
    """
    try:
        _check(text)
    except (ValueError, OverflowError) as error:
        raise InputError(
            f"the text of the trees is damaged ({error}): pack the bundle again, or restore a copy."
        ) from error


def _check(text: str) -> None:
    _refuse_if(not text.startswith("tree\n") or not text.endswith(_END), "a part is missing")
    head, *trees = text.removesuffix(_END).removeprefix("tree\n").split("Tree=")
    header = _read_fields(head, _HEAD, "\n", "the header")
    _refuse_if(header["version"] != "v4", "it is not of version v4")
    n_features = _count(header["max_feature_idx"]) + 1
    names = " ".join(f"Column_{i}" for i in range(min(n_features, len(text))))
    _refuse_if(header["feature_names"] != names, "the names of the features are others")
    infos = header["feature_infos"]
    broken = not _INFOS.fullmatch(infos) or len(infos.split(" ")) != n_features
    _refuse_if(broken, "the ranges of the features are others")
    classes, a_round = _count(header["num_class"]), _count(header["num_tree_per_iteration"])
    whole = header["label_index"] == "0" and 1 <= classes == a_round and not len(trees) % a_round
    _refuse_if(not whole, "a tree is missing")
    sizes = " ".join(str(len(tree) + len("Tree=")) for tree in trees)
    _refuse_if(header["tree_sizes"] != sizes or not trees, "a tree has another size")
    for number, tree in enumerate(trees):
        name, _, fields = tree.partition("\n")
        _refuse_if(name != str(number), f"tree {number} is missing")
        _check_tree(fields, n_features, f"tree {number}")


def _check_tree(text: str, n_features: int, where: str) -> None:
    has_sets = "\nnum_cat=0\n" not in text
    names = ("num_leaves", "num_cat", *_SPLITS, *_LEAVES, *_INNER, *(_SETS if has_sets else ()))
    fields = _read_fields(text, (*names, "is_linear", "shrinkage"), "\n\n", where)
    n_leaves, n_sets = _count(fields["num_leaves"]), _count(fields["num_cat"])
    _refuse_if(not 1 <= n_leaves <= len(text) or n_sets > len(text), f"{where} has no leaves")
    _refuse_if(n_leaves > MOST_LEAVES, f"{where} has more than {MOST_LEAVES:,} leaves")
    _refuse_if(fields["is_linear"] != "0", f"{where} has linear leaves")
    _refuse_if(len(_read_numbers(fields, "shrinkage")) != 1, f"{where} has no shrinkage")
    arrays = {name: _read_numbers(fields, name) for name in names[2:]}
    for name in (*_LEAVES, *_SPLITS, *_INNER):
        length = n_leaves if name in _LEAVES else n_leaves - 1
        _refuse_if(len(arrays[name]) != length, f"{name} of {where} has a wrong length")
    _check_children(arrays["left_child"], arrays["right_child"], n_leaves, where)
    broken = _outside(arrays["split_feature"], n_features)
    broken |= _outside(arrays["decision_type"], _KNOWN_TYPES)
    _refuse_if(broken, f"a split of {where} is unknown")
    sets = arrays["threshold"][(arrays["decision_type"].astype(np.int64) & _CATEGORY) > 0]
    broken = _outside(sets, n_sets) or bool((sets % 1).any())
    _refuse_if(broken or (has_sets and _are_cut(arrays, n_sets)), f"categories of {where} are lost")


def _are_cut(arrays: Mapping[str, FloatArray], n_sets: int) -> bool:
    """Return whether the sets of categories do not have the lengths that they should."""
    ends, words = arrays["cat_boundaries"], arrays["cat_threshold"]
    whole = len(ends) == n_sets + 1 and ends[0] == 0 and ends[-1] == len(words)
    return not whole or bool((np.diff(ends) < 1).any()) or _outside(words, 2**32)


def _check_children(left: FloatArray, right: FloatArray, n_leaves: int, where: str) -> None:
    """Require that every split but the first, and every leaf, is the child of one earlier split."""
    if n_leaves == 1:
        return
    children = np.concatenate([left, right])
    expected = np.concatenate([np.arange(-n_leaves, 0), np.arange(1, n_leaves - 1)])
    _refuse_if(not np.array_equal(np.sort(children), expected), f"{where} is not a tree")
    parents = np.tile(np.arange(n_leaves - 1), 2)
    _refuse_if(((children >= 0) & (children <= parents)).any(), f"{where} has a cycle")
    _refuse_if(_depth(left, right) > DEEPEST, f"{where} is deeper than {DEEPEST:,} splits")


def _depth(left: FloatArray, right: FloatArray) -> int:
    """Return the most splits between the root and a leaf, or a bound where that is small enough."""
    if len(left) <= DEEPEST:
        return len(left)
    depths = [1] * len(left)
    for split, children in enumerate(zip(left.astype(int), right.astype(int), strict=True)):
        for child in children:
            if child >= 0:
                depths[child] = depths[split] + 1
    return max(depths)


def _read_fields(text: str, names: Sequence[str], end: str, where: str) -> dict[str, str]:
    """Return the values of `name=value` lines, which must have these names in this order."""
    _refuse_if(not text.endswith("\n" + end), f"the end of {where} is missing")
    lines = [line.partition("=") for line in text.removesuffix("\n" + end).split("\n")]
    broken = [name for name, _, _ in lines] != list(names)
    _refuse_if(broken, f"a line of {where} is another one")
    return {name: value for name, _, value in lines}


def _read_numbers(fields: Mapping[str, str], name: str) -> FloatArray:
    text = fields[name]
    if not text:
        return np.empty(0)
    infinite = name == "threshold"  # where a split sets the missing values apart
    plain = _INFINITE.sub("0", text) if infinite else text
    _refuse_if(not _NUMBERS.fullmatch(plain), f"{name} holds more than numbers")
    values = np.array(list(map(int if name in _WHOLE else float, text.split(" "))), dtype=float)
    broken = np.isnan(values) if infinite else ~np.isfinite(values)
    _refuse_if(broken.any(), f"{name} holds a number that is not finite")
    return values


def _count(text: str) -> int:
    _refuse_if(not re.fullmatch(r"[0-9]{1,9}", text), "a number of the header is broken")
    return int(text)


def _outside(values: FloatArray | IntArray, end: int) -> bool:
    return bool(((values < 0) | (values >= end)).any())


def _refuse_if(broken: object, problem: str) -> None:
    if broken:
        raise ValueError(problem)
