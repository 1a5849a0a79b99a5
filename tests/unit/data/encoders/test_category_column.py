"""CategoryColumn: one feature for each category of the train rows."""

import json

import numpy as np
import pyarrow as pa
from sklearn.preprocessing import OneHotEncoder
from tests.sentences import refuses

from calibrant.data.encoders.category_column import CategoryColumn
from calibrant.data.encoders.category_rules import CategoryRules
from calibrant.errors import InputError


def words(*texts):
    return pa.array(texts, pa.large_string())


def hot(column, *texts):
    """Name the feature that is 1 in each row, or None."""
    encoded = column.encode(words(*texts))
    assert set(np.unique(encoded)) <= {0.0, 1.0}
    assert (encoded.sum(axis=1) <= 1).all()
    return [column.features[row.argmax()] if row.any() else None for row in encoded]


def test_spellings_merge_and_the_most_frequent_one_names_the_category():
    column = CategoryColumn.learn("fat", words("low fat", "Low Fat", "Low Fat ", "Regular"))
    assert column.features == ("fat=Low Fat", "fat=Regular")
    assert hot(column, "LOW  FAT", "regular", "reg") == ["fat=Low Fat", "fat=Regular", None]


def test_the_name_given_by_a_rule_wins():
    rules = CategoryRules.from_renames({"LF": "Low Fat"}, column="fat")
    column = CategoryColumn.learn("fat", words("low fat", "low fat", "LF"), rules=rules)
    assert column.categories == ("Low Fat",)


def test_missing_is_a_category_of_its_own_where_train_rows_had_one():
    column = CategoryColumn.learn("size", words("S", None, " "))
    assert column.features == ("size=S", "size=(missing)")
    assert hot(column, None, "", "L") == ["size=(missing)", "size=(missing)", None]
    never = CategoryColumn.learn("size", words("S", "L"))
    assert hot(never, None) == [None]


def test_rare_categories_share_a_feature_with_unseen_ones():
    train = words(*"aaabbbccd", None)
    column = CategoryColumn.learn("k", train, max_categories=2)
    assert column.features == ("k=a", "k=b", "k=(missing)", "k=(other)")
    assert hot(column, "a", "c", "d", "z", None) == [
        "k=a", "k=(other)", "k=(other)", "k=(other)", "k=(missing)",
    ]  # fmt: skip
    without = CategoryColumn.learn("k", words(*"aaabbbccd"), max_categories=2)
    assert hot(without, None) == ["k=(other)"]


def test_the_order_of_rows_has_no_say():
    texts = [*"ccbbaad"]
    turned = CategoryColumn.learn("k", words(*texts[::-1]), max_categories=2)
    assert CategoryColumn.learn("k", words(*texts), max_categories=2) == turned
    assert turned.categories == ("a", "b")  # the alphabet decides among equals


def test_one_hot_features_are_those_of_scikit_learn():
    rng = np.random.default_rng(0)
    train, other = rng.choice(list("abcdef"), 300), rng.choice(list("abcdefgh"), 100)
    column = CategoryColumn.learn("k", words(*train.tolist()))
    peer = OneHotEncoder(handle_unknown="ignore", sparse_output=False).fit(train[:, None])
    assert np.array_equal(column.encode(words(*other.tolist())), peer.transform(other[:, None]))


def test_words_that_only_a_dictionary_lists_are_no_categories():
    coded = pa.DictionaryArray.from_arrays(pa.array([0, 0]), words("a", "ghost"))
    column = CategoryColumn.learn("k", coded.dictionary_decode())
    assert column.categories == ("a",)


def test_an_id_is_refused_unless_the_user_chose_it():
    ids = words(*(f"FD{i:03d}" for i in range(100)))
    with refuses(InputError, "'id'", "such as 'FD000'", "drop="):
        CategoryColumn.learn("id", ids)
    chosen = CategoryColumn.learn("id", ids, chosen=True)
    assert len(chosen.features) == 51
    few = CategoryColumn.learn("id", words(*"abcde"))  # all differ, but there are few
    assert len(few.features) == 5


def test_many_numbers_written_as_text_are_refused():
    with refuses(InputError, "60 different numbers as text", "categories=['price']"):
        CategoryColumn.learn("price", words(*(f"{i}.5" for i in range(60)), *["1.5"] * 600))
    zips = CategoryColumn.learn("zip", words(*(str(i % 9) for i in range(60))))
    assert len(zips.features) == 9


def test_many_codes_with_leading_zeros_are_categories():
    zips = CategoryColumn.learn("zip", words(*[f"{i:05d}" for i in range(60)] * 5))
    assert len(zips.features) == 51
    with refuses(InputError, "in nearly every row", "drop="):
        CategoryColumn.learn("zip", words(*(f"{i:05d}" for i in range(60))))


def test_numbers_with_a_unit_are_not_called_an_id():
    with refuses(InputError, "'weight'", "unit 'kg'", "'0.5 kg'", "without the unit"):
        CategoryColumn.learn("weight", words(*(f"{i}.5 kg" for i in range(60))))
    with refuses(InputError, "nearly every row"):  # 60 codes with different letters
        CategoryColumn.learn("code", words(*(f"{i}{chr(97 + i % 26)}" for i in range(60))))


def test_a_column_without_any_value_is_refused():
    with refuses(InputError, "'k' has no value in any of the 2 train rows"):
        CategoryColumn.learn("k", words(None, ""))


def test_what_was_learned_survives_json():
    rules = CategoryRules.from_renames({"LF": "Low Fat", "?": None}, column="fat")
    column = CategoryColumn.learn("fat", words(*"aab", "?"), rules=rules, max_categories=1)
    assert CategoryColumn.from_dict(json.loads(json.dumps(column.to_dict()))) == column
