"""Which admission plugins a server runs: names, order and defaults are kube-apiserver's.

``--enable-admission-plugins`` adds to the defaults and ``--disable-admission-plugins`` takes away from them; where both
name a plugin, it is off. The order in which they are named means nothing.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field

from apimachinery.access.control import Access
from apimachinery.access.escalation import Escalation
from apimachinery.server.admission.builtin import certificates
from apimachinery.server.admission.builtin.access import CreateRights, RoleEscalation
from apimachinery.server.admission.builtin.always import AlwaysAdmit, AlwaysDeny
from apimachinery.server.admission.builtin.claim_resize import PersistentVolumeClaimResize
from apimachinery.server.admission.builtin.default_classes import DefaultIngressClass, DefaultStorageClass
from apimachinery.server.admission.builtin.default_tolerations import DefaultTolerationSeconds
from apimachinery.server.admission.builtin.external_addresses import DenyServiceExternalIPs
from apimachinery.server.admission.builtin.in_use_protection import StorageObjectInUseProtection
from apimachinery.server.admission.builtin.limit_ranger import LimitRanger
from apimachinery.server.admission.builtin.node_restriction import NodeRestriction
from apimachinery.server.admission.builtin.node_taints import TaintNodesByCondition
from apimachinery.server.admission.builtin.owner_references import OwnerReferencesPermissionEnforcement
from apimachinery.server.admission.builtin.pod_placement import (
    ExtendedResourceToleration,
    LimitPodHardAntiAffinityTopology,
    PodNodeSelector,
    PodTolerationRestriction,
)
from apimachinery.server.admission.builtin.pod_resize import NodeDeclaredFeatureValidator, PodResizeValidator
from apimachinery.server.admission.builtin.pod_security import PodSecurity
from apimachinery.server.admission.builtin.priority import Priority
from apimachinery.server.admission.builtin.pull_images import AlwaysPullImages
from apimachinery.server.admission.builtin.resource_quota import Charges, ResourceQuota, StatusWriter
from apimachinery.server.admission.builtin.runtime_class import RuntimeClass
from apimachinery.server.admission.builtin.service_account import ServiceAccount
from apimachinery.server.admission.builtin.topology_labels import PodTopologyLabels
from apimachinery.server.admission.interface import Plugin
from apimachinery.server.admission.namespaces import (
    FindPhase,
    NamespaceAutoProvision,
    NamespaceExists,
    NamespaceLifecycle,
)
from apimachinery.server.admission.policies.mutating_policies import MutatingPolicies
from apimachinery.server.admission.policies.policies import Policies
from apimachinery.server.admission.policies.validating_policies import ValidatingPolicies
from apimachinery.server.admission.webhooks.mutating_webhooks import MutatingWebhooks
from apimachinery.server.admission.webhooks.validating_webhooks import ValidatingWebhooks
from apimachinery.server.admission.webhooks.webhook_configurations import Webhooks
from apimachinery.server.catalog.catalog import Catalog
from apimachinery.server.catalog.options import OptionError
from apimachinery.server.network.webhook_calls import WebhookCalls
from apimachinery.storage.watch_cache import WatchCache


@dataclass(frozen=True, slots=True)
class Around:
    """What plugins are made of. ``namespaces`` asks for those of another server, where this one has none;
    ``toleration_seconds`` are for nodes not ready and out of reach. ``writer`` is called with the first request, as a
    writer is made of plugins; ``charges`` are shared with the controller of quotas."""

    catalog: Catalog
    cache: WatchCache
    access: Access
    calls: WebhookCalls
    namespaces: FindPhase | None = None
    toleration_seconds: tuple[int, int] = (300, 300)
    charges: Charges = field(default_factory=Charges)
    writer: Callable[[], StatusWriter] | None = None
    create_namespace: Callable[[str], Awaitable[None]] | None = None


@dataclass(frozen=True, slots=True)
class Named:
    """A plugin that may be switched on and off; ``default`` where it is on in kube-apiserver.

    ``make`` is None for what this server has not: where ``lacks`` is empty it does nothing there either, as its feature
    gate is off, else it needs what that says.
    """

    name: str
    make: Callable[[Around], Plugin] | None = None
    default: bool = True
    lacks: str = ""


def _owner_references(around: Around) -> Plugin:
    return OwnerReferencesPermissionEnforcement(around.catalog, around.access.authorizer)


def _webhooks(kind: str, around: Around) -> Webhooks:
    return Webhooks(kind, around.catalog, around.cache, around.access, around.calls)


CONFIGURED = "it needs --admission-control-config-file, which this server does not have"
PLUGINS = (
    Named("AlwaysAdmit", lambda around: AlwaysAdmit(), default=False),
    Named(
        "NamespaceAutoProvision",
        lambda around: NamespaceAutoProvision(around.cache, around.create_namespace),
        default=False,
    ),
    Named("NamespaceLifecycle", lambda around: NamespaceLifecycle(around.cache, around.namespaces)),
    Named("NamespaceExists", lambda around: NamespaceExists(around.cache), default=False),
    Named(
        "LimitPodHardAntiAffinityTopology", lambda around: LimitPodHardAntiAffinityTopology(), default=False
    ),
    Named("LimitRanger", lambda around: LimitRanger(around.cache)),
    Named("ServiceAccount", lambda around: ServiceAccount(around.cache)),
    Named(
        "NodeRestriction",
        lambda around: NodeRestriction(around.cache, around.access.authorizer),
        default=False,
    ),
    Named("TaintNodesByCondition", lambda around: TaintNodesByCondition()),
    Named("AlwaysPullImages", lambda around: AlwaysPullImages(), default=False),
    Named("ImagePolicyWebhook", default=False, lacks=CONFIGURED),
    Named("PodSecurity", lambda around: PodSecurity(around.cache)),
    Named("PodNodeSelector", lambda around: PodNodeSelector(around.cache), default=False),
    Named("Priority", lambda around: Priority(around.cache)),
    Named("DefaultTolerationSeconds", lambda around: DefaultTolerationSeconds(around.toleration_seconds)),
    Named("PodTolerationRestriction", lambda around: PodTolerationRestriction(around.cache), default=False),
    Named("EventRateLimit", default=False, lacks=CONFIGURED),
    Named("ExtendedResourceToleration", lambda around: ExtendedResourceToleration(), default=False),
    Named("DefaultStorageClass", lambda around: DefaultStorageClass(around.cache)),
    Named("StorageObjectInUseProtection", lambda around: StorageObjectInUseProtection()),
    Named("PodGroupProtection"),
    Named(
        "OwnerReferencesPermissionEnforcement",
        _owner_references,
        default=False,
    ),
    Named("PersistentVolumeClaimResize", lambda around: PersistentVolumeClaimResize(around.cache)),
    Named("RuntimeClass", lambda around: RuntimeClass(around.cache)),
    Named("CertificateApproval", lambda around: certificates.CertificateApproval(around.access.authorizer)),
    Named("CertificateSigning", lambda around: certificates.CertificateSigning(around.access.authorizer)),
    Named(
        "ClusterTrustBundleAttest",
        lambda around: certificates.ClusterTrustBundleAttest(around.access.authorizer),
    ),
    Named("CertificateSubjectRestriction", lambda around: certificates.CertificateSubjectRestriction()),
    Named("DefaultIngressClass", lambda around: DefaultIngressClass(around.cache)),
    Named("DenyServiceExternalIPs", lambda around: DenyServiceExternalIPs(), default=False),
    Named("PodTopologyLabels", lambda around: PodTopologyLabels(around.cache)),
    Named("PodGroupWorkloadExists"),
    Named("NodeDeclaredFeatureValidator", lambda around: NodeDeclaredFeatureValidator(around.cache)),
    Named("JobValidation"),
    Named("PodResizeValidator", lambda around: PodResizeValidator(around.cache)),
    Named(
        "MutatingAdmissionPolicy",
        lambda around: MutatingPolicies(Policies("mutating", around.catalog, around.cache, around.access)),
    ),
    Named("MutatingAdmissionWebhook", lambda around: MutatingWebhooks(_webhooks("mutating", around))),
    Named(
        "ValidatingAdmissionPolicy",
        lambda around: ValidatingPolicies(
            Policies("validating", around.catalog, around.cache, around.access)
        ),
    ),
    Named("ValidatingAdmissionWebhook", lambda around: ValidatingWebhooks(_webhooks("validating", around))),
    Named(
        "ResourceQuota",
        lambda around: ResourceQuota(around.catalog, around.cache, around.charges, around.writer),
    ),
    Named("AlwaysDeny", lambda around: AlwaysDeny(), default=False),
)
"""In order."""
DEFAULT = frozenset(plugin.name for plugin in PLUGINS if plugin.default) - {"ServiceAccount"}
"""ServiceAccount is on by default in kube-apiserver, where a controller manager makes the accounts; here pods can be
created without one unless somebody asks for it."""


def parse_plugins(enabled: list[str], disabled: list[str]) -> frozenset[str]:
    """The names of the plugins to run, from both options, each repeated or with commas. Raises OptionError."""
    more, fewer = set(_names(enabled)), set(_names(disabled))
    known = {plugin.name: plugin for plugin in PLUGINS}
    for option, names in (("enable", more), ("disable", fewer)):
        for name in sorted(names):
            if name not in known:
                raise OptionError(
                    f"--{option}-admission-plugins: {name!r} is none; use {', '.join(sorted(known))}"
                )
            if option == "enable" and known[name].lacks:
                raise OptionError(f"--enable-admission-plugins: {name}: {known[name].lacks}")
    return (DEFAULT | more) - fewer


def _names(texts: list[str]) -> Iterator[str]:
    for text in texts:
        yield from (name.strip() for name in text.split(",") if name.strip())


def make_plugins(names: frozenset[str], around: Around) -> list[Plugin]:
    """The plugins of these names, in order, with what is no plugin there but part of how roles and updates are stored:
    that comes between what changes objects and what only looks."""
    access = around.access
    rights: list[Plugin] = [CreateRights(access.authorizer)]
    if access.rbac is not None:
        rights.insert(0, RoleEscalation(Escalation(access.rbac, access.authorizer)))
    found: list[Plugin] = []
    for named in PLUGINS:
        if named.name == "ValidatingAdmissionPolicy":
            found += rights
        if named.make is not None and named.name in names:
            found.append(named.make(around))
    return found
