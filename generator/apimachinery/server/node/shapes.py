"""Simulated nodes as they register: names, labels, zones, taints, capacity."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Final

from apimachinery.kinds.hooks import Json
from apimachinery.meta.release import RELEASE

CAPACITY: Final = {"cpu": "64", "memory": "256Gi", "pods": "10000", "ephemeral-storage": "1Ti"}
ZONE, REGION = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
ZONES: Final = ("zone-a", "zone-b", "zone-c")


@dataclass(frozen=True, slots=True)
class NodeShape:
    """A node: ``labels`` and ``taints`` are those that it registers with; others may change them later."""

    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Json, ...] = ()
    capacity: Mapping[str, str] = field(default_factory=lambda: dict(CAPACITY))
    number: int = 0

    @property
    def zone(self) -> str:
        """Where it is; empty for nowhere in particular."""
        return self.labels.get(ZONE, "")

    @property
    def address(self) -> str:
        """Its address; that of the machine where it is the only one."""
        return f"10.200.{self.number // 250}.{self.number % 250 + 1}" if self.number else "127.0.0.1"

    def registered(self) -> Json:
        """The Node that it makes."""
        labels = {
            "kubernetes.io/hostname": self.name,
            "kubernetes.io/os": "linux",
            "kubernetes.io/arch": "amd64",
            "beta.kubernetes.io/os": "linux",
            "beta.kubernetes.io/arch": "amd64",
            "type": "simulated",
            **self.labels,
        }
        node: Json = {"kind": "Node", "apiVersion": "v1", "metadata": {"name": self.name, "labels": labels}}
        if self.taints:
            node["spec"] = {"taints": deepcopy(list(self.taints))}
        return node


NODE_INFO: Final = {
    "machineID": "simulated",
    "systemUUID": "simulated",
    "bootID": "simulated",
    "kernelVersion": "6.1.0",
    "osImage": "Simulated by Kubewright",
    "containerRuntimeVersion": "simulated://1.0",
    "kubeletVersion": f"v{RELEASE}.0",
    "kubeProxyVersion": "",
    "operatingSystem": "linux",
    "architecture": "amd64",
}


class TemplateError(ValueError):
    """A template for nodes that cannot be one; the text names the place and the offender."""


def shapes(name: str, count: int, template: Json | None = None) -> tuple[NodeShape, ...]:
    """So many nodes: one is called ``name``, several ``NAME-1`` and so on, in three zones. A template is a Node, whose
    labels, taints and capacity they have. Raises TemplateError."""
    labels, taints, capacity = _read(template or {})
    if count == 1:
        return (NodeShape(name, labels, taints, capacity),)
    return tuple(
        NodeShape(
            f"{name}-{number}",
            {ZONE: ZONES[(number - 1) % 3], REGION: "region-1", **labels},
            taints,
            capacity,
            number,
        )
        for number in range(1, count + 1)
    )


def _read(template: Json) -> tuple[dict[str, str], tuple[Json, ...], dict[str, str]]:
    if template.get("kind", "Node") != "Node":
        raise TemplateError(f"kind: {template['kind']!r} is no Node")
    parts = {key: template.get(key) or {} for key in ("metadata", "spec", "status")}
    if wrong := next((key for key, value in parts.items() if not isinstance(value, dict)), None):
        raise TemplateError(f"{wrong}: {parts[wrong]!r} is no mapping")
    labels, taints = parts["metadata"].get("labels") or {}, parts["spec"].get("taints") or []
    capacity = parts["status"].get("capacity") or parts["status"].get("allocatable") or {}
    for path, value, kind in (
        ("metadata.labels", labels, dict),
        ("spec.taints", taints, list),
        ("status.capacity", capacity, dict),
    ):
        if not isinstance(value, kind):
            raise TemplateError(f"{path}: {value!r} is no {'list' if kind is list else 'mapping'}")
    amounts = {str(key): str(value) for key, value in capacity.items()}
    return {str(key): str(value) for key, value in labels.items()}, tuple(taints), {**CAPACITY, **amounts}
