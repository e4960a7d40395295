"""DefaultStorageClass and DefaultIngressClass: claims and ingresses that name no class get the default one.

Default is the class whose annotation says so; of several the newest, and of those made in the same second the first by
name.
"""

from __future__ import annotations

from collections.abc import Sequence

from apimachinery.kinds.hooks import Json
from apimachinery.server.admission.interface import Operation, Plugin
from apimachinery.server.admission.objects import Objects
from apimachinery.storage.watch_cache import WatchCache

_STORAGE = ("storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class")
_INGRESS = ("ingressclass.kubernetes.io/is-default-class",)


def default_of(classes: Objects, marks: Sequence[str]) -> str:
    """The name of the default class, ``""`` where no class has one of the annotations ``marks``."""
    newest = ""
    chosen = ""
    for each in classes.every():  # by name
        metadata = each["metadata"]
        annotations = metadata.get("annotations") or {}
        if any(annotations.get(mark) == "true" for mark in marks):
            made = metadata.get("creationTimestamp") or ""
            if not chosen or made > newest:
                chosen, newest = metadata["name"], made
    return chosen


class DefaultStorageClass(Plugin):
    """Names the class of new claims."""

    resources = frozenset({("", "persistentvolumeclaims")})

    def __init__(self, cache: WatchCache) -> None:
        self._classes = Objects(cache, "/storage.k8s.io/storageclasses/")

    def admit(self, operation: Operation) -> None:
        obj = operation.obj
        if operation.verb != "CREATE" or obj is None or operation.target.subresource:
            return
        if _annotation(obj, "volume.beta.kubernetes.io/storage-class") is not None:
            return
        spec = obj.setdefault("spec", {})
        if spec.get("storageClassName") is None and (name := default_of(self._classes, _STORAGE)):
            spec["storageClassName"] = name


class DefaultIngressClass(Plugin):
    """Names the class of new ingresses."""

    resources = frozenset({("networking.k8s.io", "ingresses")})

    def __init__(self, cache: WatchCache) -> None:
        self._classes = Objects(cache, "/networking.k8s.io/ingressclasses/")

    def admit(self, operation: Operation) -> None:
        obj = operation.obj
        if operation.verb != "CREATE" or obj is None or operation.target.subresource:
            return
        # The annotation is how ingresses named their class before there were classes.
        if _annotation(obj, "kubernetes.io/ingress.class") is not None:
            return
        spec = obj.setdefault("spec", {})
        if spec.get("ingressClassName") is None and (name := default_of(self._classes, _INGRESS)):
            spec["ingressClassName"] = name


def _annotation(obj: Json, name: str) -> str | None:
    found: str | None = ((obj.get("metadata") or {}).get("annotations") or {}).get(name)
    return found
