# Made from async_caches.py by build/plain.py: edit that one.
"""Informers that controllers share: one watch for each resource and selection, however many read it; awaited."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar, cast

from apimachinery.client.calls import Codec, ListOptions, Target, typed_codec
from apimachinery.client.connection import Client
from apimachinery.client.informer import Handler, Informer
from apimachinery.client.partial import PARTIAL, PartialObjectMetadata
from apimachinery.client.reflector import Reflector, ReflectorOptions
from apimachinery.controller.cached import Cached, known
from apimachinery.controller.kinds import resource_of
from apimachinery.controller.lister import Lister, OwnWrites
from apimachinery.controller.written import WrittenObjects
from apimachinery.meta.resources import Resource
from apimachinery.typed.object import Object

O = TypeVar("O", bound=Object)  # noqa: E741 - an object


@dataclass(frozen=True, slots=True)
class CacheKey:
    """What two users must agree in to share a watch."""

    resource: Resource
    namespace: str
    label_selector: str
    field_selector: str
    metadata_only: bool
    cluster: str = ""


class CacheView(Generic[O]):
    """The cache of a kind as its options want it: one informer, or one for each of its namespaces."""

    def __init__(
        self, options: Cached[O], informers: list[Informer[O]], written: WrittenObjects | None
    ) -> None:
        self.options = options
        self.resource = resource_of(options.model)
        self._informers = informers
        self._written = written

    @property
    def synced(self) -> bool:
        """Whether all of it has had a first state."""
        return all(informer.synced for informer in self._informers)

    def add_handler(self, handler: Handler[O], *, resync_seconds: float = 0.0) -> None:
        """Passes every change to ``handler``."""
        for informer in self._informers:
            informer.add_handler(handler, resync_seconds=resync_seconds)

    def lister(self, namespace: str = "", *, own_writes: bool = False) -> Lister[O]:
        """Reads of it; where it is of one namespace, of that one."""
        stores = [informer.store for informer in self._informers]
        where = namespace or (stores[0].namespace if len(stores) == 1 else "")
        own = None
        if own_writes and self._written is not None:
            model: type[Any] = PartialObjectMetadata if self.options.metadata_only else self.options.model
            own = OwnWrites[O](self._written, self.resource, self.options, model)
        return Lister(stores, where, resource=self.resource, synced=lambda: self.synced, own_writes=own)

    def wait_until_synced(self, timeout: float) -> None:
        """Waits for the first state of all of it. Raises ``TimeoutError``."""
        ends = time.monotonic() + timeout
        for informer in self._informers:
            informer.wait_until_synced(max(0.0, ends - time.monotonic()))


class SharedInformers:
    """Informers by what they mirror. ``namespace`` empty: of all namespaces. ``clusters`` are clients of other clusters
    by the names that ``Cached.cluster`` has; ``written`` is what listers show of the program's own writes, by cluster.

    They wait for their first state through every refusal (``ReflectorOptions.patient``): a role or CRD that is
    created a moment later must not end an operator. ``on_error`` hears which resource has what trouble.
    """

    def __init__(
        self,
        client: Client,
        *,
        namespace: str = "",
        options: ReflectorOptions | None = None,
        on_error: Callable[[Resource, Exception], None] | None = None,
        clusters: Mapping[str, Client] | None = None,
        written: Mapping[str, WrittenObjects] | None = None,
    ) -> None:
        self._clients = {**(clusters or {}), "": client}
        self._written = written or {}
        self._namespace = namespace
        self._options = options if options is not None else ReflectorOptions(patient=True)
        self._on_error = on_error
        self._informers: dict[CacheKey, Informer[Any]] = {}
        self._transforms: dict[CacheKey, Callable[[Any], Any] | None] = {}
        self._started = False

    def informer(
        self,
        model: type[O],
        *,
        namespace: str | None = None,
        label_selector: str = "",
        field_selector: str = "",
        transform: Callable[[O], O] | None = None,
    ) -> Informer[O]:
        """The informer of a kind, made at the first call.

        ``transform`` may change each object before it is kept, to save memory; whoever shares the informer must
        name the same one. Raises ``ValueError`` for another, ``UnknownResourceError`` for a class of no resource.
        """
        resource = resource_of(model)
        key = self._key(resource, namespace, label_selector, field_selector, metadata_only=False)
        return self._shared(key, typed_codec(model), transform)

    def metadata_informer(
        self,
        model: type[Object],
        *,
        namespace: str | None = None,
        label_selector: str = "",
        field_selector: str = "",
    ) -> Informer[PartialObjectMetadata]:
        """The informer of the metadata of a kind: the server sends, and the cache holds, nothing else."""
        resource = resource_of(model)
        key = self._key(resource, namespace, label_selector, field_selector, metadata_only=True)
        return self._shared(key, PARTIAL, None)

    def lister(self, model: type[O], *, namespace: str | None = None) -> Lister[O]:
        """Reads of the informer of a kind; where it is of one namespace, of that one."""
        return self.view(Cached(model, () if namespace is None else (namespace,))).lister()

    def view(self, options: Cached[O]) -> CacheView[O]:
        """The cache of a kind with options, made at the first call. Raises as ``informer``, and ``ValueError`` for a
        cluster that nobody named."""
        resource = resource_of(options.model)
        written = self._written.get(known(options.cluster, self._clients))
        if written is not None:
            written.follow(resource)
        codec = cast("Codec[O]", PARTIAL) if options.metadata_only else typed_codec(options.model)
        keys = [
            self._key(
                resource,
                namespace,
                options.label_selector,
                options.field_selector,
                metadata_only=options.metadata_only,
                cluster=options.cluster,
            )
            for namespace in options.namespaces or (None,)
        ]
        informers = [self._shared(key, codec, options.transform) for key in dict.fromkeys(keys)]
        for informer in informers:
            for name, function in options.indexes.items():
                informer.store.add_index(name, function)
        return CacheView(options, informers, written)

    def start(self) -> None:
        """Begins to mirror; informers that are made later start by themselves."""
        self._started = True
        for informer in self._informers.values():
            informer.start()

    def wait_until_synced(self, timeout: float) -> None:
        """Waits for the first state of all of them. Raises ``TimeoutError``, which says why."""
        ends = time.monotonic() + timeout
        for informer in [*self._informers.values()]:
            informer.wait_until_synced(max(0.0, ends - time.monotonic()))

    def stop(self) -> None:
        """Ends all of them."""
        for informer in self._informers.values():
            informer.stop()

    @property
    def healthy(self) -> bool:
        """Whether all caches are whole and current."""
        return all(informer.healthy for informer in self._informers.values())

    @property
    def troubles(self) -> list[str]:
        """What keeps caches from being current, a line each."""
        return [
            f"{key.resource.plural}: {informer.last_error or 'not synced'}"
            for key, informer in self._informers.items()
            if not informer.healthy
        ]

    def _key(
        self,
        resource: Resource,
        namespace: str | None,
        labels: str,
        fields: str,
        *,
        metadata_only: bool,
        cluster: str = "",
    ) -> CacheKey:
        wanted = self._namespace if namespace is None else namespace
        # Cluster-scoped kinds have one cache, whatever namespace is asked for.
        where = wanted if resource.namespaced else ""
        return CacheKey(resource, where, labels, fields, metadata_only, cluster)

    def _shared(self, key: CacheKey, codec: Codec[O], transform: Callable[[O], O] | None) -> Informer[O]:
        known = self._informers.get(key)
        if known is not None:
            # Shared objects cannot be kept in two forms.
            if self._transforms[key] is not transform and transform is not None:
                raise ValueError(f"{key.resource.plural} are shared with another transform")
            return known
        options = self._options
        if self._on_error is not None:
            hook = self._on_error
            options = replace(options, on_error=lambda error: hook(key.resource, error))
        reflector: Reflector[O] = Reflector(
            self._clients[key.cluster],
            Target(key.resource, key.namespace),
            codec if transform is None else codec.transformed(transform),
            ListOptions(label_selector=key.label_selector, field_selector=key.field_selector),
            options,
        )
        informer = Informer(reflector)
        self._informers[key] = informer
        self._transforms[key] = transform
        if self._started:
            informer.start()
        return informer
