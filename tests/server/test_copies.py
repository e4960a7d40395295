"""A large object is copied a value at a time, to the same effect as all at once."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from apimachinery.server.write.patch_faults import copied

# Texts are copied whole, so a few characters do: to draw from all of Unicode takes seconds to prepare.
TEXTS = st.text("ab/\0é€\U0001f600", max_size=3)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(-1e9, 1e9) | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=30,
)


def containers(value: Any) -> set[int]:
    if not isinstance(value, dict | list):
        return set()
    inner = value.values() if isinstance(value, dict) else value
    return {id(value)}.union(*(containers(each) for each in inner))


@given(st.dictionaries(TEXTS, VALUES, max_size=6))
def test_both_ways_of_copying_make_the_same(obj):
    made = copied(obj, large=True)
    assert made == copied(obj) == obj
    assert repr(made) == repr(copied(obj))
    assert not containers(made) & containers(obj)


def test_what_is_deep_is_copied_too():
    obj: dict[str, Any] = {}
    for _ in range(200):
        obj = {"a": [obj]}
    assert copied(obj, large=True) == obj
