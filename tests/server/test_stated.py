"""Kinds of one's own, served from a generated package: what their schemas state is kept, as it is for a CRD."""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.server.test_api import ask, run
from tests.tools.command import kubewright

from apimachinery.schema.unfolding import FREE, MAX_SCHEMAS, unfold
from apimachinery.server.assembly.api import AssembledApi
from apimachinery.server.catalog.options import ApiOptions

SPECS = Path(__file__).parents[2] / "specs"
SOURCES = {
    "messaging_api": "messaging/openapi.yaml",
    "flags_api": "flags/openapi.yaml",
    "backup_api": "backup/crds",
}
OPTIONS = ApiOptions(controllers=frozenset(), packages=("kubernetes_api", *SOURCES))
QUEUES = "/apis/messaging.kubewright.dev/v1/namespaces/default/queues"
SCHEDULES = "/apis/backup.kubewright.dev/v1/namespaces/default/backupschedules"
STORES = "/apis/backup.kubewright.dev/v1/backupstores"


def sample(file: str, name: str) -> dict[str, Any]:
    documents = yaml.load_all((SPECS / file).read_text(), yaml.CSafeLoader)
    found: dict[str, Any] = next(each for each in documents if each["metadata"]["name"] == name)
    found["metadata"].pop("namespace", None)
    return found


def samples() -> Iterator[dict[str, Any]]:
    for path in sorted(SPECS.glob("*/samples/*.yaml")):
        yield from yaml.load_all(path.read_text(), yaml.CSafeLoader)


async def place_of(api: AssembledApi, obj: dict[str, Any]) -> str:
    _, found, _ = await ask(api, "GET", f"/apis/{obj['apiVersion']}")
    resource = next(r for r in found["resources"] if r["kind"] == obj["kind"] and "/" not in r["name"])
    within = "namespaces/default/" if resource["namespaced"] else ""
    return f"/apis/{obj['apiVersion']}/{within}{resource['name']}"


def kept(sent: Any, found: Any) -> bool:
    """Whether all that was sent is there; nulls count as not sent."""
    if isinstance(sent, dict) and isinstance(found, dict):
        return all(kept(value, found.get(key)) for key, value in sent.items() if value is not None)
    if isinstance(sent, list) and isinstance(found, list) and len(sent) == len(found):
        return all(map(kept, sent, found))
    return bool(sent == found)


def test_every_sample_is_taken_whole() -> None:
    async def story(api: AssembledApi) -> None:
        for obj in samples():
            obj["metadata"].pop("namespace", None)
            code, made, headers = await ask(api, "POST", f"{await place_of(api, obj)}?dryRun=All", obj)
            assert code == 201, (obj["metadata"], made)
            assert "unknown field" not in headers.get("Warning", "")
            assert kept(obj["spec"], made["spec"]), (obj["spec"], made["spec"])

    run(story, OPTIONS)


