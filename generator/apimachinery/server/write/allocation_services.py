"""Cluster addresses and node ports of services.

What is taken is read from the cache: IPAddress objects and the services themselves; next to that, what writes under
way were given. An address belongs to a service when its IPAddress is stored, which is done right before the service is
stored, so servers that share a storage never give one twice. A port has no such object: right before its service a
claim of it is stored, which the storage ends after a minute, when all servers have long seen the service; a claim that
is there already is another server's. A dry run takes nothing, and does not ask whether a named
address is free. ``repair`` makes good what a crash left: services without their IPAddress, and IPAddresses of services
that are gone.

Texts are kube-apiserver's (its service storage and ipallocator).
"""

from __future__ import annotations

import contextlib
import ipaddress
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol, TypeVar

from apimachinery.kinds.core.service_families import family_of, is_headless, settle_families
from apimachinery.kinds.core.services import needs_health_check
from apimachinery.kinds.hooks import Json
from apimachinery.meta.addresses import Address, Network
from apimachinery.meta.errors import ApiError, internal
from apimachinery.meta.field_errors import invalid, invalid_value
from apimachinery.server.catalog.catalog import Catalog
from apimachinery.server.request.bodies import finish_form
from apimachinery.server.request.options import WriteOptions
from apimachinery.server.request.target import WriteTarget
from apimachinery.server.write.allocation_ranges import (
    ALLOCATED,
    Ports,
    Unavailable,
    holds,
    pick,
    reserved_in,
    usable,
)
from apimachinery.server.write.writes import Writer
from apimachinery.storage.interface import Event, KeyExists, KeyNotFound, Record, RevisionConflict, Value
from apimachinery.storage.watch_cache import WatchCache
from apimachinery.wire.json import decode

SERVICES, ADDRESSES, RANGES = (
    "/core/services/",
    "/networking.k8s.io/ipaddresses/",
    "/networking.k8s.io/servicecidrs/",
)
GROUP = "networking.k8s.io"
MANAGER = "kube-apiserver"
FAMILY_LABEL, MANAGED_LABEL = "ipaddress.kubernetes.io/ip-family", "ipaddress.kubernetes.io/managed-by"
OWNER = "ipallocator.k8s.io"
CLAIMS = "/kubewright.dev/nodeports/"
CLAIM = Value(b'{"metadata":{"resourceVersion":"', b'"}}', ttl=60)
T = TypeVar("T", str, int)


class Claims(Protocol):
    """What of a storage claims are kept in."""

    async def create(self, key: str, value: Value) -> Record: ...

    async def delete(self, key: str, expected: int, last: Value) -> Record: ...


