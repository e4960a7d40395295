"""What a node needs: the objects that pods bound to it refer to, directly or by way of a claim and its volume.

    secret, configmap, serviceaccount, persistentvolumeclaim, resourceclaim   named by a pod of the node
    persistentvolume                                                          bound to a claim of such a pod
    secret                                                                    named by such a volume
    pod, volumeattachment, resourceslice                                      whose ``nodeName`` is the node

Only which pods are on which node is kept up to date; what a pod refers to is read when somebody asks, and kept with its
record. A mirror pod (one that the node itself made up) is its own, and refers to nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from apimachinery.storage.interface import Event, Record
from apimachinery.storage.watch_cache import WatchCache
from apimachinery.wire.json import decode

PODS = "/core/pods/"
CLAIMS = "/core/persistentvolumeclaims/"
VOLUMES = "/core/persistentvolumes/"
_OF_NODE = {
    "volumeattachments": "/storage.k8s.io/volumeattachments/",
    "resourceslices": "/resource.k8s.io/resourceslices/",
}
MIRROR = "kubernetes.io/config.mirror"
Reference = tuple[str, str]
"""A resource and a name in the namespace of the pod."""
_MEMO = "node-references"


class _Spec(msgspec.Struct):
    nodeName: str = ""  # noqa: N815


class _Object(msgspec.Struct):
    spec: _Spec = msgspec.field(default_factory=_Spec)


_read = msgspec.json.Decoder(_Object).decode


class NodeRelations:
    """Follows the pods of a storage."""

    def __init__(self, cache: WatchCache) -> None:
        self._cache = cache
        self._pods = cache.resource(PODS)
        self._nodes: dict[str, set[str]] = {}
        self._node_of: dict[str, str] = {}
        # No event is missed in between: both steps run on the loop without a wait.
        for record in self._pods.snapshot(PODS).records:
            self._place(record.key, _read(record.value).spec.nodeName)
        self._pods.listen(PODS, self._heard)

    def _heard(self, event: Event) -> None:
        self._place(event.record.key, "" if event.deleted else _read(event.record.value).spec.nodeName)

    # A pod moves only from no node to one, but a deleted and recreated one may be elsewhere.
    def _place(self, key: str, node: str) -> None:
        old = self._node_of.pop(key, "")
        if old:
            self._nodes[old].discard(key)
            if not self._nodes[old]:
                del self._nodes[old]
        if node:
            self._nodes.setdefault(node, set()).add(key)
            self._node_of[key] = node

    def related(self, node: str, resource: str, namespace: str, name: str) -> bool:
        """Whether a node has to do with an object."""
        if resource == "pods":
            return self._node_of.get(f"{PODS}{namespace}/{name}") == node
        if resource in _OF_NODE:
            prefix = _OF_NODE[resource]
            record = self._cache.resource(prefix).get(prefix + name)
            return record is not None and _read(record.value).spec.nodeName == node
        if resource == "persistentvolumes":
            return any(volume == name for volume, _ in self._volumes(node))
        if any((resource, name) in references for references in self._references(node, namespace)):
            return True
        return resource == "secrets" and any(
            (namespace, name) in secrets for _, secrets in self._volumes(node)
        )

    def _references(self, node: str, namespace: str) -> Iterator[frozenset[Reference]]:
        """What pods of a node refer to in a namespace."""
        start = f"{PODS}{namespace}/"
        for key in self._nodes.get(node, ()):
            record = self._pods.get(key) if key.startswith(start) else None
            if record is not None:
                yield references_of(record)

    def _volumes(self, node: str) -> Iterator[tuple[str, frozenset[tuple[str, str]]]]:
        """The volumes of a node's pods, and the secrets that they name (namespace and name)."""
        claims, volumes = self._cache.resource(CLAIMS), self._cache.resource(VOLUMES)
        for key in self._nodes.get(node, ()):
            record = self._pods.get(key)
            if record is None:
                continue
            namespace = key.removeprefix(PODS).partition("/")[0]
            for resource, name in references_of(record):
                claim = (
                    claims.get(f"{CLAIMS}{namespace}/{name}")
                    if resource == "persistentvolumeclaims"
                    else None
                )
                bound = (
                    "" if claim is None else (decode(claim.value).get("spec") or {}).get("volumeName") or ""
                )
                volume = volumes.get(VOLUMES + bound) if bound else None
                if volume is None:
                    continue
                spec = decode(volume.value).get("spec") or {}
                reference = spec.get("claimRef") or {}
                # Both must name each other: a claim alone may name any volume.
                if (reference.get("namespace"), reference.get("name")) == (namespace, name):
                    yield bound, frozenset(_volume_secrets(spec, namespace))