def test_defaults_are_those_of_the_schema_and_then_the_declared_ones() -> None:
    async def story(api: AssembledApi) -> None:
        least = sample("messaging/samples/queues.yaml", "least")
        _, made, _ = await ask(api, "POST", QUEUES, least)
        spec = made["spec"]
        assert (spec["replicas"], spec["ports"]) == (
            1,
            [{"port": 5672, "protocol": "AMQP", "targetPort": 5672}],
        )
        assert spec["strategy"]["rolling"] == {"maxUnavailable": "25%", "maxSurge": 1}
        _, again, _ = await ask(api, "PUT", f"{QUEUES}/least", made)
        assert again["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]

    run(story, OPTIONS)


QUEUE = ("messaging/samples/queues.yaml", "orders", QUEUES)
SCHEDULE = ("backup/samples/backupschedule-v1.yaml", "nightly", SCHEDULES)
STORE = ("backup/samples/backupstores.yaml", "vault", STORES)
REFUSED: list[tuple[tuple[str, str, str], str, Any, str]] = [
    (QUEUE, "replicas", -1, "spec.replicas in body should be greater than or equal to 0"),
    (QUEUE, "ordering", "Sometimes", 'spec.ordering: Unsupported value: "Sometimes": supported values:'),
    (QUEUE, "capacity", "much", "spec.capacity in body should match"),
    (QUEUE, "brokers", ["b-1", "b-1"], 'spec.brokers[1]: Duplicate value: "b-1"'),
    (QUEUE, "replicas", "three", "spec.replicas in body must be of type integer"),
    (SCHEDULE, "stores", [], "spec.stores"),
    (STORE, "url", None, "spec.url: Required value"),
]


@pytest.mark.parametrize(("start", "field", "value", "message"), REFUSED)
def test_what_a_schema_forbids_is_refused(
    start: tuple[str, str, str], field: str, value: Any, message: str
) -> None:
    async def story(api: AssembledApi) -> None:
        file, name, path = start
        obj = sample(file, name)
        if value is None:
            del obj["spec"][field]
        else:
            obj["spec"][field] = value
        code, body, _ = await ask(api, "POST", path, obj)
        assert (code, message in body["message"]) == (422, True), body["message"]

    run(story, OPTIONS)


def test_rules_are_asked_on_creation_and_change() -> None:
    async def story(api: AssembledApi) -> None:
        obj = sample("backup/samples/backupstores.yaml", "vault")
        assert (await ask(api, "POST", STORES, obj))[0] == 201
        merge = {"content-type": "application/merge-patch+json"}
        code, body, _ = await ask(api, "PATCH", f"{STORES}/vault", {"spec": {"driver": "memory"}}, merge)
        assert (code, body["reason"]) == (422, "Invalid")
        assert body["details"]["causes"][0]["field"].startswith("spec")

    run(story, OPTIONS)


def test_a_status_is_held_against_its_schema() -> None:
    async def story(api: AssembledApi) -> None:
        await ask(api, "POST", QUEUES, sample("messaging/samples/queues.yaml", "orders"))
        merge = {"content-type": "application/merge-patch+json"}
        wrong = {"status": {"conditions": [{"type": "Ready"}]}}
        code, body, _ = await ask(api, "PATCH", f"{QUEUES}/orders/status", wrong, merge)
        assert code == 422
        assert "status.conditions[0].status: Required value" in body["message"]

    run(story, OPTIONS)


def meaning(schema: Any) -> Any:
    """A schema without words, and without what two ways of writing it differ in."""
    if isinstance(schema, list):
        return [meaning(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    ignored = ("description", "title", "x-kubernetes-unions", "x-kubernetes-group-version-kind")
    told = {
        key: meaning(value)
        for key, value in schema.items()
        if key not in ignored and not key.startswith("x-kubernetes-patch-")
    }
    if isinstance(told.get("required"), list):
        told["required"] = sorted(told["required"])
    if told.get("x-kubernetes-int-or-string"):
        told.pop("anyOf", None)
        told.pop("pattern", None)
    return told


@pytest.mark.parametrize("package", SOURCES)
def test_a_kind_means_the_same_as_the_definition_that_crd_makes_of_it(package: str) -> None:
    code, made, said = kubewright("crd", "-q", SPECS / SOURCES[package])
    assert code == 0, said
    folder = Path(str(importlib.import_module(package).__file__)).parent
    definitions = json.loads((folder / "definitions.json").read_text())
    definitions = definitions.get("definitions", definitions)
    modules = importlib.import_module(f"{package}.registry").GROUP_VERSIONS
    compared = 0
    for crd in yaml.load_all(made, yaml.CSafeLoader):
        spec = crd["spec"]
        for version in spec["versions"]:
            module = modules[spec["group"] + "/" + version["name"]]
            table = importlib.import_module(f"{package}.{module}.resources")
            definition = next(r.definition for r in table.RESOURCES if r.kind == spec["names"]["kind"])
            unfolded, stated = (
                meaning(unfold(definition, definitions)),
                meaning(version["schema"]["openAPIV3Schema"]),
            )
            assert (unfolded["properties"].pop("metadata"), stated["properties"].pop("metadata")) == (
                FREE,
                {"type": "object"},
            )
            assert unfolded == stated
            compared += 1
    assert compared


def test_a_type_within_itself_is_free_below() -> None:
    tree = {"type": "object", "properties": {"child": {"$ref": "#/definitions/Tree", "description": "below"}}}
    assert unfold("Tree", {"Tree": tree})["properties"] == {"child": {**FREE, "description": "below"}}


def test_a_schema_that_doubles_at_every_step_stays_small() -> None:
    link = "#/definitions/T{}"
    definitions: dict[str, Any] = {
        f"T{n}": {"properties": {side: {"$ref": link.format(n + 1)} for side in "ab"}} for n in range(60)
    }
    definitions["T60"] = {"type": "string"}
    assert len(json.dumps(unfold("T0", definitions))) < 100 * MAX_SCHEMAS