class ServiceAllocator:
    """Gives services addresses and ports; ``write.allocating.Allocator``."""

    def __init__(
        self,
        catalog: Catalog,
        cache: WatchCache,
        networks: Sequence[Network],
        ports: Ports,
        writer: Callable[[], Writer],
        claims: Claims | None = None,
    ) -> None:
        """``claims`` is the storage, where several servers share it; ``writer`` is called with the first service, as a
        writer is made of allocators."""
        self._catalog = catalog
        self._cache = cache
        self._claims = claims
        self._claimed = cache.resource(CLAIMS)
        self._services = cache.resource(SERVICES)
        self._addresses = cache.resource(ADDRESSES)
        self._ranges = cache.resource(RANGES)
        self._networks = tuple(networks)
        self._families = tuple("IPv6" if network.version == 6 else "IPv4" for network in networks)
        self._ports = ports
        self._has: dict[str, tuple[frozenset[str], frozenset[int]]] = {}
        self._port_holders: dict[int, set[str]] = {}
        self._address_holders: dict[str, set[str]] = {}
        self._held_addresses: set[str] = set()
        self._held_ports: set[int] = set()
        # Large objects are prepared on threads.
        self._lock = threading.Lock()
        self._writer = writer
        # Read first, then followed: both happen on the loop, so nothing comes in between.
        for record in self._services.snapshot(SERVICES).records:
            self._note(record.key, decode(record.value))
        self._services.listen(SERVICES, self._follow)

    def _follow(self, event: Event) -> None:
        key = event.record.key
        self._note(key, {} if event.deleted else decode(event.record.value))

    def _note(self, key: str, service: Json) -> None:
        """Remembers what the service of a key has now."""
        spec = service.get("spec") or {}
        now = frozenset(addresses_of(spec)), frozenset(ports_of(spec))
        before = self._has.get(key, (frozenset(), frozenset()))
        with self._lock:
            _move(self._address_holders, key, before[0] - now[0], now[0] - before[0])
            _move(self._port_holders, key, before[1] - now[1], now[1] - before[1])
            if now[0] or now[1]:
                # Services without addresses or ports would only fill the table.
                self._has[key] = now
            else:
                self._has.pop(key, None)

    def allocate(self, target: WriteTarget, obj: Json, old: Json | None) -> ServiceAllocation:
        """See Allocator. Raises ApiError 422, 500."""
        spec = obj.setdefault("spec", {})
        before = (old or {}).get("spec") or {}
        # Families first: they decide how many addresses are given.
        faults = settle_families(spec, before, self._families)
        if faults:
            raise invalid("Service", "", target.name or obj["metadata"].get("name") or "", faults)
        made = ServiceAllocation(self, target)
        try:
            with self._lock:
                self._give_addresses(made, obj, spec, before)
                self._give_ports(made, obj, spec, before)
                self._give_health_port(made, spec, before)
                made.freed_ports = ports_of(before) - ports_of(spec)
        # Whatever fails later in this function, nothing may stay held.
        except BaseException:
            made.release()
            raise
        return made

    def _give_addresses(self, made: ServiceAllocation, obj: Json, spec: Json, before: Json) -> None:
        present = addresses_of(before)
        if spec.get("type") == "ExternalName" or is_headless(spec):
            made.freed = present
            return
        given = list(spec.get("clusterIPs") or ())
        for address in given:
            if address not in present:
                self._take_address(made, obj, given, address)
        wanted = spec.get("ipFamilies", ())[len(given) :]
        if wanted and not made.dry_run and not obj["metadata"].get("name"):
            # A record of each address names its service, and is made before anybody looks at the service itself.
            first = self._next_address(made, wanted[0])
            raise _nameless([*given, ""], "", first)
        given += [self._next_address(made, family) for family in wanted]
        spec["clusterIPs"], spec["clusterIP"] = given, given[0]
        made.freed = [address for address in present if address not in given]

    def _take_address(self, made: ServiceAllocation, obj: Json, given: list[str], address: str) -> None:
        def refused(why: str) -> ApiError:
            fault = invalid_value("spec.clusterIPs", [*given], f"failed to allocate IP {address}: {why}")
            return invalid("Service", "", made.target.name or obj["metadata"].get("name") or "", [fault])

        taken = ALLOCATED.format("IP")
        if not any(holds(network, ipaddress.ip_address(address)) for network in self._open_ranges(address)):
            raise refused("the provided network does not match the current range")
        if not made.dry_run and self._is_taken(address):
            raise refused(taken)
        if not made.dry_run and not obj["metadata"].get("name"):
            raise _nameless(given, f" {address}", address)
        # The answer in case another server stores it first.
        made.clashes[address] = refused(taken)
        self._hold(made, address)

    def _next_address(self, made: ServiceAllocation, family: str) -> str:
        networks = self._open_ranges(":" if family == "IPv6" else ".")
        if made.dry_run and networks:
            # A dry run shows an address without taking one, as kube-apiserver does.
            return str(networks[0].network_address)
        for network in networks:
            first, last = usable(network)

            def taken(number: int, network: Network = network) -> bool:
                return self._is_taken(str(_address(network, number)))

            with contextlib.suppress(Unavailable):
                address = str(_address(network, pick(first, last, reserved_in(network) - 1, taken)))
                self._hold(made, address)
                return address
        raise internal("failed to allocate a serviceIP: range is full")

    def _open_ranges(self, like: str) -> list[Network]:
        """Where addresses of a family come from: the ServiceCIDRs, which at the start are the server's own."""
        version = 6 if ":" in like else 4
        found = []
        for record in self._ranges.snapshot(RANGES).records:
            obj = decode(record.value)
            conditions = (obj.get("status") or {}).get("conditions") or []
            closed = any(each.get("type") == "Ready" and each.get("status") == "False" for each in conditions)
            # A range that is being deleted gives no new addresses.
            if closed or "deletionTimestamp" in obj["metadata"]:
                continue
            for text in (obj.get("spec") or {}).get("cidrs") or ():
                with contextlib.suppress(ValueError):
                    found.append(ipaddress.ip_network(text))
        # Before the ServiceCIDRs exist, at the first start, the configured networks count.
        return [network for network in found or self._networks if network.version == version]

    def _is_taken(self, address: str) -> bool:
        return (
            address in self._held_addresses
            or address in self._address_holders
            or self._addresses.get(ADDRESSES + address) is not None
        )

    def _hold(self, made: ServiceAllocation, address: str) -> None:
        if not made.dry_run:
            self._held_addresses.add(address)
            made.addresses.append(address)

    def _give_ports(self, made: ServiceAllocation, obj: Json, spec: Json, before: Json) -> None:
        kind = spec.get("type")
        if kind not in ("NodePort", "LoadBalancer"):
            return
        # Load balancers may reach pods without node ports.
        draws = kind == "NodePort" or spec.get("allocateLoadBalancerNodePorts") is not False
        present = _node_ports(before)
        drawn: dict[int, int] = {}
        ports = [port for port in spec.get("ports") or () if isinstance(port, dict)]
        for index, port in enumerate(ports):
            wanted, number = port.get("nodePort") or 0, port.get("port") or 0
            if wanted:
                if wanted not in present and drawn.get(number) != wanted:
                    self._take_port(made, obj, index, wanted)
                drawn.setdefault(number, wanted)
            elif draws:
                # Ports of several protocols share the number.
                # As kube-apiserver: only a create shares one number between protocols.
                if number not in drawn and not before:
                    asked = next(
                        (p["nodePort"] for p in ports if p.get("port") == number and p.get("nodePort")), 0
                    )
                    if asked:
                        self._take_port(made, obj, index, asked)
                        drawn[number] = asked
                if number not in drawn or before:
                    drawn[number] = self._next_port(made, "failed to allocate a nodePort: {}")
                port["nodePort"] = drawn[number]

    def _take_port(self, made: ServiceAllocation, obj: Json, index: int, port: int) -> None:
        def refused(why: str) -> ApiError:
            fault = invalid_value(f"spec.ports[{index}].nodePort", port, why)
            return invalid("Service", "", made.target.name or obj["metadata"].get("name") or "", [fault])

        try:
            self._claim(made, port)
        except Unavailable as why:
            raise refused(str(why)) from None
        made.clashes[port] = refused(ALLOCATED.format("port"))

    def _claim(self, made: ServiceAllocation, port: int) -> None:
        self._ports.check(port)
        # made.ports too: a dry run holds nothing, but must not draw the same port twice.
        if port in self._port_holders or port in self._held_ports or port in made.ports:
            raise Unavailable(ALLOCATED.format("port"))
        made.ports.append(port)
        if not made.dry_run:
            self._held_ports.add(port)

    def _next_port(self, made: ServiceAllocation, text: str) -> int:
        def taken(port: int) -> bool:
            return port in self._port_holders or port in self._held_ports or port in made.ports

        try:
            port = pick(self._ports.first, self._ports.last, self._ports.reserved, taken)
        except Unavailable as why:
            raise internal(text.format(why)) from None
        self._claim(made, port)
        return port

    def _give_health_port(self, made: ServiceAllocation, spec: Json, before: Json) -> None:
        if not needs_health_check(spec):
            return
        wanted = spec.get("healthCheckNodePort") or 0
        if not wanted:
            spec["healthCheckNodePort"] = self._next_port(
                made, "failed to allocate a HealthCheck NodePort: {}"
            )
        elif wanted != before.get("healthCheckNodePort"):
            if needs_health_check(before):
                return  # refused when the update is checked
            text = f"failed to allocate requested HealthCheck NodePort {wanted}: {{}}"
            try:
                self._claim(made, wanted)
            except Unavailable as why:
                raise internal(text.format(why)) from None
            made.clashes[wanted] = internal(text.format(ALLOCATED.format("port")))

    def release(self, addresses: Sequence[str], ports: Sequence[int]) -> None:
        """Ends what a write under way was given."""
        with self._lock:
            self._held_addresses.difference_update(addresses)
            self._held_ports.difference_update(ports)

    async def claim(self, port: int) -> bool:
        """Claims a port of nodes; False where another server was faster."""
        if self._claims is None:
            return True
        try:
            await self._claims.create(f"{CLAIMS}{port}", CLAIM)
        except KeyExists:
            return False
        return True

    async def unclaim(self, ports: Iterable[int]) -> None:
        """Ends claims of ports, where there still are any."""
        # The claim ends by itself; taking it away only frees the port sooner.
        for port in ports if self._claims is not None else ():
            if (record := self._claimed.get(f"{CLAIMS}{port}")) is not None and self._claims is not None:
                with contextlib.suppress(KeyNotFound, RevisionConflict):
                    await self._claims.delete(record.key, record.revision, CLAIM)

    async def removed(self, obj: Json) -> None:
        metadata = obj["metadata"]
        await self.unclaim(ports_of(obj.get("spec") or {}))
        for address in addresses_of(obj.get("spec") or {}):
            await self.forget(address, metadata["namespace"], metadata["name"])

    async def store(self, address: str, namespace: str, name: str) -> bool:
        """Writes the IPAddress of a service; False where somebody else has the address."""
        served = self._catalog.find(GROUP, "v1", "ipaddresses")
        if served is None:
            return True
        obj: Json = {
            "kind": "IPAddress",
            "apiVersion": f"{GROUP}/v1",
            "metadata": {
                "name": address,
                "labels": {FAMILY_LABEL: family_of(address), MANAGED_LABEL: OWNER},
            },
            "spec": {"parentRef": {"resource": "services", "namespace": namespace, "name": name}},
        }
        finish_form(obj, served)
        try:
            await self._writer().create(WriteTarget(served, "", address, WriteOptions(manager=MANAGER)), obj)
        except ApiError as error:
            if error.reason != "AlreadyExists":
                raise
            return False
        return True

    async def forget(self, address: str, namespace: str, name: str) -> None:
        """Deletes the IPAddress of a service, if it is that one's."""
        record = self._addresses.get(ADDRESSES + address)
        served = self._catalog.find(GROUP, "v1", "ipaddresses")
        if record is None or served is None:
            return
        # The address may belong to a newer service of the same name by now.
        obj = served.read(record)
        parent = (obj.get("spec") or {}).get("parentRef") or {}
        if (parent.get("namespace"), parent.get("name")) != (namespace, name):
            return
        with contextlib.suppress(KeyNotFound, RevisionConflict):
            await self._writer().remove(WriteTarget(served, "", address, WriteOptions()), record, obj)

    async def repair(self) -> None:
        """Gives every service the IPAddress that it lacks, and takes away those of services that are gone."""
        for record in list(self._services.snapshot(SERVICES).records):
            service = decode(record.value)
            metadata = service["metadata"]
            for address in addresses_of(service.get("spec") or {}):
                if self._addresses.get(ADDRESSES + address) is None:
                    await self.store(address, metadata["namespace"], metadata["name"])
        for record in list(self._addresses.snapshot(ADDRESSES).records):
            obj = decode(record.value)
            if (obj["metadata"].get("labels") or {}).get(MANAGED_LABEL) != OWNER:
                continue
            parent = (obj.get("spec") or {}).get("parentRef") or {}
            address = obj["metadata"]["name"]
            key = f"{SERVICES}{parent.get('namespace')}/{parent.get('name')}"
            # Of a service that cannot be read it is not known what it has.
            if address not in self._has.get(key, (frozenset(),))[0] and not self._cache.unreadable_in(key):
                await self.forget(address, parent.get("namespace", ""), parent.get("name", ""))


