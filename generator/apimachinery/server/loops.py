"""Which controllers run next to the handlers: those that the options name, where what they look after is served.

Over a storage that several servers share they run on one of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from apimachinery.access.bindings import GROUP
from apimachinery.kinds.hooks import Json
from apimachinery.server.admission.builtin.resource_quota import Charges
from apimachinery.server.aggregation.aggregator import Aggregator
from apimachinery.server.catalog.catalog import Catalog
from apimachinery.server.catalog.from_packages import Package
from apimachinery.server.catalog.options import ApiOptions
from apimachinery.server.catalog.served import Served
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
from apimachinery.server.process import Backend
from apimachinery.server.write.deletion import Deleter
from apimachinery.server.write.writes import Writer
from apimachinery.storage.watch_cache import WatchCache

if TYPE_CHECKING:
    from apimachinery.server.node.behaviour import NodeBehaviour


@dataclass(frozen=True, slots=True)
class Around:
    """What controllers are made of. ``charges`` are of the plugin ResourceQuota, ``node`` is how the simulated node
    behaves, None where there is none."""

    catalog: Catalog
    backend: Backend
    writer: Writer
    deleter: Deleter
    packages: list[Package]
    aggregator: Aggregator | None
    charges: Charges | None
    node: NodeBehaviour | None


def controllers(around: Around, options: ApiOptions) -> Loop:
    """The controllers, as one loop to start and stop."""
    makers = [
        maker
        for name, make in _CONTROLLERS.items()
        if not name or name in options.controllers
        for maker in make(around, options)
    ]
    leases = around.catalog.find("coordination.k8s.io", "v1", "leases")
    if not around.backend.cache.shared or leases is None:
        return Alone(makers)
    return Elected(makers, leases, around.backend.cache, around.writer)


def _core(around: Around, plural: str) -> Served | None:
    return around.catalog.find("", "v1", plural)


def _flow_control(around: Around, options: ApiOptions) -> Iterator[Maker]:
    schemas = around.catalog.find(FLOW_CONTROL, "v1", "flowschemas")
    if around.backend.fairness is not None and schemas is not None:
        cache = around.backend.cache
        yield lambda: FlowSchemaConditions(around.catalog, schemas, cache, around.writer)


def _namespaces(around: Around, options: ApiOptions) -> Iterator[Maker]:
    contents = None if around.aggregator is None else around.aggregator.contents
    if _core(around, "namespaces") is not None:
        yield lambda: NamespaceController(
            around.catalog, around.backend.cache, around.writer, around.deleter, contents
        )


def _garbage(around: Around, options: ApiOptions) -> Iterator[Maker]:
    yield lambda: GarbageCollector(around.catalog, around.backend.cache, around.writer, around.deleter)


def _roles(around: Around, options: ApiOptions) -> Iterator[Maker]:
    roles = around.catalog.find(GROUP, "v1", "clusterroles")
    if roles is not None:
        yield lambda: ClusterRoleAggregation(roles, around.backend.cache, around.writer)


def _signing(around: Around, options: ApiOptions) -> Iterator[Maker]:
    requests = around.catalog.find("certificates.k8s.io", "v1", "certificatesigningrequests")
    if requests is not None and (signing := around.backend.access.signing):
        from apimachinery.server.controllers.signing import CertificateSigner

        yield lambda: CertificateSigner(requests, around.backend.cache, around.writer, signing)


def _policies(around: Around, options: ApiOptions) -> Iterator[Maker]:
    checked = around.catalog.find("admissionregistration.k8s.io", "v1", "validatingadmissionpolicies")
    if checked is not None:
        from apimachinery.server.controllers.policy_status import PolicyStatus

        definitions = [package.definitions for package in around.packages]
        yield lambda: PolicyStatus(around.catalog, checked, around.backend.cache, around.writer, definitions)


def _quotas(around: Around, options: ApiOptions) -> Iterator[Maker]:
    if _core(around, "resourcequotas") is not None:
        yield lambda: Quotas(around.catalog, around.backend.cache, around.writer, around.charges)


def _account_secrets(around: Around, options: ApiOptions) -> Iterator[Maker]:
    secrets, tokens = _core(around, "secrets"), around.backend.access.service_accounts
    if secrets is not None and tokens is not None:
        from apimachinery.server.controllers.account_secrets import AccountSecrets

        keys, authority = tokens.keys, options.root_authority
        yield lambda: AccountSecrets(
            secrets, around.backend.cache, around.writer, around.deleter, keys, authority
        )


def _accounts(around: Around, options: ApiOptions) -> Iterator[Maker]:
    served = _core(around, "serviceaccounts")
    if served is not None:
        yield partial(
            NamespaceObjects, "serviceaccount", served, around.backend.cache, around.writer, default_account()
        )


def _authorities(around: Around, options: ApiOptions) -> Iterator[Maker]:
    served = _core(around, "configmaps")
    if served is not None:
        wanted = root_authority(options.root_authority)
        yield partial(
            NamespaceObjects, "root-ca-cert-publisher", served, around.backend.cache, around.writer, wanted
        )


def _in_use(
    group: str,
    plural: str,
    is_used: Callable[[WatchCache, str, str, Json], bool],
    *users: str,
) -> Callable[[Around, ApiOptions], Iterator[Maker]]:
    def make(around: Around, options: ApiOptions) -> Iterator[Maker]:
        served = around.catalog.find(group, "v1", plural)
        if served is not None:
            yield lambda: InUse(served, around.backend.cache, around.writer, is_used, users)

    return make


def _node(around: Around, options: ApiOptions) -> Iterator[Maker]:
    if (behaviour := around.node) is not None:
        from apimachinery.server.node.kubelet import SimulatedNode

        yield lambda: SimulatedNode(
            around.catalog, around.backend.cache, around.writer, around.deleter, behaviour
        )


_CONTROLLERS: dict[str, Callable[[Around, ApiOptions], Iterator[Maker]]] = {
    "": _flow_control,
    "namespace": _namespaces,
    "gc": _garbage,
    "clusterrole-aggregation": _roles,
    "csrsigning": _signing,
    "validatingadmissionpolicy-status": _policies,
    "resourcequota": _quotas,
    "serviceaccount-token": _account_secrets,
    "serviceaccount": _accounts,
    "root-ca-cert-publisher": _authorities,
    "pvc-protection": _in_use("", "persistentvolumeclaims", claim_is_used, PODS),
    "pv-protection": _in_use("", "persistentvolumes", volume_is_used),
    "vac-protection": _in_use("storage.k8s.io", "volumeattributesclasses", class_is_used, CLAIMS, VOLUMES),
    "node": _node,
}
"""By the name of ``--controllers``; what has none always runs."""
