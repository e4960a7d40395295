"""Objects that every namespace has: the ServiceAccount ``default``, and the ConfigMap ``kube-root-ca.crt`` with the
authorities by which pods know the server. Whoever deletes one gets it back."""

from __future__ import annotations

from collections.abc import Iterable

from apimachinery.kinds.hooks import Json
from apimachinery.server.admission.namespaces import NAMESPACES, phase_of
from apimachinery.server.catalog.served import Served
from apimachinery.server.controllers.controller import Controller, Source
from apimachinery.server.request.bodies import finish_form
from apimachinery.server.request.options import WriteOptions
from apimachinery.server.request.target import WriteTarget
from apimachinery.server.write.writes import Writer
from apimachinery.storage.interface import Event
from apimachinery.storage.watch_cache import WatchCache
from apimachinery.wire.json import decode

MANAGER = "kube-controller-manager"
WORKERS = 5
DESCRIPTION = (
    "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the "
    "internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes "
    "clusters."
)


def default_account() -> Json:
    """The account of pods that name none."""
    return {"kind": "ServiceAccount", "apiVersion": "v1", "metadata": {"name": "default"}}


def root_authority(pem: str) -> Json:
    """The ConfigMap with the server's authorities."""
    annotations = {"kubernetes.io/description": DESCRIPTION}
    return {
        "kind": "ConfigMap",
        "apiVersion": "v1",
        "metadata": {"name": "kube-root-ca.crt", "annotations": annotations},
        "data": {"ca.crt": pem},
    }


def _created(event: Event) -> Iterable[str]:
    return () if event.deleted or event.previous else (event.record.key.removeprefix(NAMESPACES),)


class NamespaceObjects(Controller):
    """Keeps one object in every namespace that is not going."""

    def __init__(self, name: str, served: Served, cache: WatchCache, writer: Writer, wanted: Json) -> None:
        """``wanted`` is the object without a namespace."""
        namespaces = Source(NAMESPACES, _created)
        objects = Source(served.prefix, self._lost, listed=False)
        super().__init__(name, cache, namespaces, objects, workers=WORKERS)
        self._served = served
        self._writer = writer
        self._wanted = wanted
        self._name = wanted["metadata"]["name"]
        self._namespaces = cache.resource(NAMESPACES)

    def _lost(self, event: Event) -> Iterable[str]:
        """The namespace whose object was changed or deleted."""
        namespace, _, name = event.record.key.removeprefix(self._served.prefix).partition("/")
        return (namespace,) if name == self._name and event.previous is not None else ()

    async def reconcile(self, key: str) -> None:
        """Makes or mends the object of a namespace. Raises ApiError, StorageError."""
        namespace = key
        record = self._namespaces.get(NAMESPACES + namespace)
        if record is None or phase_of(record) == "Terminating":
            return
        target = WriteTarget(self._served, namespace, self._name, WriteOptions(manager=MANAGER))
        present = self._writer.current(target)
        if present is None:
            obj = {**self._wanted, "metadata": {**self._wanted["metadata"], "namespace": namespace}}
            finish_form(obj, self._served)
            target.name = ""
            await self._writer.create(target, obj)
        elif "data" in self._wanted and decode(present.value).get("data") != self._wanted["data"]:
            data = self._wanted["data"]
            await self._writer.update(target, lambda old: {**old, "data": dict(data)})