class ServiceAllocation:
    """What one write of a service was given; ``write.allocating.Allocation``."""

    def __init__(self, allocator: ServiceAllocator, target: WriteTarget) -> None:
        self._allocator = allocator
        self.target = target
        self.dry_run = target.options.dry_run
        self.addresses: list[str] = []
        self.ports: list[int] = []
        self.freed: list[str] = []
        self.freed_ports: set[int] = set()
        # What is answered where another server was faster with something that was asked for.
        self.clashes: dict[str | int, ApiError] = {}
        self._stored: list[tuple[str, str]] = []
        self._claimed: list[int] = []

    async def secure(self, name: str) -> None:
        for port in self.ports:
            if not await self._allocator.claim(port):
                await self._unstore()
                raise self._clash(port, f"failed to allocate a nodePort: {ALLOCATED.format('port')}")
            self._claimed.append(port)
        for address in self.addresses:
            if not await self._allocator.store(address, self.target.namespace, name):
                await self._unstore()
                raise self._clash(address, f"failed to allocate a serviceIP: {ALLOCATED.format('IP')}")
            self._stored.append((address, name))

    def _clash(self, number: str | int, text: str) -> ApiError:
        """Whoever asked for no certain number asks again, and is given another: clients do after Retry-After."""
        if number in self.clashes:
            return self.clashes[number]
        error = internal(text)
        error.retry_after = 1
        return error

    async def keep(self) -> None:
        self.release()
        if not self.dry_run:
            for address in self.freed:
                await self._allocator.forget(address, self.target.namespace, self.target.name)
            # Only after the service is stored: until then the old ports are in use.
            await self._allocator.unclaim(self.freed_ports)

    async def drop(self) -> None:
        await self._unstore()
        self.release()

    def release(self) -> None:
        """Ends what it holds; what is stored by then is known from there."""
        if not self.dry_run:
            self._allocator.release(self.addresses, self.ports)

    async def _unstore(self) -> None:
        for address, name in self._stored:
            await self._allocator.forget(address, self.target.namespace, name)
        self._stored.clear()
        await self._allocator.unclaim(self._claimed)
        self._claimed.clear()


