"""The kinds that conversations are about: built-in ones from ``kinds.yaml``, and a few CRDs of this project's own."""

from __future__ import annotations

import copy
import functools
import importlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from tests.differential.draw.words import Dice, merged, metadata


@dataclass(frozen=True)
class Kind:
    """A resource and an object of it that every server takes."""

    path: str
    plural: str
    kind: str
    api_version: str
    body: dict[str, Any]
    more: list[dict[str, Any]] = field(default_factory=list)
    cluster: bool = False
    sub: tuple[str, ...] = ()
    name: str = ""
    crd: dict[str, Any] | None = None

    def collection(self, namespace: str = "{ns}") -> str:
        """The URL of the objects, in one namespace where it has them."""
        within = "" if self.cluster else f"/namespaces/{namespace}"
        return f"{self.path}{within}/{self.plural}"

    def named(self, name: str) -> str:
        """The name in a conversation; objects without a namespace are kept apart by it."""
        return f"{name}-{{own}}" if self.cluster and not self.name else self.name or name

    def item(self, name: str, namespace: str = "{ns}") -> str:
        """The URL of an object."""
        return f"{self.collection(namespace)}/{self.named(name)}"

    def make(self, dice: Dice, name: str, wrong: float = 0.0) -> dict[str, Any]:
        """A manifest; with ``wrong`` some of the metadata may be bad."""
        body: Any = {
            "apiVersion": self.api_version,
            "kind": self.kind,
            "metadata": metadata(dice, self.named(name), wrong),
        }
        body = merged(body, self.body)
        for more in dice.some(self.more, 0, 2):
            body = merged(body, more)
        return dict(body)


def _read() -> list[Kind]:
    text = (Path(__file__).parent / "kinds.yaml").read_text()
    return [
        Kind(
            each["path"], each["plural"], each["kind"], each["apiVersion"], each.get("body", {}), each.get("more", []),
            each.get("cluster", False), tuple(each.get("sub", ())), each.get("name", ""),
        )
        for each in yaml.load(text, yaml.CSafeLoader)
    ]  # fmt: skip


BUILTIN = _read()


@functools.cache
def _resources() -> dict[tuple[str, str], Kind]:
    """Every built-in kind with the path of its resource, whether or not a server serves it."""
    from kubernetes_api.registry import GROUP_VERSIONS

    found = {}
    for api_version, module in GROUP_VERSIONS.items():
        try:
            resources = importlib.import_module(f"kubernetes_api.{module}.resources").RESOURCES
        except ModuleNotFoundError:
            continue
        for each in resources:
            if "create" in each.verbs and "get" in each.verbs:
                path = f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
                sub = tuple(sub.name for sub in each.subresources if "get" in sub.verbs)
                found[api_version, each.kind] = Kind(
                    path, each.plural, each.kind, api_version, {}, cluster=not each.namespaced, sub=sub
                )
    return found


def served(api_version: str, kind: str) -> Kind | None:
    """A built-in kind, without a body of its own."""
    return _resources().get((api_version, kind))


BY_KIND = {kind.kind: kind for kind in BUILTIN}


def crd(
    plural: str,
    kind: str,
    group: str,
    versions: list[dict[str, Any]],
    *,
    scope: str = "Namespaced",
    **names: Any,
) -> dict[str, Any]:
    """A CRD whose group is ``group`` in this run."""
    full = f"{group}-{{run}}.example.com"
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{full}"},
        "spec": {
            "group": full,
            "scope": scope,
            "names": {
                "plural": plural,
                "singular": kind.lower(),
                "kind": kind,
                "listKind": f"{kind}List",
                **names,
            },
            "versions": versions,
        },
    }


def version(name: str, schema: dict[str, Any], *, storage: bool = True, **more: Any) -> dict[str, Any]:
    """A version of a CRD."""
    return {"name": name, "served": True, "storage": storage, "schema": {"openAPIV3Schema": schema}, **more}


def custom(
    definition: dict[str, Any], body: dict[str, Any], more: list[dict[str, Any]], which: int = 0
) -> Kind:
    """The kind that a version of a CRD serves."""
    spec = definition["spec"]
    served = spec["versions"][which]
    return Kind(
        f"/apis/{spec['group']}/{served['name']}", spec["names"]["plural"], spec["names"]["kind"], f"{spec['group']}/{served['name']}",
        body, more, spec["scope"] == "Cluster", tuple(served.get("subresources", ())), "", definition,
    )  # fmt: skip