def references_of(record: Record) -> frozenset[Reference]:
    """What a stored pod refers to."""
    memo = record.memo
    if memo is None:
        memo = record.memo = {}
    found: frozenset[Reference] | None = memo.get(_MEMO)
    if found is None:
        pod = decode(record.value)
        # A mirror pod is whatever its node says: it must not open Secrets to that node.
        is_mirror = MIRROR in (pod["metadata"].get("annotations") or {})
        found = memo[_MEMO] = frozenset() if is_mirror else frozenset(pod_references(pod))
    return found


def pod_references(pod: dict[str, Any]) -> Iterator[Reference]:
    """What a pod refers to, by the plural of its kind and its name, in no order."""
    metadata, spec = pod["metadata"], pod.get("spec") or {}
    if account := spec.get("serviceAccountName"):
        yield "serviceaccounts", account
    for secret in spec.get("imagePullSecrets") or ():
        yield "secrets", secret.get("name") or ""
    for kind in ("containers", "initContainers", "ephemeralContainers"):
        for container in spec.get(kind) or ():
            yield from _container_references(container)
    for volume in spec.get("volumes") or ():
        yield from _volume_references(volume, metadata["name"])
    for claim in spec.get("resourceClaims") or ():
        if name := claim.get("resourceClaimName"):
            yield "resourceclaims", name
    for claim in (pod.get("status") or {}).get("resourceClaimStatuses") or ():
        if name := claim.get("resourceClaimName"):
            yield "resourceclaims", name


def _container_references(container: dict[str, Any]) -> Iterator[Reference]:
    for entry in container.get("envFrom") or ():
        for key, resource in (("secretRef", "secrets"), ("configMapRef", "configmaps")):
            if entry.get(key):
                yield resource, entry[key].get("name") or ""
    for entry in container.get("env") or ():
        source = entry.get("valueFrom") or {}
        for key, resource in (("secretKeyRef", "secrets"), ("configMapKeyRef", "configmaps")):
            if source.get(key):
                yield resource, source[key].get("name") or ""


def _volume_references(volume: dict[str, Any], pod: str) -> Iterator[Reference]:
    for key, source in volume.items():
        if not isinstance(source, dict):
            continue
        if key == "configMap":
            yield "configmaps", source.get("name") or ""
        elif key == "persistentVolumeClaim":
            yield "persistentvolumeclaims", source.get("claimName") or ""
        elif key == "ephemeral":
            # The claim of an ephemeral volume has the names of pod and volume.
            yield "persistentvolumeclaims", f"{pod}-{volume['name']}"
        elif key == "projected":
            for part in source.get("sources") or ():
                for kind, resource in (("secret", "secrets"), ("configMap", "configmaps")):
                    if part.get(kind):
                        yield resource, part[kind].get("name") or ""
        else:
            # secretName of secret and azureFile; secretRef and nodePublishSecretRef of drivers.
            if name := source.get("secretName"):
                yield "secrets", name
            for field in ("secretRef", "nodePublishSecretRef"):
                if source.get(field):
                    yield "secrets", source[field].get("name") or ""


_VOLUME_SECRETS = (
    "secretRef",
    "nodePublishSecretRef",
    "nodeStageSecretRef",
    "nodeExpandSecretRef",
    "controllerPublishSecretRef",
    "controllerExpandSecretRef",
)


def _volume_secrets(spec: dict[str, Any], claim_namespace: str) -> Iterator[tuple[str, str]]:
    for source in spec.values():
        if not isinstance(source, dict):
            continue
        for field in _VOLUME_SECRETS:
            reference = source.get(field)
            if isinstance(reference, dict):
                yield reference.get("namespace") or claim_namespace, reference.get("name") or ""
        if name := source.get("secretName"):
            yield source.get("secretNamespace") or claim_namespace, name