def _address(network: Network, number: int) -> Address:
    return ipaddress.IPv6Address(number) if network.version == 6 else ipaddress.IPv4Address(number)


def addresses_of(spec: Json) -> list[str]:
    """The addresses in the cluster that a service has."""
    if spec.get("type") == "ExternalName":
        return []
    given = spec.get("clusterIPs") or ([spec["clusterIP"]] if spec.get("clusterIP") else [])
    return [str(address) for address in given if address != "None"]


def _nameless(given: list[str], named: str, address: str) -> ApiError:
    """The refusal of a service without a name, of which the record of its address would say whose it is."""
    why = f'IPAddress.networking.k8s.io "{address}" is invalid: spec.parentRef.name: Required value'
    fault = invalid_value("spec.clusterIPs", given, f"failed to allocate IP{named}: {why}")
    return invalid("Service", "", "", [fault])


def ports_of(spec: Json) -> set[int]:
    """The ports of nodes that a service has."""
    found = _node_ports(spec)
    if spec.get("healthCheckNodePort"):
        found.add(spec["healthCheckNodePort"])
    return found


def _node_ports(spec: Json) -> set[int]:
    return {
        port["nodePort"]
        for port in spec.get("ports") or ()
        if isinstance(port, dict) and port.get("nodePort")
    }


def _move(holders: dict[T, set[str]], key: str, gone: frozenset[T], come: frozenset[T]) -> None:
    for each in gone:
        holders[each].discard(key)
        if not holders[each]:
            del holders[each]
    for each in come:
        holders.setdefault(each, set()).add(key)
