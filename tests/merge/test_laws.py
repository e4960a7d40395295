"""Laws of merging that hold for all values."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import assume, given
from hypothesis import strategies as st

from apimachinery.merge import field_set, fields_v1, json_patch, merge_patch, strategic, strategic_diff
from apimachinery.merge.apply import FieldOwnership, keep_times
from apimachinery.merge.compile import MergeTypes
from apimachinery.merge.errors import MergeError
from apimachinery.merge.field_set import FieldSet
from apimachinery.merge.from_openapi import builtin_table, custom_resource
from apimachinery.merge.managed_fields import Managed, decode, encode
from apimachinery.merge.typed import MergeType, compare_objects, extract_with_keys
from apimachinery.merge.value import same
from tests.merge.values import SCHEMA, json_values, scalars, specs, words

TYPE = custom_resource(SCHEMA)
PATCH_TYPE = MergeTypes(builtin_table({"Thing": SCHEMA})).patch_type("Thing")
OWN = FieldOwnership(api_version="e.com/v1", kind="Thing", type=TYPE)


class TwoNames:
    """One version, also known as v0. What was applied at v0 is pruned by the full algorithm."""

    def type_of(self, api_version: str) -> MergeType:
        return TYPE

    def convert(self, value: dict[str, Any], api_version: str) -> dict[str, Any]:
        return {**value, "apiVersion": api_version}


TWO_NAMES = FieldOwnership(api_version="e.com/v1", kind="Thing", type=TYPE, converter=TwoNames())
managers = st.sampled_from(["a", "b", "c"])


def thing(spec: Any) -> dict[str, Any]:
    return {"apiVersion": "e.com/v1", "kind": "Thing", "metadata": {"name": "t"}, "spec": spec}


@st.composite
def objects(draw: st.DrawFn, specs: st.SearchStrategy[Any] = specs) -> dict[str, Any]:
    """An object after some writes by several managers."""
    live: dict[str, Any] | None = None
    for second in range(draw(st.integers(1, 3))):
        wanted, manager, now = thing(draw(specs)), draw(managers), f"2026-01-01T00:00:0{second}Z"
        if draw(st.booleans()):
            live = OWN.apply(live, wanted, manager, force=True, now=now)
        else:
            metadata = wanted["metadata"] if live is None else live["metadata"]
            live = OWN.update(live, {**wanted, "metadata": metadata}, manager, now=now)
    assert live is not None
    return live


elements = st.one_of(
    words.map(lambda word: f"f:{word}"),
    st.dictionaries(words, scalars, min_size=1, max_size=2).map(fields_v1.key_element),
    scalars.map(fields_v1.value_element),
    st.integers(0, 9).map(lambda index: f"i:{index}"),
)
path_sets = st.sets(st.lists(elements, min_size=1, max_size=4).map(tuple), max_size=8)


@given(path_sets, path_sets)
def test_field_sets_are_sets_of_paths(a: set[tuple[str, ...]], b: set[tuple[str, ...]]) -> None:
    x, y = field_set.from_paths(a), field_set.from_paths(b)
    given_x, given_y = copy.deepcopy(x), copy.deepcopy(y)

    def members(fields: FieldSet) -> set[tuple[str, ...]]:
        assert fields_v1.parse(fields) == fields, "not in normal form"
        return set(field_set.paths(fields))

    assert members(x) == a
    assert members(field_set.union(x, y)) == a | b
    assert members(field_set.intersection(x, y)) == a & b
    assert members(field_set.difference(x, y)) == a - b
    below = {path for path in a if any(path[: len(other)] == other for other in b)}
    assert members(field_set.recursive_difference(x, y)) == a - below
    assert members(field_set.leaves(x)) == {p for p in a if not any(o != p and o[: len(p)] == p for o in a)}
    assert members(field_set.prefixes(x)) == {p[:n] for p in a for n in range(1, len(p) + 1)}
    assert all(field_set.has(x, path) for path in a)
    assert not any(field_set.has(x, path) for path in b - a)
    assert field_set.size(x) == len(a)
    assert (x, y) == (given_x, given_y), "an argument was changed"


@given(path_sets)
def test_reading_what_was_written_gives_the_same_set(a: set[tuple[str, ...]]) -> None:
    fields = field_set.from_paths(a)
    written = fields_v1.sort(fields)
    assert fields_v1.parse(written) == fields
    assert fields_v1.sort(fields_v1.parse(written)) == written
    kinds = [element[0] for element in written]
    assert kinds == sorted(kinds, key=".fkvi".index)


@given(objects())
def test_managed_fields_survive_reading_and_writing(live: dict[str, Any]) -> None:
    entries = live["metadata"].get("managedFields", [])
    assert encode(decode(entries)) == entries


def _full(value: Any) -> Any:
    """``value`` without empty objects and lists. kube-apiserver takes an object that is said to be empty, and has
    just lost its fields, for null or gone: such an apply is no fixed point."""
    if isinstance(value, dict):
        kept = {key: _full(item) for key, item in value.items()}
        return {key: item for key, item in kept.items() if item not in ({}, [])}
    return [_full(item) for item in value] if isinstance(value, list) else value


full_specs = specs.map(_full).filter(bool)


@given(objects(full_specs), full_specs, managers)
def test_applying_twice_is_applying_once(live: dict[str, Any], spec: Any, manager: str) -> None:
    once = OWN.apply(live, thing(spec), manager, force=True, now="2026-01-01T00:01:00Z")
    twice = OWN.apply(once, thing(spec), manager, force=False, now="2026-01-01T00:02:00Z")
    assert keep_times(once, twice) == once


@given(objects(full_specs), full_specs, managers)
def test_what_is_applied_is_there(live: dict[str, Any], spec: Any, manager: str) -> None:
    new = OWN.apply(live, thing(spec), manager, force=True, now="2026-01-01T00:01:00Z")
    owned = TYPE.owned(thing(spec)) or {}
    assert not field_set.difference(owned, TYPE.added(new))
    assert compare_objects(TYPE, new, TYPE.merge(new, thing(spec))) == ({}, {}, {})


@given(objects(), objects(), specs, managers)
def test_nothing_changes_its_arguments(live: Any, other: Any, spec: Any, manager: str) -> None:
    arguments = (live, other, thing(spec))
    before = copy.deepcopy(arguments)
    OWN.apply(live, arguments[2], manager, force=True, now="2026-01-01T00:01:00Z")
    OWN.update(live, other, manager, now="2026-01-01T00:01:00Z")
    compare_objects(TYPE, live, other)
    fields = TYPE.owned(other, strict=False) or {}
    TYPE.remove(live, fields, keeps_empty=True)
    TYPE.extract(live, fields)
    extract_with_keys(TYPE, live, fields)
    a, b = {"spec": live.get("spec")}, {"spec": other.get("spec")}
    strategic.apply(a, strategic_diff.create_two_way(a, b, PATCH_TYPE), PATCH_TYPE)
    merge_patch.apply(live, merge_patch.create(live, other))
    assert arguments == before


@given(specs)
def test_merging_with_nothing_is_nothing(spec: Any) -> None:
    obj = thing(spec)
    assert TYPE.merge(obj, {}) is obj
    assert TYPE.merge(obj, copy.deepcopy(obj)) is obj
    assert TYPE.merge({}, obj) == obj
    assert TYPE.compare(obj, copy.deepcopy(obj)) is None


@given(specs, specs)
def test_a_change_and_its_way_back_mirror_each_other(a: Any, b: Any) -> None:
    there = compare_objects(TYPE, thing(a), thing(b))
    back = compare_objects(TYPE, thing(b), thing(a))
    assert (there.modified, there.added, there.removed) == (back.modified, back.removed, back.added)


@given(specs)
def test_what_an_object_owns_is_part_of_what_comes_with_it(spec: Any) -> None:
    owned = TYPE.owned(thing(spec)) or {}
    assert not field_set.difference(owned, TYPE.added(thing(spec)))


@given(specs)
def test_taking_all_of_an_objects_fields_out_leaves_none_in(spec: Any) -> None:
    obj = thing(spec)
    fields = TYPE.name_parents(TYPE.owned(obj) or {})
    assert TYPE.owned(TYPE.remove(obj, fields, keeps_empty=False) or {}) in (None, {})
    extracted = extract_with_keys(TYPE, obj, field_set.leaves(TYPE.owned(obj) or {})) or {}
    assert not field_set.difference(TYPE.owned(extracted) or {}, TYPE.owned(obj) or {})


@given(objects(), specs, managers)
def test_the_short_way_of_giving_up_nothing_is_the_long_way(live: Any, spec: Any, manager: str) -> None:
    """Pruning is skipped where an applier says all that it said before, and at the same version; else it is not."""
    arguments: dict[str, Any] = {"force": True, "now": "2026-01-01T00:01:00Z"}
    entries = live["metadata"].get("managedFields", [])
    mine = [entry for entry in entries if entry["manager"] == manager and entry["operation"] == "Apply"]
    short = OWN.apply(live, thing(spec), manager, **arguments)
    for entry in mine:
        entry["apiVersion"] = "e.com/v0"
    assert short == TWO_NAMES.apply(live, thing(spec), manager, **arguments)


@given(specs, specs)
def test_a_two_way_patch_makes_one_of_the_other(a: Any, b: Any) -> None:
    assume("free" not in a and "free" not in b)  # nulls in free objects cannot be said by a patch
    patch = strategic_diff.create_two_way(thing(a), thing(b), PATCH_TYPE)
    assert same(strategic.apply(thing(a), patch, PATCH_TYPE), thing(b))


@given(specs, specs, specs)
def test_a_three_way_patch_keeps_what_was_never_ours(a: Any, b: Any, c: Any) -> None:
    a, b, c = (thing({key: v for key, v in spec.items() if key == "map"}) for spec in (a, b, c))
    patch = strategic_diff.create_three_way(a, b, c, PATCH_TYPE)
    result = strategic.apply(c, patch, PATCH_TYPE)["spec"].get("map", {})
    ours, wanted, there = (obj["spec"].get("map", {}) for obj in (a, b, c))
    theirs = {key: value for key, value in there.items() if key not in ours}
    if "map" in b["spec"]:
        assert result == {**theirs, **wanted}


@given(json_values, json_values)
def test_a_merge_patch_makes_one_of_the_other(a: Any, b: Any) -> None:
    a, b = ({"x": strategic._without_nulls(value)} for value in (a, b))
    assume(not _has_null(a) and not _has_null(b))
    assert same(merge_patch.apply(a, merge_patch.create(a, b)), b)


def _has_null(value: Any) -> bool:
    if isinstance(value, dict):
        return any(map(_has_null, value.values()))
    return any(map(_has_null, value)) if isinstance(value, list) else value is None


pointers = st.lists(st.one_of(words, st.sampled_from(["0", "1", "-", "-1", "~0", "~1"])), max_size=3).map(
    lambda steps: "".join(f"/{step}" for step in steps)
)
operations = st.lists(
    st.one_of(
        json_values,
        st.fixed_dictionaries(
            {
                "op": st.sampled_from(["add", "remove", "replace", "move", "copy", "test", "eat"]),
                "path": pointers,
            },
            optional={"value": json_values, "from": pointers},
        ),
    ),
    max_size=4,
)


@given(json_values, st.one_of(operations, json_values))
def test_a_json_patch_applies_or_is_refused(document: Any, patch: Any) -> None:
    assume(isinstance(document, dict | list))
    before = copy.deepcopy((document, patch))
    try:
        json_patch.apply(document, patch)
    except MergeError as refused:
        assert refused.code in (400, 413, 422)
    assert (document, patch) == before


@given(objects(), json_values, managers)
def test_any_value_is_applied_or_refused(live: Any, spec: Any, manager: str) -> None:
    for wanted in (thing(spec), {**thing({}), "metadata": spec}, spec):
        try:
            OWN.apply(live, wanted, manager, force=True, now="2026-01-01T00:01:00Z")
        except MergeError as refused:
            assert refused.code in (400, 500)
    OWN.update(live, thing(spec), manager, now="2026-01-01T00:01:00Z")


@given(objects(), json_values)
def test_any_managed_fields_are_read_or_passed_by(live: Any, entries: Any) -> None:
    odd = {**live, "metadata": {**live["metadata"], "managedFields": entries}}
    OWN.update(live, odd, "a", now="2026-01-01T00:01:00Z")
    OWN.update(odd, live, "a", now="2026-01-01T00:01:00Z")
    try:
        OWN.apply(odd, thing({}), "a", now="2026-01-01T00:01:00Z")
    except MergeError as refused:
        assert refused.code in (409, 500)


@given(json_values, json_values)
def test_any_strategic_patch_applies_or_is_refused(spec: Any, patch: Any) -> None:
    try:
        strategic.apply(thing(spec), {"spec": patch}, PATCH_TYPE)
    except MergeError as refused:
        assert refused.code in (400, 422, 500)


@given(json_values, json_values, json_values)
def test_any_documents_make_a_patch_or_are_refused(a: Any, b: Any, c: Any) -> None:
    try:
        strategic_diff.create_three_way(thing(a), thing(b), thing(c), PATCH_TYPE, overwrite=False)
    except MergeError as refused:
        assert refused.code in (400, 409, 422, 500)


def test_owners_of_a_version_are_not_lost_by_capping() -> None:
    from apimachinery.merge.managed_fields import UPDATE, ManagedEntry, Owner, cap_updates

    managed: Managed = {
        Owner(name, UPDATE, "v1"): ManagedEntry("v1", {f"f:{name}": {}}, "2026-01-01T00:00:00Z")
        for name in ("aa", "ancient-changes", *(f"m{i:02d}" for i in range(12)))
    }
    capped = cap_updates(managed)
    assert len(capped) == 10
    everything: FieldSet = {}
    for entry in capped.values():
        everything = field_set.union(everything, entry.fields)
    assert everything.keys() == {f"f:{owner.manager}" for owner in managed}
