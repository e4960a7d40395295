"""Caches by what clients send are bounded by what that weighs."""

from __future__ import annotations

import sys

import pytest

from apimachinery.access.authorization import Attributes
from apimachinery.access.webhooks import RememberedForAWhile, _key
from apimachinery.http.messages import User
from apimachinery.http.remembered import REMEMBERED_BYTES, Remembered, weight_of_key
from apimachinery.merge import elements
from apimachinery.server.request import negotiation


def test_long_keys_push_out_others_and_the_longest_are_not_kept():
    known: Remembered[tuple[object, ...], int] = Remembered()
    for number in range(3_000):
        key = (User(f"u{number}", groups=("g" * 50_000,)), "get")
        known.put(key, number)
        assert known.get(key) == number
        assert known.weight <= REMEMBERED_BYTES
    known.put(("x" * (1 << 20),), 1)
    assert known.get(("x" * (1 << 20),)) is None
    known.put(key, -1)
    assert known.get(key) == -1
    known.clear()
    assert (known.weight, known.get(key)) == (0, None)


@pytest.mark.parametrize("text", ["", "a" * 100, "é" * 100, "€" * 100, "😀" * 100])
def test_a_key_takes_no_more_than_its_weight(text):
    user = User(text, text, (text,), ((text, (text,)),))
    assert weight_of_key(text) + 20 >= sys.getsizeof(text)
    assert weight_of_key(_key(Attributes(user, "get", text))) >= 5 * weight_of_key(text)


def test_many_usual_keys_stay():
    known: RememberedForAWhile[int] = RememberedForAWhile()
    for number in range(4_000):
        known.put((f"token-{number}" * 5, ("https://kubernetes.default.svc",)), number, 60.0)
    assert known.get(("token-0" * 5, ("https://kubernetes.default.svc",))) == 0


def test_long_words_of_clients_are_not_kept():
    before = negotiation._kept_clauses.cache_info().currsize
    assert negotiation.preferred("application/json;x=" + "y" * 5_000, ("application/json",)) is not None
    assert negotiation._kept_clauses.cache_info().currsize == before
    before = elements._rank.cache_info().currsize
    names = [f'k:{{"name":"{letter * 5_000}"}}' for letter in "cab"]
    assert [each[11] for each in elements.in_order(names)] == ["a", "b", "c"]
    assert elements._rank.cache_info().currsize == before
