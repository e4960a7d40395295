"""Objects that every namespace has: the ServiceAccount ``default``, and the ConfigMap ``kube-root-ca.crt`` with the
authorities by which pods know the server. Whoever deletes one gets it back."""

from __future__ import annotations

from apimachinery.kinds.hooks import Json
from apimachinery.server.admission.namespaces import NAMESPACES, phase_of
from apimachinery.server.catalog.served import Served
from apimachinery.server.controllers.following import Keyed
from apimachinery.server.request.bodies import finish_form
from apimachinery.server.request.options import WriteOptions
from apimachinery.server.request.target import WriteTarget
from apimachinery.server.write.writes import Writer
from apimachinery.storage.interface import Event
from apimachinery.storage.watch_cache import WatchCache
from apimachinery.wire.json import decode

MANAGER = "kube-controller-manager"
RETRY_SECONDS = 0.5
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


class NamespaceObjects(Keyed):
    """Keeps one object in every namespace that is not going."""

    def __init__(self, served: Served, cache: WatchCache, writer: Writer, wanted: Json) -> None:
        """``wanted`` is the object without a namespace."""
        super().__init__("an object of a namespace could not be made", RETRY_SECONDS)
        self._served = served
        self._writer = writer
        self._wanted = wanted
        self._name = wanted["metadata"]["name"]
        self._namespaces = cache.resource(NAMESPACES)
        self.hear(self._namespaces, NAMESPACES, self._heard_namespace)
        self.hear(cache.resource(served.prefix), served.prefix, self._heard_object)
        for record in self._namespaces.snapshot(NAMESPACES).records:
            self.look_at(record.key.removeprefix(NAMESPACES))

    def _heard_namespace(self, event: Event) -> None:
        if not event.deleted and event.previous is None:
            self.look_at(event.record.key.removeprefix(NAMESPACES))

    def _heard_object(self, event: Event) -> None:
        namespace, _, name = event.record.key.removeprefix(self._served.prefix).partition("/")
        if name == self._name and event.previous is not None:
            self.look_at(namespace)

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
