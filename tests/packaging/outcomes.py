"""Outcomes of what is compiled on drawn inputs, a line each: the same lines from both builds (``make test-compiled``).

    python -m tests.packaging.outcomes FILE

draws the inputs into FILE where there is none.

A line has the input's number and what came out: value and cost, or the error with its words.
"""

from __future__ import annotations

import copy
import json
import pickle
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from apimachinery.cel.environment import Environment
from apimachinery.cel.values import types as t
from apimachinery.cel.values.errors import CelError
from apimachinery.merge import json_patch, merge_patch, strategic, strategic_diff
from apimachinery.merge.apply import FieldOwnership
from apimachinery.merge.compile import MergeTypes
from apimachinery.merge.errors import MergeError
from apimachinery.merge.from_openapi import builtin_table, custom_resource
from apimachinery.schema.builtin import compile_builtin
from apimachinery.schema.custom import compile_custom
from tests.bench import schemas
from tests.cel.expressions import ANY, VARIABLES
from tests.cel.oracle import TYPES
from tests.merge.values import SCHEMA, json_values, specs

_ADDRESS = re.compile(r" at 0x[0-9a-f]+")
EXPRESSIONS, CALLS, OBJECTS, PATCHES, DECODED = 2000, 2000, 500, 500, 1000
TYPED = Environment.everything().extend(variables=TYPES, limit=100_000)
BARE = Environment.everything().extend(limit=100_000)
UNTYPED = Environment.kubernetes("1.36").extend(variables=dict.fromkeys(VARIABLES, t.DYN))
OWN = FieldOwnership(api_version="e.com/v1", kind="Thing", type=custom_resource(SCHEMA))
PATCH_TYPE = MergeTypes(builtin_table({"Thing": SCHEMA})).patch_type("Thing")
APPS = compile_custom(schemas.SCHEMA)
DEPLOYMENTS = compile_builtin(
    "io.k8s.api.apps.v1.Deployment",
    json.loads((schemas.ROOT / "generated/kubernetes_api/definitions.json").read_bytes()),
)


def drawn(count: int, strategy: st.SearchStrategy[Any]) -> list[Any]:
    """``count`` values, or fewer where there are no more."""
    values: list[Any] = []

    @settings(
        max_examples=count,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy)
    def one(value: Any) -> None:
        values.append(value)

    one()
    return values


def tell(show: Callable[[Any], object], values: Sequence[Any]) -> None:
    """Prints what ``show`` says of each value."""
    for number, value in enumerate(values):
        try:
            outcome = _ADDRESS.sub("", repr(show(value)))
        except (CelError, MergeError) as error:
            outcome = f"{type(error).__name__}: {error}"
        print(show.__name__, number, outcome.replace("\n", " "))


def typed(source: str) -> object:
    """Value and cost under declared types."""
    outcome = TYPED.compile(source).run(VARIABLES)
    return outcome.value, str(outcome.error), outcome.cost


