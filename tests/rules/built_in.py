"""The write path of a built-in kind as far as it needs no server: typed form, defaults, admission, strategy."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

from apimachinery.access.control import OPEN_TO_LOOPBACK, Access
from apimachinery.kinds.core import services
from apimachinery.meta.errors import ApiError
from apimachinery.meta.strategies import Strategy
from apimachinery.schema.typed_form import compile_typed_form
from apimachinery.server.admission.interface import Operation
from apimachinery.server.admission.order import PluginsInOrder
from apimachinery.server.admission.plugins import DEFAULT, Around, make_plugins
from apimachinery.server.catalog.catalog import Catalog
from apimachinery.storage.memory import MemoryStorage
from apimachinery.storage.watch_cache import WatchCache
from kubernetes_api.registry import GROUP_VERSIONS
from kubernetes_api.zero_values import ZERO_VALUES

Json = dict[str, Any]
ROOT = Path(__file__).parents[2]
SHARED = ROOT / "../shared"
DEFINITIONS = json.loads((ROOT / "generated/kubernetes_api/definitions.json").read_bytes())


@cache
def generated(api_version: str, module: str) -> ModuleType | None:
    """A generated module of a group-version, or ``None`` where there was nothing to generate."""
    try:
        return import_module(f"kubernetes_api.{GROUP_VERSIONS[api_version]}.{module}")
    except ModuleNotFoundError:
        return None


@cache
def typed_form(api_version: str, kind: str) -> Callable[[Json], None]:
    """The typed form of a kind."""
    group, _, version = api_version.rpartition("/")
    wanted = {"group": group, "version": version, "kind": kind}
    name = next(
        name
        for name, schema in DEFINITIONS.items()
        if schema.get("x-kubernetes-group-version-kind") == [wanted]
    )
    return compile_typed_form(name, DEFINITIONS, ZERO_VALUES)


def default(obj: Json) -> Json:
    """Brings ``obj`` into typed form and defaults it, in place."""
    typed_form(obj["apiVersion"], obj["kind"])(obj)
    module = generated(obj["apiVersion"], "defaults")
    if module and (defaulter := module.DEFAULTERS.get(obj["kind"])):
        defaulter(obj)
    return obj


def strategy(obj: Json) -> Strategy:
    """The strategy of an object's kind."""
    module = generated(obj["apiVersion"], "strategies")
    found = module.STRATEGIES.get(obj["kind"]) if module else None
    return found if isinstance(found, Strategy) else Strategy()


@cache
def admission() -> PluginsInOrder:
    """The plugins that are on by default, where nothing is stored, less those that look at a namespace or call out."""
    cache = WatchCache(MemoryStorage())
    elsewhere = {"MutatingAdmissionWebhook", "ValidatingAdmissionWebhook"}
    names = DEFAULT - {"MutatingAdmissionPolicy", "NamespaceLifecycle", "ServiceAccount"} - elsewhere
    around = Around(Catalog(), cache, Access(OPEN_TO_LOOPBACK, cache), calls=None)  # type: ignore[arg-type]
    return PluginsInOrder(make_plugins(names, around))


def admitted(obj: Json) -> None:
    """Adds what built-in admission plugins add."""
    resources = generated(obj["apiVersion"], "resources")
    for resource in resources.RESOURCES if resources else ():
        if resource.kind == obj["kind"]:
            served = SimpleNamespace(group=resource.group, plural=resource.plural)
            target = SimpleNamespace(served=served, subresource="", namespace="", user=None)
            with suppress(ApiError):  # what a plugin refuses keeps what the others made of it
                for asked in admission().admit(Operation("CREATE", target, obj, None, "")):  # type: ignore[arg-type]
                    raise AssertionError(f"a built-in plugin waits: {asked}")


def create(
    obj: Json, namespace: str = "", uid: str = "00000000-0000-0000-0000-000000000000", whole: bool = False
) -> Json:
    """What a create stores, less what needs a server (times, addresses, other objects): if ``whole``, the uid that is
    in a job's labels and a service's port for health checks are made up."""
    default(obj)
    facts = strategy(obj)
    if facts.admit:
        facts.admit(obj)
    admitted(obj)
    metadata = obj["metadata"]
    metadata["uid"] = uid
    if namespace:
        metadata["namespace"] = namespace
    if facts.generation is not None:
        metadata["generation"] = 1
    if facts.status is not None and not facts.keeps_status_on_create:
        obj["status"] = json.loads(json.dumps(facts.status))
    if facts.prepare_create:
        facts.prepare_create(obj)
    if not (whole and obj["kind"] == "Job"):
        del metadata["uid"]
    if whole and obj["kind"] == "Service" and services.needs_health_check(obj["spec"]):
        obj["spec"].setdefault("healthCheckNodePort", 30000)
    return obj
