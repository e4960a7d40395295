"""Fields that occur twice, and the order of texts about fields: what is found is what a plain walk finds."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from apimachinery.wire.strict import MAX_NAMED, duplicate_fields, in_order_of

NAMES = st.sampled_from(("a", "b", "a.b", "[0]", "é", ""))


class Members(list[tuple[str, Any]]):
    pass


DOCUMENTS = st.recursive(
    st.integers(0, 1) | st.just("a: b"),
    lambda inner: st.lists(inner, max_size=3) | st.lists(st.tuples(NAMES, inner), max_size=4).map(Members),
    max_leaves=12,
)


def written(value: Any) -> str:
    if isinstance(value, Members):
        return "{" + ",".join(f"{json.dumps(name)}:{written(each)}" for name, each in value) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(written, value)) + "]"
    return json.dumps(value)


def walked(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Every member, outer ones first: whether its name came before, and its path."""
    if isinstance(value, Members):
        names = [name for name, _ in value]
        for place, (name, each) in enumerate(value):
            inner = f"{path}.{name}"
            yield "duplicate" if name in names[:place] else "unknown", inner.removeprefix(".")
            yield from walked(each, inner)
    elif isinstance(value, list):
        for index, each in enumerate(value):
            yield from walked(each, f"{path}[{index}]")


@given(DOCUMENTS)
def test_what_occurs_twice_is_named_once(document: Any) -> None:
    data = written(document).encode()
    wanted = [*dict.fromkeys(path for kind, path in walked(document) if kind == "duplicate")]
    assert duplicate_fields(data, json.loads(data)) == wanted[:MAX_NAMED]


@given(DOCUMENTS, st.randoms(use_true_random=False))
def test_texts_come_in_the_order_of_the_document(document: Any, chance: Any) -> None:
    wanted = [*dict.fromkeys(f'{kind} field "{path}"' for kind, path in walked(document))]
    shuffled = chance.sample(wanted, len(wanted))
    assert in_order_of(written(document).encode(), [*shuffled, "line 3: no field"]) == [
        *wanted,
        "line 3: no field",
    ]


def test_a_deep_document_is_no_long_work() -> None:
    """Of 900 levels the paths together would have 400,000 characters; only one of them is asked for."""
    data = b'{"a":' * 900 + b'{"b":1,"b":2}' + b"}" * 900
    (path,) = duplicate_fields(data, json.loads(data))
    assert path == "a." * 900 + "b"
    assert in_order_of(data, ['unknown field "zone"', f'duplicate field "{path}"']) == [
        f'duplicate field "{path}"',
        'unknown field "zone"',
    ]