def untyped(source: str) -> object:
    """The same without types, and of half of the expression: mostly a syntax error."""
    try:
        UNTYPED.compile(source[: len(source) // 2])
    except CelError as error:
        return str(error)
    outcome = UNTYPED.compile(source).run(VARIABLES)
    return outcome.value, str(outcome.error), outcome.cost


def calls(source: str) -> object:
    """Value and class of a call of some function, by every type that it takes: 3 is not 3u, 3.0 or true."""
    outcome = BARE.compile(source).run({})
    return type(outcome.value).__name__, outcome.value, str(outcome.error), outcome.cost


def settled(values: tuple[tuple[Any, ...], Any]) -> object:
    """A custom resource with another value at some place: pruned, defaulted and validated."""
    obj = changed(schemas.custom_resource(7), *values)
    if (fault := APPS.decode_fault(obj)) is not None:
        return str(fault)
    return *map(str, (APPS.unknown_fields(obj), APPS.prune(obj), APPS.default(obj), APPS.validate(obj))), obj


def decoded(values: tuple[tuple[Any, ...], Any]) -> object:
    """A Deployment with another value at some place: why it cannot be decoded, and what it has too much."""
    obj = changed(schemas.DEPLOYMENT, *values)
    return DEPLOYMENTS.read(obj), obj


def writes(values: tuple[Any, Any, Any, bool]) -> object:
    """Three writes by three managers, the last by apply: with force, or refused with its conflicts."""
    first, second, third, force = (copy.deepcopy(value) for value in values)
    thing = {"apiVersion": "e.com/v1", "kind": "Thing", "metadata": {"name": "t"}}
    live = OWN.apply(None, {**thing, "spec": first}, "a", force=False, now="2026-01-01T00:00:00Z")
    live = OWN.update(live, {**live, "spec": second}, "b", now="2026-01-01T00:00:01Z")
    return OWN.apply(live, {**thing, "spec": third}, "c", force=force, now="2026-01-01T00:00:02Z")


def patches(values: tuple[Any, Any, Any]) -> object:
    """Patches made of two objects, and applied to a third."""
    before, after, live = ({"spec": value} for value in copy.deepcopy(values))
    patch = strategic_diff.create_two_way(before, after, PATCH_TYPE)
    return patch, strategic.apply(live, patch, PATCH_TYPE), merge_patch.create_three_way(before, after, live)


def json_patches(values: tuple[Any, Any, str, str]) -> object:
    """JSON patches at places that are there and others."""
    document, value, op, path = values
    return json_patch.apply({"a": document, "b": [document]}, [{"op": op, "path": path, "value": value}])


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The paths of all that is in a value, and of a field more in each object."""
    yield path
    if isinstance(value, dict):
        yield (*path, "unknown")
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in pairs:
        yield from places(item, (*path, key))


def changed(obj: Any, path: tuple[Any, ...], value: Any) -> Any:
    """A copy of ``obj`` with another value at ``path``."""
    out = {"whole": copy.deepcopy(obj)}
    here, (*way, last) = out, ("whole", *path)
    for key in way:
        here = here[key]
    here[last] = value
    return out["whole"]


_TEXTS = {
    "int": ["0", "-3", "7", "9223372036854775807"],
    "uint": ["0u", "3u", "18446744073709551615u"],
    "double": ["0.0", "-2.5", "3.0", "1e19"],
    "bool": ["true", "false"],
    "string": [
        "''",
        "'ab,c'",
        "'7'",
        "'1Ki'",
        "'1.2.3'",
        "'10.0.0.1'",
        "'10.0.0.0/8'",
        "'http://a/b?c=d'",
        "'%d'",
    ],
    "bytes": ["b'ab'"],
    "timestamp": ["timestamp('2020-01-02T03:04:05Z')"],
    "duration": ["duration('1h3m')", "duration('-1ms')"],
    "list": [
        "[]",
        "[1, 2]",
        "[3u, 1u]",
        "[1.5, 2.0]",
        "['b', 'a']",
        "[true]",
        "[[1u], [2u]]",
        "[duration('1s')]",
    ],
    "map": ["{}", "{'a': 1u}", "{1u: 2.0, 2u: 3.0}", "{true: [1u]}"],
    "optional_type": ["optional.of(1u)", "optional.of(true)", "optional.none()"],
    "kubernetes.Quantity": ["quantity('1Ki')", "quantity('250m')"],
    "kubernetes.Semver": ["semver('1.2.3')"],
    "kubernetes.URL": ["url('https://a.b:80/c?d=e')"],
    "net.IP": ["ip('10.0.0.1')", "ip('::1')"],
    "net.CIDR": ["cidr('10.0.0.0/8')"],
}
"""Values of each type, as expressions."""
_TEXTS["any"] = [text for texts in _TEXTS.values() for text in texts]
_SIGNS = {"_[_]": "{}[{}]", "@in": "({} in {})", "_?_:_": "({} ? {} : {})", "-_": "-({})", "!_": "!({})"}


def _shape(name: str, overload: Any) -> str:
    """How a call is written, with a place for each argument."""
    count = len(overload.params)
    if name in _SIGNS:
        return _SIGNS[name]
    if name.startswith("_"):
        return f"({{}} {name.strip('_')} {{}})"
    if overload.member:
        return f"{{}}.{name}({', '.join(['{}'] * (count - 1))})"
    return f"{name.replace('@max', 'greatest').replace('@min', 'least')}({', '.join(['{}'] * count)})"


def _calls() -> list[tuple[str, list[list[str]]]]:
    """Every function by every overload, and the values that its arguments can have."""
    return [
        (_shape(name, overload), [_TEXTS.get(str(p).split("(")[0], _TEXTS["any"]) for p in overload.params])
        for name, function in sorted(BARE.functions.items())
        for overload in function.overloads
    ]


@st.composite
def _drawn_call(draw: st.DrawFn) -> str:
    shape, arguments = draw(st.sampled_from(_calls()))
    return shape.format(*(draw(st.sampled_from(texts)) for texts in arguments))


_OPERATIONS = st.sampled_from(["add", "replace", "remove", "test", "move"])
_PLACES = st.sampled_from(["", "/a", "/a/0", "/b/0", "/b/-", "/b/1", "/a/b", "/c/d", "b"])
CASES: list[tuple[Callable[[Any], object], int, st.SearchStrategy[Any]]] = [
    (typed, EXPRESSIONS, ANY),
    (untyped, EXPRESSIONS, ANY),
    (calls, CALLS, _drawn_call()),
    (settled, DECODED, st.tuples(st.sampled_from([*places(schemas.custom_resource(7))]), json_values)),
    (decoded, DECODED, st.tuples(st.sampled_from([*places(schemas.DEPLOYMENT)]), json_values)),
    (writes, OBJECTS, st.tuples(specs, specs, specs, st.booleans())),
    (patches, PATCHES, st.tuples(specs, specs, specs)),
    (json_patches, PATCHES, st.tuples(json_values, json_values, _OPERATIONS, _PLACES)),
]

if __name__ == "__main__":
    inputs = Path(sys.argv[1])
    # Hypothesis also draws constants that it reads in sources, which compiled modules do not have: whoever is first
    # draws for both.
    if not inputs.exists():
        inputs.write_bytes(pickle.dumps([drawn(count, strategy) for _, count, strategy in CASES]))
    for case, values in zip(CASES, pickle.loads(inputs.read_bytes()), strict=True):
        tell(case[0], values)
