"""Which controllers run next to the handlers: those that the options name, where what they look after is served.

Over a storage that several servers share they run on one of them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from apimachinery.access.bindings import GROUP as RBAC
from apimachinery.server.assembly.api_parts import ApiParts
from apimachinery.server.catalog.options import WORKLOADS
from apimachinery.server.catalog.served import Served
from apimachinery.server.controllers.event_writer import EventWriter
from apimachinery.server.controllers.flow_control import FlowSchemaConditions
from apimachinery.server.controllers.garbage import GarbageCollector
from apimachinery.server.controllers.in_use import (
    CLAIMS,
    PODS,
    VOLUMES,
    InUse,
    claim_is_used,
    class_is_used,
    volume_is_used,
)
from apimachinery.server.controllers.leadership import Alone, Elected, Loop, Maker
from apimachinery.server.controllers.namespace_objects import (
    NamespaceObjects,
    default_account,
    root_authority,
)
from apimachinery.server.controllers.namespaces import NamespaceController
from apimachinery.server.controllers.quotas import Quotas
from apimachinery.server.controllers.roles import ClusterRoleAggregation
from apimachinery.server.fairness.facts import GROUP as FLOW_CONTROL

Choose = Callable[[ApiParts], Maker | None]
"""What makes a controller of an API, None where it has nothing to look after."""


def controllers(api: ApiParts) -> Loop:
    """The controllers, as one to start and stop."""
    chosen = (
        choose(api) for name, choose in _CONTROLLERS.items() if not name or name in api.options.controllers
    )
    makers = [maker for maker in chosen if maker is not None]
    leases = api.catalog.find("coordination.k8s.io", "v1", "leases")
    if not api.cache.shared or leases is None:
        return Alone(makers)
    return Elected(makers, leases, api.cache, api.writer)


def _over(group: str, plural: str, make: Callable[[ApiParts, Served], Loop]) -> Choose:
    """A controller of a resource, which runs where that is served."""

    def choose(api: ApiParts) -> Maker | None:
        served = api.catalog.find(group, "v1", plural)
        return None if served is None else partial(make, api, served)

    return choose


def _flow_control(api: ApiParts) -> Maker | None:
    served = api.catalog.preferred(FLOW_CONTROL, "flowschemas")
    if api.backend.fairness is None or served is None:
        return None
    return partial(FlowSchemaConditions, api.catalog, served, api.cache, api.writer)


def _namespaces(api: ApiParts, served: Served) -> Loop:
    contents = None if api.aggregator is None else api.aggregator.contents
    return NamespaceController(api.catalog, api.cache, api.writer, api.deleter, contents)


def _signing(api: ApiParts) -> Maker | None:
    if (authority := api.access.signing) is None:
        return None
    from apimachinery.server.controllers.signing import CertificateSigner

    return _over(
        "certificates.k8s.io",
        "certificatesigningrequests",
        lambda api, served: CertificateSigner(served, api.cache, api.writer, authority),
    )(api)


def _policies(api: ApiParts, served: Served) -> Loop:
    from apimachinery.server.controllers.policy_status import PolicyStatus

    definitions = [package.definitions for package in api.packages]
    return PolicyStatus(api.catalog, served, api.cache, api.writer, definitions)


def _account_secrets(api: ApiParts) -> Maker | None:
    if (tokens := api.access.service_accounts) is None:
        return None
    from apimachinery.server.controllers.account_secrets import AccountSecrets

    keys, authority = tokens.keys, api.options.root_authority
    return _over(
        "",
        "secrets",
        lambda api, served: AccountSecrets(served, api.cache, api.writer, api.deleter, keys, authority),
    )(api)


def _accounts(api: ApiParts, served: Served) -> Loop:
    return NamespaceObjects("serviceaccount", served, api.cache, api.writer, default_account())


def _authorities(api: ApiParts, served: Served) -> Loop:
    wanted = root_authority(api.options.root_authority)
    return NamespaceObjects("root-ca-cert-publisher", served, api.cache, api.writer, wanted)


def _workload(name: str) -> Choose:
    """A workload controller, where its resources are served."""

    def choose(api: ApiParts) -> Maker | None:
        from apimachinery.server.controllers.workloads import workload_controllers
        from apimachinery.workloads.table import workloads

        return partial(workload_controllers, name, workloads()[name], api.cluster, api.cache)

    return choose


def _node(api: ApiParts) -> Maker | None:
    if (behaviour := api.node) is None:
        return None
    from apimachinery.server.node.heartbeats import Heartbeats
    from apimachinery.server.node.kubelet import SimulatedNode

    beats = partial(Heartbeats, api.catalog, api.cache, api.writer, behaviour)
    pods = partial(SimulatedNode, api.catalog, api.cache, api.writer, api.deleter, behaviour)
    return lambda: Alone([beats, pods])


def _scheduler(api: ApiParts) -> Maker | None:
    if api.catalog.find("", "v1", "pods") is None:
        return None
    from apimachinery.server.node.scheduler import MANAGER, NAME, Scheduler

    events = EventWriter(api.catalog, api.writer, NAME, MANAGER)
    return partial(Scheduler, api.cluster.decoded, api.cache, api.writer, api.deleter, events)


_CONTROLLERS: dict[str, Choose] = {
    "": _flow_control,
    "namespace": _over("", "namespaces", _namespaces),
    "gc": lambda api: partial(GarbageCollector, api.catalog, api.cache, api.writer, api.deleter),
    "gc-known-owners": lambda api: partial(
        GarbageCollector, api.catalog, api.cache, api.writer, api.deleter, known_owners=True
    ),
    "clusterrole-aggregation": _over(
        RBAC, "clusterroles", lambda api, served: ClusterRoleAggregation(served, api.cache, api.writer)
    ),
    "csrsigning": _signing,
    "validatingadmissionpolicy-status": _over(
        "admissionregistration.k8s.io", "validatingadmissionpolicies", _policies
    ),
    "resourcequota": _over(
        "", "resourcequotas", lambda api, served: Quotas(api.catalog, api.cache, api.writer, api.charges)
    ),
    "serviceaccount-token": _account_secrets,
    "serviceaccount": _over("", "serviceaccounts", _accounts),
    "root-ca-cert-publisher": _over("", "configmaps", _authorities),
    "pvc-protection": _over(
        "",
        "persistentvolumeclaims",
        lambda api, served: InUse(served, api.cache, api.writer, claim_is_used, (PODS,)),
    ),
    "pv-protection": _over(
        "",
        "persistentvolumes",
        lambda api, served: InUse(served, api.cache, api.writer, volume_is_used, ()),
    ),
    "vac-protection": _over(
        "storage.k8s.io",
        "volumeattributesclasses",
        lambda api, served: InUse(served, api.cache, api.writer, class_is_used, (CLAIMS, VOLUMES)),
    ),
    **{name: _workload(name) for name in WORKLOADS},
    "node": _node,
    "scheduler": _scheduler,
}
"""By the name of ``--controllers``; what has none always runs."""
