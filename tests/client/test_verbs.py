"""Every verb of every kind of resource, against our own server: typed, sync and async, built-in and of the examples."""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from tests.client.awaited import Api, close, take, take_until

from apimachinery.client.access import name_of, uid_of
from apimachinery.client.calls import PatchType
from apimachinery.client.config import Config
from apimachinery.client.errors import (
    AlreadyExists,
    ApplyConflict,
    Conflict,
    FieldConflict,
    Invalid,
    NotFound,
)

SPECS = Path(__file__).parents[2] / "specs"
HELD_BACK = {"core_v1.namespaces", "core_v1.persistentvolumeclaims"}
"""Kinds whose objects finalizers hold until the server's controllers let them go."""
TEMPLATE: dict[str, Any] = {
    "metadata": {"labels": {"a": "b"}},
    "spec": {"containers": [{"name": "c", "image": "i"}]},
}
BUILT_IN: dict[str, dict[str, Any]] = {
    "core_v1.configmaps": {"data": {"a": "1"}},
    "core_v1.secrets": {"stringData": {"a": "1"}},
    "core_v1.pods": {"spec": TEMPLATE["spec"]},
    "core_v1.services": {"spec": {"ports": [{"port": 80}], "selector": {"a": "b"}}},
    "core_v1.serviceaccounts": {},
    "core_v1.persistentvolumeclaims": {
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    },
    "core_v1.nodes": {},
    "core_v1.namespaces": {},
    "apps_v1.deployments": {"spec": {"selector": {"matchLabels": {"a": "b"}}, "template": TEMPLATE}},
    "apps_v1.statefulsets": {
        "spec": {"serviceName": "s", "selector": {"matchLabels": {"a": "b"}}, "template": TEMPLATE}
    },
    "batch_v1.cronjobs": {
        "spec": {
            "schedule": "0 * * * *",
            "jobTemplate": {"spec": {"template": {"spec": {**TEMPLATE["spec"], "restartPolicy": "Never"}}}},
        }
    },
    "networking_v1.networkpolicies": {"spec": {"podSelector": {}}},
    "policy_v1.poddisruptionbudgets": {"spec": {"minAvailable": 1}},
    "rbac_v1.roles": {"rules": [{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}]},
    "rbac_v1.clusterroles": {"rules": [{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}]},
    "coordination_v1.leases": {"spec": {"holderIdentity": "me"}},
    "storage_v1.storageclasses": {"provisioner": "example.com/none"},
    "scheduling_v1.priorityclasses": {"value": 10},
}


def samples() -> dict[str, tuple[str, dict[str, Any]]]:
    """Of every kind one object: what package serves it, and what to send."""
    found: dict[str, tuple[str, dict[str, Any]]] = {
        path: ("kubernetes_api", body) for path, body in BUILT_IN.items()
    }
    for group in ("backup", "flags", "messaging"):
        for file in sorted((SPECS / group / "samples").glob("*.yaml")):
            for document in yaml.load_all(file.read_text(), yaml.CSafeLoader):
                version = document["apiVersion"].rpartition("/")[2]
                resources = importlib.import_module(f"{group}_api.{group}_{version}.resources").RESOURCES
                plural = next(r.plural for r in resources if r.kind == document["kind"])
                path = f"{group}_{version}.{plural}"
                found.setdefault(path, (f"{group}_api", document))
    return found


SAMPLES = samples()


def open_client(package: str, mode: str, config: Config) -> Any:
    if mode == "async":
        return importlib.import_module(f"{package}.async_client").AsyncClient(config)
    return importlib.import_module(f"{package}.client").Client(config)


def api_of(client: Any, path: str) -> Any:
    for name in path.split("."):
        client = getattr(client, name)
    return client


def tell(package: str, mode: str, config: Config, path: str, story: Callable[[Api, Any], Any]) -> None:
    """Runs a story with the resource client at ``path``."""

    async def run() -> None:
        client = open_client(package, mode, config)
        try:
            resource = api_of(client, path)
            await story(Api(resource), resource)
        finally:
            await close(client)

    asyncio.run(run())


