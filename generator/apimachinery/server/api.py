"""The API of a server: generated packages, CustomResourceDefinitions, and the loops that run next to them.

``build_api`` puts the parts together; the way of a request begins in ``handlers``.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Awaitable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from apimachinery.access.authorization import Attributes
from apimachinery.http.messages import Request, Response, StreamResponse
from apimachinery.meta.errors import ApiError
from apimachinery.queue.prometheus import PrometheusObserver
from apimachinery.server import loops
from apimachinery.server.admission.builtin.resource_quota import Charges
from apimachinery.server.admission.interface import Admission
from apimachinery.server.admission.order import InOrder
from apimachinery.server.admission.plugins import DEFAULT, Around, make_plugins
from apimachinery.server.aggregation import aggregator
from apimachinery.server.aggregation.aggregator import Aggregator
from apimachinery.server.catalog.catalog import Catalog
from apimachinery.server.catalog.from_packages import Package, add_package, subresource_kind
from apimachinery.server.catalog.options import ApiOptions
from apimachinery.server.catalog.refusals import OF_EVERY_VERSION
from apimachinery.server.catalog.webhook_conversion import AskFailed
from apimachinery.server.controllers.definitions import DEFINITIONS, Definitions
from apimachinery.server.controllers.expiry import EVENTS, EventExpiry
from apimachinery.server.controllers.first_objects import (
    make_first_objects,
    make_namespace,
    make_own_service,
    make_service_range,
    publish,
)
from apimachinery.server.controllers.flow_control import make_flow_control
from apimachinery.server.controllers.published import Published
from apimachinery.server.controllers.roles import make_roles
from apimachinery.server.describe.discovery import Discovery
from apimachinery.server.describe.openapi import OpenApi
from apimachinery.server.describe.others import Others
from apimachinery.server.handlers import Descriptions, Handlers
from apimachinery.server.network.networks import AllowedNetworks, parse_network
from apimachinery.server.network.webhook_calls import WebhookCalls, WebhookFailed
from apimachinery.server.operate.api_metrics import ApiMetrics
from apimachinery.server.operate.process_metrics import add_build_info
from apimachinery.server.process import Backend
from apimachinery.server.request.codecs import Codecs
from apimachinery.server.subresources.calls import NodeAnswers, VirtualResources
from apimachinery.server.subresources.pods import PodCalls
from apimachinery.server.subresources.proxy import AddressProxy
from apimachinery.server.verbs import Reads, Writes
from apimachinery.server.write.allocation_ranges import first_of, parse_networks, parse_ports
from apimachinery.server.write.allocation_services import SERVICES, ServiceAllocator
from apimachinery.server.write.deletion import Deleter
from apimachinery.server.write.writes import Writer
from apimachinery.storage.interface import StorageError
from apimachinery.storage.layout import custom_prefix, is_kubernetes, written_as_custom
from apimachinery.storage.moving import bring_home
from apimachinery.wire.json import DecodeFault

if TYPE_CHECKING:
    from apimachinery.server.node.behaviour import NodeBehaviour
    from apimachinery.server.subresources.tokens import TokenRequests


CONVERSION_SECONDS = 30.0
log = logging.getLogger("kubewright.server")


class Api:
    """Handlers, and the controllers next to them."""

    def __init__(self, backend: Backend, options: ApiOptions) -> None:
        self.catalog = Catalog(options.emulated_version)
        packages = [Package(name, options.emulated_version) for name in options.packages]
        for package in packages:
            add_package(self.catalog, package, options)
        self._packages = packages
        access = backend.access
        figures = ApiMetrics(backend.metrics)
        self._calls = WebhookCalls(
            backend.outgoing, backend.services, figures.webhook, asyncio.get_running_loop()
        )
        charges = Charges()
        around = Around(
            self.catalog,
            backend.cache,
            access,
            self._calls,
            options.namespaces,
            options.toleration_seconds,
            charges,
            lambda: self.writer,
            lambda name: make_namespace(self.catalog, self.writer, name),
        )
        self._observer = PrometheusObserver(backend.metrics)
        add_build_info(backend.metrics, options.emulated_version)
        figures.objects(self._stored_objects)
        plugins = make_plugins(options.plugins or DEFAULT, around)
        admission = InOrder(plugins, figures.step)
        self.writer = Writer(figures.timed(backend.storage), backend.cache, admission)
        self.deleter = Deleter(self.writer, admission)
        others = Others()
        self._networks = parse_networks(options.service_networks)
        self._port, self._advertised = options.port, options.advertised
        self._services: ServiceAllocator | None = None
        if self.catalog.find("", "v1", "services") is not None:
            self._services = ServiceAllocator(
                self.catalog,
                backend.cache,
                self._networks,
                parse_ports(options.node_ports),
                lambda: self.writer,
                backend.storage if backend.cache.shared else None,
            )
            self.writer.allocators[SERVICES] = self._services
        self._expiry: EventExpiry | None = None
        if backend.cache.shared:
            # etcd ends them, whichever servers run then.
            self.catalog.expire(EVENTS, math.ceil(options.event_seconds))
        elif (events := self.catalog.find("", "v1", "events")) is not None:
            self._expiry = EventExpiry(events, backend.cache, self.writer, options.event_seconds)
        self._published: Published | None = None
        if backend.cache.shared and backend.storage.writable and self._advertised:
            self._published = Published(
                self.catalog, backend.cache, backend.storage, self.writer, self._advertised, self._port
            )
        codecs = Codecs([package.messages for package in packages])
        openapi = OpenApi(self.catalog, packages, options, others, issuer=access.service_accounts is not None)
        backend.governor.ask("openapi", lambda: openapi.weight)
        self._codecs = codecs
        self._cache = backend.cache
        self._bootstraps = access.rbac is not None
        self.definitions: Definitions | None = None
        self.aggregator: Aggregator | None = None
        self._writable = backend.storage.writable
        served = self.catalog.find("apiextensions.k8s.io", "v1", "customresourcedefinitions")
        if served is not None:
            self.definitions = Definitions(
                self.catalog, backend.cache, backend.watches, served, self.writer, self.deleter, self._convert
            )
        self._aggregate(backend, others)
        self._fairness = backend.fairness
        node = self._node(options)
        networks = AllowedNetworks([parse_network(text) for text in options.proxy_networks])
        proxy = AddressProxy(networks, backend.services, backend.outgoing)
        virtual = VirtualResources(
            self.writer,
            codecs,
            self._is_kind,
            access,
            tokens=self._token_requests(backend, packages, codecs, admission),
            pods=self._pod_calls(backend, packages, codecs, admission),
            node=_streams(node),
            proxy=proxy if networks else None,
            proxy_to_services=proxy,
        )
        catch_up = None
        if backend.cache.shared and self.definitions is not None:
            catch_up = self.definitions.catch_up
        self.handlers = Handlers(
            self.catalog,
            Reads(backend.cache, backend.watches, backend.bodies),
            Writes(self.writer, self.deleter),
            Descriptions(Discovery(self.catalog, "127.0.0.1", others), openapi),
            codecs,
            self._is_kind,
            access,
            virtual,
            backend.counts,
            figures,
            aggregator=self.aggregator,
            catch_up_definitions=catch_up,
        )
        self.handle = self.handlers.handle
        self._controllers = loops.controllers(
            loops.Around(
                self.catalog, backend, self.writer, self.deleter, packages, self.aggregator, charges, node
            ),
            options,
        )

    def _aggregate(self, backend: Backend, others: Others) -> None:
        services = self.catalog.find(aggregator.GROUP, aggregator.VERSION, aggregator.PLURAL)
        if services is None or not self._writable:
            # A server that changes nothing must not hand changes on, either.
            return
        self.aggregator = Aggregator(
            self.catalog,
            backend.cache,
            self.writer,
            self.deleter,
            services,
            backend.services,
            backend.outgoing,
            backend.identity,
            others,
            backend.metrics,
        )

    def takes_upgrade(self, request: Request) -> bool:
        """Whether a request may change its connection's protocol to another than websockets."""
        return self.handlers.takes_upgrade(request)

    def _node(self, options: ApiOptions) -> NodeBehaviour | None:
        """How the simulated node behaves, None where there is none."""
        if "node" not in options.controllers or self.catalog.find("", "v1", "pods") is None:
            return None
        from apimachinery.server.node.behaviour import NodeBehaviour

        return options.node if isinstance(options.node, NodeBehaviour) else NodeBehaviour()

    def _is_kind(self, api_version: str, kind: str) -> bool:
        if kind in OF_EVERY_VERSION and api_version in self._api_versions:
            return True
        if (api_version, kind) == ("v1", "List"):
            return True
        return any((api_version, kind) in package.kinds for package in self._packages)

    @cached_property
    def _api_versions(self) -> frozenset[str]:
        """The built-in ones."""
        return frozenset(api_version for package in self._packages for api_version, _ in package.kinds)

    def _pod_calls(
        self, backend: Backend, packages: list[Package], codecs: Codecs, admission: Admission
    ) -> PodCalls | None:
        pods = self.catalog.find("", "v1", "pods")
        if pods is None:
            return None
        kinds = {}
        for name in ("binding", "eviction"):
            for package in packages:
                if (kind := subresource_kind(package, pods.resource, name)) is not None:
                    kinds[name] = kind
        return PodCalls(self.catalog, backend.cache, self.writer, admission, codecs, self._is_kind, kinds)

    def _token_requests(
        self, backend: Backend, packages: list[Package], codecs: Codecs, admission: Admission
    ) -> TokenRequests | None:
        tokens = backend.access.service_accounts
        accounts = self.catalog.find("", "v1", "serviceaccounts")
        if tokens is None or accounts is None:
            return None
        for package in packages:
            from apimachinery.server.subresources.tokens import TokenRequests

            kind = subresource_kind(package, accounts.resource, "token")
            if kind is not None:
                return TokenRequests(tokens, backend.cache, codecs, self._is_kind, kind, accounts, admission)
        return None

    def objects(self, attributes: Attributes) -> int:
        """How many objects a list would go through."""
        served = self.catalog.find(attributes.group, attributes.version, attributes.resource)
        return len(self._cache.resource(served.prefix)) if served is not None and served.prefix else 0

    def _stored_objects(self) -> list[tuple[tuple[str, str], int]]:
        """How many objects there are, by group and resource."""
        counts: dict[tuple[str, str], int] = {}
        for served in self.catalog:
            if served.prefix:
                counts[served.group, served.plural] = len(self._cache.resource(served.prefix))
        return list(counts.items())

    def decoded(self, media_type: str, body: bytes) -> Any:
        """What an answer says, for the audit; None where it is no object that can be read."""
        codec = self._codecs.reading(media_type.partition(";")[0])
        try:
            return codec.decode(body, []) if codec is not None else None
        except DecodeFault:
            return None

    def _convert(self, client: Mapping[str, Any], review: dict[str, Any]) -> dict[str, Any]:
        """Asks a conversion webhook, on a thread that waits. Raises AskFailed."""
        try:
            return self._calls.wait(client, review, CONVERSION_SECONDS, "kube-apiserver-crd")
        except WebhookFailed as fault:
            raise AskFailed(str(fault).removeprefix("failed to call webhook: ")) from None

    async def start(self) -> None:
        """Makes what a cluster starts with, serves the definitions that are stored, and starts the loops."""
        if not self._writable:
            if self.definitions is not None:
                await self.definitions.prepare(writes=False)
                self.definitions.start(self._observer)
            return
        await _prepared(self._bring_home())
        await _prepared(make_first_objects(self.catalog, self.writer))
        networks = [str(network) for network in self._networks]
        await _prepared(make_service_range(self.catalog, self.writer, networks))
        if self._services is not None:
            await _prepared(self._services.repair())
        address = first_of(self._networks[0])
        await _prepared(make_own_service(self.catalog, self.writer, address, self._port))
        if self._published is not None:
            await self._published.show()
            self._published.start(self._observer)
        elif self._advertised:
            await _prepared(publish(self.catalog, self.writer, [self._advertised], self._port))
        if self._fairness is not None:
            await _prepared(make_flow_control(self.catalog, self.writer))
        if self._bootstraps:
            await _prepared(make_roles(self.catalog, self.writer, self.deleter))
        if self.definitions is not None:
            await _prepared(self.definitions.prepare())
            self.definitions.start(self._observer)
        if self.aggregator is not None:
            await _prepared(self.aggregator.prepare())
            self.aggregator.start(self._observer)
        if self._expiry is not None:
            self._expiry.start(self._observer)
        self._controllers.start(self._observer)
        await asyncio.sleep(0)

    async def _bring_home(self) -> None:
        """Moves objects of packages that earlier versions kept in etcd where those of definitions are."""
        if not self._cache.shared:
            return
        stored = {served.prefix: served for served in self.catalog if served.prefix}
        for prefix, served in stored.items():
            if is_kubernetes(served.group, served.plural):
                continue
            former = custom_prefix(served.group, served.plural)
            records = self._cache.resource(former).snapshot(former).records
            ours = [record for record in records if written_as_custom(record.value) is False]
            if ours:
                moved = await bring_home(self._cache.storage, ours, former, prefix)
                log.warning(
                    "objects of a package have keys of their own now", extra={"to": prefix, "objects": moved}
                )

    async def stop(self) -> None:
        """Stops the loops."""
        await self._controllers.stop()
        if self._published is not None:
            await self._published.stop()
        if self._expiry is not None:
            await self._expiry.stop()
        if self.aggregator is not None:
            await self.aggregator.stop()
        if self.definitions is not None:
            await self.definitions.stop()


async def _prepared(step: Awaitable[None]) -> None:
    """A step of the start, which is made again in the loops or at the next start: what is stored may make it fail, and
    must not keep a server from starting. Raises StorageError."""
    try:
        await step
    except StorageError:
        raise
    except ApiError as error:
        log.error("a step of the start was refused", extra={"error": str(error)})
    except Exception:
        log.exception("a step of the start failed")


def _streams(node: NodeBehaviour | None) -> NodeAnswers | None:
    if node is None:
        return None
    from apimachinery.server.node.streams import NodeStreams

    return NodeStreams(node)


def build_api(backend: Backend, options: ApiOptions) -> Api:
    """The API for a backend."""
    return Api(backend, options)


__all__ = ["DEFINITIONS", "Api", "Request", "Response", "StreamResponse", "build_api"]