_WIDGET = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "properties": {
                "size": {"type": "integer", "default": 1, "minimum": 0, "maximum": 100},
                "color": {"type": "string", "enum": ["red", "green", "blue"]},
                "ratio": {"type": "number"},
                "on": {"type": "boolean"},
                "since": {"type": "string", "format": "date-time"},
                "replicas": {"type": "integer", "format": "int32"},
                "selector": {"type": "string"},
                "port": {"x-kubernetes-int-or-string": True},
                "tags": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
                "plain": {"type": "array", "items": {"type": "integer"}},
                "atoms": {
                    "type": "object",
                    "additionalProperties": {"type": "string"},
                    "x-kubernetes-map-type": "atomic",
                },
                "notes": {"type": "object", "additionalProperties": {"type": "string"}},
                "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                "maybe": {"type": "string", "nullable": True},
                "parts": {
                    "type": "array",
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["name"],
                    "items": {
                        "type": "object",
                        "required": ["name"],
                        "properties": {
                            "name": {"type": "string"},
                            "weight": {"type": "integer", "default": 5},
                            "labels": {"type": "object", "additionalProperties": {"type": "string"}},
                        },
                    },
                },
                "ports": {
                    "type": "array",
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["port", "protocol"],
                    "items": {
                        "type": "object",
                        "required": ["port"],
                        "properties": {
                            "port": {"type": "integer"},
                            "protocol": {"type": "string", "default": "TCP"},
                            "name": {"type": "string"},
                        },
                    },
                },
            },
        },
        "status": {
            "type": "object",
            "properties": {
                "phase": {"type": "string"},
                "replicas": {"type": "integer"},
                "selector": {"type": "string"},
                "conditions": {
                    "type": "array",
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["type"],
                    "items": {
                        "type": "object",
                        "required": ["type"],
                        "properties": {"type": {"type": "string"}, "status": {"type": "string"}},
                    },
                },
            },
        },
    },
}
_COLUMNS = [
    {"name": "Size", "type": "integer", "jsonPath": ".spec.size"},
    {"name": "Color", "type": "string", "jsonPath": ".spec.color", "priority": 1, "description": "its color"},
    {"name": "Ratio", "type": "number", "jsonPath": ".spec.ratio"},
    {"name": "On", "type": "boolean", "jsonPath": ".spec.on"},
    {"name": "Since", "type": "date", "jsonPath": ".spec.since"},
    {"name": "Tags", "type": "string", "jsonPath": ".spec.tags"},
    {"name": "Parts", "type": "string", "jsonPath": ".spec.parts[*].name"},
    {"name": "Free", "type": "string", "jsonPath": ".spec.free"},
    {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
]
WIDGETS = crd(
    "widgets", "Widget", "dw",
    [
        version(
            "v1", _WIDGET, additionalPrinterColumns=_COLUMNS, selectableFields=[{"jsonPath": ".spec.color"}, {"jsonPath": ".spec.size"}, {"jsonPath": ".spec.on"}],
            subresources={"status": {}, "scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas", "labelSelectorPath": ".status.selector"}},
        ),
        # A schema of its own: fields to select by may differ between versions only where their schemas do.
        version("v1beta1", {**copy.deepcopy(_WIDGET), "description": "as it was"}, storage=False, deprecated=True),
    ],
    shortNames=["wi"], categories=["all"],
)  # fmt: skip
GIZMOS = crd(
    "gizmos",
    "Gizmo",
    "dg",
    [version("v1", {"type": "object", "x-kubernetes-preserve-unknown-fields": True})],
    scope="Cluster",
)
_WIDGET_BODY = {"spec": {"size": 3}}
_WIDGET_MORE: list[dict[str, Any]] = [
    {"spec": {"color": "red", "on": True}}, {"spec": {"color": "blue", "tags": ["x", "y"]}}, {"spec": {"parts": [{"name": "p"}, {"name": "q", "weight": 1}]}},
    {"spec": {"ports": [{"port": 80}, {"port": 80, "protocol": "UDP"}]}}, {"spec": {"atoms": {"k": "v"}, "notes": {"n": "m"}}}, {"spec": {"free": {"any": [1, {"b": None}]}}},
    {"spec": {"ratio": 1.5, "port": "80%"}}, {"spec": {"replicas": 2, "selector": "a=b"}}, {"spec": {"maybe": None, "plain": [1, 2]}}, {"spec": {"since": "2024-01-02T03:04:05Z"}},
    {"status": {"phase": "new"}}, {"spec": {"unknown": 1}},
]  # fmt: skip
CUSTOM = [
    custom(WIDGETS, _WIDGET_BODY, _WIDGET_MORE),
    custom(WIDGETS, _WIDGET_BODY, _WIDGET_MORE[:6], 1),
    custom(GIZMOS, {"spec": {"a": 1}}, [{"spec": {"b": [1, {"c": None}]}}, {"other": "x"}]),
]
COMMON = [
    BY_KIND[name]
    for name in (
        "ConfigMap",
        "Secret",
        "Deployment",
        "Service",
        "Lease",
        "Pod",
        "ServiceAccount",
        "Role",
        "Job",
    )
]


def any_kind(dice: Dice, *, custom_share: float = 0.35, cluster: bool = True) -> Kind:
    """A kind, the common ones more often."""
    while True:
        roll = dice.random()
        if roll < custom_share:
            kind = dice.one(CUSTOM)
        elif roll < custom_share + 0.35:
            kind = dice.one(COMMON)
        else:
            kind = dice.one(BUILTIN)
        if cluster or not kind.cluster:
            return kind
