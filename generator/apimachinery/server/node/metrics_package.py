"""What metrics.k8s.io/v1beta1 is: its resources and definitions, as metrics-server serves them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from apimachinery.meta.json import Json
from apimachinery.meta.resources import Group, PrinterColumn, Resource
from apimachinery.server.catalog.served_package import ServedPackage
from apimachinery.wire.json import encode

if TYPE_CHECKING:
    from apimachinery.wire.protobuf import Messages

GROUP, VERSION = "metrics.k8s.io", "v1beta1"
PODS, NODES = (GROUP, VERSION, "pods"), (GROUP, VERSION, "nodes")
PRIORITY = 100
_OWN = "io.k8s.metrics.pkg.apis.metrics.v1beta1."
_META = "io.k8s.apimachinery.pkg.apis.meta.v1."
_QUANTITY = "io.k8s.apimachinery.pkg.api.resource.Quantity"
_COLUMNS = (
    PrinterColumn(name="Name", type="string", format="name", description="Name of the resource"),
    PrinterColumn(name="cpu", type="string", format="quantity"),
    PrinterColumn(name="memory", type="string", format="quantity"),
    PrinterColumn(name="Window", type="string", format="duration"),
)


def _resource(plural: str, kind: str, *, namespaced: bool) -> Resource:
    return Resource(
        group=GROUP,
        version=VERSION,
        kind=kind,
        plural=plural,
        singular="",
        namespaced=namespaced,
        verbs=("get", "list"),
        definition=_OWN + kind,
        list_kind=f"{kind}List",
        printer_columns=_COLUMNS,
    )


RESOURCES = (
    _resource("nodes", "NodeMetrics", namespaced=False),
    _resource("pods", "PodMetrics", namespaced=True),
)


def _ref(name: str) -> Json:
    return {"$ref": f"#/definitions/{name}"}


_TEXT: Json = {"type": "string"}
_USAGE: Json = {
    "type": "object",
    "description": "How much is used of each resource.",
    "additionalProperties": _ref(_QUANTITY),
}
_MEASURED: Json = {
    "apiVersion": _TEXT,
    "kind": _TEXT,
    "metadata": _ref(f"{_META}ObjectMeta"),
    "timestamp": {**_ref(f"{_META}Time"), "description": "The end of the time that was measured."},
    "window": {**_ref(f"{_META}Duration"), "description": "How long was measured."},
}


def _kind(kind: str, properties: Json, required: list[str]) -> Json:
    gvk = {"group": GROUP, "version": VERSION, "kind": kind}
    return {
        "type": "object",
        "properties": properties,
        "required": required,
        "x-kubernetes-group-version-kind": [gvk],
    }


def _list(kind: str) -> Json:
    items = {"type": "array", "items": _ref(_OWN + kind)}
    metadata = _ref(f"{_META}ListMeta")
    properties = {"apiVersion": _TEXT, "kind": _TEXT, "metadata": metadata, "items": items}
    return _kind(f"{kind}List", properties, ["items"])


_CONTAINERS = {"type": "array", "items": _ref(f"{_OWN}ContainerMetrics")}
DEFINITIONS: dict[str, Json] = {
    f"{_META}Duration": {"type": "string", "description": "A duration as Go writes it."},
    f"{_OWN}ContainerMetrics": {
        "type": "object",
        "description": "What a container uses.",
        "properties": {"name": _TEXT, "usage": _USAGE},
        "required": ["name", "usage"],
    },
    f"{_OWN}NodeMetrics": _kind(
        "NodeMetrics", {**_MEASURED, "usage": _USAGE}, ["timestamp", "window", "usage"]
    ),
    f"{_OWN}NodeMetricsList": _list("NodeMetrics"),
    f"{_OWN}PodMetrics": _kind(
        "PodMetrics", {**_MEASURED, "containers": _CONTAINERS}, ["timestamp", "window", "containers"]
    ),
    f"{_OWN}PodMetricsList": _list("PodMetrics"),
}
_LIST_NUMBERS = {"metadata": 1, "items": 2}
FIELD_NUMBERS: dict[str, dict[str, Any]] = {
    f"{_OWN}ContainerMetrics": {"name": 1, "usage": 2},
    f"{_OWN}NodeMetrics": {"metadata": 1, "timestamp": 2, "window": 3, "usage": 4},
    f"{_OWN}NodeMetricsList": _LIST_NUMBERS,
    f"{_OWN}PodMetrics": {"metadata": 1, "timestamp": 2, "window": 3, "containers": 4},
    f"{_OWN}PodMetricsList": _LIST_NUMBERS,
}
_REFERENCE = re.compile(rb'"#/definitions/([^"]+)"')


class MetricsPackage(ServedPackage):
    """The package of metrics.k8s.io. What it shares with other groups is defined as in ``core``, which has pods."""

    def __init__(self, core: ServedPackage) -> None:
        super().__init__(core.name)
        self._core = core
        self.groups = (Group(name=GROUP, versions=(VERSION,), priority=PRIORITY),)
        self._modules = {}

    @cached_property
    def definitions(self) -> Mapping[str, Any]:
        found, due = dict(DEFINITIONS), [*DEFINITIONS]
        while due:
            for target in _REFERENCE.findall(encode(found[due.pop()])):
                name = target.decode()
                if name not in found:
                    found[name] = self._core.definitions[name]
                    due.append(name)
        return found

    def resources(self) -> Sequence[Resource]:
        return RESOURCES

    def messages(self) -> Messages | None:
        module = self._core.module("protobuf")
        if module is None:
            return None
        from apimachinery.wire.protobuf import Messages

        shared = {
            name: module.FIELD_NUMBERS[name] for name in self.definitions if name in module.FIELD_NUMBERS
        }
        return Messages(self.definitions, {**shared, **FIELD_NUMBERS})

    def module(self, path: str) -> Any:
        """None: everything is here."""
        return None
