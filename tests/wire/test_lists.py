"""Long lists are encoded a part at a time, to the bytes that they have as a whole."""

from __future__ import annotations

from typing import Any

import cbor2
from hypothesis import given
from hypothesis import strategies as st

from apimachinery.wire import cbor, yaml
from apimachinery.wire.blocks import BLOCK_BYTES, in_blocks

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)
ITEMS = st.lists(st.dictionaries(st.text(max_size=4), VALUES, max_size=4), max_size=45)
METADATA = st.dictionaries(st.sampled_from(("resourceVersion", "continue")), st.text(max_size=4))


@given(ITEMS, METADATA, st.sampled_from(("items", "rows")))
def test_parts_of_a_list_are_the_list(items: list[Any], metadata: dict[str, str], member: str) -> None:
    empty = {"kind": "List", "apiVersion": "v1", "metadata": metadata, "zone": "a", member: []}
    whole = {**empty, member: items}
    assert b"".join(yaml.encode_list(empty, iter(items), len(items), member)) == yaml.encode(whole)
    assert b"".join(cbor.encode_list(empty, iter(items), len(items), member)) == cbor.encode(whole)


def test_blocks_are_of_some_size() -> None:
    parts = [b"x" * 1000] * 1000
    blocks = [*in_blocks(iter(parts))]
    assert b"".join(blocks) == b"".join(parts)
    assert {len(block) for block in blocks[:-1]} == {-(-BLOCK_BYTES // 1000) * 1000}
    assert [*in_blocks([])] == []


@given(VALUES)
def test_wide_values_are_encoded_in_steps(value: Any) -> None:
    wide = {"b": value, "a": {f"k{n}": [n] for n in range(1_200)}, "list": [{"é": n} for n in range(1_200)]}
    whole = cbor2.dumps(cbor._strings_as_bytes(wide), canonical=True)
    assert cbor.encode(wide).endswith(whole)
    assert cbor.decode(cbor.encode(wide)) == wide
