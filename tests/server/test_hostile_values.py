"""Values that nobody would write, at every place of an object: an answer always, and never a 500."""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.server.test_api import ask, run

from apimachinery.server.assembly.api import AssembledApi
from apimachinery.server.catalog.options import ApiOptions

ODD: list[Any] = [None, None, None, [], {}, "", 0, -1, True, [None], {"a": None}, "x", 1.5]
OBJECTS: list[tuple[str, dict[str, Any]]] = [
    (case["path"], case["object"])
    for case in yaml.load((Path(__file__).parent / "hostile_objects.yaml").read_text(), yaml.CSafeLoader)
]


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if path and path[0] not in ("apiVersion", "kind"):
        yield path
    below = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in below:
        yield from places(item, (*path, key))


def put(target: Any, path: tuple[Any, ...], value: Any) -> None:
    for key in path[:-1]:
        target = target[key]
    target[path[-1]] = value


@pytest.mark.parametrize("seed", range(4))
def test_odd_values_are_accepted_or_refused(seed: int) -> None:
    async def story(api: AssembledApi) -> None:
        chance = random.Random(seed)
        for _ in range(200):
            path, obj = copy.deepcopy(chance.choice(OBJECTS))
            for _ in range(chance.choice((1, 1, 2))):
                put(obj, chance.choice([*places(obj)]), copy.deepcopy(chance.choice(ODD)))
            code, body, _ = await ask(api, "POST", f"{path}?dryRun=All", obj)
            assert code in (200, 201, 400, 403, 404, 409, 422), (code, body, obj)

    run(story, ApiOptions(controllers=frozenset()))


@pytest.mark.parametrize("place", [("spec", "versions", 0), ("spec", "names"), ("spec",)])
def test_a_null_where_a_definition_has_a_struct_is_refused_in_words(place: tuple[Any, ...]) -> None:
    async def story(api: AssembledApi) -> None:
        path, obj = copy.deepcopy(OBJECTS[-1])
        put(obj, place, None)
        code, body, _ = await ask(api, "POST", path, obj)
        assert (code, body["reason"]) == (422, "Invalid")

    run(story, ApiOptions(controllers=frozenset()))


def test_a_null_rule_is_an_empty_rule() -> None:
    async def story(api: AssembledApi) -> None:
        path, obj = copy.deepcopy(OBJECTS[-1])
        schema = obj["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
        schema["x-kubernetes-validations"] = [None]
        code, body, _ = await ask(api, "POST", path, obj)
        assert (code, body["reason"]) == (422, "Invalid")

    run(story, ApiOptions(controllers=frozenset()))
