"""The parts of an API: generated packages, CustomResourceDefinitions, and the controllers that run next to them.

Each part is a property, made when another first needs it; ``table`` says which start, and in which order.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Collection, Mapping
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from apimachinery.queue.prometheus import PrometheusObserver
from apimachinery.server.admission.builtin.resource_quota import Charges
from apimachinery.server.admission.interface import Admission
from apimachinery.server.admission.order import PluginsInOrder
from apimachinery.server.admission.plugins import DEFAULT, Around, make_plugins
from apimachinery.server.aggregation import aggregator
from apimachinery.server.aggregation.aggregator import Aggregator
from apimachinery.server.assembly.parts import Action, Bootstrap, Looping, Make, ServerPart
from apimachinery.server.backend import Backend
from apimachinery.server.catalog.catalog import Catalog
from apimachinery.server.catalog.from_packages import add_package, subresource_kind
from apimachinery.server.catalog.options import ApiOptions
from apimachinery.server.catalog.refusals import OF_EVERY_VERSION
from apimachinery.server.catalog.served import Served
from apimachinery.server.catalog.served_package import ServedPackage
from apimachinery.server.catalog.webhook_conversion import AskFailed
from apimachinery.server.controllers.definitions import DefinitionsController
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
from apimachinery.server.read.components import COMPONENTS, Components
from apimachinery.server.read.computed import Computed
from apimachinery.server.request.codecs import Codecs
from apimachinery.server.subresources.calls import NodeAnswers, VirtualResources
from apimachinery.server.subresources.pods import PodCalls
from apimachinery.server.subresources.proxy import AddressProxy
from apimachinery.server.verbs import Reads, Verbs, WriteParts
from apimachinery.server.write.allocation_ranges import first_of, parse_networks, parse_ports
from apimachinery.server.write.allocation_services import SERVICES, ServiceAllocator
from apimachinery.server.write.deletion import Deleter
from apimachinery.server.write.writes import Writer
from apimachinery.storage.layout import custom_prefix, is_kubernetes, written_as_custom
from apimachinery.storage.moving import bring_home

if TYPE_CHECKING:
    from apimachinery.server.controllers.workloads import ServedCluster
    from apimachinery.server.node.behaviour import NodeBehaviour
    from apimachinery.server.node.usage import NodeUsage
    from apimachinery.server.subresources.tokens import TokenRequests

CONVERSION_SECONDS = 30.0
log = logging.getLogger("kubewright.server")


class ApiParts:
    """``charges`` are what the plugin ResourceQuota counted and its controller does not see yet."""

    def __init__(self, backend: Backend, options: ApiOptions) -> None:
        self.backend, self.options = backend, options
        self.cache, self.access = backend.cache, backend.access
        self.packages = [ServedPackage(name, options.emulated_version) for name in options.packages]
        self.catalog = Catalog(options.emulated_version)
        for package in self.packages:
            add_package(self.catalog, package, options)
        self._add_metrics()
        if self.cache.shared:
            # etcd ends events, whichever servers run then.
            self.catalog.expire(EVENTS, math.ceil(options.event_seconds))
        self.codecs = Codecs([package.messages for package in self.packages])
        self.charges = Charges()
        self.observer = PrometheusObserver(backend.metrics)
        self._networks = parse_networks(options.service_networks)
        self._others = Others()
        self._figures = ApiMetrics(backend.metrics)
        self._figures.objects(self._stored_objects)
        add_build_info(backend.metrics, options.emulated_version)
        self._calls = WebhookCalls(
            backend.outgoing, backend.services, self._figures.webhook, asyncio.get_running_loop()
        )

    def table(self) -> list[Make]:
        """What starts with the API, in order, before the controllers."""
        catalog, writer, deleter = self.catalog, self.writer, self.deleter
        if not self.backend.storage.writable:
            return [partial(self._serve_definitions, writes=False)]
        networks = [str(network) for network in self._networks]
        first, port = first_of(self._networks[0]), self.options.port
        repair = self.allocator.repair if self.allocator is not None else None
        flow_control = self.backend.fairness is not None
        roles = partial(make_roles, catalog, writer, deleter, metrics=self.node is not None)
        return [
            partial(_bootstrap, partial(_bring_home, self)),
            partial(_bootstrap, partial(make_first_objects, catalog, writer)),
            partial(_bootstrap, partial(make_service_range, catalog, writer, networks)),
            partial(_bootstrap, repair),
            partial(_bootstrap, partial(make_own_service, catalog, writer, first, port)),
            self._publish,
            partial(_bootstrap, partial(make_flow_control, catalog, writer) if flow_control else None),
            partial(_bootstrap, roles if self.access.rbac else None),
            self._serve_definitions,
            self._aggregate,
            self._expire_events,
        ]

    # The way of a request.

    @cached_property
    def _admission(self) -> Admission:
        options = self.options
        around = Around(
            self.catalog,
            self.cache,
            self.access,
            self._calls,
            options.namespaces,
            options.toleration_seconds,
            self.charges,
            lambda: self.writer,
            lambda name: make_namespace(self.catalog, self.writer, name),
        )
        return PluginsInOrder(make_plugins(options.plugins or DEFAULT, around), self._figures.step)

    @cached_property
    def writer(self) -> Writer:
        """Writes what is served."""
        allocators = {} if self.allocator is None else {SERVICES: self.allocator}
        return Writer(self._figures.timed(self.backend.storage), self.cache, self._admission, allocators)

    @cached_property
    def deleter(self) -> Deleter:
        """Deletes what is served."""
        return Deleter(self.writer, self._admission)

    @cached_property
    def allocator(self) -> ServiceAllocator | None:
        """Gives services addresses and ports."""
        if self.catalog.find("", "v1", "services") is None:
            return None
        claims = self.backend.storage if self.cache.shared else None
        ports = parse_ports(self.options.node_ports)
        return ServiceAllocator(self.catalog, self.cache, self._networks, ports, lambda: self.writer, claims)

    @cached_property
    def handlers(self) -> Handlers:
        """Answers requests."""
        definitions, backend = self.definitions, self.backend
        return Handlers(
            self.catalog,
            self.cache,
            self._verbs,
            Descriptions(Discovery(self.catalog, "127.0.0.1", self._others), self._openapi),
            self.codecs,
            self.access,
            backend.counts,
            aggregator=self.aggregator,
            catch_up_definitions=definitions.catch_up if self.cache.shared and definitions else None,
            caught_up=backend.caught_up,
        )

    @cached_property
    def _verbs(self) -> Verbs:
        backend = self.backend
        return Verbs(
            Reads(self.cache, backend.watches, backend.bodies, self._computed),
            WriteParts(self.writer, self.deleter),
            self.codecs,
            self._is_kind,
            self._virtual,
            self._figures.watched,
            self.access.authorize_verb,
        )

    @cached_property
    def _openapi(self) -> OpenApi:
        issuer = self.access.service_accounts is not None
        openapi = OpenApi(self.catalog, self.packages, self.options, self._others, issuer=issuer)
        self.backend.governor.ask("openapi", lambda: openapi.weight)
        return openapi

    @cached_property
    def _virtual(self) -> VirtualResources:
        networks = AllowedNetworks([parse_network(text) for text in self.options.proxy_networks])
        proxy = AddressProxy(networks, self.backend.services, self.backend.outgoing)
        return VirtualResources(
            self.writer,
            self.codecs,
            self._is_kind,
            self.access,
            tokens=self._token_requests(),
            pods=self._pod_calls(),
            node=self._node_answers(),
            proxy=proxy if networks else None,
            proxy_to_services=proxy,
            has_node=lambda name: self.cache.record(f"/core/nodes/{name}") is not None,
        )

    def _pod_calls(self) -> PodCalls | None:
        if (pods := self.catalog.find("", "v1", "pods")) is None:
            return None
        sought = {name: self._kind_of(pods, name) for name in ("binding", "eviction")}
        kinds = {name: kind for name, kind in sought.items() if kind is not None}
        return PodCalls(
            self.catalog, self.cache, self.writer, self._admission, self.codecs, self._is_kind, kinds
        )

    def _token_requests(self) -> TokenRequests | None:
        tokens = self.access.service_accounts
        accounts = self.catalog.find("", "v1", "serviceaccounts")
        if tokens is None or accounts is None or (kind := self._kind_of(accounts, "token")) is None:
            return None
        from apimachinery.server.subresources.tokens import TokenRequests

        return TokenRequests(tokens, self.cache, self.codecs, self._is_kind, kind, accounts, self._admission)

    def _kind_of(self, served: Served, subresource: str) -> Served | None:
        found = (subresource_kind(package, served.resource, subresource) for package in self.packages)
        return next((kind for kind in found if kind is not None), None)

    @cached_property
    def node(self) -> NodeBehaviour | None:
        """How the simulated node behaves, None where there is none."""
        if "node" not in self.options.controllers or self.catalog.find("", "v1", "pods") is None:
            return None
        from apimachinery.server.node.behaviour import NodeBehaviour

        chosen = self.options.node
        return chosen if isinstance(chosen, NodeBehaviour) else NodeBehaviour()

    def _node_answers(self) -> NodeAnswers | None:
        if self.node is None:
            return None
        from apimachinery.server.node.streams import NodeStreams

        return NodeStreams(self.node)

    # What runs next to the handlers.

    @cached_property
    def cluster(self) -> ServedCluster:
        """What workload controllers and the simulated nodes see."""
        from apimachinery.server.controllers.decoded import DecodedObjects
        from apimachinery.server.controllers.workloads import ServedCluster

        usage = (lambda pod, metric: {}) if self._usage is None else self._usage.of_pod
        return ServedCluster(DecodedObjects(self.catalog, self.cache), self.writer, self.deleter, usage)

    @cached_property
    def _usage(self) -> NodeUsage | None:
        """What is measured on simulated nodes."""
        if self.node is None:
            return None
        from apimachinery.server.node.usage import NodeUsage

        return NodeUsage(self.node)

    @property
    def computed_names(self) -> Collection[tuple[str, str, str]]:
        """Those of which nothing is stored, by group, version and plural."""
        return self._computed.keys()

    @cached_property
    def _computed(self) -> dict[tuple[str, str, str], Computed]:
        """The resources of which nothing is stored."""
        found: dict[tuple[str, str, str], Computed] = {
            COMPONENTS: Components(lambda: self.cache.storage.trouble)
        }
        if self._usage is not None:
            from apimachinery.server.node.metrics import NodeMetrics, PodMetrics
            from apimachinery.server.node.metrics_package import NODES, PODS

            found[NODES] = NodeMetrics(self.cluster.decoded, self._usage)
            found[PODS] = PodMetrics(self.cluster.decoded, self._usage)
        return found

    def _add_metrics(self) -> None:
        """Serves metrics.k8s.io where nodes are simulated."""
        if self.node is None:
            return
        from apimachinery.server.node.metrics_package import MetricsPackage

        core = next(package for package in self.packages if any(not group.name for group in package.groups))
        self.packages.append(MetricsPackage(core))
        add_package(self.catalog, self.packages[-1], self.options)

    @cached_property
    def definitions(self) -> DefinitionsController | None:
        """Serves CustomResourceDefinitions."""
        served = self.catalog.find("apiextensions.k8s.io", "v1", "customresourcedefinitions")
        if served is None:
            return None
        watches = self.backend.watches
        return DefinitionsController(
            self.catalog, self.cache, watches.end, served, self.writer, self.deleter, self._convert
        )

    @cached_property
    def aggregator(self) -> Aggregator | None:
        """Answers for other servers' group-versions."""
        services = self.catalog.find(aggregator.GROUP, aggregator.VERSION, aggregator.PLURAL)
        backend = self.backend
        if services is None or not backend.storage.writable:
            # A server that changes nothing must not hand changes on, either.
            return None
        return Aggregator(
            self.catalog,
            self.cache,
            self.writer,
            self.deleter,
            services,
            backend.services,
            backend.outgoing,
            backend.identity,
            self._others,
            backend.metrics,
        )

    @cached_property
    def expiry(self) -> EventExpiry | None:
        """Ends events, where no storage that servers share does."""
        events = self.catalog.find("", "v1", "events")
        if events is None or self.cache.shared:
            return None
        return EventExpiry(events, self.cache, self.writer, self.options.event_seconds)

    def _publish(self) -> ServerPart | None:
        address, port = self.options.advertised, self.options.port
        if not address:
            return None
        if not self.cache.shared:
            return _bootstrap(partial(publish, self.catalog, self.writer, [address], port))
        published = Published(self.catalog, self.cache, self.backend.storage, self.writer, address, port)
        return Looping(published, self.observer, published.show)

    def _serve_definitions(self, *, writes: bool = True) -> ServerPart | None:
        if (definitions := self.definitions) is None:
            return None
        return Looping(definitions, self.observer, partial(definitions.prepare, writes=writes))

    def _aggregate(self) -> ServerPart | None:
        if self.aggregator is None:
            return None
        return Looping(self.aggregator, self.observer, self.aggregator.prepare)

    def _expire_events(self) -> ServerPart | None:
        return None if self.expiry is None else Looping(self.expiry, self.observer)

    # What parts ask of the packages and of what is stored.

    def objects_of(self, served: Served | None) -> int:
        """How many objects of a resource are stored."""
        return len(self.cache.resource(served.prefix)) if served is not None and served.prefix else 0

    def _stored_objects(self) -> list[tuple[tuple[str, str], int]]:
        counts = {
            (served.group, served.plural): self.objects_of(served) for served in self.catalog if served.prefix
        }
        return list(counts.items())

    def _is_kind(self, api_version: str, kind: str) -> bool:
        if kind in OF_EVERY_VERSION and api_version in self._api_versions:
            return True
        if (api_version, kind) == ("v1", "List"):
            return True
        return any((api_version, kind) in package.kinds for package in self.packages)

    @cached_property
    def _api_versions(self) -> frozenset[str]:
        return frozenset(api_version for package in self.packages for api_version, _ in package.kinds)

    def _convert(self, client: Mapping[str, Any], review: dict[str, Any]) -> dict[str, Any]:
        """Asks a conversion webhook, on a thread that waits. Raises AskFailed."""
        try:
            return self._calls.wait(client, review, CONVERSION_SECONDS, "kube-apiserver-crd")
        except WebhookFailed as fault:
            raise AskFailed(str(fault).removeprefix("failed to call webhook: ")) from None


def _bootstrap(step: Action | None) -> ServerPart | None:
    return None if step is None else Bootstrap(step)


async def _bring_home(parts: ApiParts) -> None:
    """Moves objects of packages that earlier versions kept in etcd where those of definitions are."""
    cache = parts.cache
    if not cache.shared:
        return
    for prefix, served in {served.prefix: served for served in parts.catalog if served.prefix}.items():
        if is_kubernetes(served.group, served.plural):
            continue
        former = custom_prefix(served.group, served.plural)
        records = cache.resource(former).snapshot(former).records
        ours = [record for record in records if written_as_custom(record.value) is False]
        if ours:
            moved = await bring_home(cache.storage, ours, former, prefix)
            log.warning(
                "objects of a package have keys of their own now", extra={"to": prefix, "objects": moved}
            )
