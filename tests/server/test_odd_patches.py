"""Patches that take kind or apiVersion away, managedFields that nobody can read: answers of kube-apiserver 1.36."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.server.test_api import CM, CRDS, MERGE, ask, run

from apimachinery.server.assembly.api import AssembledApi

Json = dict[str, Any]
JSON = {"content-type": "application/json-patch+json"}
APPLY = {"content-type": "application/apply-patch+yaml"}
THINGS = "/apis/example.com/v1/namespaces/default/things"
UNNAMED = "the name of the object (a based on URL) was undeterminable: name must be provided"
NO_KIND = "Object 'Kind' is missing in '{"
NO_VERSION = "Internal error occurred: Object 'apiVersion' is missing in 'object has no apiVersion field'"
NO_TEXT = "json parse error: json: cannot unmarshal {} into Go struct field .{} of type string"
NO_TEXTS = (422, NO_TEXT.format("array", "apiVersion"))


def definition(*versions: str) -> Json:
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    names = {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"}
    listed = [{"name": name, "served": True, "storage": name == "v1", "schema": schema} for name in versions]
    spec = {"group": "example.com", "scope": "Namespaced", "names": names, "versions": listed}
    return {"metadata": {"name": "things.example.com"}, "spec": spec}


def thing(version: str = "v1", **spec: Any) -> Json:
    head = {"apiVersion": f"example.com/{version}", "kind": "Thing", "metadata": {"name": "a"}}
    return {**head, "spec": {"n": 1, **spec}}


async def with_things(api: AssembledApi, *versions: str) -> None:
    assert (await ask(api, "POST", CRDS, definition(*versions)))[0] == 201
    await answered(api, THINGS, 200)


async def answered(api: AssembledApi, path: str, code: int) -> None:
    """Waits until a path is answered with a code: controllers serve definitions."""
    for _ in range(1000):
        if (await ask(api, "GET", path))[0] == code:
            return
        await asyncio.sleep(0.01)
    raise AssertionError(f"{path} is never answered with {code}")


@pytest.mark.parametrize(
    ("patch", "builtin", "custom"),
    [
        ({"kind": None}, (200, ""), (422, NO_KIND)),
        ({"kind": ""}, (200, ""), (422, NO_KIND)),
        ({"apiVersion": None}, (400, UNNAMED), (500, NO_VERSION)),
        ({"apiVersion": ""}, (400, UNNAMED), (500, NO_VERSION)),
        ({"apiVersion": "", "kind": None}, (400, UNNAMED), (422, NO_KIND)),
        ({"kind": 1}, (422, NO_TEXT.format("number", "kind")), (422, NO_TEXT.format("number", "kind"))),
        ({"apiVersion": []}, NO_TEXTS, NO_TEXTS),
        ([{"op": "remove", "path": "/kind"}], (200, ""), (422, NO_KIND)),
        ([{"op": "remove", "path": "/apiVersion"}], (400, UNNAMED), (500, NO_VERSION)),
        ([{"op": "replace", "path": "", "value": {}}], (400, UNNAMED), (422, "Object 'Kind' is missing in '{}'")),
    ],
)  # fmt: skip
def test_patches_that_take_the_kind_away(
    patch: Any, builtin: tuple[int, str], custom: tuple[int, str]
) -> None:
    async def story(api: AssembledApi) -> None:
        await with_things(api, "v1")
        await ask(api, "POST", CM, {"metadata": {"name": "a"}, "data": {"k": "v"}})
        await ask(api, "POST", THINGS, thing())
        for path, (code, text) in ((f"{CM}/a", builtin), (f"{THINGS}/a", custom)):
            answer = await ask(api, "PATCH", path, patch, MERGE if isinstance(patch, dict) else JSON)
            assert (answer[0], text in answer[1].get("message", "")) == (code, True), answer
            if code == 200:
                assert answer[1]["kind"] == "ConfigMap"

    run(story)


ENTRY = {"manager": "x", "operation": "Update", "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {"f:n": {}}}}
OWN, GONE = {**ENTRY, "apiVersion": "example.com/v1"}, {**ENTRY, "apiVersion": "example.com/v9"}


@pytest.mark.parametrize(
    ("entries", "managers"),
    [
        ([None], []),
        ([{}], []),
        ([GONE], []),
        ([OWN, GONE], []),
        ([OWN, None], ["creator", "other"]),
        ([OWN, {}], ["creator", "other"]),
        ([OWN], ["other", "x"]),
    ],
)
def test_entries_of_a_custom_resource_that_nobody_can_read(entries: list[Any], managers: list[str]) -> None:
    async def story(api: AssembledApi) -> None:
        await with_things(api, "v1")
        await ask(api, "POST", f"{THINGS}?fieldManager=creator", thing())
        await ask(api, "PATCH", f"{THINGS}/a", {"metadata": {"managedFields": entries}}, MERGE)
        change = {"metadata": {"labels": {"a": "b"}}}
        _, shown, _ = await ask(api, "PATCH", f"{THINGS}/a?fieldManager=other", change, MERGE)
        assert sorted(e["manager"] for e in shown["metadata"].get("managedFields", ())) == managers

    run(story)


def test_owners_at_a_version_that_is_gone() -> None:
    async def story(api: AssembledApi) -> None:
        await with_things(api, "v1", "v2")
        code, made, _ = await ask(api, "POST", THINGS.replace("v1", "v2"), thing("v2"))
        assert code == 201, made
        at = f"{CRDS}/things.example.com"
        removed = [{"op": "remove", "path": "/spec/versions/1"}]
        assert (await ask(api, "PATCH", at, removed, JSON))[0] == 200
        await answered(api, THINGS.replace("v1", "v2"), 404)
        code, answer, _ = await ask(api, "PATCH", f"{THINGS}/a?fieldManager=m", thing(), APPLY)
        text = "request to convert CR to an invalid group/version: example.com/v2"
        assert (code, answer["message"]) == (500, text)
        code, shown, _ = await ask(api, "PATCH", f"{THINGS}/a", {"spec": {"n": 2}}, MERGE)
        assert (code, "managedFields" in shown["metadata"]) == (200, False)
        assert (await ask(api, "PATCH", f"{THINGS}/a?fieldManager=m", thing(n=2), APPLY))[0] == 200

    run(story)


STATUS_SCHEMAS: dict[str, Json] = {
    "plain": {"type": "object", "properties": {"a": {"type": "string"}}},
    "nullable": {"type": "object", "nullable": True, "x-kubernetes-preserve-unknown-fields": True},
    "defaulted": {"type": "object", "default": {}, "properties": {"a": {"type": "string", "default": "x"}}},
    "text": {"type": "string"},
}


@pytest.mark.parametrize(
    ("schema", "applied", "code", "stored"),
    [
        ("plain", None, 200, "nothing"),
        ("text", None, 200, "nothing"),
        ("nullable", None, 200, None),
        ("defaulted", None, 200, {"a": "x"}),
        ("plain", {"a": None}, 422, "nothing"),
    ],
)
def test_a_null_status_that_is_applied(schema: str, applied: Any, code: int, stored: Any) -> None:
    async def story(api: AssembledApi) -> None:
        crd = definition("v1")
        version = {**crd["spec"]["versions"][0], "subresources": {"status": {}}}
        version["schema"] = {
            "openAPIV3Schema": {"type": "object", "properties": {"status": STATUS_SCHEMAS[schema]}}
        }
        crd["spec"]["versions"] = [version]
        assert (await ask(api, "POST", CRDS, crd))[0] == 201
        await answered(api, THINGS, 200)
        head = {key: value for key, value in thing().items() if key != "spec"}
        assert (await ask(api, "POST", THINGS, head))[0] == 201
        body = {**head, "status": applied}
        answer = await ask(api, "PATCH", f"{THINGS}/a/status?fieldManager=m", body, APPLY)
        assert answer[0] == code, answer
        _, shown, _ = await ask(api, "GET", f"{THINGS}/a")
        assert shown.get("status", "nothing") == stored
        owners = {e["manager"]: e["fieldsV1"] for e in shown["metadata"].get("managedFields", ())}
        assert owners.get("m") == ({"f:status": {}} if code == 200 else None)

    run(story)


def test_a_field_that_becomes_null_is_a_new_generation() -> None:
    async def story(api: AssembledApi) -> None:
        await with_things(api, "v1")
        await ask(api, "POST", THINGS, thing())
        body = {**thing(), "extra": None}
        code, shown, _ = await ask(api, "PATCH", f"{THINGS}/a?fieldManager=m&force=true", body, APPLY)
        assert (code, shown["metadata"]["generation"]) == (200, 2)
        del shown["extra"]
        _, shown, _ = await ask(api, "PUT", f"{THINGS}/a", shown)
        assert shown["metadata"]["generation"] == 3

    run(story)