@pytest.mark.parametrize("mode", ["sync", "async"])
@pytest.mark.parametrize("path", SAMPLES)
def test_every_verb(path: str, mode: str, config: Config, namespace: str) -> None:
    package, body = SAMPLES[path]
    held_back = path in HELD_BACK

    async def story(api: Api, resource: Any) -> None:
        model = resource.MODEL
        name = f"{namespace}-{mode}"

        def made(name: str, **labels: str) -> Any:
            metadata = {"name": name, "labels": {"story": namespace, "mode": mode, **labels}}
            rest = {k: v for k, v in body.items() if k not in ("metadata", "status")}
            return msgspec.convert({**rest, "metadata": metadata}, model)

        wanted = {"label_selector": f"story={namespace},mode={mode}"}
        created = await api.create(made(name), field_manager="maker")
        assert type(created) is model
        assert (name_of(created), bool(uid_of(created))) == (name, True)
        with pytest.raises(AlreadyExists):
            await api.create(made(name))
        assert await api.get(name) == created
        await api.create(made(f"{name}-dry"), dry_run=True)
        with pytest.raises(NotFound) as missing:
            await api.get(f"{name}-dry")
        assert missing.value.name == f"{name}-dry"

        read = await api.get(name)
        read.metadata.annotations = {"one": "1"}
        replaced = await api.replace(read)
        assert replaced.metadata.annotations["one"] == "1"
        with pytest.raises(Conflict):
            await api.replace(read)

        patched = await api.patch(
            name, [{"op": "add", "path": "/metadata/labels/json", "value": "x"}], PatchType.JSON
        )
        assert patched.metadata.labels["json"] == "x"
        patched = await api.patch(name, {"metadata": {"labels": {"json": None, "merge": "x"}}})
        assert "json" not in patched.metadata.labels
        assert patched.metadata.labels["merge"] == "x"
        strategic = api.patch(name, {"metadata": {"labels": {"strategic": "x"}}}, PatchType.STRATEGIC)
        if package in ("kubernetes_api", "messaging_api", "flags_api"):
            assert (await strategic).metadata.labels["strategic"] == "x"
        else:
            await strategic

        identity = {"apiVersion": model.API_VERSION, "kind": model.KIND}
        configuration = {**identity, "metadata": {"name": name, "annotations": {"applied": "1"}}}
        applied = await api.apply(configuration, field_manager="applier")
        assert applied.metadata.annotations == {"one": "1", "applied": "1"}
        configuration["metadata"] = {"name": name, "annotations": {"applied": "2"}}
        with pytest.raises(ApplyConflict) as refused:
            await api.apply(configuration, field_manager="rival")
        assert refused.value.conflicts == (
            FieldConflict("applier", ".metadata.annotations.applied", operation="Apply"),
        )
        forced = await api.apply(configuration, field_manager="rival", force=True)
        assert forced.metadata.annotations["applied"] == "2"

        others = [await api.create(made(f"{name}-{n}", extra="yes")) for n in range(4)]
        found = [name_of(item) async for item in api.list(**wanted, limit=2)]
        assert found == [name, *(f"{name}-{n}" for n in range(4))]
        page = await api.list(**wanted, limit=2).page()
        assert (len(page.items), bool(page.next_token)) == (2, True)
        rest = await api.list(**wanted, limit=0).page()
        assert (len(rest.items), rest.next_token) == (5, "")

        watch = await api.watch(resource_version=page.resource_version, **wanted)
        await api.patch(name, {"metadata": {"annotations": {"seen": "1"}}})
        staying = await api.delete(name_of(others[0]), grace_period_seconds=0)
        wanted_events = ["MODIFIED", "MODIFIED" if held_back else "DELETED"]
        if path == "core_v1.pods":  # which are marked before they go
            wanted_events.insert(1, "MODIFIED")
        events = await take(watch, len(wanted_events))
        assert [event.type for event in events] == wanted_events
        if held_back:
            assert staying.metadata.deletion_timestamp
        assert all(type(event.object) is model for event in events)
        initial = await api.watch(**wanted, initial_events=True)
        # A namespace that is being deleted may be gone by now, or not yet.
        state = await take_until(initial, "BOOKMARK")
        assert [event.type for event in state] == ["ADDED"] * (len(state) - 1) + ["BOOKMARK"]
        assert len(state) - 1 in ((4, 5) if held_back else (4,))
        assert state[-1].initial_events_end

        if hasattr(resource, "replace_status"):
            before = await api.get_status(name)
            assert (
                await api.replace_status(before) == before
            )  # at the same resourceVersion: nothing was written
            same = await api.patch_status(name, {"metadata": {"annotations": {"status": "1"}}})
            assert type(same) is model
        if hasattr(resource, "scale"):
            assert (await api.get_scale(name)).metadata["name"] == name
            scaled = await api.scale(name, 3)
            assert scaled.spec.replicas == 3
            scaled.spec.replicas = 4
            assert (await api.replace_scale(name, scaled)).spec.replicas == 4

        stranger = {"uid": "11111111-1111-1111-1111-111111111111"}
        with pytest.raises(Conflict):
            await api.delete(name, **stranger)
        await api.delete(name, grace_period_seconds=0, propagation_policy="Background")
        if hasattr(resource, "delete_collection"):
            await api.delete_collection(
                label_selector=f"{wanted['label_selector']},extra=yes", grace_period_seconds=0
            )
        if not held_back:
            assert [name_of(item) async for item in api.list(**wanted)] == []

    tell(package, mode, config, path, story)


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_what_is_wrong_with_each_field_is_data(mode: str, config: Config) -> None:
    async def story(api: Api, resource: Any) -> None:
        bad = msgspec.convert(
            {
                "metadata": {"name": "Bad_Name"},
                "spec": {
                    "replicas": -1,
                    "selector": {"matchLabels": {"a": "b"}},
                    "template": TEMPLATE,
                },
            },
            resource.MODEL,
        )
        with pytest.raises(Invalid) as refused:
            await api.create(bad)
        assert {cause.field for cause in refused.value.causes} == {"metadata.name", "spec.replicas"}

    tell("kubernetes_api", mode, config, "apps_v1.deployments", story)
