"""Laws of unions that only values tell apart, for classes and values that are drawn."""

from __future__ import annotations

import functools
import importlib
import operator
import sys
from pathlib import Path
from typing import Any, Literal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from apimachinery.openapi import decode
from apimachinery.typed.object import Part
from apimachinery.typed.unions import Untagged, dropped_values
from kubewright.cli import main

NAMES = st.sampled_from(["a", "b_c", "kind", "items"])
TYPES = st.sampled_from([int, str, Literal["x"], Literal["y", "z"], list[int], dict[str, int], Any])
VALUES = st.sampled_from([0, -1, "x", "z", "", [1], ["x"], {"k": 1}, {"k": "v"}, True, 1.5, None])


@st.composite
def classes(draw: Any, inner: Any = None) -> Any:
    fields = []
    for name in draw(st.lists(NAMES, unique=True, min_size=1, max_size=3)):
        kind = draw(TYPES) if inner is None or draw(st.booleans()) else inner
        fields.append((name, kind) if draw(st.booleans()) else (name, kind | None, None))
    return msgspec.defstruct(draw(st.sampled_from("PQR")), fields, bases=(Part,), kw_only=True)


def union_of(*members: Any) -> Any:
    return Untagged[functools.reduce(operator.or_, members)]  # type: ignore[misc]


@st.composite
def unions(draw: Any) -> Any:
    inner = union_of(*draw(st.lists(classes(), min_size=2, max_size=2)))
    members: list[Any] = draw(st.lists(classes(inner), min_size=2, max_size=3))
    more = draw(st.lists(st.sampled_from([str, list[int], inner]), max_size=1))
    return union_of(*members, *more)


KEYS = st.sampled_from(["a", "bC", "kind", "items", "other"])
OBJECTS = st.recursive(
    st.dictionaries(KEYS, VALUES, max_size=4), lambda each: st.dictionaries(KEYS, each | VALUES, max_size=4)
)


def read_alone(member: Any, value: Any) -> Any:
    """``value`` as one member; ``None`` where it does not fit."""
    try:
        return decode(msgspec.json.encode(value), member)
    except msgspec.ValidationError:
        return None


@given(unions(), OBJECTS | VALUES)
def test_no_member_fits_better_and_of_equals_it_is_the_first(union: Any, value: Any) -> None:
    fits = [made for member in union.members if (made := read_alone(member, value)) is not None]
    if not fits:
        if value is not None:
            with pytest.raises(msgspec.ValidationError, match="Fits no member"):
                decode(msgspec.json.encode(value), union)
        return
    best = min(fits, key=lambda made: dropped_values(value, made))
    found = decode(msgspec.json.encode(value), union)
    assert (type(found), found) == (type(best), best)


@given(unions(), OBJECTS)
def test_what_a_member_holds_whole_is_written_as_it_was(union: Any, value: Any) -> None:
    made = read_alone(union, value)
    if made is not None and not dropped_values(value, made):
        written = msgspec.to_builtins(made)
        assert written == without_unset(value, written)
        assert decode(msgspec.json.encode(made), union) == made


def without_unset(value: Any, written: Any) -> Any:
    """``value`` without the nulls that models read as nothing."""
    if isinstance(value, dict) and isinstance(written, dict):
        return {
            key: without_unset(item, written.get(key))
            for key, item in value.items()
            if key in written or item is not None
        }
    return value


class Leaf(Part, kw_only=True):
    size: int


class And(Part, kw_only=True):
    all: list[Untagged[Leaf | And | Or]]


class Or(Part, kw_only=True):
    all: list[Untagged[Leaf | And | Or]]
    name: str


def test_unions_in_unions_are_read_in_one_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    depth, converted = 30, []
    value: Any = {"size": 1}
    for _ in range(depth):
        value = {"all": [value], "name": "n"}
    convert = msgspec.convert

    def counted(*arguments: Any, **options: Any) -> Any:
        converted.append(1)
        return convert(*arguments, **options)

    monkeypatch.setattr(msgspec, "convert", counted)
    made = decode(msgspec.json.encode(value), union_of(Leaf, And, Or))
    for _ in range(depth):
        assert type(made) is Or
        (made,) = made.all
    assert made == Leaf(size=1)
    assert len(converted) <= 3 * (depth + 1)


PETS = """
openapi: 3.0.3
info: {title: Pets, version: "1"}
paths: {}
components:
  schemas:
    Cat: {type: object, properties: {petType: {type: string}, name: {type: string}}}
    Dog: {type: object, properties: {petType: {type: string}, name: {type: string}}}
    Pet:
      oneOf: [{$ref: "#/components/schemas/Cat"}, {$ref: "#/components/schemas/Dog"}]
      discriminator:
        propertyName: petType
        mapping: {cat: "#/components/schemas/Cat", dog: "#/components/schemas/Dog"}
    Home:
      type: object
      properties: {cat: {$ref: "#/components/schemas/Cat"}, pet: {$ref: "#/components/schemas/Pet"}}
"""


def test_a_member_that_is_used_by_itself_too_may_have_any_value_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pets.yaml").write_text(PETS)
    assert (
        main(["generate", str(tmp_path / "pets.yaml"), "--package", "members_api", "-o", str(tmp_path), "-q"])
        == 0
    )
    monkeypatch.syspath_prepend(tmp_path)
    models = importlib.import_module("members_api.models.models")
    try:
        home = decode('{"cat": {"petType": "lion"}, "pet": {"petType": "dog"}}', models.Home)
        assert (home.cat.pet_type, type(home.pet), models.Cat().pet_type) == ("lion", models.Dog, "cat")
        assert type(decode('{"pet": {"petType": "cat"}}', models.Home).pet) is models.Cat
        with pytest.raises(
            msgspec.ValidationError, match="Cat: it is not known by 'lion'; Dog: Invalid enum value"
        ):
            decode('{"pet": {"petType": "lion"}}', models.Home)
    finally:
        for name in [name for name in sys.modules if name.startswith("members_api")]:
            del sys.modules[name]
