"""The aggregator of a server: its parts put together, and the one question that every request asks of it."""

from __future__ import annotations

import contextlib

from apimachinery.http.messages import Request
from apimachinery.http.outgoing import Outgoing
from apimachinery.http.relay import Relayed
from apimachinery.meta.asked import Area, Route, route_of
from apimachinery.meta.errors import ApiError
from apimachinery.metrics import Metrics
from apimachinery.queue.observing import Observer
from apimachinery.server.aggregation.availability import Availability
from apimachinery.server.aggregation.contents import RemoteContents
from apimachinery.server.aggregation.documents import RemoteDocuments
from apimachinery.server.aggregation.local import MANAGER, LocalApiServices
from apimachinery.server.aggregation.proxy import Proxy
from apimachinery.server.aggregation.registry import ApiService, Json, Registry
from apimachinery.server.catalog.catalog import Catalog
from apimachinery.server.catalog.served import Served
from apimachinery.server.controllers.controller import SILENT
from apimachinery.server.describe.others import Others
from apimachinery.server.network.proxy_identity import CONFIG_MAP, NAMESPACE, ProxyIdentity
from apimachinery.server.network.services import ServiceResolver
from apimachinery.server.request.bodies import finish_form
from apimachinery.server.request.options import WriteOptions
from apimachinery.server.request.target import WriteTarget
from apimachinery.server.write.deletion import Deleter
from apimachinery.server.write.writes import Writer
from apimachinery.storage.watch_cache import WatchCache
from apimachinery.wire.json import decode

GROUP, VERSION, PLURAL = "apiregistration.k8s.io", "v1", "apiservices"


class Aggregator:
    """Keeps APIServices and answers for those of other servers. ``others`` is what they say of themselves,
    ``contents`` what they hold."""

    def __init__(
        self,
        catalog: Catalog,
        cache: WatchCache,
        writer: Writer,
        deleter: Deleter,
        served: Served,
        services: ServiceResolver,
        outgoing: Outgoing,
        identity: ProxyIdentity,
        others: Others,
        metrics: Metrics,
    ) -> None:
        self._catalog = catalog
        self._writer = writer
        self._identity = identity
        self._registry = registry = Registry(cache)
        self._remote = registry.remote
        self._proxy = Proxy(services, outgoing, identity)
        self._local = LocalApiServices(catalog, cache, registry, served, writer, deleter)
        unavailable = metrics.counter(
            "aggregator_unavailable_apiservice_total",
            "How often an APIService became unavailable.",
            "name",
            "reason",
        )
        metrics.asked(
            "aggregator_unavailable_apiservice",
            "1 for an APIService that is not available.",
            ("name",),
            lambda: [((service.name,), not service.available) for service in registry.all.values()],
        )
        self._availability = Availability(
            registry,
            cache,
            services,
            self._proxy,
            served,
            writer,
            lambda name, reason: unavailable.at(name, reason).add(),
        )
        self._documents = RemoteDocuments(registry, cache, self._proxy, others)
        self.contents = RemoteContents(registry, self._proxy, others)

    async def prepare(self) -> None:
        """Writes what must be there before the first request: local APIServices, and how we prove who we are."""
        await self._local.prepare()
        await self._publish_identity()

    def start(self, observer: Observer = SILENT) -> None:
        """Starts the controllers."""
        self._local.start(observer)
        self._availability.start(observer)
        self._documents.start(observer)

    async def stop(self) -> None:
        """Ends them."""
        await self._local.stop()
        await self._availability.stop()
        await self._documents.stop()

    def find(self, route: Route) -> ApiService | None:
        """The APIService of another server that a path is of."""
        # Most servers have no remote APIService: nothing is looked up.
        if not self._remote or route.area not in (Area.RESOURCE, Area.RESOURCES):
            return None
        return self._remote.get((route.group, route.version))

    async def answer(self, request: Request, service: ApiService) -> Relayed:
        """That server's answer."""
        return await self._proxy.answer(request, service)

    def takes_upgrade(self, request: Request) -> bool:
        """Whether a request, of which only the head has come, would be handed on."""
        return bool(self._remote) and self.find(route_of(request)) is not None

    async def _publish_identity(self) -> None:
        served = self._catalog.find("", "v1", "configmaps")
        wanted = dict(self._identity.published)
        if served is None or not wanted:
            return
        target = WriteTarget(served, NAMESPACE, CONFIG_MAP, WriteOptions(manager=MANAGER))
        # Refused by a policy or quota, it must not keep the server from starting.
        with contextlib.suppress(ApiError):
            record = self._writer.current(target)
            if record is None:
                obj: Json = {
                    "kind": "ConfigMap",
                    "apiVersion": "v1",
                    "metadata": {"name": CONFIG_MAP, "namespace": NAMESPACE},
                    "data": wanted,
                }
                finish_form(obj, served)
                await self._writer.create(target, obj)
            elif decode(record.value).get("data") != wanted:
                await self._writer.update(target, lambda old: {**old, "data": wanted})
