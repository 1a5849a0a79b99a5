"""The code of a user's own loss: what of it is seen, and that it ends."""

import functools

import torch

from calibrant.losses import FocalLoss
from calibrant.losses.describing import collect_code, is_user_code

LEVEL = 3


def helper(x):
    return x * LEVEL


def there(x):
    return back(x)


def back(x):
    return there(x) if x else helper(x)


def around(function):
    @functools.wraps(function)
    def inner(*given):
        return function(*given)

    return inner


@around
def decorated(x):
    return helper(x)


class Base:
    def base(self):
        return helper(1)


class Own(Base):
    share = 0.5

    @staticmethod
    def still():
        return 1

    @property
    def shown(self):
        return 2


def codes(own):
    found = [one[0].co_name for one in collect_code(own) if hasattr(one[0], "co_name")]
    return sorted(found)


def test_what_is_the_users_own():
    ours = [FocalLoss, torch.nn.CrossEntropyLoss, torch.nn.functional.cross_entropy, dict, len]
    assert not any(map(is_user_code, ours))
    assert all(map(is_user_code, [helper, Own, lambda x: x]))


def test_functions_that_call_each_other_are_walked_once():
    assert codes(there) == ["back", "helper", "there"]
    assert ("LEVEL", 3) in collect_code(there)
    assert codes(lambda z: torch.exp(z)) == ["<lambda>"]


def test_behind_a_decorator_the_function_is_found():
    def calls():
        return decorated(1)

    assert {"calls", "inner", "decorated", "helper"} <= set(codes(calls))


def test_a_class_has_its_methods_its_values_and_its_bases():
    assert codes(Own) == ["base", "helper", "shown", "still"]
    assert ("share", 0.5) in collect_code(Own)
